"""Ask a model by Chat Completions, over plain bytes: what a backend for one more provider extends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from jackfield.config import LLMConfig
from jackfield.errors import ConfigError, ModelServiceError
from jackfield.request import ChatRequest, ModelFacts
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
    """Where requests go, with what, and how the server is spoken to (`dialect`)."""

    dialect: Dialect = field(default_factory=Dialect)


class ChatCompletionsModel(HTTPBackend[ChatServer]):
    """A model at a server that speaks Chat Completions.

    A backend sets `backend` and `profile`, and is done where the server wants no more than an address and a key. Others
    write `server`.
    """

    config_class: ClassVar[type[LLMConfig]] = ChatCompletionsConfig
    profile: ClassVar[ServerProfile] = ServerProfile()
    config: ChatCompletionsConfig

    def server_profile(self) -> ServerProfile:
        """The kind of server that is asked; asked once, and decided by the configuration alone."""
        return self.profile

    def server(self) -> ChatServer:
        """Where the server is, and how one is let in. The first call asks it, in a worker thread.

        Raises:
            ConfigError: The configuration names no address, or none that HTTP can reach.
            MissingSecretError: The server needs a key, and there is none.
        """
        profile = self.server_profile()
        url = self.given_url() or profile.url
        if not url:
            raise ConfigError(f"backend {self.backend} needs an address: set base_url, as in http://127.0.0.1:8000/v1")
        key = self.find_key(url, profile.key_rule, needed=bool(profile.key))
        headers = {"authorization": f"Bearer {key.value}"} if key.value else {}
        return ChatServer(url + PATH, headers, key, self.dialect(profile))

    def dialect(self, profile: ServerProfile) -> Dialect:
        """The profile's dialect with what the configuration sets put over it."""
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

    def stated_facts(self) -> ModelFacts:
        """As configured, else as the server's profile says."""
        known: dict[str, Any] = {
            name: fact for name, fact in self.server_profile().facts.items() if self._set(name) is None
        }
        return replace(super().stated_facts(), **known)

    def _set(self, name: str) -> Any:
        """The value of a setting that somebody set; None for a default."""
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

    def otherwise(self, request: ChatRequest, server: ChatServer, status: int, body: bytes) -> ChatServer | None:
        """With the other name of the limit, if the server refuses `max_tokens` and names it: deployments do not say."""
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
    """The format of sound that the request asks for, '' if it asks for none."""
    asked = request.config.extra_body.get("audio", dialect.body.get("audio"))
    return str(asked.get("format") or "") if isinstance(asked, Mapping) else ""
