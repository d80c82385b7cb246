"""Generate images at DashScope, with a single request or with a task that is polled until done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, TypeVar
from urllib.parse import quote

from jackfield.config import LLMConfig
from jackfield.errors import ModelServiceError, ModelTimeoutError
from jackfield.events import MediaDelta, ModelEvent, ModelFinished, UsageReported
from jackfield.messages import ContentItem, Usage
from jackfield.models import BaseChatModel, name_of_server, retry_request
from jackfield.request import ChatRequest
from jackfield.secrets import ForgetLocals
from jackfield_backends.prompts import image_prompt
from jackfield_dashscope.answer import usage_of
from jackfield_dashscope.config import DashScopeImagesConfig
from jackfield_dashscope.errors import error_in_answer, error_of_response
from jackfield_dashscope.server import DashScopeServer, find_server, native_url
from jackfield_http import Access, Failures, Opened, Post, Wire, json_bytes

T = TypeVar("T")

_TASKS = "/services/aigc/text2image/image-synthesis"
_AS_TASK: Mapping[str, str] = {"X-DashScope-Async": "enable"}
# Models that answer synchronously, as in the SDK; all others use tasks.
_AT_ONCE = ("wan2.6-t2i", "wan2.6-image")
_DONE, _RUNNING = "SUCCEEDED", ("PENDING", "RUNNING")
_LONGEST_PAUSE_S = 8.0
_DEFAULT_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class _Images:
    """The URLs of generated images, and the usage."""

    urls: Sequence[str]
    usage: Usage
    request_id: str | None


class TaskLostError(ModelTimeoutError):
    """The outcome of a task is unknown. The request is not retried, since it could be executed and billed twice."""

    retryable = False


class DashScopeImages(BaseChatModel):
    """Image generation model at DashScope. An answer contains URLs, which expire after a day.

    If the caller stops waiting for a task, the task continues on the server and is billed.
    """

    backend: ClassVar[str] = "dashscope_images"
    config_class: ClassVar[type[LLMConfig]] = DashScopeImagesConfig
    config: DashScopeImagesConfig

    @cached_property
    def _access(self) -> Access[DashScopeServer]:
        return Access(self._server, backend=self.backend)

    @property
    def server_name(self) -> str:
        """See `BaseChatModel`. The address may also come from the environment."""
        return name_of_server(self.backend, native_url(self.config))

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        """Yield the images once all of them are available."""
        images = await self._ask(request)
        for url in images.urls:
            yield MediaDelta(ContentItem(image=url))
        yield UsageReported(images.usage)
        yield ModelFinished("stop", request.model, images.request_id)

    async def aclose(self) -> None:
        """Close idle connections. The next call reopens them and looks up the key again."""
        await super().aclose()
        await self._access.aclose()

    def _server(self) -> DashScopeServer:
        return find_server(self.config, needed_by=f"backend {self.backend}", settings=self.host.settings)

    async def _ask(self, request: ChatRequest) -> _Images:
        with ForgetLocals():  # the settings may include a key
            opened = await self._access.open()
            prompt = image_prompt(request, takes=("seed",))
            if self._is_answered_at_once():
                post = self._request(request, opened.server, prompt)
                return _read(_images_in, *await self._exchange(request, opened, post))
            return await self._ask_by_task(request, opened, prompt)

    def _is_answered_at_once(self) -> bool:
        endpoint = self.config.endpoint
        return endpoint == "multimodal" if endpoint else self.config.model.startswith(_AT_ONCE)

    # --- a task ---

    async def _ask_by_task(self, request: ChatRequest, opened: Opened[DashScopeServer], prompt: str) -> _Images:
        inputs = {"prompt": prompt, "negative_prompt": self.config.negative_prompt}
        body = self._body(request, {name: value for name, value in inputs.items() if value is not None})
        post = Post(json_bytes(body), opened.server.url + _TASKS, _AS_TASK)
        task = _read(_task_in, *await self._exchange(request, opened, post))
        poll = Post(b"", f"{opened.server.url}/tasks/{quote(task, safe='')}", method="GET")
        pause_s = self.config.poll_interval
        try:
            async with asyncio.timeout(self.config.task_timeout):
                while True:
                    await asyncio.sleep(pause_s)
                    images = _read(_images_of_task, *await self._poll(request, opened, poll))
                    if images is not None:
                        return images
                    pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s)
        except TimeoutError:
            raise TaskLostError(
                f"{self.backend}: the task did not finish within {self.config.task_timeout:g} s: increase task_timeout",
                backend=self.backend,
            ) from None

    async def _poll(self, request: ChatRequest, opened: Opened[DashScopeServer], poll: Post) -> tuple[Any, Failures]:
        try:
            return await retry_request(
                partial(self._exchange, request, opened, poll), max_retries=request.config.max_retries
            )
        except ModelServiceError as error:
            if not error.retryable:
                raise
            raise TaskLostError(error.message, backend=self.backend, status=error.status) from error

    # --- one request ---

    def _request(self, request: ChatRequest, server: DashScopeServer, prompt: str) -> Post:
        body = self._body(request, {"messages": [{"role": "user", "content": [{"text": prompt}]}]})
        if self.config.negative_prompt is not None:
            body["parameters"] = {"negative_prompt": self.config.negative_prompt, **body["parameters"]}
        return Post(json_bytes(body), server.url + server.paths["multimodal"])

    def _body(self, request: ChatRequest, inputs: Mapping[str, Any]) -> Wire:
        size = self.config.size.lower().replace("x", "*") if self.config.size else None
        parameters = {"n": self.config.count, "size": size, "seed": request.config.seed}
        chosen = {name: value for name, value in parameters.items() if value is not None}
        return {"model": request.model, "input": dict(inputs), "parameters": {**chosen, **request.config.extra_body}}

    async def _exchange(
        self, request: ChatRequest, opened: Opened[DashScopeServer], post: Post
    ) -> tuple[Any, Failures]:
        extra = request.config.extra_headers
        timeout_s = request.config.request_timeout or _DEFAULT_TIMEOUT_S
        reply = await opened.exchange(post, extra=extra, timeout_s=timeout_s)
        failures = opened.failures(self.backend, reply.headers, extra=extra)
        if reply.status >= 300:
            raise error_of_response(failures, reply.status, reply.body)
        return reply.json(failures.secrets), failures


def _read(read: Callable[[Wire, Failures], T], wire: Any, failures: Failures) -> T:
    try:
        if wire.get("code"):
            raise error_in_answer(failures, wire, status=None)
        return read(wire, failures)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise _not_understood(failures) from error


def _task_in(wire: Wire, failures: Failures) -> str:
    task = wire["output"]["task_id"]
    if not task or not isinstance(task, str):
        raise _not_understood(failures)
    return task


def _images_of_task(wire: Wire, failures: Failures) -> _Images | None:
    """Return a task's images, or None while it is running.

    Raises:
        ModelServiceError: The task failed or is unknown to the server.
    """
    output = wire["output"]
    status = output["task_status"]
    if status in _RUNNING:
        return None
    if status != _DONE:
        problem = {"message": f"the task is {status}", **output}
        raise error_in_answer(failures, problem, status=None)
    urls = [result["url"] for result in output["results"] if result.get("url")]
    if not urls:  # each of several images may fail
        refused: Wire = next(iter(output["results"]), {})
        raise error_in_answer(failures, {"message": "the task generated no image", **refused}, status=None)
    return _check_urls(urls, wire)


def _images_in(wire: Wire, failures: Failures) -> _Images:
    parts = [part for choice in wire["output"]["choices"] for part in choice["message"]["content"]]
    urls = [part["image"] for part in parts if part.get("image")]
    if not urls:
        raise failures.wrong("the response contains no image: try again, or change the prompt")
    return _check_urls(urls, wire)


def _check_urls(urls: Sequence[Any], wire: Wire) -> _Images:
    if not all(isinstance(url, str) and url.startswith(("https://", "http://")) for url in urls):
        raise ValueError("the URL of an image cannot be fetched")
    return _Images(urls, usage_of(wire.get("usage") or {}), wire.get("request_id"))


def _not_understood(failures: Failures) -> ModelServiceError:
    return failures.wrong("the server's response does not follow DashScope's protocol: check base_url and endpoint")
