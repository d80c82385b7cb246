"""Ask a model over the Messages protocol, without an SDK."""

from __future__ import annotations

from typing import ClassVar

from jackfield.config import LLMConfig
from jackfield.errors import ModelServiceError
from jackfield.request import ChatRequest
from jackfield_anthropic.answer import MessagesReader
from jackfield_anthropic.config import AnthropicConfig
from jackfield_anthropic.errors import error_of_response
from jackfield_anthropic.wire import request_body
from jackfield_http import Failures, Post, Server, json_bytes
from jackfield_http.backend import Exchange, HTTPBackend
from jackfield_http.keys import KeyRule, is_at

ANTHROPIC_URL = "https://api.anthropic.com"
HOSTS = ("api.anthropic.com",)


class AnthropicChat(HTTPBackend[Server]):
    """A model at Anthropic, or at any server that speaks its protocol."""

    backend: ClassVar[str] = "anthropic"
    config_class: ClassVar[type[LLMConfig]] = AnthropicConfig
    key_rule: ClassVar[KeyRule] = KeyRule("ANTHROPIC_API_KEY", HOSTS, "ANTHROPIC_BASE_URL")
    config: AnthropicConfig

    def server(self) -> Server:
        """See `HTTPBackend`; servers other than Anthropic's may need no API key."""
        url = self.configured_url() or ANTHROPIC_URL
        key = self.find_key(url, needed=is_at(url, HOSTS))
        headers = {"anthropic-version": self.config.version}
        if key.value:
            headers["x-api-key"] = key.value
        if self.config.beta:
            headers["anthropic-beta"] = ",".join(self.config.beta)
        # Addresses are given with the version, as for other backends, and without, as for Anthropic's own libraries.
        return Server(f"{url}/messages" if url.endswith("/v1") else f"{url}/v1/messages", headers, key)

    def post(self, request: ChatRequest, _: Server) -> Post:
        """See `HTTPBackend`."""
        return Post(json_bytes(request_body(request, self.config)))

    def reader(self, exchange: Exchange[Server]) -> MessagesReader:
        """See `HTTPBackend`."""
        request = exchange.request
        return MessagesReader(
            exchange.failures, server=request.server, model=request.model, patience_s=exchange.patience_s
        )

    def refusal(self, failures: Failures, status: int, body: bytes) -> ModelServiceError:
        """See `HTTPBackend`."""
        return error_of_response(failures, status, body)
