"""Services other than chat: a JSON object is sent, and one comes back."""

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
    """One service, one model.

    Args:
        path: Its path, relative to the base URL.
        answers: The `msgspec.Struct` of its answers.
        config: Which model, with which API key, and how often to retry.
        backend: The backend's name, for errors.
        name: The component as a user knows it: its kind and its name.
        settings: Where the API key is looked up if the configuration has none.
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
        """Ask, and retry where that can help and is allowed.

        Args:
            inputs: The input for the model.
            parameters: Options. Those that are None are not sent, and the configuration's `extra_body` wins.

        Raises:
            ModelServiceError: The server failed or refused.
            ConfigError: There is no API key, or a setting is not valid.
        """
        given = {key: value for key, value in parameters.items() if value is not None}
        body = json_bytes({"model": self._config.model, "input": inputs, "parameters": given | self._config.extra_body})
        return await retry_request(partial(self._asked_once, body), max_retries=self._config.max_retries)

    async def aclose(self) -> None:
        """Close the connections; the next call opens new ones, with the API key as it is then."""
        await self._access.aclose()

    async def _asked_once(self, body: bytes) -> AnswerT:
        with ForgetLocals():  # what the server sent is among them
            return await self._ask_once(body)

    async def _ask_once(self, body: bytes) -> AnswerT:
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
    """The error for another form: an error that calls itself a success, or what is none of DashScope's."""
    said = reply.json(failures.secrets)
    if isinstance(said, dict) and said.get("code"):
        return error_in_answer(failures, said, status=None)
    return failures.wrong("the server's answer does not follow DashScope's protocol: check base_url")
