"""Units of work. Observers wrap each unit in a context and add headers to its HTTP requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeAlias

WorkKind: TypeAlias = Literal["run", "tool_call", "retrieval", "embedding"]


@dataclass(slots=True, eq=False, kw_only=True)
class Work:
    """A unit of a run's work.

    Attributes:
        kind: `run` for everything that a run does between two events, `tool_call` for a tool call, `retrieval` for a
            document search, or `embedding` for a request to an embedder. Later versions may add more kinds.
        run_id: The run.
        call_id: The call's id, or '' for other kinds.
        name: The name of the tool, the component that searches, or the embedder. '' for a run.
        facts: Metadata. The code that does the work may add to it until the work ends. A `run` has a `session`. A
            `retrieval` has a `query` and, when it ends, the number of `passages` and `documents`. An `embedding` has a
            `model`, the number of `texts` and, when it ends, the `dimension` of the vectors and the `prompt_tokens`, if
            known.
    """

    kind: WorkKind
    run_id: str
    call_id: str = ""
    name: str = ""
    facts: dict[str, object] = field(default_factory=dict)


class Surroundings(Protocol):
    """Protocol that connects a run's work to the run's observers."""

    def enter(self, work: Work) -> Callable[[BaseException | None], None]:
        """Enter all observers' contexts for a unit of work.

        To exit them, call the returned function with an error or None.
        """

    def headers(self) -> Mapping[str, str]:
        """Return the headers that observers add to requests made by the current work."""


class _InProgress(NamedTuple):
    surroundings: Surroundings
    run_id: str


_in_progress: ContextVar[_InProgress | None] = ContextVar("work_in_progress", default=None)


def outgoing_headers() -> Mapping[str, str]:
    """Return the headers that the current run's observers add to its HTTP requests, such as `traceparent`.

    Service clients add these headers to their own. Names are in lower case. Outside a run, the result is empty.
    """
    current = _in_progress.get()
    return {} if current is None else current.surroundings.headers()


@contextmanager
def surrounded(work: Work, surroundings: Surroundings) -> Iterator[Work]:
    """Run the `with` block as a unit of work inside the observers' contexts. Errors are raised unchanged.

    Args:
        work: The work.
        surroundings: The observers of the run to which the work belongs.
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
    """Run the `with` block as a unit of the current run's work, inside the contexts of the run's observers.

    Outside a run, there are no contexts.

    ```python
    with part_of_run("retrieval", "hybrid_search", query=query) as work:
        hits = await search(query)
        work.facts["passages"] = len(hits)
    ```

    Args:
        kind: The kind of work.
        name: The name of the component that does the work.
        facts: Metadata that is already known.
    """
    current = _in_progress.get()
    work = Work(kind=kind, run_id="" if current is None else current.run_id, name=name, facts=facts)
    if current is None:
        yield work
        return
    with surrounded(work, current.surroundings):
        yield work
