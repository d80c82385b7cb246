"""Keep the resources of a run, such as kernels, connections and clients, and close them at its end."""

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
    """Opens things at first use and closes them all, the last opened first, when the run ends.

    An agent makes one per run. A caller who wants to keep things over several runs (a chat) makes one, passes it to
    each run, and closes it.

    Args:
        editor: The editor of the user.

    Attributes:
        editor: The editor in whose files and terminal tools work; None if there is none. Agents below the run have the
            same.
        attached: The paths of the files that messages contain as `data:` URIs, by these; see `save_attached`.
    """

    def __init__(self, editor: Editor | None = None) -> None:
        self.editor = editor
        self.attached: dict[str, str] = {}
        self._open: dict[str, asyncio.Task[Any]] = {}
        self._closed = False

    async def get(self, key: str, opener: Callable[[], Awaitable[R]]) -> R:
        """Return the resource of this key; `opener` opens it if it is not open. Two calls at once open one.

        Raises:
            RuntimeError: The run has ended.
        """
        if self._closed:
            raise RuntimeError(f"the run has ended: {key!r} can no longer be opened")
        task = self._open.get(key)
        if task is None:
            task = self._open[key] = asyncio.ensure_future(_await(opener()))
        try:
            # Shielded: when one of two waiting calls is cancelled, the other still gets the resource.
            return cast(R, await asyncio.shield(task))
        except BaseException:
            if task.done() and _never_opened(task):
                self._open.pop(key, None)
            raise

    def discard(self, key: str) -> None:
        """Forget a resource that broke; the next `get` opens a new one. Closing it is the caller's."""
        self._open.pop(key, None)

    async def aclose(self) -> None:
        """Close everything; a failure to close is logged, and the rest is closed all the same."""
        self._closed = True
        while self._open:
            key, task = self._open.popitem()
            if not task.done():
                task.cancel()
            await asyncio.wait([task])
            if _never_opened(task):
                continue  # who asked for it has the error
            try:
                await _close(task.result())
            except Exception:  # noqa: BLE001 - one that will not close must not keep the others open
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
