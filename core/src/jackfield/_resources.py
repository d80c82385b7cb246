"""A run's resources, such as kernels, connections and clients, which are closed when the run ends."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from jackfield._editor import Editor

_log = logging.getLogger(__name__)


R = TypeVar("R")


class RunResources:
    """Resources that are opened on first use and closed in reverse order when the run ends.

    By default, an agent creates a `RunResources` object for each run. To keep resources open across several runs (a
    chat), create the object yourself, pass it to each run, and close it at the end.

    Args:
        editor: The user's editor.

    Attributes:
        editor: The editor whose files and terminal the tools use, or None. Subagents use the same editor.
        attached: Mapping from the `data:` URIs in messages to the paths of the saved files; see `save_attached`.
    """

    def __init__(self, editor: Editor | None = None) -> None:
        self.editor = editor
        self.attached: dict[str, str] = {}
        self._open: dict[str, asyncio.Task[Any]] = {}
        self._closed = False

    async def get(self, key: str, opener: Callable[[], Awaitable[R]]) -> R:
        """Return the resource stored under `key`, calling `opener` on first use.

        If several calls request the same resource concurrently, it is opened only once.

        Raises:
            RuntimeError: The run has ended.
        """
        if self._closed:
            raise RuntimeError(f"cannot open {key!r}: the run has already ended")
        task = self._open.get(key)
        if task is None:
            task = self._open[key] = asyncio.ensure_future(_await(opener()))
        try:
            # Shielded, so that if one of two waiting calls is cancelled, the other still gets the resource.
            return cast(R, await asyncio.shield(task))
        except BaseException:
            if task.done() and _never_opened(task):
                self._open.pop(key, None)
            raise

    def discard(self, key: str) -> None:
        """Drop a broken resource. The next `get` then opens a new resource. The caller must close the old resource."""
        self._open.pop(key, None)

    async def aclose(self) -> None:
        """Close all resources. Errors are logged and do not prevent other resources from being closed."""
        self._closed = True
        while self._open:
            key, task = self._open.popitem()
            if not task.done():
                task.cancel()
            await asyncio.wait([task])
            if _never_opened(task):
                continue  # the caller of `get` got the error
            try:
                await _close(task.result())
            except Exception:  # noqa: BLE001 - a failure must not keep the others open
                _log.warning("closing %s failed", key, exc_info=True)

    async def __aenter__(self) -> RunResources:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()


def _never_opened(task: asyncio.Task[Any]) -> bool:
    return task.cancelled() or task.exception() is not None


async def _await(opening: Awaitable[R]) -> R:
    return await opening


async def _close(resource: object) -> None:
    close = getattr(resource, "aclose", None) or getattr(resource, "close", None)
    if close is None:
        return
    done = close()
    if inspect.isawaitable(done):
        await done
