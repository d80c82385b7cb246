"""Observers, which get every event of a run and can change nothing."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar

from jackfield.errors import ConfigError
from jackfield.events import RunEvent
from jackfield.plugins._acting import acting
from jackfield.plugins._protocol import Plugins
from jackfield.secrets import StatesSecrets

MAX_FAULTS = 3
_log = logging.getLogger("jackfield.observers")


class Observer(StatesSecrets, ABC):
    """Sees the events of all runs, also of several at once: what belongs to one run is kept by `event.run_id`."""

    name: ClassVar[str]

    def prepare(self, agent: object) -> None:
        """Prepare for a run of an agent, before its first event: collect the secrets to hide, for example.

        It is called for each run, possibly from several threads, and must not wait.
        """

    @abstractmethod
    def observe(self, event: RunEvent) -> None:
        """Take note of one event. It runs between two events of the run: it must not wait, nor change the event."""


class Observers(StatesSecrets):
    """The observers of one agent. A fault of one is logged and costs the run nothing; three silence it."""

    def __init__(self, observers: Iterable[Observer] = ()) -> None:
        self._active = tuple(observers)
        self._faults: dict[Observer, int] = {}
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._active)

    def prepare(self, agent: object) -> None:
        """Prepare all of them for a run of an agent."""
        for observer in self._active:
            try:
                observer.prepare(agent)
            except Exception:  # noqa: BLE001 - as for an event
                self._note_fault(observer)

    def tell(self, event: RunEvent) -> None:
        """Give an event to all of them."""
        for observer in self._active:
            try:
                observer.observe(event)
            except Exception:  # noqa: BLE001 - it is logged, and costs the run nothing
                self._note_fault(observer)

    def _note_fault(self, observer: Observer) -> None:
        with self._lock:
            count = self._faults[observer] = self._faults.get(observer, 0) + 1
            if count == MAX_FAULTS:
                self._active = tuple(one for one in self._active if one is not observer)
        silenced = "; it gets no more events" if count == MAX_FAULTS else ""
        _log.exception("observer %r failed%s", observer.name, silenced)


def load_observers(entries: Sequence[str | Observer], host: Plugins) -> Observers:
    """Return the named observers, and those that the settings enable.

    Raises:
        ConfigError: The settings of one do not fit.
        PluginError: One is not installed, or cannot be loaded.
    """
    for entry in entries:
        if not isinstance(entry, str | Observer):
            raise ConfigError(f"observers must be Observers or their names, not {type(entry).__name__}")
    named = [host.find("observer", entry) for entry in entries if isinstance(entry, str)]
    rows = dict.fromkeys((*named, *acting(host, "observer", named=named)))
    made = [host.make(row, host.settings.options_of(row.kind, row.address), Observer) for row in rows]
    return Observers((*(entry for entry in entries if isinstance(entry, Observer)), *made))
