"""A correct store, and others that are wrong in one place each. What they keep is in this process, by folder."""

from __future__ import annotations

import asyncio
import itertools
import os
import tempfile
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import Field

from jackfield.config import Config
from jackfield.errors import RunBusyError, RunNotFoundError, StoreError, StoreUnavailableError
from jackfield.stores import RUNNING, Signal, Store, StoredRun
from jackfield_records import RecordingStore, search_words, searched_text

_clock = itertools.count(1)


@dataclass
class _Kept:
    run: StoredRun
    entries: list[str]
    hold: int
    owner: object


@dataclass
class _Place:
    runs: dict[str, _Kept] = field(default_factory=dict)
    lock: Any = field(default_factory=threading.RLock)
    listeners: list[asyncio.Queue[Signal]] = field(default_factory=list)


outages: set[Path] = set()
"""Folders in which no store can be written."""
_places: dict[str, _Place] = {}


class Settings(Config):
    password: str = Field(default="", repr=False)
    most_runs: int = 1000


class Honest(RecordingStore):
    reports_writes = True

    def __init__(self, **settings: Any) -> None:
        super().__init__(settings)
        self.place = _places.setdefault(f"{Path.cwd()} {type(self).__name__}", _Place())
        self.owner: object = object()

    async def create(self, run: StoredRun, entries: Sequence[str]) -> int:
        with self.place.lock:
            self.check_new(run.run_id)
            now = float(next(_clock))
            made = replace(run, state=RUNNING, began=now, changed=now)
            self.place.runs[run.run_id] = _Kept(made, list(entries), 1, self.owner)
            self.make_room()
        self.report()
        return 1

    def report(self) -> None:
        for listener in self.place.listeners:
            listener.put_nowait(Signal())

    def make_room(self) -> None:
        surplus = len(self.place.runs) - self.cfg.get("most_runs", 1000)
        ended = [run_id for run_id, kept in self.place.runs.items() if self.has_ended(kept)]
        for run_id in ended[: max(0, surplus)]:
            del self.place.runs[run_id]

    def has_ended(self, kept: _Kept) -> bool:
        return kept.run.state not in (RUNNING, "approval_needed", "input_needed")

    def check_new(self, run_id: str) -> None:
        if run_id in self.place.runs:
            raise StoreError("there is one already")

    async def hold(self, run_id: str) -> int:
        with self.place.lock:
            kept = self.of(run_id)
            self.check_free(kept)
            kept.hold += 1
            kept.owner = self.owner
            return kept.hold

    def check_free(self, kept: _Kept) -> None:
        if kept.owner is not None:
            raise RunBusyError("it is held")

    async def append(self, run_id: str, hold: int, entries: Sequence[str], *, state: str = RUNNING) -> None:
        with self.place.lock:
            kept = self.of(run_id)
            self.check_held(kept, hold)
            self.check_usable(kept, entries)
            self.add(kept, entries)
            self.let_go(kept, state)
        self.report()

    def check_usable(self, _kept: _Kept, _entries: Sequence[str]) -> None:
        if Path.cwd() in outages:
            raise StoreUnavailableError("the disk is full")

    async def release(self, run_id: str, hold: int) -> None:
        with self.place.lock:
            kept = self.place.runs.get(run_id)
            if kept is not None and kept.owner is self.owner and self.is_hold(kept, hold):
                kept.owner = None

    def is_hold(self, kept: _Kept, hold: int) -> bool:
        return kept.hold == hold

    def check_held(self, kept: _Kept, hold: int) -> None:
        if kept.hold != hold or kept.owner is not self.owner:
            raise RunBusyError("somebody else has it")

    def add(self, kept: _Kept, entries: Sequence[str]) -> None:
        kept.entries += entries

    def let_go(self, kept: _Kept, state: str) -> None:
        kept.run = replace(kept.run, state=state, changed=float(next(_clock)))
        if state != RUNNING:
            kept.owner = None

    async def read(self, run_id: str, *, after: int = 0) -> tuple[StoredRun, list[str]]:
        with self.place.lock:
            kept = self.of(run_id)
            return self.shown(kept), kept.entries[after:]

    def shown(self, kept: _Kept) -> StoredRun:
        return replace(kept.run, is_held=kept.owner is not None, entries=len(kept.entries))

    async def runs(
        self, *, session: str | None = None, owner: str | None = None, state: str | None = None, limit: int = 100
    ) -> list[StoredRun]:
        with self.place.lock:
            found = [self.shown(kept) for kept in self.place.runs.values()]
        wanted = {"session": session, "owner": owner, "state": state}
        return [run for run in found[::-1] if self.fits(run, wanted)][:limit]

    def fits(self, run: StoredRun, wanted: Mapping[str, str | None]) -> bool:
        return all(value in (None, getattr(run, name)) for name, value in wanted.items())

    async def search(self, text: str, *, owner: str | None = None, limit: int = 20) -> list[StoredRun]:
        words = search_words(text)
        with self.place.lock:
            found = [self.shown(kept) for kept in self.place.runs.values() if self.has(kept, words)]
        return [run for run in found[::-1] if owner in (None, run.owner)][:limit]

    async def rename(self, run_id: str, title: str) -> None:
        with self.place.lock:
            kept = self.of(run_id)
            kept.run = replace(kept.run, title=title)

    def has(self, kept: _Kept, words: Sequence[str]) -> bool:
        searched = searched_text(kept.entries)
        return bool(words) and all(word in searched for word in words)

    async def send(self, run_id: str, text: str = "") -> None:
        for listener in self.listeners():
            listener.put_nowait(Signal(run_id, text))

    def listeners(self) -> list[asyncio.Queue[Signal]]:
        return self.place.listeners

    async def listen(self) -> AsyncIterator[Signal]:
        queue = asyncio.Queue[Signal]()
        self.place.listeners.append(queue)
        yield Signal()
        while True:
            yield await queue.get()

    async def delete(self, run_id: str) -> None:
        with self.place.lock:
            self.check_free(self.of(run_id))
            del self.place.runs[run_id]

    async def aclose(self) -> None:
        with self.place.lock:
            for kept in self.place.runs.values():
                if kept.owner is self.owner:
                    kept.owner = None
        self.owner = object()

    def of(self, run_id: str) -> _Kept:
        if run_id not in self.place.runs:
            raise RunNotFoundError(f"there is no run {run_id}")
        return self.place.runs[run_id]


class IgnoresLateEntries(Honest):
    """Drops the entries of a lost run without a word, unless they end it."""

    async def append(self, run_id: str, hold: int, entries: Sequence[str], *, state: str = RUNNING) -> None:
        if state != RUNNING or self.of(run_id).hold == hold:
            await super().append(run_id, hold, entries, state=state)


class ReadsTheLastAgain(Honest):
    async def read(self, run_id: str, *, after: int = 0) -> tuple[StoredRun, list[str]]:
        run, entries = await super().read(run_id)
        return run, entries[min(after, len(entries) - 1) :]


class ReleasesOnce(Honest):
    async def release(self, run_id: str, hold: int) -> None:
        if self.of(run_id).owner is None:
            raise RunBusyError("it is not held")
        await super().release(run_id, hold)


class HoldsWhatIsMissing(Honest):
    async def hold(self, run_id: str) -> int:
        return await super().hold(run_id) if run_id in self.place.runs else 1


class DeletesWhatIsMissing(Honest):
    async def delete(self, run_id: str) -> None:
        if run_id in self.place.runs:
            await super().delete(run_id)


class NeedsTheRunBefore(Honest):
    """Keeps the beginning of a conversation with the run before."""

    async def read(self, run_id: str, *, after: int = 0) -> tuple[StoredRun, list[str]]:
        run, entries = await super().read(run_id, after=after)
        number = int(run_id[1:]) if run_id[1:].isdigit() else 0
        is_whole = not (run.session and number) or f"r{number - 1}" in self.place.runs
        return run, entries if is_whole else entries[1:]


class FindsAnyWord(Honest):
    def has(self, kept: _Kept, words: Sequence[str]) -> bool:
        searched = searched_text(kept.entries)
        return any(word in searched for word in words)


class FindsWithoutALimit(Honest):
    async def search(self, text: str, *, owner: str | None = None, limit: int = 20) -> list[StoredRun]:
        return await super().search(text, owner=owner, limit=1000)


class SearchesTheRunsOfAllOwners(Honest):
    async def search(self, text: str, *, owner: str | None = None, limit: int = 20) -> list[StoredRun]:
        return await super().search(text, limit=limit)


class RenamesNothing(Honest):
    async def rename(self, run_id: str, title: str) -> None:
        self.of(run_id)


class RenamesWhatIsMissing(Honest):
    async def rename(self, run_id: str, title: str) -> None:
        if run_id in self.place.runs:
            await super().rename(run_id, title)


class SearchesTheFirstEntries(Honest):
    def has(self, kept: _Kept, words: Sequence[str]) -> bool:
        if not hasattr(self, "first"):
            self.first: dict[str, list[str]] = {}
        entries = self.first.setdefault(kept.run.run_id, list(kept.entries))
        return bool(words) and all(word in searched_text(entries) for word in words)


class PutsTheNewestFirst(Honest):
    def add(self, kept: _Kept, entries: Sequence[str]) -> None:
        kept.entries[:0] = entries


class StripsTexts(Honest):
    async def create(self, run: StoredRun, entries: Sequence[str]) -> int:
        return await super().create(run, [entry.replace("\r\n", "\n") for entry in entries])


class WritesAtTheEnd(Honest):
    """It gathers what is appended until the run ends."""

    def add(self, kept: _Kept, entries: Sequence[str]) -> None:
        self.waiting = [*getattr(self, "waiting", ()), *entries]

    def let_go(self, kept: _Kept, state: str) -> None:
        if state != RUNNING or len(self.waiting) > 5:
            kept.entries += self.waiting
            self.waiting = []
        super().let_go(kept, state)


class ForgetsTitles(Honest):
    async def create(self, run: StoredRun, entries: Sequence[str]) -> int:
        return await super().create(replace(run, title=""), entries)


class _Forgets(Honest):
    forgotten: str

    async def create(self, run: StoredRun, entries: Sequence[str]) -> int:
        blank: Any = {self.forgotten: ""}
        return await super().create(replace(run, **blank), entries)


class ForgetsAgents(_Forgets):
    forgotten = "agent"


class ForgetsModels(_Forgets):
    forgotten = "model"


class ForgetsSessions(_Forgets):
    forgotten = "session"


class ForgetsParents(_Forgets):
    forgotten = "parent"


class ListsTheOldestFirst(Honest):
    async def runs(
        self, *, session: str | None = None, owner: str | None = None, state: str | None = None, limit: int = 100
    ) -> list[StoredRun]:
        return (await super().runs(session=session, owner=owner, state=state))[::-1][:limit]


class ListsTwenty(Honest):
    async def runs(
        self, *, session: str | None = None, owner: str | None = None, state: str | None = None, limit: int = 20
    ) -> list[StoredRun]:
        return await super().runs(session=session, owner=owner, state=state, limit=limit)


class ListsTheRunsOfAllOwners(Honest):
    def fits(self, run: StoredRun, wanted: Mapping[str, str | None]) -> bool:
        return super().fits(run, {**wanted, "owner": None})


class ListsTheRunsOfAllSessions(Honest):
    def fits(self, run: StoredRun, wanted: Mapping[str, str | None]) -> bool:
        return super().fits(run, {**wanted, "session": None})


class ListsTheRunsOfAllStates(Honest):
    def fits(self, run: StoredRun, wanted: Mapping[str, str | None]) -> bool:
        return super().fits(run, {**wanted, "state": None})


class ListsBeforeItChooses(Honest):
    """Takes the newest runs of all, and then those that fit."""

    async def runs(
        self, *, session: str | None = None, owner: str | None = None, state: str | None = None, limit: int = 100
    ) -> list[StoredRun]:
        fitting = {run.run_id for run in await super().runs(session=session, owner=owner, state=state)}
        return [run for run in await super().runs(limit=limit) if run.run_id in fitting]


class ReadsOneEntryTooMany(Honest):
    async def read(self, run_id: str, *, after: int = 0) -> tuple[StoredRun, list[str]]:
        return await super().read(run_id, after=max(0, after - 1))


class SignalsOneListener(Honest):
    def listeners(self) -> list[asyncio.Queue[Signal]]:
        return super().listeners()[:1]


class TakesAnIdTwice(Honest):
    def check_new(self, run_id: str) -> None:
        pass


class KnowsEveryRun(Honest):
    def of(self, run_id: str) -> _Kept:
        try:
            return super().of(run_id)
        except RunNotFoundError as error:
            raise StoreError("something is wrong") from error


class KeepsWhatIsDeleted(Honest):
    async def delete(self, run_id: str) -> None:
        with self.place.lock:
            kept = self.of(run_id)
            self.check_free(kept)
            kept.owner = "nobody"
            self.hidden = {*getattr(self, "hidden", ()), run_id}

    async def runs(
        self, *, session: str | None = None, owner: str | None = None, state: str | None = None, limit: int = 100
    ) -> list[StoredRun]:
        hidden = getattr(self, "hidden", ())
        return [
            run
            for run in await super().runs(session=session, owner=owner, state=state, limit=limit)
            if run.run_id not in hidden
        ]


class ForgetsConversations(Honest):
    """Looks for the beginning of a conversation in a run that may be gone."""

    async def delete(self, run_id: str) -> None:
        session = self.of(run_id).run.session
        await super().delete(run_id)
        for kept in self.place.runs.values():
            if session and kept.run.session == session:
                kept.entries[0] = kept.entries[0][-100:]


class ForgetsWhoWaits(Honest):
    def has_ended(self, kept: _Kept) -> bool:
        return kept.owner is None


class ForgetsWhatWasInterrupted(Honest):
    def has_ended(self, kept: _Kept) -> bool:
        return super().has_ended(kept) or (kept.run.state == RUNNING and kept.owner is None)


class BelievesWhatItIsTold(Honest):
    async def create(self, run: StoredRun, entries: Sequence[str]) -> int:
        hold = await super().create(run, entries)
        kept = self.of(run.run_id)
        kept.run = replace(kept.run, began=run.began or kept.run.began, changed=run.changed or kept.run.changed)
        return hold


class ListsWhatIsReleasedAsHeld(Honest):
    async def runs(
        self, *, session: str | None = None, owner: str | None = None, state: str | None = None, limit: int = 100
    ) -> list[StoredRun]:
        runs = await super().runs(session=session, owner=owner, state=state, limit=limit)
        return [replace(run, is_held=run.state == RUNNING) for run in runs]


class DeletesWhatIsHeld(Honest):
    async def delete(self, run_id: str) -> None:
        with self.place.lock:
            self.of(run_id)
            del self.place.runs[run_id]


class LendsToAnybody(Honest):
    def check_free(self, kept: _Kept) -> None:
        pass


class NeverLetsGo(Honest):
    def let_go(self, kept: _Kept, state: str) -> None:
        kept.run = replace(kept.run, state=state, changed=float(next(_clock)))

    def check_free(self, kept: _Kept) -> None:
        if kept.run.state == RUNNING:
            super().check_free(kept)


class TrustsWhoWasThere(Honest):
    def check_held(self, kept: _Kept, hold: int) -> None:
        pass


class HoldsForEver(Honest):
    async def aclose(self) -> None:
        pass


class MixesRuns(Honest):
    def add(self, kept: _Kept, entries: Sequence[str]) -> None:
        for other in self.place.runs.values():
            if other.run.run_id[:1] == kept.run.run_id[:1] and (other is kept or len(self.place.runs) > 10):
                other.entries += entries


class FailsInThreads(Honest):
    """Keeps everything, and then says that it failed."""

    async def append(self, run_id: str, hold: int, entries: Sequence[str], *, state: str = RUNNING) -> None:
        await super().append(run_id, hold, entries, state=state)
        if state != RUNNING and threading.current_thread() is not threading.main_thread():
            raise StoreError("this is another thread")


class LosesTheLastEntry(Honest):
    """It keeps a run's end as a state, and not what comes with it."""

    def let_go(self, kept: _Kept, state: str) -> None:
        if state == "approval_needed":
            kept.entries[:] = kept.entries[:1]
        super().let_go(kept, state)


class PutsEndsLast(Honest):
    """It keeps what came with an end beside the run, and shows it after all else."""

    def add(self, kept: _Kept, entries: Sequence[str]) -> None:
        ended = [one for one in kept.entries if one in ("last", "")]
        kept.entries[:] = [*(one for one in kept.entries if one not in ended), *entries, *ended]


class LetsSomeIn(Honest):
    """Two that take hold of a run that failed both get it."""

    def check_free(self, kept: _Kept) -> None:
        if kept.hold > 2 or (kept.run.state != "failed" and kept.hold < 2):
            super().check_free(kept)


class LendsToItsOwnTasks(Honest):
    def check_free(self, kept: _Kept) -> None:
        if kept.owner is not self.owner:
            super().check_free(kept)


class ChangesTheStateOfWhatItHolds(Honest):
    async def hold(self, run_id: str) -> int:
        with self.place.lock:
            number = await super().hold(run_id)
            self.of(run_id).run = replace(self.of(run_id).run, state=RUNNING)
            return number


class KeepsWhatIsReleased(Honest):
    async def release(self, run_id: str, hold: int) -> None:
        pass


class ReleasesEveryHold(Honest):
    def is_hold(self, kept: _Kept, hold: int) -> bool:
        return True


class ReportsTheFirstWrite(Honest):
    def report(self) -> None:
        if not hasattr(self, "has_reported"):
            self.has_reported = True
            super().report()


class RefusesOddTitles(Honest):
    async def rename(self, run_id: str, title: str) -> None:
        title.encode()
        await super().rename(run_id, title)


class ConfirmsEveryHold(Honest):
    def check_held(self, kept: _Kept, hold: int) -> None:
        if kept.hold != hold or kept.owner is not None:
            super().check_held(kept, hold)


class CallsAnOutageAnError(Honest):
    def check_usable(self, _kept: _Kept, _entries: Sequence[str]) -> None:
        if Path.cwd() in outages:
            raise StoreError("it did not work")


class CallsAnOutageAtTheEndAnError(Honest):
    async def append(self, run_id: str, hold: int, entries: Sequence[str], *, state: str = RUNNING) -> None:
        try:
            await super().append(run_id, hold, entries, state=state)
        except StoreUnavailableError as error:
            if state != RUNNING:
                raise StoreError("it did not work") from error
            raise


class WritesTwiceAfterAnOutage(Honest):
    def check_usable(self, kept: _Kept, entries: Sequence[str]) -> None:
        if Path.cwd() in outages:
            kept.entries += entries
            raise StoreUnavailableError("the answer of the server did not come")


class NeedsAWriteToLetGo(Honest):
    async def release(self, run_id: str, hold: int) -> None:
        if Path.cwd() not in outages:
            await super().release(run_id, hold)


class LosesWhatItCannotWrite(Honest):
    """It says that entries are written that are not."""

    def check_usable(self, kept: _Kept, entries: Sequence[str]) -> None:
        pass

    def add(self, kept: _Kept, entries: Sequence[str]) -> None:
        if Path.cwd() not in outages:
            super().add(kept, entries)


class WritesAFile(Honest):
    async def create(self, run: StoredRun, entries: Sequence[str]) -> int:
        with tempfile.NamedTemporaryFile("w", dir=os.getcwd()) as file:  # noqa: PTH109 - as it comes
            file.write("a copy")
        return await super().create(run, entries)


class HoldsUpTheLoop(Honest):
    async def append(self, run_id: str, hold: int, entries: Sequence[str], *, state: str = RUNNING) -> None:
        threading.Event().wait(0.2)
        await super().append(run_id, hold, entries, state=state)


class StatesNoSecret(Honest):
    def secret_sources(self) -> tuple[object, ...]:
        return ()


class ShowsItsPassword(Honest):
    def __repr__(self) -> str:
        return f"ShowsItsPassword(password={self.cfg['password']!r})"


class TellsItsPassword(Honest):
    async def read(self, run_id: str, *, after: int = 0) -> tuple[StoredRun, list[str]]:
        try:
            return await super().read(run_id, after=after)
        except RunNotFoundError as error:
            raise RunNotFoundError(f"{error} (connected with {self.cfg['password']})") from None


# --- stores that are wrong from end to end, so that each fails many laws, at all of their assertions ---


class Blurs(Honest):
    """Shows other facts about each run than it was told, and other entries."""

    def shown(self, kept: _Kept) -> StoredRun:
        told = replace(super().shown(kept), title="?", owner="?", state="?", is_held=True)
        return replace(told, entries=-1, began=5.0, changed=float(next(_clock)))

    async def read(self, run_id: str, *, after: int = 0) -> tuple[StoredRun, list[str]]:
        run, _ = await super().read(run_id, after=after)
        return run, ["else"]


class CallsAllFree(Honest):
    """Shows each run as ended and free, without its entries."""

    def shown(self, kept: _Kept) -> StoredRun:
        return replace(super().shown(kept), state="finished", is_held=False, entries=0)

    async def read(self, run_id: str, *, after: int = 0) -> tuple[StoredRun, list[str]]:
        run, _ = await super().read(run_id, after=after)
        return run, []


class ListsNothing(Honest):
    """Lists and finds no run, and sends no signal."""

    async def runs(self, **_wanted: Any) -> list[StoredRun]:
        return []

    async def search(self, text: str, **_wanted: Any) -> list[StoredRun]:
        return []

    async def listen(self) -> AsyncIterator[Signal]:
        while True:
            yield Signal("x", "else")
            await asyncio.sleep(0)
            yield Signal("x", "end")


class ListsEverything(Honest):
    """Lists and finds each run with each other."""

    def fits(self, run: StoredRun, wanted: Mapping[str, str | None]) -> bool:
        return True

    async def search(self, text: str, *, owner: str | None = None, limit: int = 20) -> list[StoredRun]:
        return await self.runs()


class ForgivesAll(Honest):
    """Lets everybody do everything, and makes runs that are missing."""

    def check_new(self, run_id: str) -> None:
        self.place.runs.pop(run_id, None)

    def check_free(self, kept: _Kept) -> None:
        pass

    def check_held(self, kept: _Kept, hold: int) -> None:
        pass

    def check_usable(self, _kept: _Kept, _entries: Sequence[str]) -> None:
        pass

    def of(self, run_id: str) -> _Kept:
        missing = _Kept(StoredRun(run_id=run_id), ["made up"], 1, None)
        return self.place.runs.setdefault(run_id, missing)


class CountsNoHolds(Honest):
    """Gives the same number for each hold."""

    async def hold(self, run_id: str) -> int:
        await super().hold(run_id)
        self.of(run_id).hold = 1
        return 1


class LetsNobodyIn(Honest):
    """Fails whenever a run is wanted."""

    async def hold(self, run_id: str) -> int:
        raise RuntimeError("not now")


class HoldsAll(Honest):
    """Lets go of nothing."""

    def let_go(self, kept: _Kept, state: str) -> None:
        kept.run = replace(kept.run, state=state, changed=0.0)

    def check_free(self, kept: _Kept) -> None:
        pass

    async def release(self, run_id: str, hold: int) -> None:
        pass

    async def aclose(self) -> None:
        pass


class DoesNoMore(Honest):
    """Keeps runs, and nothing more."""

    reports_writes = False
    search = Store.search  # type: ignore[assignment]
    rename = Store.rename  # type: ignore[assignment]
    send = Store.send  # type: ignore[assignment]


class NeverMakesRoom(Honest):
    def make_room(self) -> None:
        pass


class BelievesAnyHolder(Honest):
    """Takes entries from each store while some store holds the run."""

    def check_held(self, kept: _Kept, hold: int) -> None:
        if kept.owner is None:
            raise RunBusyError("somebody else has it")


class FindsWhatIsGone(Honest):
    async def search(self, text: str, **wanted: Any) -> list[StoredRun]:
        self.found = [*getattr(self, "found", []), *await super().search(text, **wanted)]
        return list({run.run_id: run for run in self.found}.values())
