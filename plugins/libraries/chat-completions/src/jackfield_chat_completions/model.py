"""The base class for backends that speak Chat Completions over plain HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from jackfield.config import LLMConfig
from jackfield.errors import ConfigError, ModelServiceError
from jackfield.request import ChatRequest, ModelFacts
from jackfield_backends.known_models import find_model, with_configured
from jackfield_backends.known_prices import find_prices
from jackfield_chat_completions.answer import ChatReader
from jackfield_chat_completions.config import ChatCompletionsConfig
from jackfield_chat_completions.errors import error_of_response
from jackfield_chat_completions.profiles import Dialect, ServerProfile
from jackfield_chat_completions.wire import request_bytes
from jackfield_http import Failures, Post, Server
from jackfield_http.backend import Exchange, HTTPBackend

PATH = "/chat/completions"

_DIALECT = ("send_reasoning", "stream_usage", "max_tokens_key", "continuation")


@dataclass(frozen=True, slots=True)
class ChatServer(Server):
    """A server's address, headers and API key, along with its dialect."""

    dialect: Dialect = field(default_factory=Dialect)


class ChatCompletionsModel(HTTPBackend[ChatServer]):
    """A model on a server that speaks Chat Completions.

    Subclasses set `backend` and `profile`, which is enough for servers that need only an address and an API key. Others
    also override `server`.
    """

    config_class: ClassVar[type[LLMConfig]] = ChatCompletionsConfig
    profile: ClassVar[ServerProfile] = ServerProfile()
    config: ChatCompletionsConfig

    def server_profile(self) -> ServerProfile:
        """Return the server's profile, derived from the configuration alone."""
        return self.profile

    def server(self) -> ChatServer:
        """Return the server's address and credentials. Called in a worker thread on first use, and again after closing.

        Raises:
            ConfigError: The address is missing, or cannot be reached over HTTP.
            MissingSecretError: The server requires an API key, and none is set.
        """
        profile = self.server_profile()
        url = self.configured_url() or profile.url
        if not url:
            raise ConfigError(f"backend {self.backend} needs a URL: set base_url, as in http://127.0.0.1:8000/v1")
        key = self.find_key(url, profile.key_rule, needed=bool(profile.key))
        headers = {"authorization": f"Bearer {key.value}"} if key.value else {}
        return ChatServer(url + PATH, headers, key, self.dialect(profile))

    def dialect(self, profile: ServerProfile) -> Dialect:
        """Return the profile's dialect, overridden by the configuration."""
        dialect = profile.dialect
        chosen = {name: value for name in _DIALECT if (value := self._set(name)) is not None}
        return replace(dialect, **chosen, body={**dialect.body, **self._body()})

    def _body(self) -> dict[str, object]:
        body = {
            "modalities": list(self.config.modalities) or None,
            "audio": self.config.audio_output,
            "prompt_cache_key": self.config.prompt_cache_key,
        }
        return {key: value for key, value in body.items() if value is not None}

    async def alist_models(self) -> list[str]:
        """List the server's models; see `jackfield.models.ListsModels`."""
        return await self.fetch_model_ids(lambda server: f"{server.url.removesuffix(PATH)}/models")

    def read_facts(self) -> ModelFacts:
        """Return the model's facts as configured, else as known for the model, else from the server's profile."""
        known = find_model(self.model_table(), self.config.model)
        prices = find_prices(self, self.usual_url())
        return with_configured({**self.server_profile().facts, **known.facts, "prices": prices}, self.config)

    def usual_url(self) -> str:
        """Return the default address, or '' if there is none."""
        return self.server_profile().url

    def model_table(self) -> str:
        """Return the name of the table of facts about the server's models, or '' if there is none."""
        return self.server_profile().models

    def _set(self, name: str) -> Any:
        """Return a setting's value if it was set explicitly, else None."""
        return getattr(self.config, name) if name in self.config.model_fields_set else None

    def post(self, request: ChatRequest, server: ChatServer) -> Post:
        """See `HTTPBackend`."""
        return Post(request_bytes(request, server.dialect))

    def reader(self, exchange: Exchange[ChatServer]) -> ChatReader:
        """See `HTTPBackend`."""
        dialect = exchange.server.dialect
        return ChatReader(
            exchange.failures,
            sound_format=_sound_format(exchange.request, dialect),
            cost_currency=dialect.cost_currency,
            patience_s=exchange.patience_s,
        )

    def refusal(self, failures: Failures, status: int, body: bytes) -> ModelServiceError:
        """See `HTTPBackend`."""
        return error_of_response(failures, status, body, where=self.server_profile().where)

    def adjust_server(self, request: ChatRequest, server: ChatServer, status: int, body: bytes) -> ChatServer | None:
        """Return the server with the token limit renamed, if it rejected `max_tokens` and named the other key."""
        if (
            status == 400
            and request.config.max_tokens is not None
            and server.dialect.max_tokens_key == "max_tokens"
            and self._set("max_tokens_key") is None
            and b"max_tokens" in body
            and b"max_completion_tokens" in body
        ):
            return replace(server, dialect=replace(server.dialect, max_tokens_key="max_completion_tokens"))
        return None


def _sound_format(request: ChatRequest, dialect: Dialect) -> str:
    """Return the audio format that a request asks for, or '' for no audio."""
    asked = request.config.extra_body.get("audio", dialect.body.get("audio"))
    return str(asked.get("format") or "") if isinstance(asked, Mapping) else ""
