"""The sandbox: each piece of code in a process of Monty, an interpreter of a part of Python."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from pydantic import Field

from jackfield.config import Config
from jackfield.errors import SandboxError
from jackfield.sandboxes import RISKS, CodeResult, CodeSandbox, Limits, Protection

if TYPE_CHECKING:
    from pydantic_monty import ResourceLimits

_UNLIMITED = Limits()
_DEEPEST = 100
_MOST_ERROR = 4000  # characters: an error shows the line, which may be all of the code
_HOW_TO_INSTALL = "Try: pip install --upgrade --force-reinstall pydantic-monty"
_PLAIN = (bool, int, float, str, bytes, datetime.date, datetime.time, datetime.timedelta, type(None))


class MontyConfig(Config):
    """How long code and its output may be."""

    max_code_chars: int = Field(default=100_000, ge=1, description="Longer code is not run")
    max_output_chars: int = Field(default=1_000_000, ge=1, description="Code that prints more is ended")


class MontySandbox(CodeSandbox):
    """Runs code in Monty, an interpreter written in Rust. It has a part of Python's language and of its standard
    library, and nothing that leads out: no files, network, programs, environment, packages.

    Each piece of code gets a process of its own, which is gone when the code has ended.
    """

    config_class = MontyConfig
    config: MontyConfig

    def protection(self) -> Protection:
        """All risks: what the interpreter cannot do at all needs no barrier.

        Raises:
            SandboxError: Monty is missing, or has no build for this system.
        """
        _client()
        return Protection("monty", frozenset(RISKS))

    async def run_code(
        self, code: str, *, values: Mapping[str, object] | None = None, limits: Limits = _UNLIMITED
    ) -> CodeResult:
        """Run code to its end; cancelling ends it.

        Raises:
            SandboxError: Monty does not start.
            ValueError: One of the values is not plain data.
        """
        client = _client()
        if len(code) > self.config.max_code_chars:
            return CodeResult(error=f"the code has more than {self.config.max_code_chars:,} characters: send less")
        printed = _Printed(self.config.max_output_chars)
        try:
            async with asyncio.timeout(limits.wall_s) as printed.scope:
                value = await _run(client, code, dict(values or {}), limits, printed)
            return CodeResult(_plain(value), printed.text)
        except TimeoutError:
            problem = (
                f"the code was ended: it printed more than {self.config.max_output_chars:,} characters"
                if printed.is_full
                else f"TimeoutError: the code was ended after {limits.wall_s:g} s"
            )
        except (client.MontyRuntimeError, client.MontySyntaxError) as error:
            problem = _shortened(error.display())
        except client.MontyConversionError as error:
            raise ValueError(f"the code cannot be given such a value: {error}") from error
        except client.MontyCrashedError as error:
            problem = f"the code ended the interpreter: {error}"
        except (_TooDeepError, RecursionError) as error:
            problem = f"the value cannot be given back: {error}"
        return CodeResult(None, printed.text, problem)


async def _run(client: Any, code: str, values: dict[str, object], limits: Limits, printed: _Printed) -> object:
    async with AsyncExitStack() as stack:
        try:
            pool = await stack.enter_async_context(client.AsyncMonty(min_processes=0, max_processes=1))
            session = await stack.enter_async_context(pool.checkout(limits=_limits(limits)))
        except (OSError, RuntimeError, client.MontyError) as error:
            raise SandboxError(f"monty does not start: {error}. {_HOW_TO_INSTALL}") from error
        return await session.feed_run(code, inputs=values, print_callback=printed)


def _limits(limits: Limits) -> ResourceLimits:
    return {"max_memory": limits.memory_bytes, "max_feed_duration_secs": limits.cpu_s}


def _shortened(text: str) -> str:
    half = _MOST_ERROR // 2
    return text if len(text) <= _MOST_ERROR else f"{text[:half]}\n[…]\n{text[-half:]}"


class _Printed:
    """What code prints, in order; the scope of the run is left once it is too much."""

    def __init__(self, most: int) -> None:
        self.is_full = False
        self.scope: asyncio.Timeout | None = None
        self._pieces: list[str] = []
        self._room = most
        self._loop = asyncio.get_running_loop()

    @property
    def text(self) -> str:
        """All of it, as far as it is kept."""
        return "".join(self._pieces)

    def __call__(self, _stream: str, text: str) -> None:
        """Take a piece; from whichever thread it comes."""
        self._pieces.append(text[: self._room])
        self._room -= len(self._pieces[-1])
        if len(text) > len(self._pieces[-1]) and not self.is_full:
            self.is_full = True
            self._loop.call_soon_threadsafe(self._leave)

    def _leave(self) -> None:
        if self.scope is not None:
            self.scope.reschedule(self._loop.time())


class _TooDeepError(Exception):
    """A value has lists in lists in lists."""


def _plain(value: Any, depth: int = 0) -> object:
    """A value without objects that only Monty knows: those are given as their text."""
    if depth > _DEEPEST:
        raise _TooDeepError(f"it is nested more than {_DEEPEST} levels deep")
    if type(value) in _PLAIN or isinstance(value, datetime.datetime):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return type(value)([_plain(one, depth + 1) for one in value]) if type(value) in _GROUPS else repr(value)
    if isinstance(value, dict):
        return {_plain(key, depth + 1): _plain(one, depth + 1) for key, one in value.items()}
    return repr(value)


_GROUPS = (list, tuple, set, frozenset)


def _client() -> Any:
    try:
        import pydantic_monty
    except ImportError as error:
        raise SandboxError(f"monty cannot be used here: {error}. {_HOW_TO_INSTALL}") from error
    return pydantic_monty
