"""Make each thing once, even if several threads ask for it at the same time, and remember what failed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar, cast

from jackfield.errors import PluginError

Key = tuple[str, str, object]  # the step, the distribution of the plugin, and the subject
Value = TypeVar("Value")


class Once:
    """The results of steps that run once each.

    A step runs outside of any lock that another step needs, because it may import. A step that fails with a
    `PluginError` fails with the same error the next time.
    """

    def __init__(self) -> None:
        self._results: dict[Key, object] = {}
        self._step_locks: dict[Key, threading.RLock] = {}
        self._lock = threading.Lock()

    def get(self, key: Key, step: Callable[[], Value]) -> Value:
        """Return the result of a step, which runs if it has none yet.

        Raises:
            PluginError: The step failed, now or earlier.
        """
        result = self._results.get(key)
        if result is None:
            with self._lock:
                step_lock = self._step_locks.setdefault(key, threading.RLock())
            with step_lock:
                result = self._results.get(key)
                if result is None:
                    try:
                        result = step()
                    except PluginError as error:
                        result = error
                    self._results[key] = result
        if isinstance(result, PluginError):
            # A copy, because each raise would add to the traceback of the remembered error.
            copy = type(result)(*result.args)
            copy.__cause__ = result.__cause__
            raise copy
        return cast("Value", result)

    def forget(self, is_stale: Callable[[Key, object], bool]) -> None:
        """Drop the results for which `is_stale` returns True; their steps run again."""
        results = dict(self._results)  # copied in one step, while other threads add results
        self._results = {key: result for key, result in results.items() if not is_stale(key, result)}

    def renew_locks(self) -> None:
        """Replace all locks, in the child of a fork: a lock that another thread held stays locked there."""
        self._lock = threading.Lock()
        self._step_locks = {}
