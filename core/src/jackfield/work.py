"""The work in progress: observers surround it with contexts, and add headers to its requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

WorkKind: TypeAlias = Literal["run", "tool_call", "retrieval", "embedding"]


@dataclass(slots=True, eq=False, kw_only=True)
class Work:
    """A piece of a run's work.

    Attributes:
        kind: `run` for everything that a run does between two events, `tool_call` for a call of a tool, `retrieval` for
            a search in documents, `embedding` for a request to an embedder. Later versions may add kinds.
        run_id: The run.
        call_id: The call; '' for other kinds.
        name: The tool, the component that searches, or the embedder; '' for a run.
        facts: Further facts, to which the code that does the work may add until it ends. A `run` has its `session`. A
            `retrieval` has its `query` and, at its end, the number of `passages` and `documents`. An `embedding` has
            its `model`, the number of `texts` and, at its end, the `dimension` of the vectors and the `prompt_tokens`,
            if known.
    """

    kind: WorkKind
    run_id: str
    call_id: str = ""
    name: str = ""
    facts: dict[str, object] = field(default_factory=dict)


class Surroundings(Protocol):
    """The interface of a run's work to the observers of the run."""

    def enter(self, work: Work) -> Callable[[BaseException | None], None]:
        """Enter the contexts of all observers for a piece of work. The result leaves them, given an error or None."""

    def headers(self) -> Mapping[str, str]:
        """Return the headers that observers add to requests of the work in progress."""


@dataclass(frozen=True, slots=True)
class _InProgress:
    surroundings: Surroundings
    run_id: str


_in_progress: ContextVar[_InProgress | None] = ContextVar("work_in_progress", default=None)


def outgoing_headers() -> Mapping[str, str]:
    """Return the headers that observers of the current run add to its HTTP requests, such as `traceparent`.

    Clients of services add them to their own headers. Names are in lower case. Outside a run, there are none.
    """
    current = _in_progress.get()
    return {} if current is None else current.surroundings.headers()


@contextmanager
def surrounded(work: Work, surroundings: Surroundings) -> Iterator[Work]:
    """Do a piece of work inside the contexts of observers. Errors pass through unchanged.

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
        with suppress(ValueError):  # the garbage collector closes unfinished work in another context
            _in_progress.reset(token)


@contextmanager
def part_of_run(kind: WorkKind, name: str, **facts: object) -> Iterator[Work]:
    """Do a piece of the current run's work inside the contexts of its observers; outside a run, without contexts.

    ```python
    with part_of_run("retrieval", "hybrid_search", query=query) as work:
        hits = await search(query)
        work.facts["passages"] = len(hits)
    ```

    Args:
        kind: The kind of work.
        name: The component that does it.
        facts: The facts that are already known.
    """
    current = _in_progress.get()
    work = Work(kind=kind, run_id="" if current is None else current.run_id, name=name, facts=facts)
    if current is None:
        yield work
        return
    with surrounded(work, current.surroundings):
        yield work
