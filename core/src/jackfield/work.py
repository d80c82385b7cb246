"""The work that is in progress: observers surround it with a context, and add headers to the requests that it sends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

WorkKind: TypeAlias = Literal["run", "tool_call", "retrieval", "embedding"]


@dataclass(slots=True, eq=False, kw_only=True)
class Work:
    """A piece of the work of a run.

    Attributes:
        kind: `run` for all that a run does between two of its events, `tool_call` for one call of a tool, `retrieval`
            for one search in documents, `embedding` for one request to an embedder. Later versions may add kinds.
        run_id: The run.
        call_id: The call; '' for other kinds.
        name: The tool, the component that searches, or the embedder; '' for a run.
        facts: Further facts. The code that does the work may add some until it ends. A `run` has its `session`. A
            `retrieval` has its `query`, and at its end the number of `passages` and of `documents`. An `embedding` has
            its `model` and the number of `texts`, and at its end the `dimension` of the vectors and the
            `prompt_tokens`, if they are known.
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


@contextmanager
def surrounded(work: Work, surroundings: Surroundings) -> Iterator[Work]:
    """Do a piece of work inside of the contexts of observers. An error passes through unchanged.

    Args:
        work: The work.
        surroundings: The observers of its run.
    """
    token = _in_progress.set(_InProgress(surroundings, work.run_id))
    leave = surroundings.enter(work)
    try:
        yield work
    except BaseException as error:
        leave(error)
        raise
    else:
        leave(None)
    finally:
        with suppress(ValueError):  # work that was never finished is closed by the garbage collector, elsewhere
            _in_progress.reset(token)


@contextmanager
def part_of_run(kind: WorkKind, name: str, **facts: object) -> Iterator[Work]:
    """Do a piece of work of the current run inside of the contexts of its observers; outside of a run, just do it.

    ```python
    with part_of_run("retrieval", "hybrid_search", query=query) as work:
        hits = await search(query)
        work.facts["passages"] = len(hits)
    ```

    Args:
        kind: The kind of work.
        name: The component that does it.
        facts: The facts that are already known about it.
    """
    current = _in_progress.get()
    work = Work(kind=kind, run_id="" if current is None else current.run_id, name=name, facts=facts)
    if current is None:
        yield work
        return
    with surrounded(work, current.surroundings):
        yield work
