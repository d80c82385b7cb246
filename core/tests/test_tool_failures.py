"""However a tool ends, its call ends with one result, and the run goes on."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jackfield import BaseTool, FnCallAgent, Message, sync, tool
from jackfield.errors import ToolServiceError
from jackfield.events import RunFinished, ToolFinished
from jackfield.messages import ContentItem, FunctionCall
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import PlannedCall, Safety, StandIn, ToolContext, ToolExecutor, ToolResult
from jackfield.tools import _foreign as foreign_module
from jackfield_records.eventjson import event_from_json, event_to_json

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def finish(made: BaseTool, **options: Any) -> ToolFinished:
    executor = ToolExecutor({made.name: made}, **options)
    return asyncio.run(executor.finish(PlannedCall(0, "c0", FunctionCall(made.name, "{}")), ToolContext()))


class Odd(BaseException):
    pass


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it has no text")


class TextEndsTheProgram(Exception):  # noqa: N818 - it says what happens
    def __str__(self) -> str:
        raise KeyboardInterrupt


class _Nameless(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise ValueError("it has no name")


class NamelessError(Exception, metaclass=_Nameless):
    pass


class MuteForTheModelError(ToolServiceError):
    def __init__(self) -> None:
        super().__init__(MuteError())  # type: ignore[arg-type]


ENDS: dict[str, Callable[[], BaseException]] = {
    "cancelled": asyncio.CancelledError,
    "ctrl-c": KeyboardInterrupt,
    "exit": lambda: SystemExit(3),
    "odd": lambda: Odd("odd"),
    "generator exit": GeneratorExit,
    "mute": MuteError,
    "mute for the model": MuteForTheModelError,
    "text ends the program": TextEndsTheProgram,
    "nameless": NamelessError,
    "stop": StopIteration,
    "async stop": StopAsyncIteration,
    "group": lambda: BaseExceptionGroup("both", [KeyboardInterrupt(), ValueError("x")]),
    "deep": RecursionError,
    "memory": MemoryError,
}


@tool
def add(a: int = 1, b: int = 2) -> int:
    """Add."""
    return a + b


def failing(error: Callable[[], BaseException], *, is_async: bool) -> BaseTool:
    def plain() -> str:
        raise error()

    async def waiting() -> str:
        raise error()

    return tool(name="fail", description="Fails.")(waiting if is_async else plain)


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
@pytest.mark.parametrize("error", ENDS.values(), ids=ENDS)
def test_whatever_a_tool_raises_is_a_result_and_the_run_and_the_next_go_on(
    error: Callable[[], BaseException], is_async: bool
) -> None:
    script = [calls(("fail", {}), ("add", {})), answer("done")] * 2
    agent = FnCallAgent([failing(error, is_async=is_async), add], ScriptedModel(script))
    for _ in range(2):  # over the bridge, whose loop must have survived the first run
        response = agent.run_nonstream([Message("user", "go")])
        results = {m.name: m.content for m in response if m.role == "function"}
        assert results["add"] == "3"
        assert results["fail"]
        assert response[-1].content == "done"
    assert sync.run(asyncio.sleep(0, "alive")) == "alive"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, ValueError])
@pytest.mark.parametrize("where", ["safety", "parse_arguments"])
def test_what_a_tool_raises_when_asked_about_itself_is_a_result_too(where: str, error: type[BaseException]) -> None:
    def ends(*_: Any) -> Any:
        raise error

    class Evil(BaseTool):
        name = "fail"
        description = "Fails."

        def call(self, params: Any, *, context: Any = None) -> str:
            return "never"

    setattr(Evil, where, ends)
    agent = FnCallAgent([Evil(), add], ScriptedModel([calls(("fail", {}), ("add", {})), answer("done")]))
    response = agent.run_nonstream([Message("user", "go")])
    results = {m.name: m.content for m in response if m.role == "function"}
    assert results["add"] == "3"
    assert error.__name__ in str(results["fail"])
    assert response[-1].content == "done"


@pytest.mark.parametrize("where", ["is_loaded", "load", "claims"])
@pytest.mark.parametrize("error", [KeyError, SystemExit])
def test_what_a_stand_in_raises_when_it_is_asked_for_its_tool_is_a_result(
    where: str, error: type[BaseException]
) -> None:
    class Odd(StandIn):
        name, description = "odd", "Is odd."

        @property
        def is_loaded(self) -> bool:
            return bool(self.told("is_loaded", False))

        def load(self) -> BaseTool:
            self.told("load", None)
            return self

        def claims(self) -> Safety:
            self.told("claims", None)
            return Safety(read_only=False, file_access=False)

        def call(self, params: Any, *, context: ToolContext | None = None) -> str:
            return "called"

        def told(self, what: str, value: object) -> object:
            if what == where:
                raise error(what)
            return value

    result = FnCallAgent([Odd()], ScriptedModel([calls(("odd", {})), answer("done")])).ask("go")
    assert error.__name__ in str(result.messages[1].content)
    assert result.text == "done"


def test_a_tool_that_cancels_its_own_task_ends_only_itself() -> None:
    @tool
    async def suicidal() -> str:
        """Cancel."""
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(3600)
        return "never"

    agent = FnCallAgent([suicidal, add], ScriptedModel([calls(("suicidal", {}), ("add", {})), answer("done")]))
    assert agent.run_nonstream([Message("user", "go")])[-1].content == "done"


def test_a_tool_that_does_not_let_itself_be_cancelled_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_module, "END_PATIENCE_S", 0.05)
    release = asyncio.Event()

    @tool(timeout_s=0.05)
    async def stubborn() -> str:
        """Stay."""
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    async def call() -> ToolFinished:
        executor = ToolExecutor({"stubborn": stubborn})
        try:
            async with asyncio.timeout(30):
                return await executor.finish(PlannedCall(0, "c0", FunctionCall("stubborn", "{}")), ToolContext())
        finally:
            release.set()

    assert asyncio.run(call()).error == "ToolTimeoutError"


def test_calls_that_may_not_run_beside_others_follow_a_stubborn_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_module, "END_PATIENCE_S", 0.05)
    release = asyncio.Event()

    @tool(timeout_s=0.05, concurrent=False)
    async def stubborn() -> str:
        """Stay."""
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    @tool(concurrent=False)
    async def follows() -> str:
        """Follow."""
        return "I was next"

    async def call() -> list[Any]:
        executor = ToolExecutor({"stubborn": stubborn, "follows": follows})
        planned = [PlannedCall(n, f"c{n}", FunctionCall(name, "{}")) for n, name in enumerate(["stubborn", "follows"])]
        try:
            async with asyncio.timeout(30):
                return [event async for event in executor.run(await executor.plan(planned), ToolContext())]
        finally:
            release.set()

    ended = [event for event in asyncio.run(call()) if isinstance(event, ToolFinished)]
    assert [event.error for event in ended] == ["ToolTimeoutError", ""]


@pytest.mark.parametrize("stubborn", [False, True])
def test_ctrl_c_of_the_user_still_ends_the_run(stubborn: bool) -> None:
    """`asyncio.run` turns Ctrl-C into the cancellation of its task, which a tool's own must not be taken for."""
    began = threading.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        began.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            if stubborn:
                return "I end when I like"
            raise
        return ""

    async def main() -> None:
        agent = FnCallAgent([wait], ScriptedModel([calls(("wait", {})), answer("never")]))
        run = asyncio.create_task(agent.arun([Message("user", "go")]))
        while not began.is_set():
            await asyncio.sleep(0.001)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(asyncio.wait_for(main(), 30))


def test_a_call_for_which_no_thread_can_be_started_is_reported_and_never_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    @tool
    def act() -> str:
        """Act."""
        made.append("act")
        return "done"

    def no_thread(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    # A fresh process has no idle worker that could take the call.
    monkeypatch.setattr(sync, "_processes", {})
    with monkeypatch.context() as without_threads:
        without_threads.setattr(threading.Thread, "start", no_thread)
        failed = finish(act)
    assert failed.error == "JackfieldError"
    for _ in range(3):
        asyncio.run(sync.in_worker(lambda: None))  # whatever was left in a queue would be done now
    assert made == []


def _numbers() -> Iterator[int]:
    yield 1


async def _numbers_later() -> AsyncIterator[int]:
    yield 1


def _words() -> Iterator[str]:
    yield "half"


async def _words_later() -> AsyncIterator[str]:
    yield "half"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (_numbers, "it yields int"),
        (_numbers_later, "it yields int"),
        (_words, "it ended without a result; return it at the end"),
        (_words_later, "it ended without a result; yield it last, as a ToolResult"),
    ],
)
def test_a_generator_without_a_result_is_a_failure_that_says_so(value: Callable[[], Any], problem: str) -> None:
    @tool
    def give() -> Any:
        """Give."""
        return value()

    failed = finish(give)
    assert failed.error == "ToolServiceError"
    assert problem in failed.message.get_text_content()


@pytest.mark.parametrize("coroutine_of", ["function", "future"])
def test_what_a_plain_call_gives_may_have_to_be_awaited(coroutine_of: str) -> None:
    async def later() -> str:
        await asyncio.sleep(0)
        return "later"

    class Waits:
        def __await__(self) -> Any:
            return later().__await__()

    @tool
    def give() -> Any:
        """Give."""
        return later() if coroutine_of == "function" else Waits()

    assert finish(give).message.content == "later"


# --- how much one result may be ---


def test_the_limit_is_that_of_the_whole_result() -> None:
    @tool
    def much() -> Any:
        """Give."""
        return [ContentItem(text="x" * 90) for _ in range(1000)]

    items = finish(much, max_result_chars=1000).message.content
    assert isinstance(items, list)
    assert sum(len(item.text or "") for item in items) <= 1200
    assert "988 more parts with 88,920 characters omitted" in str(items[-1].text)


def test_empty_parts_are_not_free() -> None:
    @tool
    def many() -> Any:
        """Give."""
        return [ContentItem(text="")] * 10_000

    assert len(finish(many, max_result_chars=100).message.content) == 101


@pytest.mark.parametrize("kind", ["image", "audio", "file", "video", "frames", "sound"])
def test_media_have_a_bound_too(kind: str) -> None:
    uri = "data:image/png;base64," + "A" * 600

    def item() -> ContentItem:
        match kind:
            case "frames":
                return ContentItem(video=[uri])
            case "sound":
                return ContentItem(audio={"data": "A" * 600, "format": "wav"})
        return ContentItem(**{kind: uri})

    @tool
    def much() -> Any:
        """Give."""
        return ToolResult([ContentItem(text="three"), item(), item(), item()])

    first, kept, *left_out = finish(much, max_media_chars=1000).message.items
    assert (first.text, kept) == ("three", item())
    assert [(part.text is not None and "was omitted" in part.text) for part in left_out] == [True, True]


# --- local files of a result ---


def test_an_image_that_a_tool_has_made_is_read_into_its_result(tmp_path: Path) -> None:
    picture = tmp_path / "plot.png"
    picture.write_bytes(PNG)

    @tool
    def plot() -> Any:
        """Plot."""
        return [ContentItem(text="a plot"), ContentItem(image=str(picture)), ContentItem(image="https://x.test/a.png")]

    text, image, remote = finish(plot).message.items
    assert text.text == "a plot"
    assert image.image == "data:image/png;base64," + base64.b64encode(PNG).decode()
    assert remote.image == "https://x.test/a.png"


def test_a_file_that_is_no_image_or_is_not_there_becomes_a_note(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("SING-A-SONG")

    @tool
    def plot() -> Any:
        """Plot."""
        return [ContentItem(image=str(secret)), ContentItem(image=str(tmp_path / "none.png"))]

    done = finish(plot).message
    assert not done.is_multimodal()
    assert "SING" not in done.get_text_content()
    assert str(tmp_path) not in done.get_text_content()
    assert "none.png" in done.get_text_content()


# --- calls are made at most once ---


@pytest.mark.parametrize("extra", [None, {"function_id": "1"}, {"function_id": "call_1"}], ids=str)
def test_a_call_of_a_history_is_made_once_whatever_its_id(extra: Any) -> None:
    made: list[int] = []

    @tool
    def act() -> str:
        """Act."""
        made.append(1)
        return "done"

    given = Message("assistant", "", function_call=FunctionCall("act", "{}"), extra=extra)
    bare = Message("assistant", "", function_call=FunctionCall("act", "{}"))
    agent = FnCallAgent([act], ScriptedModel([answer("ok")]))
    history = [Message("user", "go"), given, bare]

    async def collect() -> RunFinished:
        last = None
        async with asyncio.timeout(30):
            async for event in agent.astream(history, resume=True):
                last = event.event
                assert len(made) <= 2
        assert isinstance(last, RunFinished)
        return last

    assert asyncio.run(collect()).stop_reason == "finished"
    assert len(made) == 2


def test_calls_that_come_without_an_id_get_one_that_no_other_has() -> None:
    from jackfield.events import FunctionCallDelta, ModelFinished

    bare = [
        FunctionCallDelta(0, name="add", arguments="{"),
        FunctionCallDelta(1, name="add", arguments="{}"),
        FunctionCallDelta(0, arguments="}"),
        ModelFinished("tool_calls"),
    ]
    agent = FnCallAgent([add], ScriptedModel([bare, bare, answer("ok")]))
    response = agent.run_nonstream([Message("user", "go")])
    asked = [message.function_id for message in response if message.function_call]
    assert len(set(asked)) == 4
    assert [message.function_id for message in response if message.role == "function"] == asked


# --- tools that outlive their time ---


def test_a_plain_tool_that_cannot_be_stopped_is_reported_as_one_that_still_runs() -> None:
    begun, goes_on = threading.Event(), threading.Event()

    @tool(timeout_s=0.05)
    def hang() -> str:
        """Hang."""
        begun.set()
        goes_on.wait()
        return "late"

    async def main() -> ToolFinished:
        executor = ToolExecutor({"hang": hang})
        while True:  # on a busy machine its time may be over before it has begun: then it never runs
            done = await executor.finish(PlannedCall(0, "c0", FunctionCall("hang", "{}")), ToolContext())
            if begun.is_set():
                return done

    try:
        done = asyncio.run(main())
        assert done.error == "ToolTimeoutError"
        assert done.metadata["still_running"] is True
        assert "could not be stopped" in str(done.message.content)
        assert "hang" in sync.abandoned()
        assert json.loads(json.dumps(event_to_json(done)))["metadata"]["still_running"] is True
    finally:
        goes_on.set()


def test_an_async_tool_that_is_stopped_is_not_reported_as_running() -> None:
    @tool(timeout_s=0.01)
    async def wait() -> str:
        """Wait."""
        await asyncio.Event().wait()
        return "never"

    done = finish(wait)
    assert (done.error, dict(done.metadata)) == ("ToolTimeoutError", {"in_doubt": True})


# --- what a tool does to what is around it, and odd values ---


@pytest.mark.parametrize("how", ["stop", "close"])
def test_a_tool_that_stops_or_closes_the_event_loop_ends_nothing_of_others(how: str) -> None:
    @tool
    async def end() -> str:
        """End the loop."""
        getattr(asyncio.get_running_loop(), how)()
        return "ended"

    model = ScriptedModel([calls(("end", {})), answer("done")])
    assert FnCallAgent([end], model).ask("go").text == "done"
    assert FnCallAgent([], ScriptedModel([answer("fine")])).ask("go").text == "fine"


def test_a_tool_that_changes_its_arguments_changes_no_other_call_and_no_history() -> None:
    class Eats(BaseTool):
        name, description = "eat", "Eats."
        parameters = {"type": "object", "properties": {"crumbs": {"type": "array"}}}  # noqa: RUF012 - of the contract

        def call(self, params: Any, *, context: ToolContext | None = None) -> str:
            eaten = len(params["crumbs"])
            params["crumbs"].clear()
            params["more"] = context
            return str(eaten)

    wanted = ("eat", {"crumbs": [1, 2, 3]})
    model = ScriptedModel([calls(wanted, wanted), calls(wanted), answer("done")])
    result = FnCallAgent([Eats()], model).ask("go")
    assert [m.content for m in result.messages if m.role == "function"] == ["3", "3", "3"]
    written = [json.loads(m.function_call.arguments) for m in result.messages if m.function_call]
    assert written == [{"crumbs": [1, 2, 3]}] * 3


ODD_ARGUMENTS = {
    "NaN": '{"value": NaN}',
    "infinity": '{"value": -Infinity}',
    "too large a number": '{"value": 1e999}',
    "too many digits": '{"value": ' + "9" * 5000 + "}",
    "nested deeply": '{"value": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "nested deeply and cut off": '{"value": ' + "[" * 100_000,
}


@pytest.mark.parametrize("arguments", ODD_ARGUMENTS.values(), ids=ODD_ARGUMENTS)
def test_arguments_that_no_json_has_are_refused_before_the_tool_is_called(arguments: str) -> None:
    @tool
    def take(value: Any) -> str:
        """Take anything."""
        raise AssertionError("it is called")

    executor = ToolExecutor({"take": take})
    planned = PlannedCall(0, "c0", FunctionCall("take", arguments))
    done = asyncio.run(executor.finish(planned, ToolContext()))
    assert done.error == "ToolArgumentError"
    assert len(done.message.get_text_content()) < 500


def test_ten_megabytes_of_arguments_reach_the_tool_or_are_refused_in_few_words() -> None:
    @tool
    def measure(text: str = "", number: int = 0) -> int:
        """Measure."""
        return len(text) + number

    executor = ToolExecutor({"measure": measure})
    texts = []
    for name in ("text", "number"):
        call = FunctionCall("measure", json.dumps({name: "x" * 10_000_000}))
        done = asyncio.run(executor.finish(PlannedCall(0, "c0", call), ToolContext()))
        texts.append((done.error, done.message.get_text_content()))
    assert texts[0] == ("", "10000000")
    assert texts[1][0] == "ToolArgumentError"
    assert len(texts[1][1]) < 500


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (float("nan"), '"NaN"'),
        ([1.5, float("inf")], '[\n    1.5,\n    "Infinity"\n]'),
        ({"a": -float("inf"), "b": "NaN is a text"}, '{\n    "a": "-Infinity",\n    "b": "NaN is a text"\n}'),
    ],
)
def test_a_result_with_numbers_that_json_does_not_have_is_json(value: Any, text: str) -> None:
    @tool
    def give() -> Any:
        """Give."""
        return value

    assert finish(give).message.content == text


def test_a_result_that_is_nested_too_deeply_or_holds_itself_is_a_failure() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    circle: list[Any] = []
    circle.append(circle)
    for value in (deep, circle):

        @tool
        def give() -> Any:
            """Give."""
            return value  # noqa: B023 - called at once

        assert finish(give).error in ("RecursionError", "ValueError")


def test_the_whole_error_is_in_the_event_and_not_in_what_the_model_reads() -> None:
    @tool
    def fail() -> str:
        """Fail."""
        raise KeyError("no such key")

    done = finish(fail)
    assert "Traceback" not in done.message.get_text_content()
    assert done.metadata["traceback"].startswith("Traceback (most recent call last)")
    assert 'raise KeyError("no such key")' in done.metadata["traceback"]
    assert event_from_json(json.loads(json.dumps(event_to_json(done)))) == done
