"""Ask a model by Chat Completions, over plain bytes: what a backend for one more provider extends."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from jackfield import sync
from jackfield.config import LLMConfig
from jackfield.errors import ConfigError
from jackfield.events import ModelEvent
from jackfield.models import BaseChatModel
from jackfield.models.media import is_local
from jackfield.plugins.host import PluginHost
from jackfield.processors import Processor
from jackfield.request import ChatRequest, ModelFacts
from jackfield.tracebacks import LocalsForgotten
from jackfield_backend.keys import FoundKey, KeyRule, find_key
from jackfield_backend.refusals import Secrets
from jackfield_chat_completions.answer import AnswerReader
from jackfield_chat_completions.config import ChatCompletionsConfig
from jackfield_chat_completions.errors import error_of_response
from jackfield_chat_completions.profiles import Dialect, ServerProfile
from jackfield_chat_completions.wire import request_bytes
from jackfield_http import PATIENCE, HeaderPairs, HTTPClient, checked_url, header_pairs, request_id_of

DEFAULT_TIMEOUT_S = 120.0
MAX_ERROR_BYTES = 65_536
PATH = "/chat/completions"
HEADERS: Mapping[str, str] = {
    "content-type": "application/json",
    "accept": "text/event-stream",
    "accept-encoding": "identity",  # what arrives is read as it is
    "user-agent": "jackfield",
}

_FACTS = ("native_tools", "images", "audio", "video", "json_schema", "reasoning")
_DIALECT = ("send_reasoning", "stream_usage", "max_tokens_key", "continuation")


@dataclass(frozen=True, slots=True)
class ChatServer:
    """Where requests go, and with what.

    Attributes:
        url: Of the endpoint, whole: `https://api.acme.example/v1/chat/completions`.
        headers: Those of every request, the key's among them.
        dialect: How the server is spoken to.
        key: The secret in the headers, which is taken out of errors; '' if there is none.
        withheld: Why a key that is set is not among them, for who is then not let in; '' if none was left out.
    """

    url: str
    headers: Mapping[str, str] = field(repr=False)
    dialect: Dialect = field(default_factory=Dialect)
    key: str = field(default="", repr=False)
    withheld: str = ""


@dataclass(frozen=True, slots=True)
class _Opened:
    server: ChatServer
    headers: HeaderPairs = field(repr=False)
    secrets: Secrets
    profile: ServerProfile
    client: HTTPClient

    def secrets_with(self, extra: Mapping[str, str]) -> Secrets:
        """What a request with these headers sends and no error may show."""
        return Secrets(self.server.key, headers={**self.server.headers, **extra}) if extra else self.secrets

    def headers_with(self, extra: Mapping[str, str]) -> HeaderPairs:
        """The headers of a request, `extra` among them; see `header_pairs`."""
        with LocalsForgotten():  # a key may be among them
            return header_pairs(self.server.headers, extra=extra) if extra else self.headers


class ChatCompletionsModel(BaseChatModel):
    """A model at a server that speaks Chat Completions.

    A backend sets `backend` and `profile`, and is done where the server wants no more than an address and a key. Others
    write `server`. One instance keeps its connections, per event loop, and opens as many as there are calls at once.
    """

    config_class: ClassVar[type[LLMConfig]] = ChatCompletionsConfig
    profile: ClassVar[ServerProfile] = ServerProfile()
    config: ChatCompletionsConfig

    def __init__(
        self,
        config: LLMConfig | Mapping[str, object],
        *,
        processors: Sequence[Processor] | None = None,
        host: PluginHost | None = None,
    ) -> None:
        with LocalsForgotten():  # a key may be among them
            super().__init__(config, processors=processors, host=host)
        self._facts = self._stated_facts()
        self._lock = threading.Lock()
        self._opened: _Opened | None = None

    @property
    def facts(self) -> ModelFacts:
        """As configured, else as the server's profile says."""
        return self._facts

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
        url = self.config.server_url or profile.url
        if not url:
            raise ConfigError(f"backend {self.backend} needs an address: set base_url, as in http://127.0.0.1:8000/v1")
        url = checked_url(url)
        found = self.find_key(url, profile.key_rule)
        key = found.or_missing(profile.key, needed_by=f"backend {self.backend}") if profile.key else found.value
        headers = {**HEADERS, "authorization": f"Bearer {key}"} if key else HEADERS
        return ChatServer(url + PATH, headers, self.dialect(profile), key)

    def find_key(self, url: str | None, rule: KeyRule) -> FoundKey:
        """The key for a server: the configured one, else the one that the rule lets go there.

        Raises:
            ConfigError: No header can carry it.
        """
        return find_key(url, rule, configured=self.config.api_key, settings=self.host.settings)

    def dialect(self, profile: ServerProfile) -> Dialect:
        """The profile's dialect with what the configuration sets put over it."""
        dialect = profile.dialect
        chosen = {name: value for name in _DIALECT if (value := self._set(name)) is not None}
        return replace(dialect, **chosen, body={**dialect.body, **self._body()})

    def _body(self) -> dict[str, Any]:
        body = {
            "modalities": list(self.config.modalities) or None,
            "audio": self.config.audio_output,
            "prompt_cache_key": self.config.prompt_cache_key,
        }
        return {key: value for key, value in body.items() if value is not None}

    def _stated_facts(self) -> ModelFacts:
        known = self.server_profile().facts
        facts = {name: known.get(name, getattr(self.config, name)) for name in _FACTS}
        chosen = {name: value for name in _FACTS if (value := self._set(name)) is not None}
        return ModelFacts(
            context_tokens=self.config.context_tokens, tokenizer=self.config.tokenizer, **{**facts, **chosen}
        )

    def _set(self, name: str) -> Any:
        """The value of a setting that somebody set; None for a default."""
        return getattr(self.config, name) if name in self.config.model_fields_set else None

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        """Ask once, always for a stream; a server that answers with one JSON object is understood, too."""
        # In a thread: it may import an SDK, which takes most of a second, in which the event loop has others to serve.
        opened = self._opened
        if opened is None:
            opened = await sync.shared_in_worker(self._open)
        headers = opened.headers_with(request.config.extra_headers)
        secrets = opened.secrets_with(request.config.extra_headers)
        timeout_s = request.config.request_timeout or DEFAULT_TIMEOUT_S
        while True:
            server = opened.server
            body = await _request_bytes(request, server.dialect)
            async with opened.client.post(server.url, body, headers, timeout_s=timeout_s) as response:
                if response.status >= 300:
                    refusal = await response.read(limit=MAX_ERROR_BYTES)
                    if self._wants_other_limit(request, server.dialect, response.status, refusal):
                        opened = self._with_other_limit(opened)
                        continue
                    raise error_of_response(
                        response.status,
                        response.headers,
                        refusal,
                        self.backend,
                        key=secrets,
                        variable=opened.profile.key,
                        withheld=server.withheld,
                        where=opened.profile.where,
                    )
                reader = AnswerReader(
                    self.backend,
                    key=secrets,
                    variable=opened.profile.key,
                    request_id=request_id_of(response.headers),
                    sound_format=_sound_format(request, server.dialect),
                    cost_currency=server.dialect.cost_currency,
                    patience_s=request.config.event_timeout or timeout_s * PATIENCE,
                )
                is_json = response.headers.get("content-type", "").startswith("application/json")
                for event in reader.whole(await opened.client.body_of(response)) if is_json else ():
                    yield event
                async for piece in response.pieces:
                    for event in reader.feed(piece):
                        yield event
                    if reader.done:
                        break
                response.release()
                for event in reader.finish():
                    yield event
                return

    def _wants_other_limit(self, request: ChatRequest, dialect: Dialect, status: int, refusal: bytes) -> bool:
        """Whether the server refuses `max_tokens` and names `max_completion_tokens`: deployments do not say."""
        return (
            status == 400
            and request.config.max_tokens is not None
            and dialect.max_tokens_key == "max_tokens"
            and self._set("max_tokens_key") is None
            and b"max_tokens" in refusal
            and b"max_completion_tokens" in refusal
        )

    def _with_other_limit(self, opened: _Opened) -> _Opened:
        """The same server, spoken to with the other name of the limit; later calls begin with it."""
        dialect = replace(opened.server.dialect, max_tokens_key="max_completion_tokens")
        changed = replace(opened, server=replace(opened.server, dialect=dialect))
        with self._lock:
            if self._opened is opened:
                self._opened = changed
        return changed

    async def aclose(self) -> None:
        """Close the idle connections; the next call opens new ones, with the key as it is then."""
        await super().aclose()
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            await opened.client.aclose()

    def _open(self) -> _Opened:
        with LocalsForgotten(), self._lock:  # a key is among them
            if self._opened is not None:
                return self._opened
            server = self.server()
            client = HTTPClient(server.url, backend=self.backend)
            secrets = Secrets(server.key, headers=server.headers)
            headers = header_pairs(server.headers)
            opened = self._opened = _Opened(server, headers, secrets, self.server_profile(), client)
            return opened


def _sound_format(request: ChatRequest, dialect: Dialect) -> str:
    """The format of sound that the request asks for, '' if it asks for none."""
    asked = request.config.extra_body.get("audio", dialect.body.get("audio"))
    return str(asked.get("format") or "") if isinstance(asked, Mapping) else ""


async def _request_bytes(request: ChatRequest, dialect: Dialect) -> bytes:
    contents = (message.content for message in request.messages if not isinstance(message.content, str))
    if any(is_local(item) for content in contents for item in content):
        return await sync.in_worker(request_bytes, request, dialect)
    return request_bytes(request, dialect)
