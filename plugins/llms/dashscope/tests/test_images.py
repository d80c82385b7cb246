"""Models that make images, asked as DashScope documents it, on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from jackfield import sync
from jackfield.errors import (
    ContentFilterError,
    MissingSecretError,
    ModelAuthError,
    ModelResponseError,
    ModelServiceError,
    UnsupportedInputError,
)
from jackfield.messages import ModelResponse
from jackfield.plugins import PluginHost
from jackfield.processors import Processor
from jackfield.settings import Settings
from jackfield_dashscope import images
from jackfield_dashscope.images import DashScopeImages, TaskLostError
from jackfield_testkit.web import WebAnswer, WebRequest, WebServer

IMAGE = "https://dashscope-result.example/1.png?Expires=1"
TASKS = "/api/v1/services/aigc/text2image/image-synthesis"
AT_ONCE = "/api/v1/services/aigc/multimodal-generation/generation"


def of_task(status: str, **more: Any) -> WebAnswer:
    return WebAnswer.json({"request_id": "r2", "output": {"task_id": "t-1", "task_status": status, **more}})


@pytest.fixture
def web(clean_environment: pytest.MonkeyPatch) -> Iterator[WebServer]:
    with WebServer() as server:
        server.put(TASKS, of_task("PENDING"))
        server.put("/api/v1/tasks/t-1", of_task("SUCCEEDED", results=[{"url": IMAGE, "orig_prompt": "x"}]))
        yield server


def ask(web: WebServer, question: Any = "花店", *, options: Any = None, **config: Any) -> ModelResponse:
    settings = {"model": "wan2.2-t2i", "base_url": f"{web.url}/api/v1", "api_key": "sk-images-1234", **config}
    settings = {"poll_interval": 0.001, "generate_cfg": {"max_retries": 0}, **settings}
    model = DashScopeImages(settings, host=PluginHost(Settings()))

    async def once() -> ModelResponse:
        try:
            return await model.acomplete(question, config=options)
        finally:
            await model.aclose()

    return sync.run(once())


def test_its_server_may_come_from_the_environment(clean_environment: pytest.MonkeyPatch) -> None:
    def server_of(**config: Any) -> str:
        return DashScopeImages({"model": "wan2.2-t2i", **config}, host=PluginHost(Settings())).server_name

    clean_environment.setenv("DASHSCOPE_HTTP_URL", "https://dashscope-intl.example/api/v1")
    assert server_of() == "dashscope_images@dashscope-intl.example"
    assert server_of(base_url="http://localhost:8000/api/v1") == "dashscope_images@localhost:8000"


def test_a_task_is_given_and_asked_about_until_it_is_done(web: WebServer) -> None:
    states = [of_task("PENDING"), of_task("RUNNING"), of_task("SUCCEEDED", results=[{"url": IMAGE}])]
    web.put("/api/v1/tasks/t-1", lambda _: states.pop(0))
    answer = ask(
        web, size="1024X768", negative_prompt="people", options={"seed": 7, "extra_body": {"watermark": False}}
    )
    assert [item.image for item in answer.messages[0].items] == [IMAGE]
    assert (answer.finish_reason, answer.response_id) == ("stop", "r2")
    given, *asked = web.requests
    assert (given.method, given.path, given.headers["x-dashscope-async"]) == ("POST", TASKS, "enable")
    assert given.headers["authorization"] == "Bearer sk-images-1234"
    assert given.json == {
        "model": "wan2.2-t2i",
        "input": {"prompt": "花店", "negative_prompt": "people"},
        "parameters": {"n": 1, "size": "1024*768", "seed": 7, "watermark": False},
    }
    assert [(request.method, request.path) for request in asked] == [("GET", "/api/v1/tasks/t-1")] * 3
    assert "x-dashscope-async" not in asked[0].headers


@pytest.mark.parametrize("config", [{"model": "wan2.6-t2i"}, {"model": "qwen-image", "endpoint": "multimodal"}])
def test_some_models_answer_at_once(web: WebServer, config: dict[str, Any]) -> None:
    content = [{"image": IMAGE}, {"text": "a flower shop"}]
    wire = {"request_id": "r1", "output": {"choices": [{"message": {"content": content}}]}, "usage": {"image_count": 1}}
    web.put(AT_ONCE, WebAnswer.json(wire))
    asked = [{"role": "system", "content": "Pastel."}, {"role": "user", "content": "花店"}]
    extra = {"extra_body": {"negative_prompt": "cars"}}
    answer = ask(web, asked, count=2, negative_prompt="people", options=extra, **config)
    assert [item.image for item in answer.messages[0].items] == [IMAGE]
    (request,) = web.requests
    assert request.json == {
        "model": config["model"],
        "input": {"messages": [{"role": "user", "content": [{"text": "Pastel.\n\n花店"}]}]},
        "parameters": {"n": 2, "negative_prompt": "cars"},
    }


def test_the_endpoint_that_is_configured_counts_and_each_choice_may_be_an_image(web: WebServer) -> None:
    assert [item.image for item in ask(web, model="wan2.6-t2i", endpoint="text2image").messages[0].items] == [IMAGE]
    assert web.requests[0].path == TASKS
    choices = [{"message": {"content": [{"image": f"https://h/{number}.png"}]}} for number in range(2)]
    web.put(AT_ONCE, WebAnswer.json({"output": {"choices": choices}}))
    answer = ask(web, endpoint="multimodal", count=2)
    assert [item.image for item in answer.messages[0].items] == ["https://h/0.png", "https://h/1.png"]


def test_a_parameter_of_the_server_wins_over_a_setting(web: WebServer) -> None:
    ask(web, count=2, size="1024x768", options={"seed": 7, "extra_body": {"n": 1, "size": "auto", "seed": 8}})
    assert web.requests[0].json["parameters"] == {"n": 1, "size": "auto", "seed": 8}


def test_no_secret_that_a_server_repeats_is_shown(web: WebServer) -> None:
    web.put(TASKS, WebAnswer.json({"code": "New", "message": "no sk-images-1234 and no tok-do-not-show"}, status=400))
    with pytest.raises(ModelServiceError, match=r"no \[key\] and no \[key\]"):
        ask(web, options={"extra_headers": {"x-token": "tok-do-not-show"}})


def test_the_id_of_a_task_is_one_part_of_its_address(web: WebServer) -> None:
    web.put(TASKS, WebAnswer.json({"output": {"task_id": "a/../b?c", "task_status": "PENDING"}}))
    web.put("/api/v1/tasks/a%2F..%2Fb%3Fc", of_task("SUCCEEDED", results=[{"url": IMAGE}]))
    assert ask(web).messages[0].items[0].image == IMAGE


def test_of_several_images_those_that_were_made_are_given(web: WebServer) -> None:
    refused = {"code": "DataInspectionFailed", "message": "Output data may contain inappropriate content."}
    web.put("/api/v1/tasks/t-1", of_task("SUCCEEDED", results=[refused, {"url": IMAGE}]))
    assert [item.image for item in ask(web, count=2).messages[0].items] == [IMAGE]
    web.put("/api/v1/tasks/t-1", of_task("SUCCEEDED", results=[refused, refused]))
    with pytest.raises(ContentFilterError, match="inappropriate content"):
        ask(web, count=2)


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (of_task("FAILED", code="DataInspectionFailed", message="Not allowed."), ContentFilterError, "Not allowed"),
        (of_task("FAILED", code="InternalError", message="Oops."), ModelServiceError, "Oops"),
        (of_task("UNKNOWN"), ModelServiceError, "the task is UNKNOWN"),
        (of_task("CANCELED"), ModelServiceError, "the task is CANCELED"),
        (WebAnswer.json({"code": "Throttling", "message": "Slow."}, status=429), TaskLostError, "Slow"),
        (of_task("SUCCEEDED"), ModelResponseError, "does not follow"),
        (WebAnswer.json({"code": "InvalidApiKey", "message": "No."}, status=401), ModelAuthError, "No"),
        (of_task("SUCCEEDED", results=[{"url": "file:///etc/passwd"}]), ModelResponseError, "does not follow"),
        (of_task("SUCCEEDED", results=[{"url": IMAGE}, {"url": "httpx:a"}]), ModelResponseError, "does not follow"),
        (WebAnswer.json([]), ModelResponseError, "does not follow"),
        (WebAnswer.json({"code": "DataInspectionFailed"}), ContentFilterError, "DataInspectionFailed|content"),
        (WebAnswer.json({"message": "of no code"}), ModelResponseError, "does not follow"),
        (WebAnswer(b"<html>"), TaskLostError, "not valid JSON"),
    ],
)
def test_a_task_that_fails_is_the_error_that_says_why(
    web: WebServer, answer: WebAnswer, error: type[ModelServiceError], said: str
) -> None:
    web.put("/api/v1/tasks/t-1", answer)
    with pytest.raises(error, match=said):
        ask(web)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (WebAnswer.json({"code": "InvalidApiKey", "message": "No."}, status=401), ModelAuthError),
        (WebAnswer.json({"output": {}}), ModelResponseError),
        (WebAnswer.json({"output": {"task_id": 7}}), ModelResponseError),
        (WebAnswer.json({"output": {"task_id": ""}}), ModelResponseError),
        (WebAnswer.json({"code": "DataInspectionFailed", "message": "No."}), ContentFilterError),
    ],
)
def test_a_task_that_is_refused_is_an_error(web: WebServer, answer: WebAnswer, error: type[ModelServiceError]) -> None:
    web.put(TASKS, answer)
    with pytest.raises(error):
        ask(web)
    assert len(web.requests) == 1


@pytest.mark.parametrize(
    "output", [{}, {"choices": []}, {"choices": [{"message": {"content": "text"}}]}, {"choices": 7}]
)
def test_an_answer_without_an_image_is_an_error(web: WebServer, output: object) -> None:
    web.put(AT_ONCE, WebAnswer.json({"output": output}))
    with pytest.raises(ModelResponseError, match=r"no image|does not follow"):
        ask(web, endpoint="multimodal")


def test_a_task_is_asked_about_less_and_less_often(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    states = [*[of_task("RUNNING")] * 4, of_task("SUCCEEDED", results=[{"url": IMAGE}])]
    web.put("/api/v1/tasks/t-1", lambda _: states.pop(0))
    sleep = asyncio.sleep

    async def note(pause_s: float) -> None:
        pauses.append(pause_s)
        await sleep(0)

    monkeypatch.setattr(images.asyncio, "sleep", note)
    ask(web, poll_interval=1.5)
    assert [pause_s for pause_s in pauses if pause_s] == [1.5, 3, 6, 8, 8]


def test_a_task_without_end_is_left(web: WebServer) -> None:
    web.put("/api/v1/tasks/t-1", of_task("RUNNING"))
    with pytest.raises(TaskLostError, match=r"the task did not finish within 0.2 s: increase task_timeout"):
        ask(web, task_timeout=0.2)


def test_a_task_is_not_given_again_where_asking_about_it_fails(web: WebServer) -> None:
    states = [WebAnswer(status=503), of_task("SUCCEEDED", results=[{"url": IMAGE}])]
    web.put("/api/v1/tasks/t-1", lambda _: states.pop(0))
    assert ask(web, generate_cfg={"max_retries": 1}).messages[0].items[0].image == IMAGE
    web.put("/api/v1/tasks/t-1", WebAnswer(status=503, headers={"retry-after": "0"}))
    with pytest.raises(TaskLostError, match="HTTP 503"):
        ask(web, generate_cfg={"max_retries": 1})
    assert [request.path for request in web.requests].count(TASKS) == 2


def test_whoever_leaves_a_task_can_ask_again(web: WebServer) -> None:
    async def leave_and_ask() -> ModelResponse:
        asked, loop = asyncio.Event(), asyncio.get_running_loop()

        def going_on(_: WebRequest) -> WebAnswer:
            loop.call_soon_threadsafe(asked.set)
            return of_task("RUNNING")

        web.put("/api/v1/tasks/t-1", going_on)
        settings = {"model": "m", "base_url": f"{web.url}/api/v1", "api_key": "sk-images-1234", "poll_interval": 0.001}
        model = DashScopeImages(settings, host=PluginHost(Settings()))
        task = asyncio.create_task(model.acomplete("花店"))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        web.put("/api/v1/tasks/t-1", of_task("SUCCEEDED", results=[{"url": IMAGE}]))
        try:
            return await model.acomplete("花店")
        finally:
            await model.aclose()

    assert sync.run(leave_and_ask()).messages[0].items[0].image == IMAGE


@pytest.mark.parametrize("option", [{"temperature": 0.5}, {"max_tokens": 5}])
def test_an_option_of_texts_is_refused_before_anybody_is_asked(web: WebServer, option: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedInputError, match="generates images and does not support"):
        ask(web, options=option)
    assert web.requests == []


def test_a_closed_model_has_no_connection_and_closes_its_processors(web: WebServer) -> None:
    closed: list[str] = []

    class Noted(Processor):
        name = "noted"

        def around(self, request: Any, call_next: Any) -> Any:
            return call_next(request)

        async def aclose(self) -> None:
            closed.append("processor")

    async def ask_and_close() -> None:
        settings = {"model": "m", "base_url": f"{web.url}/api/v1", "api_key": "sk-images-1234", "poll_interval": 0.001}
        model = DashScopeImages(settings, processors=[Noted()], host=PluginHost(Settings()))
        await model.acomplete("花店")
        close = model._access.aclose

        async def note() -> None:
            closed.append("connections")
            await close()

        model._access.aclose = note  # type: ignore[method-assign]
        await model.aclose()

    sync.run(ask_and_close())
    assert closed == ["processor", "connections"]


def test_a_key_is_needed(web: WebServer) -> None:
    with pytest.raises(MissingSecretError, match=r"backend dashscope_images.*DASHSCOPE_API_KEY"):
        ask(web, api_key=None)
