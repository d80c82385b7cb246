"""The work that is in progress: observers surround it with a context, and add headers to the requests that it sends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Protocol, TypeAlias

WorkKind: TypeAlias = Literal["run", "tool_call", "retrieval"]


@dataclass(slots=True, eq=False, kw_only=True)
class Work:
    """A piece of the work of a run.

    Attributes:
        kind: `run` for all that a run does between two of its events, `tool_call` for one call of a tool, `retrieval`
            for one search in documents.
        run_id: The run.
        call_id: The call; '' for other kinds.
        name: The tool, or the component that searches; '' for a run.
        facts: Further facts. The code that does the work may add some until it ends. A `run` has its `session`. A
            `retrieval` has its `query`, and at its end the number of `passages` and of `documents`.
    """

    kind: WorkKind
    run_id: str
    call_id: str = ""
    name: str = ""
    facts: dict[str, object] = field(default_factory=dict)


class Surroundings(Protocol):
    """The observers of a run, as its work sees them."""

    def enter(self, work: Work) -> Callable[[BaseException | None], None]:
        """Enter the contexts of all observers for a piece of work; the result leaves them, after an error or None."""

    def headers(self) -> Mapping[str, str]:
        """Return the headers that the observers add to a request of the work in progress."""


@dataclass(frozen=True, slots=True)
class _InProgress:
    surroundings: Surroundings
    run_id: str


_in_progress: ContextVar[_InProgress | None] = ContextVar("work_in_progress", default=None)


def outgoing_headers() -> Mapping[str, str]:
    """Return the headers that observers of the current run add to its HTTP requests, such as `traceparent`.

    Clients of services add them to their own; names are in lower case. There are none outside of a run.
    """
    current = _in_progress.get()
    return {} if current is None else current.surroundings.headers()


class surrounded:  # noqa: N801 - used like a function, in `with`
    """Do a piece of work inside of the contexts of observers. An error passes through unchanged.

    Args:
        work: The work.
        surroundings: The observers of its run.
    """

    __slots__ = ("_leave", "_surroundings", "_token", "_work")

    _leave: Callable[[BaseException | None], None]
    _token: Token[_InProgress | None]

    def __init__(self, work: Work, surroundings: Surroundings) -> None:
        self._work, self._surroundings = work, surroundings

    def __enter__(self) -> Work:
        self._token = _in_progress.set(_InProgress(self._surroundings, self._work.run_id))
        self._leave = self._surroundings.enter(self._work)
        return self._work

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._leave(error)
        with suppress(ValueError):  # work that was never finished is closed by the garbage collector, in its context
            _in_progress.reset(self._token)


class part_of_run:  # noqa: N801 - as above
    """Do a piece of work of the current run inside of the contexts of its observers; outside of a run, just do it.

    ```python
    with part_of_run("retrieval", "hybrid_search", query=query) as work:
        hits = await search(query)
        work.facts["passages"] = len(hits)
    ```

    Args:
        kind: The kind of work.
        name: The component that does it.
        facts: What is known about it already.
    """

    __slots__ = ("_surrounded", "_work")

    def __init__(self, kind: WorkKind, name: str, **facts: object) -> None:
        current = _in_progress.get()
        self._work = Work(kind=kind, run_id="" if current is None else current.run_id, name=name, facts=facts)
        self._surrounded = None if current is None else surrounded(self._work, current.surroundings)

    def __enter__(self) -> Work:
        return self._work if self._surrounded is None else self._surrounded.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._surrounded is not None:
            self._surrounded.__exit__(kind, error, trace)
