"""Contract tests for observers."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

import asyncio
import copy
import gc
import logging
import os
import select
import socket
import threading
import time
import weakref
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, get_args

import pytest

from jackfield.agents import CancelToken, FnCallAgent
from jackfield.errors import ModelRequestError
from jackfield.events import (
    AgentEvent,
    ApprovalNeeded,
    FunctionCallDelta,
    HistoryTrimmed,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    ReasoningDelta,
    ResponseReplaced,
    RetryScheduled,
    RunEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    StreamReset,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UsageReported,
)
from jackfield.messages import ContentItem, FunctionCall, Message, Usage
from jackfield.plugins import ObserverSpec
from jackfield.processors import closing
from jackfield.runs import Observer
from jackfield.testing import Script, ScriptedModel, answer, calls
from jackfield.tools import FunctionTool, tool
from jackfield_testkit.effects import undeclared, watching
from jackfield_testkit.installed import plain_host
from jackfield_testkit.suites.base import Suite
from jackfield_testkit.suites.calls_heard import calls_to
from jackfield_testkit.suites.given_secrets import HOW_TO_STATE, places_with, secrets_of_settings, texts_of, unstated

PRIVATE = "whale-7302-lantern"
"""Occurs in every text of a run, and must not occur in any log or file."""
ODD_TEXTS = ("", "\0", "half \ud83d", "%s %d {} {0}", "🙂" * 3000, "\x1b[31m", "line\nline")
_QUESTION = Message("user", f"What is {PRIVATE}?")
_GRACE_S = 0.2  # time for the observer's threads; later work is not seen
_WITH_DATA = ("PluginEvent", "ModelFinished", "ToolFinished", "RunStarted", "RunFinished")
_WAITS = frozenset({time.sleep, select.select, *(getattr(os, name, None) for name in ("wait", "waitpid"))})
_SOCKET_WAITS = frozenset({"accept", "connect", "connect_ex", "recv", "recv_into", "recvfrom", "send", "sendall"})


class ObserverSuite(Suite):
    """Contract of observers, including what they must not touch.

    ```python
    class TestAcme(ObserverSuite):
        component = "jackfield-acme/acme"
    ```

    The observer sees runs that succeed, fail, are cancelled or are abandoned, and events outside any run.

    Attributes:
        component: The observer to test, as `distribution/name`, or only the name if it is unique.
        config: The observer's settings.
        writes_conversations: The reason why the observer writes run texts to a log, the terminal or a file. If '', the
            suite tests that it does not.
        patience_s: How long to wait for something that should happen immediately, in seconds.
    """

    component: ClassVar[str]
    config: ClassVar[Mapping[str, Any]] = {}
    writes_conversations: ClassVar[str] = ""
    patience_s: ClassVar[float] = 10.0

    @pytest.fixture(autouse=True)
    def _in_a_folder_of_its_own(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

    def make_observer(self) -> Observer:
        """Create an observer to test. Override this if yours needs more than `config`."""
        host = plain_host()
        made = host.make(host.find("observer", self.component), dict(self.config), Observer)
        assert isinstance(made, Observer)
        return made

    # --- it accepts every event ---

    @pytest.mark.parametrize("kind", [*get_args(ModelEvent), *get_args(AgentEvent)], ids=lambda kind: kind.__name__)
    def test_it_takes_every_kind_of_event(self, kind: type) -> None:
        observer = self.make_observer()
        for event in events_of_a_run("run"):
            if isinstance(event.event, kind | RunStarted | RunFinished):
                observer.observe(event)

    def test_it_takes_events_that_it_does_not_know(self) -> None:
        observer = self.make_observer()
        first, *_, last = events_of_a_run("run")
        _show(observer, [first, RunEvent("run", 2, "agent", 0, _OfTomorrow("?")), last])  # type: ignore[arg-type]

    def test_it_takes_any_text(self) -> None:
        observer = self.make_observer()
        for number, text in enumerate(ODD_TEXTS):
            _show(observer, events_of_a_run(f"run {number}", text))

    def test_it_takes_what_it_has_not_seen_the_beginning_or_the_end_of(self) -> None:
        observer = self.make_observer()
        first, *between, last = events_of_a_run("run")
        for events in (between, [last], [last], [first], [first], between):
            _show(observer, events)

    def test_runs_at_the_same_time_are_apart(self) -> None:
        observer = self.make_observer()
        for together in zip(*(events_of_a_run(f"run {number}") for number in range(3)), strict=True):
            _show(observer, together)
        self._shown_in_threads(observer, [f"thread {number}" for number in range(4)])

    # --- it changes nothing ---

    @pytest.mark.parametrize("ending", ["finished", "failed", "cancelled", "left"])
    def test_a_run_is_the_same_with_it(self, ending: str, caplog: pytest.LogCaptureFixture) -> None:
        without, _ = _run(ending, [])
        seen, observers = _run(ending, [self.make_observer()])
        assert seen == without, "the observer changes the run"
        faults = [record for record in caplog.records if record.name == "jackfield.observers"]
        assert not faults, (
            f"the observer fails and is disabled after the third failure: {faults[0].exc_text or faults[0].exc_info}"
        )
        assert observers, "the observer was disabled"

    def test_it_changes_no_event(self) -> None:
        observer = self.make_observer()
        for event in events_of_a_run("run"):
            before = copy.deepcopy(event)
            observer.observe(event)
            assert event == before

    # --- it does not delay it ---

    def test_it_waits_for_nothing(self) -> None:
        """Slow work belongs in a queue with its own thread."""
        observer = self.make_observer()
        _show(observer, events_of_a_run("first"))  # what the first events load does not count
        with calls_to(_waits) as waited:
            _show(observer, events_of_a_run("run"))
        assert not waited, f"the observer blocks the run, at {waited[0]}"

    def test_it_comes_back_from_every_event(self) -> None:
        # In a thread, so that an observer that never returns fails here without blocking other tests.
        self._shown_in_threads(self.make_observer(), ["run"])

    # --- it leaves nothing behind ---

    @pytest.mark.parametrize("ending", ["finished", "failed", "left"])
    def test_it_holds_no_run_that_has_ended(self, ending: str) -> None:
        observer = self.make_observer()
        held = list(_observed_payloads(observer, ending))
        deadline = time.monotonic() + self.patience_s
        while any(payload() is not None for payload in held) and time.monotonic() < deadline:
            gc.collect()
            time.sleep(0.01)  # one of the observer's threads may still be working
        kept = sorted({repr(payload()) for payload in held} - {"None"})
        assert not kept, f"the observer keeps references to data after the run has finished: {', '.join(kept)}"
        del observer

    def test_it_keeps_no_program_from_ending(self) -> None:
        before = set(threading.enumerate())
        observer = self.make_observer()
        _show(observer, events_of_a_run("run"))
        staying = [thread for thread in threading.enumerate() if thread not in before and not thread.daemon]
        for thread in staying:
            thread.join(1)
        left = [thread.name for thread in staying if thread.is_alive()]
        assert not left, f"these threads keep Python from exiting: make them daemon threads ({', '.join(left)})"
        del observer

    # --- output ---

    def test_what_is_said_in_a_run_is_in_no_log_and_in_no_file(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
    ) -> None:
        if self.writes_conversations:
            pytest.skip(self.writes_conversations)
        caplog.set_level(logging.DEBUG)
        observer = self.make_observer()
        _run("finished", [observer])
        _run("failed", [observer])
        _show(observer, events_of_a_run("run", PRIVATE))
        shown = "".join(capfd.readouterr())
        written = [file.name for file in _files_in(tmp_path) if PRIVATE.encode() in file.read_bytes()]
        assert PRIVATE not in caplog.text, "a log contains text from a run"
        assert PRIVATE not in shown, "text from a run is printed"
        assert not written, f"text from a run is stored in {', '.join(written)}"

    def test_a_secret_that_it_is_given_is_stated_and_shown_nowhere(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
    ) -> None:
        secrets = secrets_of_settings(self.config)
        if not secrets:
            pytest.skip("the settings contain no secret")
        caplog.set_level(logging.DEBUG)
        observer = self.make_observer()
        _run("finished", [observer])
        _run("failed", [observer])
        time.sleep(_GRACE_S)
        texts = {**texts_of(observer), "a log": caplog.text, "the terminal": "".join(capfd.readouterr())}
        assert places_with(secrets, texts, tmp_path) == []
        assert not unstated(observer, secrets), HOW_TO_STATE

    def test_it_does_what_it_declares_and_nothing_else(self) -> None:
        host = plain_host()
        spec = host.spec_of(host.find("observer", self.component), ObserverSpec)
        with watching() as effects:
            observer = self.make_observer()
            _show(observer, events_of_a_run("run"))
            time.sleep(_GRACE_S)
        assert undeclared(effects, spec.effects) == [], (
            "undeclared effects: add them to `effects` of the descriptor, or remove them"
        )

    # --- parts ---

    def _shown_in_threads(self, observer: Observer, run_ids: Sequence[str]) -> None:
        """Show an observer the events of several runs concurrently."""
        faults: list[BaseException] = []
        threads = [threading.Thread(target=_observe_all, args=(observer, one, faults), daemon=True) for one in run_ids]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(self.patience_s)
        assert not any(thread.is_alive() for thread in threads), "the observer does not return from an event"
        assert faults == []


# --- runs -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _OfTomorrow:
    """An event from a future version of the core."""

    text: str


class _Payload(dict[str, Any]):
    """Event data that reports when it is no longer referenced."""

    def __init__(self, kind: str) -> None:
        super().__init__(note=PRIVATE)
        self.kind = kind

    def __repr__(self) -> str:
        return f"the data of {self.kind}"


def events_of_a_run(run_id: str, text: str = PRIVATE) -> list[RunEvent]:
    """Return one new event of every kind, with `text` in every text field."""
    call = FunctionCall("look", f'{{"at": "{text}"}}' if text.isalnum() else text)
    message = Message("assistant", text, function_call=call, extra={"function_id": "c1"})
    result = Message("function", text, name="look", extra={"function_id": "c1"})
    events: list[ModelEvent | AgentEvent] = [
        RunStarted((Message("user", text),)),
        TurnStarted(1),
        RetryScheduled(1, 0.5, text),
        StreamReset(text),
        HistoryTrimmed(1, 2, 300, 200),
        ReasoningDelta(text),
        TextDelta(text),
        FunctionCallDelta(0, "c1", "look", text),
        MediaDelta(ContentItem(image="data:image/png;base64,AAAA")),
        UsageReported(Usage(prompt_tokens=3, completion_tokens=2)),
        ModelFinished("tool_calls", "m", "r", 7, {"signature": text}, "tool_use"),
        PluginEvent("somebody.note", {"note": text}),
        TurnFinished(1, (message,), Usage(prompt_tokens=3)),
        ApprovalNeeded((call,), ("c1",)),
        ToolStarted(0, "c1", call),
        ToolProgress(0, "c1", text),
        ToolFinished(0, "c1", result, 0.25, "CutOff", {"where": text}),
        ResponseReplaced((message,)),
        RunFailed(text, "ModelRequestError"),
        RunFinished("finished", (message, result), Usage(prompt_tokens=3)),
    ]
    return [RunEvent(run_id, number, "agent", 0, event) for number, event in enumerate(events, start=1)]


def _show(observer: Observer, events: Iterable[RunEvent]) -> None:
    for event in events:
        observer.observe(event)


def _observe_all(observer: Observer, run_id: str, faults: list[BaseException]) -> None:
    try:
        _show(observer, events_of_a_run(run_id))
    except BaseException as fault:  # noqa: BLE001 - reported to the code that started the thread
        faults.append(fault)


def _observed_payloads(observer: Observer, ending: str) -> Iterator[weakref.ref[_Payload]]:
    """Show an observer runs that contain data, and yield weak references to the data."""
    for number in range(3):
        data = [_Payload(kind) for kind in _WITH_DATA]
        yield from map(weakref.ref, data)
        plugin, finished, result, first, last = data
        said = Message("assistant", "a")
        ends: dict[str, AgentEvent] = {
            "finished": RunFinished("finished", (_with_extra(said, last),), Usage()),
            "failed": RunFailed("it broke", "ModelRequestError"),
            "left": RunFailed("the run was left before its end", "GeneratorExit"),
        }
        events: list[ModelEvent | AgentEvent] = [
            RunStarted((_with_extra(Message("user", "q"), first),)),
            TurnStarted(1),
            PluginEvent("somebody.note", plugin),
            ModelFinished("stop", data=finished),
            TurnFinished(1, (said,), Usage()),
            ToolFinished(0, "c1", Message("function", "r", name="look"), 0.1, metadata=result),
            ends[ending],
        ]
        for place, event in enumerate(events, start=1):
            observer.observe(RunEvent(f"run {number}", place, "agent", 0, event))


def _with_extra(message: Message, data: _Payload) -> Message:
    return message.model_copy(update={"extra": data})


def _run(ending: str, observers: Sequence[Observer]) -> tuple[list[str], bool]:
    """Return a run's events without the parts that vary, and True if all observers still receive events."""
    script: dict[str, Script] = {
        "failed": [calls(("look", {"at": PRIVATE})), [TextDelta("half "), ModelRequestError(f"no {PRIVATE}")]],
    }
    usual: Script = [calls(("look", {"at": PRIVATE}), text="I look."), answer(f"It is {PRIVATE}, as far as I see.")]
    model = ScriptedModel(script.get(ending, usual), processors=[])
    agent = FnCallAgent([_look()], model, host=plain_host(), observers=observers)
    token = CancelToken()
    seen: list[str] = []

    async def watch() -> None:
        stream: AsyncIterator[RunEvent] = agent.astream([_QUESTION], cancel=token)
        async with closing(stream):
            async for event in stream:
                seen.append(_shown(event))
                at_the_tool = isinstance(event.event, ToolFinished)
                if at_the_tool and ending == "left":
                    return
                if at_the_tool and ending == "cancelled":
                    token.cancel()

    with suppress(ModelRequestError):
        asyncio.run(watch())
    return seen, bool(agent.observers) == bool(observers)


def _shown(event: RunEvent) -> str:
    told = event.event
    if isinstance(told, ToolFinished):  # its duration differs in every run
        return f"{event.number} {event.agent} {told.index} {told.call_id} {told.message!r} {told.error}"
    return f"{event.number} {event.agent} {told!r}"


def _look() -> FunctionTool:
    @tool
    def look(at: str) -> str:
        """Inspect an object."""
        return f"seen: {at}"

    return look


def _waits(function: Any) -> bool:
    if isinstance(getattr(function, "__self__", None), socket.socket.__mro__[1]):
        return function.__name__ in _SOCKET_WAITS
    try:
        return function in _WAITS
    except TypeError:  # a method of an unhashable object
        return False


def _files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
