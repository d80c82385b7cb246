"""Run each snippet of code in its own process of Monty, an interpreter for a subset of Python."""

from __future__ import annotations

import asyncio
import datetime
import os
import signal
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from pydantic import Field

from jackfield import sync
from jackfield.config import Config
from jackfield.errors import SandboxError
from jackfield.sandboxes import RISKS, CodeResult, CodeSandbox, Limits, Protection

if TYPE_CHECKING:
    from pydantic_monty import ResourceLimits

_UNLIMITED = Limits()
_DEEPEST = 100
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has only the second, which ends the process at once
_LONGEST_S = 3600.0
_END_S = 5.0  # for a killed process to end
_MOST_ERROR = 4000  # characters; an error shows the line, which may be the entire code
_HOW_TO_INSTALL = "Try: pip install --upgrade --force-reinstall pydantic-monty"
_PLAIN = (bool, int, float, str, bytes, datetime.date, datetime.time, datetime.timedelta, type(None))


class MontyConfig(Config):
    """Limits for code and output."""

    max_code_chars: int = Field(default=100_000, ge=1, description="Longer code is rejected")
    max_output_chars: int = Field(default=1_000_000, ge=1, description="Code that prints more is terminated")


class MontySandbox(CodeSandbox):
    """Runs code in Monty, a Python interpreter written in Rust.

    Monty supports a subset of the language and the standard library. Code has no access to files, the network,
    programs, environment variables or packages.

    Each snippet runs in its own process, which ends with the code.
    """

    config_class = MontyConfig
    config: MontyConfig

    def protection(self) -> Protection:
        """Return full protection, because the interpreter provides no access to anything at risk.

        Raises:
            SandboxError: Monty is not installed, or has no build for this system.
        """
        _client()
        return Protection("monty", frozenset(RISKS))

    async def run_code(
        self, code: str, *, values: Mapping[str, object] | None = None, limits: Limits = _UNLIMITED
    ) -> CodeResult:
        """Run code until it ends. Cancelling the call stops the code.

        Raises:
            SandboxError: Monty failed to start.
            ValueError: A value is not plain data.
        """
        client = _client()
        if len(code) > self.config.max_code_chars:
            return CodeResult(error=f"the code is longer than {self.config.max_code_chars:,} characters: shorten it")
        run = _Run(client, code, dict(values or {}), _limits(limits), self.config.max_output_chars)
        # With Monty's own asynchronous waiting, one process in five ends with SIGABRT after finishing.
        task = asyncio.ensure_future(sync.in_worker(run.work))
        task.add_done_callback(lambda one: one.cancelled() or one.exception())  # may be abandoned
        try:
            done, _ = await asyncio.wait([task], timeout=limits.wall_s)
        finally:
            run.end()
            await asyncio.wait([task], timeout=_END_S)
        if not done:
            return CodeResult(None, run.printed, f"TimeoutError: the code was terminated after {limits.wall_s:g} s")
        return self._result(client, run, task)

    def _result(self, client: Any, run: _Run, task: asyncio.Future[object]) -> CodeResult:
        value, problem = None, ""
        try:
            value = _plain(task.result())
        except (client.MontyRuntimeError, client.MontySyntaxError) as error:
            problem = _shortened(error.display())
        except client.MontyConversionError as error:
            raise ValueError(f"cannot pass this value to the code: {error}") from error
        except client.MontyCrashedError as error:
            problem = f"the code crashed the interpreter: {error}"
        except (_TooDeepError, RecursionError) as error:
            problem = f"cannot return the value: {error}"
        if run.is_full:  # perhaps on its last line, so the code ended before it could be stopped
            most = self.config.max_output_chars
            value, problem = None, f"the code was terminated: it printed more than {most:,} characters"
        return CodeResult(value, run.printed, problem)


def _limits(limits: Limits) -> ResourceLimits:
    # Monty also counts time itself, because only it can end the code if this process is killed. It gets a second more
    # than here, where the error message is better.
    seconds = [_LONGEST_S, *([limits.cpu_s] if limits.cpu_s else []), *([limits.wall_s + 1] if limits.wall_s else [])]
    return {"max_memory": limits.memory_bytes, "max_feed_duration_secs": min(seconds)}


def _shortened(text: str) -> str:
    half = _MOST_ERROR // 2
    return text if len(text) <= _MOST_ERROR else f"{text[:half]}\n[…]\n{text[-half:]}"


class _Run:
    """A snippet of code in its own process, which can be ended from any thread."""

    def __init__(
        self, client: Any, code: str, values: dict[str, object], limits: ResourceLimits, most_chars: int
    ) -> None:
        self.is_full = False
        self._client = client
        self._code = code
        self._values = values
        self._limits = limits
        self._pieces: list[str] = []
        self._room = most_chars
        self._lock = threading.Lock()
        self._process: int | None = None
        self._is_ended = False

    @property
    def printed(self) -> str:
        """The output of the code, up to the limit."""
        return "".join(self._pieces)

    def work(self) -> object:
        """Run the code, and return its value.

        Raises:
            SandboxError: Monty failed to start.
            MontyError: The code failed, the interpreter crashed, or a value cannot be converted.
        """
        with ExitStack() as stack:
            try:
                pool = stack.enter_context(self._client.Monty(min_processes=0, max_processes=1))
                session = stack.enter_context(pool.checkout(limits=self._limits))
            except (OSError, RuntimeError, self._client.MontyError) as error:
                raise SandboxError(f"monty failed to start: {error}. {_HOW_TO_INSTALL}") from error
            with self._lock:
                if self._is_ended:
                    return None  # no caller waits for it
                self._process = session.worker_pid
            try:
                return session.feed_run(self._code, inputs=self._values, print_callback=self._print)
            finally:
                with self._lock:  # from here on, its number may be reused
                    self._process = None

    def end(self) -> None:
        """Kill the process if it is still running."""
        with self._lock:
            self._is_ended = True
            if self._process is not None:
                with suppress(ProcessLookupError):
                    os.kill(self._process, _KILL)

    def _print(self, _stream: str, text: str) -> None:
        self._pieces.append(text[: self._room])
        self._room -= len(self._pieces[-1])
        if len(text) > len(self._pieces[-1]) and not self.is_full:
            self.is_full = True
            self.end()


class _TooDeepError(Exception):
    """A value is nested too deeply."""


def _plain(value: Any, depth: int = 0) -> object:
    """Convert a value to plain data. Monty's own objects become their repr."""
    if depth > _DEEPEST:
        raise _TooDeepError(f"nested more than {_DEEPEST} levels deep")
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
        raise SandboxError(f"monty is unavailable here: {error}. {_HOW_TO_INSTALL}") from error
    return pydantic_monty
