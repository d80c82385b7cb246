"""Call models over the Messages protocol, without an SDK."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from jackfield import sync
from jackfield.config import LLMConfig
from jackfield.errors import ConfigError, ModelServiceError
from jackfield.messages import Messages
from jackfield.models import retry_request
from jackfield.request import ChatRequest, FunctionSchema, GenerateOptions, ModelFacts
from jackfield_anthropic.answer import MessagesReader
from jackfield_anthropic.config import AnthropicConfig
from jackfield_anthropic.errors import error_of_response
from jackfield_anthropic.wire import (
    BINDING_FEATURE,
    Abilities,
    countable_body,
    drop_stale_reasoning,
    request_body,
    thinking_of,
)
from jackfield_backends.known_models import UNKNOWN, find_model, with_configured
from jackfield_backends.known_prices import find_prices
from jackfield_http import AnswerReader, Failures, Post, Server, count_of, json_bytes, json_value
from jackfield_http.backend import DEFAULT_TIMEOUT_S, Exchange, HTTPBackend
from jackfield_http.keys import KeyRule, find_key, is_at

ANTHROPIC_URL = "https://api.anthropic.com"
HOSTS = ("api.anthropic.com",)
KEY_VARIABLE = "ANTHROPIC_API_KEY"
TOKEN_VARIABLE = "ANTHROPIC_AUTH_TOKEN"  # noqa: S105 - the name of a variable


_STALE_REASONING = b"bound to a different conversation"


@dataclass(frozen=True, slots=True)
class AnthropicServer(Server):
    """An Anthropic-compatible server.

    Attributes:
        drops_stale_reasoning: True once requests ask the server to drop reasoning whose history has changed.
    """

    drops_stale_reasoning: bool = False


class AnthropicChat(HTTPBackend[AnthropicServer]):
    """Chat model at Anthropic or any server with the same protocol."""

    backend: ClassVar[str] = "anthropic"
    config_class: ClassVar[type[LLMConfig]] = AnthropicConfig
    key_rule: ClassVar[KeyRule] = KeyRule(KEY_VARIABLE, HOSTS, "ANTHROPIC_BASE_URL")
    config: AnthropicConfig

    def server(self) -> AnthropicServer:
        """Return the server, with an API key or a token. Servers other than Anthropic's may need neither.

        Raises:
            ConfigError: Both an API key and a token are configured.
            MissingSecretError: Anthropic requires a key, and none is set.
        """
        url = self.configured_url() or ANTHROPIC_URL
        headers = {"anthropic-version": self.config.version}
        if self.config.beta:
            headers["anthropic-beta"] = ",".join(self.config.beta)
        if self.config.api_key and self.config.auth_token:
            raise ConfigError("api_key and auth_token are both set, but a request can use only one: remove one")
        # A configured key takes precedence over a token in the environment.
        rule = replace(self.key_rule, variable="" if self.config.api_key else TOKEN_VARIABLE)
        key = find_key(url, rule, configured=self.config.auth_token, settings=self.host.settings)
        if key.value:
            headers["authorization"] = f"Bearer {key.value}"
        else:
            key = self.find_key(url, needed=is_at(url, HOSTS))
            if key.value:
                headers["x-api-key"] = key.value
        # A URL may include the version, as for other backends, or omit it, as for Anthropic's own libraries.
        path = "/messages" if url.endswith("/v1") else "/v1/messages"
        return AnthropicServer(url + path, headers, key)

    def read_facts(self) -> ModelFacts:
        """Return the model's known facts, overridden by the configuration.

        Raises:
            ConfigError: The model does not support the configured kind of thinking.
        """
        model, kind = self.config.model, thinking_of(self.config)
        known = find_model("anthropic", model)
        facts = with_configured({**known.facts, "prices": find_prices(self, ANTHROPIC_URL)}, self.config)
        self._abilities = Abilities.read(known.details, refuses_schemas=known is not UNKNOWN and not facts.json_schema)
        kinds = self._abilities.thinking
        if kind is not None and kinds is not None and kind not in (*kinds, *([] if kinds else ["disabled"])):
            instead = f"set thinking to {' or '.join(kinds)}" if kinds else "remove thinking and thinking_budget"
            raise ConfigError(f"{model} does not support {kind!r} thinking: {instead}")
        return replace(facts, forced_calls=False) if kind == "enabled" else facts

    def post(self, request: ChatRequest, server: AnthropicServer) -> Post:
        """See `HTTPBackend`."""
        body = request_body(request, self.config, self._abilities)
        if not (server.drops_stale_reasoning and drop_stale_reasoning(body)):
            return Post(json_bytes(body))
        return Post(json_bytes(body), headers={"anthropic-beta": ",".join((*self.config.beta, BINDING_FEATURE))})

    def adjust_server(
        self,
        request: ChatRequest,  # noqa: ARG002 - required by the base class
        server: AnthropicServer,
        status: int,
        body: bytes,
    ) -> AnthropicServer | None:
        """Ask the server to drop reasoning if it refused a request because the history before the reasoning changed."""
        if status != 400 or server.drops_stale_reasoning or _STALE_REASONING not in body:
            return None
        return replace(server, drops_stale_reasoning=True)

    def reader(self, exchange: Exchange[AnthropicServer]) -> MessagesReader:
        """See `HTTPBackend`."""
        return MessagesReader(exchange)

    def resume(self, request: ChatRequest, reader: AnswerReader) -> ChatRequest | None:
        """Return the request for the rest of an answer that the server paused while running its own tools."""
        return reader.rest_of(request) if isinstance(reader, MessagesReader) and reader.is_paused else None

    def refusal(self, failures: Failures, status: int, body: bytes) -> ModelServiceError:
        """See `HTTPBackend`."""
        return error_of_response(failures, status, body)

    async def alist_models(self) -> list[str]:
        """List the server's models; see `jackfield.models.ListsModels`."""
        return await self.fetch_model_ids(lambda server: f"{server.url.removesuffix('/messages')}/models?limit=1000")

    # --- counting ---

    async def acount_tokens(
        self, messages: Messages, functions: Sequence[FunctionSchema] = (), *, config: GenerateOptions = None
    ) -> int:
        """Return the server's count of prompt tokens for a request, which processors do not modify.

        Args:
            messages, functions, config: See `acomplete`.

        Raises:
            ModelServiceError: The server failed, or does not support counting.
        """
        request = self.make_request(messages, functions, config=config)
        options = request.config

        async def ask() -> int:
            opened = await self.access.open()
            body = await sync.in_worker(request_body, request, self.config, self._abilities)
            post = Post(json_bytes(countable_body(body)), f"{opened.server.url}/count_tokens")
            timeout_s = options.request_timeout or DEFAULT_TIMEOUT_S
            reply = await opened.exchange(post, extra=options.extra_headers, timeout_s=timeout_s)
            failures = opened.failures(self.backend, reply.headers, extra=options.extra_headers)
            if reply.status >= 300:
                raise self.refusal(failures, reply.status, reply.body)
            try:
                return count_of(json_value(reply.body)["input_tokens"])
            except (LookupError, TypeError, ValueError):
                raise failures.unreadable(reply.body, advice=MessagesReader.advice) from None

        return await retry_request(ask, max_retries=options.max_retries)

    def count_tokens(
        self, messages: Messages, functions: Sequence[FunctionSchema] = (), *, config: GenerateOptions = None
    ) -> int:
        """Synchronous version of `acount_tokens`."""
        return sync.run(self.acount_tokens(messages, functions, config=config))
