"""How far a recorded run is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from jackfield.agents import Handoff, Run, Spent, open_calls
from jackfield.errors import StoreError
from jackfield.events import (
    ApprovalNeeded,
    HandedOff,
    PluginEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    ToolFinished,
    TurnFinished,
)
from jackfield.messages import Message
from jackfield_records.entries import ADDED, RESUMED, Step, event_in, messages_in, read_entry

_NOT_MADE = "CutOff"  # the error of a call that the answer was cut off in


@dataclass(kw_only=True)
class Progress:
    """How far a run is: a fold over its steps.

    Attributes:
        messages: What it began with.
        done: The messages that it has made, in the order of its history.
        spent: What it has used.
        began: The ids of calls that may have been made, and have no result.
        handed: The agents to which the conversation was handed over, and how many messages there were by then.
        handing: The agent to which it is about to be handed over; ''.
        reported: What plugins have reported.
        run_id, entries: Which run, and how many entries its record has; for a run that goes on.
        end: How it ended, the last time; None while it runs.
    """

    messages: tuple[Message, ...] = ()
    done: list[Message] = field(default_factory=list)
    spent: Spent = field(default_factory=Spent)
    began: set[str] = field(default_factory=set)
    handed: list[tuple[str, int]] = field(default_factory=list)
    handing: str = ""
    reported: list[PluginEvent] = field(default_factory=list)
    _in_doubt: set[str] = field(default_factory=set)
    run_id: str = ""
    entries: int = 0
    end: RunFinished | RunFailed | None = None
    _results: dict[int, ToolFinished] = field(default_factory=dict)

    def feed(self, event: object) -> None:
        """Take one step."""
        match event:
            case TurnFinished():
                self._settle()
                self.done += event.messages
                # Tools run once this is written: until there is a result, nobody knows.
                self.began, self._in_doubt = _open_ids(event.messages), set()
                self.spent = self.spent.plus_turn(event.usage)
            case ToolFinished():
                self._results[event.index] = event
                self.handing = event.metadata.get(Handoff.METADATA_KEY, self.handing)
                if event.call_id in self.began and event.error != _NOT_MADE:
                    self.spent = self.spent.plus_calls(1)
                self.began.discard(event.call_id)
                self._in_doubt.discard(event.call_id)
            case HandedOff():
                self.handed.append((event.to, len(self.now())))
                self.handing = ""
            case ApprovalNeeded():  # where one call waits, none of the turn is made
                self.began = set(self._in_doubt)
            case PluginEvent():
                self.reported.append(event)
            case RunFinished() | RunFailed():
                self.end = event
                self._settle()
            case RunStarted():
                self.messages, self.began = event.messages, _open_ids(event.messages)

    def resumed(self) -> None:
        """It goes on: calls that wait are made from now on."""
        self._settle()
        self._in_doubt, self.began = self.began, _open_ids([*self.messages, *self.done])

    def added(self, messages: Iterable[Message], *, instead: bool = False) -> None:
        """Messages that nobody made in the run: after the others, or instead of them."""
        self._settle()
        self.done[:] = [*(() if instead else self.done), *messages]

    def _settle(self) -> None:
        """Results come as tools end, and stand in the order of the calls."""
        self.done += [self._results[index].message for index in sorted(self._results)]
        self._results.clear()

    def put_into(self, run: Run) -> None:
        """Have a run go on from here."""
        run.id, run.resume, run.recorded = self.run_id, True, self.entries
        run.context = replace(run.context, run_id=self.run_id)
        run.done, run.spent, run.in_doubt = self.now(), self.spent, frozenset(self.began)
        run.handed, run.handing, run.reported = tuple(self.handed), self.handing, tuple(self.reported)

    def now(self) -> tuple[Message, ...]:
        """All messages that it has made."""
        self._settle()
        return tuple(self.done)


def progress_of(entries: Iterable[str]) -> Progress:
    """How far a recorded run is.

    Raises:
        StoreError: An entry cannot be read, or the record has no content.
    """
    progress = Progress()
    for _ in steps(entries, progress):
        pass
    return progress


def steps(entries: Iterable[str], progress: Progress) -> Iterator[Step]:
    """The events among the entries, each after the progress has taken it, as it takes the others."""
    for told in map(read_entry, entries):
        name = told.pop("event", None)
        if name == RESUMED:
            progress.resumed()
        elif name == ADDED:
            progress.added(messages_in(told), instead=told.get("instead") is True)
        elif told.get("bare"):
            raise StoreError("what was said was not recorded (content is off): it can be listed, and no more")
        else:
            event = event_in(name, told)
            progress.feed(event)
            if isinstance(event, RunFinished):
                progress.added(event.messages)
            yield event
    progress.now()


def _open_ids(messages: Sequence[Message]) -> set[str]:
    return {planned.call_id for planned in open_calls(messages)}
