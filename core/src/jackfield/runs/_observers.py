"""Observers, which receive every event of a run but cannot change any events."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import ClassVar, TypeAlias, TypeVar

from jackfield._secretsources import StatesSecrets
from jackfield.errors import ConfigError
from jackfield.events import ModelFinished, RunEvent, TurnFinished, TurnStarted
from jackfield.plugins._acting import acting
from jackfield.plugins._protocol import Plugins
from jackfield.request import ChatRequest
from jackfield.work import Work, surrounded

T = TypeVar("T")
R = TypeVar("R")
MAX_FAULTS = 3
_log = logging.getLogger("jackfield.observers")


class Observer(StatesSecrets, ABC):
    """Base class for observers. Several runs may be active at once, so key each run's data by `event.run_id`."""

    name: ClassVar[str]

    def prepare(self, agent: object) -> None:
        """Prepare for an agent's run before its first event. For example, collect the secrets to hide.

        This method is called for each run, possibly from several threads, and must not block.
        """

    @abstractmethod
    def observe(self, event: RunEvent) -> None:
        """Handle one event without blocking, because the run waits for this method. Do not change the event."""

    def observe_request(self, run_id: str, request: ChatRequest) -> None:
        """Handle a request to the model before the model's processors receive it. This method must not block.

        The request follows `TurnStarted`. Requests made by processors, such as fallbacks, are not shown.
        """

    def surround(self, work: Work) -> AbstractContextManager[object] | None:  # noqa: ARG002 - for overrides
        """Return a context manager for a unit of a run's work, such as a trace span, or None.

        The context is entered and exited in the same task or thread, so it may set context variables. Context variables
        also reach the threads and tasks that the work starts. For a run, a new context is created, entered and exited
        for each event, because the code that reads the events must stay outside. The later fragments of an answer are
        read without a context. If all observers return None after `RunStarted`, this method is not called again.
        `ToolStarted` may arrive shortly after the call has started.
        """
        return None

    def headers(self) -> Mapping[str, str]:
        """Return headers to add to HTTP requests made by the current work.

        This method is called inside the work's context.
        """
        return {}

    def trace_of(self, run_id: str) -> Mapping[str, str]:  # noqa: ARG002
        """Return a run's trace as the headers `traceparent` and `tracestate`, or an empty dict.

        This method is called once per recorded run, after `RunStarted`. The record stores the trace.
        """
        return {}

    def resume(self, run_id: str, trace: Mapping[str, str]) -> None:
        """Receive the original trace of a resumed run, which may have started in another process.

        If the record has a trace, this method is called between `prepare` and `RunStarted`, in the same thread. The
        trace is that of the observer with the same name and position, or the first trace if there is none. A forked run
        starts with the original run's trace.
        """


_ObserverContext: TypeAlias = tuple[Observer, AbstractContextManager[object]]


class Observers(StatesSecrets):
    """An agent's observers. Errors in observers are logged and do not affect the run.

    After three errors, an observer receives no more events.
    """

    def __init__(self, observers: Iterable[Observer] = ()) -> None:
        self._active = tuple(observers)
        self._prefixes = _prefixes_of(self._active)
        self._surrounding = self._overriding("surround", "headers")
        self._asking = self._overriding("observe_request")
        self._faults: dict[Observer, int] = {}
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._active)

    @property
    def names(self) -> frozenset[str]:
        """The names of the observers."""
        return frozenset(observer.name for observer in self._active)

    def prepare(self, agent: object, run_id: str = "", trace: Mapping[str, str] | None = None) -> None:
        """Prepare all observers for an agent's run. Passing a trace means that the run is resumed.

        Each observer receives its own trace, or the first trace if the record does not contain the observer's own.
        """
        for observer in self._active:
            try:
                observer.prepare(agent)
                if trace and (own := _own_trace(trace, self._prefixes[observer])):
                    observer.resume(run_id, own)
            except Exception:  # noqa: BLE001 - as for an event
                self._note_fault(observer)

    def tell(self, event: RunEvent) -> None:
        """Send an event to all observers."""
        for observer in self._active:
            try:
                observer.observe(event)
            except Exception:  # noqa: BLE001 - it is logged, and does not affect the run
                self._note_fault(observer)

    def _overriding(self, *methods: str) -> tuple[Observer, ...]:
        """Return the active observers that override any of these methods."""
        return tuple(
            one
            for one in self._active
            if any(getattr(type(one), name) is not getattr(Observer, name) for name in methods)
        )

    # --- requests and the work in progress ---

    @property
    def surround_work(self) -> bool:
        """True if any observer wraps work or adds headers to requests."""
        return bool(self._surrounding)

    @property
    def see_requests(self) -> bool:
        """True if any observer handles requests to models."""
        return bool(self._asking)

    def show_request(self, run_id: str, request: ChatRequest) -> None:
        """Send a request to the observers that handle requests."""
        for observer in self._asking:
            try:
                observer.observe_request(run_id, request)
            except Exception:  # noqa: BLE001 - as for an event
                self._note_fault(observer)

    def surround_events(self, events: AsyncIterator[T], run_id: str, session: str) -> SurroundedEvents[T] | None:
        """Wrap a run's events so that its work happens inside the observers' contexts.

        Return None if no observer wraps work.
        """
        if not self._surrounding:
            return None
        work = Work(kind="run", run_id=run_id, facts={"session": session})
        has_contexts = any(True for _ in self._contexts_of(work))
        return SurroundedEvents(events, self, work) if has_contexts else None

    def _contexts_of(self, work: Work) -> Iterator[_ObserverContext]:
        for observer in self._surrounding:
            try:
                context = observer.surround(work)
            except Exception:  # noqa: BLE001 - as for an event
                self._note_fault(observer)
            else:
                if context is not None:
                    yield observer, context

    def enter(self, work: Work) -> Callable[[BaseException | None], None]:
        """See `jackfield.work.Surroundings`."""
        entered: list[_ObserverContext] = []
        for observer, context in self._contexts_of(work):
            try:
                context.__enter__()
            except Exception:  # noqa: BLE001 - as for an event
                self._note_fault(observer)
            else:
                entered.append((observer, context))
        return partial(self._leave, entered)

    def _leave(self, entered: Sequence[_ObserverContext], error: BaseException | None) -> None:
        for observer, context in reversed(entered):
            try:
                context.__exit__(None if error is None else type(error), error, None)
            except Exception:  # noqa: BLE001 - as for an event
                self._note_fault(observer)

    def headers(self) -> Mapping[str, str]:
        """See `jackfield.work.Surroundings`."""
        headers: dict[str, str] = {}
        for observer in self._surrounding:
            try:
                headers.update(observer.headers())
            except Exception:  # noqa: BLE001 - as for an event
                self._note_fault(observer)
        return headers

    # --- traces of recorded runs ---

    def trace_of(self, run_id: str) -> Mapping[str, str]:
        """Return the traces of a run that has started, or an empty dict if no observer has a trace.

        The headers of the first observer with a trace keep their names. The headers of other observers get a prefix.
        """
        traces: dict[str, str] = {}
        for observer in self._active:
            try:
                trace = dict(observer.trace_of(run_id))
                if not all(isinstance(text, str) for pair in trace.items() for text in pair):
                    raise TypeError("trace headers must be strings")  # noqa: TRY301
            except Exception:  # noqa: BLE001 - as for an event
                self._note_fault(observer)
            else:
                prefix = self._prefixes[observer] if traces else ""
                traces.update({f"{prefix}{name}": text for name, text in trace.items()})
        return traces

    def _note_fault(self, observer: Observer) -> None:
        with self._lock:
            count = self._faults[observer] = self._faults.get(observer, 0) + 1
            if count == MAX_FAULTS:
                self._active = tuple(one for one in self._active if one is not observer)
                self._surrounding = self._overriding("surround", "headers")
                self._asking = self._overriding("observe_request")
        silenced = "; it will receive no more events" if count == MAX_FAULTS else ""
        _log.exception("observer %r failed%s", observer.name, silenced)


def _prefixes_of(observers: Sequence[Observer]) -> dict[Observer, str]:
    """Map each observer to a prefix that is the same in all processes: its name and its position among equal names."""
    counts: Counter[str] = Counter()
    prefixes: dict[Observer, str] = {}
    for observer in observers:
        counts[observer.name] += 1
        prefixes[observer] = f"{observer.name}/{counts[observer.name]}/"
    return prefixes


def _own_trace(traces: Mapping[str, str], prefix: str) -> dict[str, str]:
    own = {name.removeprefix(prefix): text for name, text in traces.items() if name.startswith(prefix)}
    return own or {name: text for name, text in traces.items() if "/" not in name}


NO_OBSERVERS = Observers()


class SurroundedEvents(AsyncIterator[T]):
    """Iterator that produces events inside the observers' contexts, while the code that reads them stays outside.

    The later fragments of an answer do not start any work, so they are awaited outside. Entering the contexts for each
    fragment would add a tenth to the time.
    """

    def __init__(self, events: AsyncIterator[T], observers: Observers, work: Work) -> None:
        self._is_asking = self._is_streaming = False
        self._events, self._observers, self._work = events, observers, work

    def __anext__(self) -> Awaitable[T]:
        following = anext(self._events)
        return following if self._is_streaming else self._inside(following)

    def follow(self, event: object) -> None:
        """Handle the most recently read event, unless it belongs to a nested run."""
        if getattr(event, "is_delta", False):
            self._is_streaming = self._is_asking
        else:
            self._is_streaming = False
            self._is_asking = isinstance(event, TurnStarted) or (
                self._is_asking and not isinstance(event, ModelFinished | TurnFinished)
            )

    async def aclose(self) -> None:
        """Close the event stream inside the same contexts."""
        close = getattr(self._events, "aclose", None)
        if close is not None:
            await self._inside(close())

    async def _inside(self, work: Awaitable[R]) -> R:
        with surrounded(self._work, self._observers):
            return await work


def load_observers(entries: Sequence[str | Observer], host: Plugins) -> Observers:
    """Load the named observers and the observers that the settings enable.

    Raises:
        ConfigError: An observer's settings are not valid.
        PluginError: An observer is not installed or cannot be loaded.
    """
    for entry in entries:
        if not isinstance(entry, str | Observer):
            raise ConfigError(f"observers must be Observer objects or names of observers, got {type(entry).__name__}")
    named = [host.find("observer", entry) for entry in entries if isinstance(entry, str)]
    rows = dict.fromkeys((*named, *acting(host, "observer", named=named)))
    made = [host.make(row, host.settings.options_of(row.kind, row.address), Observer) for row in rows]
    return Observers((*(entry for entry in entries if isinstance(entry, Observer)), *made))
