"""Call models over the Responses API, with the openai SDK's settings but without its typed layer."""

from __future__ import annotations

from typing import ClassVar

from jackfield.config import LLMConfig
from jackfield.errors import ModelServiceError
from jackfield.request import ChatRequest, ModelFacts
from jackfield_backends.known_models import find_model, with_configured
from jackfield_backends.known_prices import find_prices
from jackfield_chat_completions.errors import error_of_response
from jackfield_http import Failures, Post, Server, json_bytes
from jackfield_http.backend import Exchange, HTTPBackend
from jackfield_http.keys import KeyRule
from jackfield_openai.responses.answer import ResponsesReader
from jackfield_openai.responses.config import ResponsesConfig
from jackfield_openai.responses.wire import request_body
from jackfield_openai.sdk import KEY_RULE, OPENAI_URL, openai_table, sdk_server

PATH = "/responses"


class OpenAIResponses(HTTPBackend[Server]):
    """Chat model at OpenAI or any server that supports the Responses API."""

    backend: ClassVar[str] = "openai_responses"
    config_class: ClassVar[type[LLMConfig]] = ResponsesConfig
    key_rule: ClassVar[KeyRule] = KEY_RULE
    config: ResponsesConfig

    def read_facts(self) -> ModelFacts:
        """Return the known facts of OpenAI's models, overridden by the configuration."""
        known = find_model(openai_table(self.config), self.config.model)
        return with_configured({**known.facts, "prices": find_prices(self, OPENAI_URL)}, self.config)

    def server(self) -> Server:
        """See `HTTPBackend`. The server is determined from the SDK's settings."""
        return sdk_server(PATH, self, self.config)

    async def alist_models(self) -> list[str]:
        """List the server's models; see `jackfield.models.ListsModels`."""
        return await self.fetch_model_ids(lambda server: f"{server.url.removesuffix(PATH)}/models")

    def post(self, request: ChatRequest, _: Server) -> Post:
        """See `HTTPBackend`."""
        return Post(json_bytes(request_body(request, self.config)))

    def reader(self, exchange: Exchange[Server]) -> ResponsesReader:
        """See `HTTPBackend`."""
        return ResponsesReader(exchange.failures, server=exchange.request.server, patience_s=exchange.patience_s)

    def refusal(self, failures: Failures, status: int, body: bytes) -> ModelServiceError:
        """See `HTTPBackend`."""
        return error_of_response(failures, status, body)
