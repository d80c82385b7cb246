"""Call models at DashScope over plain HTTP, with the settings and headers of its SDK."""

from __future__ import annotations

from typing import Any, ClassVar

from jackfield.config import LLMConfig
from jackfield.errors import ModelServiceError
from jackfield.request import ChatRequest, ModelFacts
from jackfield_backends.known_models import UNKNOWN, KnownModel, find_model, with_configured
from jackfield_backends.known_prices import find_prices
from jackfield_dashscope.answer import DashScopeReader
from jackfield_dashscope.config import DashScopeConfig
from jackfield_dashscope.errors import error_of_response
from jackfield_dashscope.server import KEY_RULE, DashScopeServer, find_server, usual_url
from jackfield_dashscope.wire import dialect_of, request_bytes
from jackfield_http import Failures, Post
from jackfield_http.backend import Exchange, HTTPBackend, ModelPage, with_query
from jackfield_http.keys import KeyRule

UNKNOWN_VISION = KnownModel(facts={"images": True, "video": True}, details={"endpoint": "multimodal"})
UNKNOWN_AUDIO = KnownModel(facts={"audio": True}, details={"endpoint": "multimodal"})


class QwenChat(HTTPBackend[DashScopeServer]):
    """Chat model at DashScope. Unknown models are assumed to accept only text."""

    backend: ClassVar[str] = "qwen_dashscope"
    config_class: ClassVar[type[LLMConfig]] = DashScopeConfig
    key_rule: ClassVar[KeyRule] = KEY_RULE
    unknown: ClassVar[KnownModel] = UNKNOWN
    config: DashScopeConfig

    def read_facts(self) -> ModelFacts:
        """Return the model's known facts, overridden by the configuration."""
        known = find_model("dashscope", self.config.model)
        self._known = self.unknown if known is UNKNOWN else known
        facts = {"reasoning": True, **self._known.facts, "prices": find_prices(self, usual_url(self.config))}
        return with_configured(facts, self.config)

    def server(self) -> DashScopeServer:
        """See `HTTPBackend`."""
        return find_server(self.config, needed_by=f"backend {self.backend}", settings=self.host.settings)

    def post(self, request: ChatRequest, server: DashScopeServer) -> Post:
        """See `HTTPBackend`."""
        endpoint = self.config.endpoint or (
            "multimodal" if _has_media(request) else self._known.details.get("endpoint", "text")
        )
        dialect = dialect_of(self.config, server.stream_parameters, in_parts=endpoint == "multimodal")
        body = request_bytes(request, dialect)
        # The server resolves URLs in the provider's own storage only on request.
        resolve = {"x-dashscope-ossresourceresolve": "enable"} if b'"oss://' in body else {}
        return Post(body, server.url + server.paths[endpoint], {**server.stream_headers, **resolve})

    def reader(self, exchange: Exchange[DashScopeServer]) -> DashScopeReader:
        """See `HTTPBackend`."""
        return DashScopeReader(exchange.failures, exchange.request.model, patience_s=exchange.patience_s)

    def refusal(self, failures: Failures, status: int, body: bytes) -> ModelServiceError:
        """See `HTTPBackend`."""
        return error_of_response(failures, status, body)

    async def alist_models(self) -> list[str]:
        """List the server's models; see `jackfield.models.ListsModels`."""
        return await self.fetch_model_ids(lambda server: f"{server.url}/models?page_no=1&page_size=100", _read_page)


class QwenVLChat(QwenChat):
    """Chat model at DashScope. Unknown models are assumed to accept images and video."""

    backend: ClassVar[str] = "qwenvl_dashscope"
    unknown: ClassVar[KnownModel] = UNKNOWN_VISION

    async def alist_models(self) -> list[str]:
        """List the server's models, except those known not to accept images."""
        return [name for name in await super().alist_models() if _may_take(name, "images")]


class QwenAudioChat(QwenChat):
    """Chat model at DashScope. Unknown models are assumed to accept audio."""

    backend: ClassVar[str] = "qwenaudio_dashscope"
    unknown: ClassVar[KnownModel] = UNKNOWN_AUDIO

    async def alist_models(self) -> list[str]:
        """List the server's models, except those known not to accept audio."""
        return [name for name in await super().alist_models() if _may_take(name, "audio")]


def _read_page(value: Any, url: str) -> ModelPage:
    output = value["output"]
    names = [str(entry["model"]) for entry in output["models"]]
    is_last = output["page_no"] * output["page_size"] >= output["total"]
    return ModelPage(names, None if is_last else with_query(url, page_no=output["page_no"] + 1))


def _may_take(model: str, fact: str) -> bool:
    known = find_model("dashscope", model)
    return known is UNKNOWN or known.facts.get(fact, False) is True


def _has_media(request: ChatRequest) -> bool:
    contents = (message.content for message in request.messages if not isinstance(message.content, str))
    return any(item.is_media_content() for content in contents for item in content)
