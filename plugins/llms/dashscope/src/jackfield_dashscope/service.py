"""Call DashScope services other than chat, which exchange JSON objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec

from jackfield.errors import ModelServiceError
from jackfield.models import retry_request
from jackfield.secrets import ForgetLocals
from jackfield.settings import Settings
from jackfield_dashscope.config import ServiceConfig
from jackfield_dashscope.errors import error_in_answer, error_of_response
from jackfield_dashscope.server import find_server
from jackfield_http import Access, Failures, Post, Reply, json_bytes

AnswerT = TypeVar("AnswerT")


class Service(Generic[AnswerT]):
    """Client for one service and one model.

    Args:
        path: The service's path, relative to the base URL.
        answers: The `msgspec.Struct` type of the service's answers.
        config: The model, the API key, and the number of retries.
        backend: The backend's name, for error messages.
        name: The kind and name of the component, for error messages.
        settings: Returns the settings in which to look up an API key that is not configured.
    """

    def __init__(
        self,
        path: str,
        answers: type[AnswerT],
        config: ServiceConfig,
        *,
        backend: str,
        name: str,
        settings: Callable[[], Settings],
    ) -> None:
        self._path = path
        self._decoder = msgspec.json.Decoder(answers)
        self._config = config
        self._backend = backend
        self._access = Access(lambda: find_server(config, needed_by=name, settings=settings()), backend=backend)

    async def ask(self, inputs: Mapping[str, Any], parameters: Mapping[str, Any]) -> AnswerT:
        """Send a request, and retry it after transient failures as configured.

        Args:
            inputs: The model's input.
            parameters: Options, except that None values are omitted. The configuration's `extra_body` takes precedence.

        Raises:
            ModelServiceError: The server failed or refused the request.
            ConfigError: There is no API key, or a setting is invalid.
        """
        chosen = {key: value for key, value in parameters.items() if value is not None}
        body = json_bytes(
            {"model": self._config.model, "input": inputs, "parameters": chosen | self._config.extra_body}
        )
        return await retry_request(partial(self._ask_once, body), max_retries=self._config.max_retries)

    async def aclose(self) -> None:
        """Close all connections. The next call reopens them and looks up the API key again."""
        await self._access.aclose()

    async def _ask_once(self, body: bytes) -> AnswerT:
        with ForgetLocals():  # local variables hold the server's answer
            return await self._exchange(body)

    async def _exchange(self, body: bytes) -> AnswerT:
        server, extra = await self._access.open(), self._config.extra_headers
        post = Post(body, server.server.url + self._path)
        reply = await server.exchange(post, extra=extra, timeout_s=self._config.request_timeout)
        failures = server.failures(self._backend, reply.headers, extra=extra)
        if reply.status >= 300:
            raise error_of_response(failures, reply.status, reply.body)
        try:
            return self._decoder.decode(reply.body)
        except (ValueError, RecursionError) as error:
            raise _no_answer(reply, failures) from error


def _no_answer(reply: Reply, failures: Failures) -> ModelServiceError:
    """Return the error for an unexpected response: an error with status 200, or a response from some other server."""
    value = reply.json(failures.secrets)
    if isinstance(value, dict) and value.get("code"):
        return error_in_answer(failures, value, status=None)
    return failures.wrong("the server's response does not follow DashScope's protocol: check base_url")
