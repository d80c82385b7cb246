"""An observer that does all as it should, and observers that do one thing otherwise."""

from __future__ import annotations

import logging
import queue
import socket
import threading
import time
from pathlib import Path
from typing import Any

from pydantic import Field

from jackfield.config import Config
from jackfield.events import (
    ModelFinished,
    RunEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolFinished,
    TurnFinished,
)
from jackfield.runs import Observer

_log = logging.getLogger("jackfield_zoo")


class Settings(Config):
    token: str = Field(default="", repr=False)


class Honest(Observer):
    """Counts the events of each run; a thread writes down how many there were."""

    name = "honest"

    def __init__(self, token: str = "") -> None:
        self.token = token
        self.counts: dict[str, int] = {}
        self.ended: queue.SimpleQueue[tuple[str, int]] = queue.SimpleQueue()
        threading.Thread(target=self.write, daemon=True).start()

    def write(self) -> None:
        while True:
            run_id, count = self.ended.get()
            _log.info("run %s had %d events", run_id, count)

    def observe(self, event: RunEvent) -> None:
        self.counts[event.run_id] = self.counts.get(event.run_id, 0) + 1
        if isinstance(event.event, RunFinished | RunFailed):
            self.ended.put((event.run_id, self.counts.pop(event.run_id)))


class BeginsOnce(Honest):
    def observe(self, event: RunEvent) -> None:
        if isinstance(event.event, RunStarted) and event.run_id in self.counts:
            raise ValueError("it has begun")
        super().observe(event)


class EndsOnce(Honest):
    ended_id = ""

    def observe(self, event: RunEvent) -> None:
        if isinstance(event.event, RunFinished):
            if event.run_id == self.ended_id:
                raise ValueError("it has ended")
            self.ended_id = event.run_id
        super().observe(event)


class ChokesOnFilters(Honest):
    def observe(self, event: RunEvent) -> None:
        super().observe(event)
        if isinstance(event.event, ModelFinished):
            assert {"stop": 1, "length": 2}[event.event.reason]


class KnowsAllEvents(Honest):
    def observe(self, event: RunEvent) -> None:
        super().observe(event)
        if "OfTomorrow" in type(event.event).__name__:
            raise TypeError(event.event)


class NeedsWholeCharacters(Honest):
    def observe(self, event: RunEvent) -> None:
        super().observe(event)
        if isinstance(event.event, TextDelta):
            event.event.text.encode()


class NeedsABeginning(Honest):
    def observe(self, event: RunEvent) -> None:
        if isinstance(event.event, RunStarted):
            self.counts[event.run_id] = 0
        self.counts[event.run_id] += 1
        if isinstance(event.event, RunFinished):
            del self.counts[event.run_id]


class MixesRuns(Honest):
    current = ""

    def observe(self, event: RunEvent) -> None:
        if isinstance(event.event, RunStarted):
            self.current = event.run_id
        elif event.run_id != self.current and self.current:
            raise RuntimeError("this is another run")
        if isinstance(event.event, RunFinished):
            self.current = ""


class FailsAtTheEnd(Honest):
    def observe(self, event: RunEvent) -> None:
        super().observe(event)
        if isinstance(event.event, RunFinished):
            assert event.event.stop_reason == "finished"


class Meddles(Honest):
    def observe(self, event: RunEvent) -> None:
        if isinstance(event.event, TurnFinished):
            for message in event.event.messages:
                object.__setattr__(message, "content", "something else")
        super().observe(event)


class Edits(Honest):
    def observe(self, event: RunEvent) -> None:
        data: Any = getattr(event.event, "metadata", None)
        if data:
            data["seen"] = True
        super().observe(event)


class Sleeps(Honest):
    def observe(self, event: RunEvent) -> None:
        time.sleep(0.001)
        super().observe(event)


class Asks(Honest):
    def observe(self, event: RunEvent) -> None:
        if isinstance(event.event, RunFinished):
            with socket.socket() as connection:
                connection.connect_ex(("127.0.0.1", 9))
        super().observe(event)


class NeverReturns(Honest):
    def observe(self, event: RunEvent) -> None:
        super().observe(event)
        if isinstance(event.event, ToolFinished):
            threading.Event().wait()


class KeepsAll(Honest):
    def __init__(self, token: str = "") -> None:
        super().__init__(token)
        self.all: list[RunEvent] = []

    def observe(self, event: RunEvent) -> None:
        super().observe(event)
        self.all.append(event)


class KeepsWhatWasLeft(Honest):
    """Lets go of a run at one of its two ends."""

    def __init__(self, token: str = "") -> None:
        super().__init__(token)
        self.runs: dict[str, list[RunEvent]] = {}

    def observe(self, event: RunEvent) -> None:
        super().observe(event)
        self.runs.setdefault(event.run_id, []).append(event)
        if isinstance(event.event, RunFinished):
            del self.runs[event.run_id]


class StaysAwake(Honest):
    def __init__(self, token: str = "") -> None:
        super().__init__(token)
        self.over = threading.Event()
        threading.Thread(target=self.over.wait, args=(4,), name="awake").start()


class LogsText(Honest):
    def observe(self, event: RunEvent) -> None:
        super().observe(event)
        _log.debug("%s", event)


class PrintsErrors(Honest):
    def observe(self, event: RunEvent) -> None:
        super().observe(event)
        if isinstance(event.event, RunFailed):
            print(event.event.error)


class WritesADiary(Honest):
    def observe(self, event: RunEvent) -> None:
        super().observe(event)
        if isinstance(event.event, ToolFinished):
            Path("diary.txt").write_text(str(event.event.message.content))


class Connects(Honest):
    def write(self) -> None:
        with socket.socket() as connection:
            connection.connect_ex(("127.0.0.1", 9))
        super().write()


class StatesNoSecret(Honest):
    def secret_sources(self) -> tuple[object, ...]:
        return ()


class ShowsItsToken(Honest):
    def __repr__(self) -> str:
        return f"ShowsItsToken(token={self.token!r})"


class LogsItsToken(Honest):
    def observe(self, event: RunEvent) -> None:
        super().observe(event)
        _log.debug("sent with %s", self.token)


class WritesItsToken(Honest):
    def observe(self, event: RunEvent) -> None:
        super().observe(event)
        Path("last-request.txt").write_text(f"Authorization: Bearer {self.token}")


class FailsAlways(Honest):
    def observe(self, event: RunEvent) -> None:
        raise RuntimeError("not today")
