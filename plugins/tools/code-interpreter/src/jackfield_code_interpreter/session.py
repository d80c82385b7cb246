"""Keep state across calls in a kernel that runs one call at a time and is restarted if it is lost."""

from __future__ import annotations

import asyncio
import os
import tempfile
import weakref
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from jackfield import sync
from jackfield.errors import SandboxError, ToolServiceError
from jackfield.sandboxes import ProgramSandbox
from jackfield_code_interpreter.config import CodeInterpreterConfig
from jackfield_code_interpreter.files import BroughtFiles, remove_folder
from jackfield_code_interpreter.fonts import write_matplotlibrc
from jackfield_code_interpreter.kernel import FloodError, Kernel, KernelDiedError, signal_name
from jackfield_code_interpreter.launch import KernelFolders, file_limits, kernel_launch
from jackfield_code_interpreter.made import FolderWatch
from jackfield_code_interpreter.output import TIMED_OUT, Output
from jackfield_confine.barriers import NONE

_GRACE_S = 2.0  # for interrupted code to stop
_FLOOD_BYTES = 50_000_000
_LONGEST_FOLDER = 60  # bytes; the path of a socket below it must fit into 107

KEPT = "Variables and imports are kept."
LOST = "All variables and imports are lost, but files are kept; the next call starts a new kernel."

State = Literal["kept", "lost"]


@dataclass(frozen=True, slots=True)
class Execution:
    """The result of a call.

    Attributes:
        output: The output of the code.
        notes: Notes for the model, such as the reason why the code was stopped.
        state: `kept` if the next call can still use the variables, otherwise `lost`.
        barrier: The sandbox layer, or the barrier between the code and other processes.
        changed_files: Paths of files that the call created or changed.
    """

    output: Output
    notes: tuple[str, ...]
    state: State
    barrier: str = NONE
    changed_files: tuple[str, ...] = ()


@dataclass
class _Holdings:
    """Resources to release even if the session is never closed.

    Holds no reference to the session, so the session can be garbage-collected.
    """

    folder: Path
    kernel: Kernel | None = None
    pid: int = field(default_factory=os.getpid)

    def release(self) -> None:
        if os.getpid() != self.pid:
            return  # in a forked child, the resources belong to the parent
        if self.kernel is not None:
            self.kernel.close_from_anywhere()
        remove_folder(self.folder)


class KernelSession:
    """Runs code in a kernel, one call at a time. The first call starts the kernel.

    A session may be used from several event loops in succession, but not concurrently. A forked child starts its own
    kernel.
    """

    def __init__(self, config: CodeInterpreterConfig, sandbox: ProgramSandbox | None = None) -> None:
        self._config = config
        self._sandbox = sandbox
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._kernel: Kernel | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = asyncio.Lock()
        self._calls = 0
        self._is_unused = True
        private = Path(tempfile.mkdtemp(prefix="jackfield-", dir=_short_folder()))
        self._holdings = _Holdings(private)
        self._release = weakref.finalize(self, self._holdings.release)
        self.work_dir = Path(self._config.work_dir).absolute() if self._config.work_dir else private / "work"
        self.work_dir.mkdir(parents=True, exist_ok=True)
        self.work_dir = self.work_dir.resolve()  # before the code runs, which may put links on the way
        (private / "home").mkdir()
        self._files = BroughtFiles(self.work_dir, file_limits(self._config))
        self._watch = FolderWatch(self.work_dir)

    async def run(self, code: str, *, files: Sequence[str] = ()) -> Execution:
        """Run code until it finishes or the configured timeout expires.

        Args:
            files: Paths of files to copy to the working directory first. Unchanged files are not copied again.

        Raises:
            ToolServiceError: The kernel failed to start, or the session is in use on another event loop.
        """
        async with self._turn():
            notes = await sync.in_worker(self._files.bring, files)
            kernel, lost = await self._running_kernel()
            await sync.in_worker(self._watch.begin)
            execution = await self._execute(kernel, code)
            changed_files = await sync.in_worker(self._watch.changed)
            all_notes = (*lost, *notes, *execution.notes)
            return replace(execution, notes=all_notes, barrier=kernel.barrier, changed_files=changed_files)

    async def warm_up(self) -> None:
        """Start the kernel ahead of the first call.

        Raises:
            ToolServiceError: The kernel failed to start.
        """
        async with self._turn():
            await self._running_kernel()

    @property
    def is_warm(self) -> bool:
        """True if this process has a running kernel."""
        return self._pid == os.getpid() and self._kernel is not None and self._kernel.is_alive

    async def aclose(self) -> None:
        """End the kernel and remove the private folder."""
        if self._pid == os.getpid():
            await self._drop()
            await sync.in_worker(self._release)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        if self._pid != os.getpid():
            self._begin()
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            if self._calls:
                raise ToolServiceError(
                    "This code interpreter is in use by another event loop: create one for each event loop."
                )
            self._loop, self._lock = loop, asyncio.Lock()
        self._calls += 1
        try:
            async with self._lock:
                yield
        finally:
            self._calls -= 1

    # --- the kernel ---

    async def _running_kernel(self) -> tuple[Kernel, tuple[str, ...]]:
        """Return the kernel, and a note if it replaces a lost one."""
        notes: tuple[str, ...] = ()
        kernel = self._kernel
        if kernel is not None and kernel.is_alive and kernel.loop is not self._loop:
            with suppress(RuntimeError):  # it does not answer, so it is replaced
                await kernel.connect(timeout_s=self._config.start_timeout)
                return kernel, ()
            kernel.end()
        elif kernel is not None and kernel.is_alive:
            return kernel, ()
        if kernel is not None:
            await self._drop()
            notes = ("Note: the kernel exited after the last call, so this code ran in a new kernel: earlier variables "
                     "and imports are lost.",)  # fmt: skip
        return await self._start(), notes

    async def _start(self) -> Kernel:
        if not self._release.alive:
            raise ToolServiceError("This code interpreter has been closed: no more code can be run in it.")
        private = self._holdings.folder
        try:  # the code may have moved, removed or replaced its folders
            for folder in (private, self.work_dir, private / "home"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            connection = Path(tempfile.mkdtemp(prefix="k", dir=private))
        except OSError as error:
            raise ToolServiceError(
                f"The code interpreter's folder {str(private)!r} can no longer be used: {error.strerror}. No code "
                "was run. Start a new run to get a new folder.",
                code="folder_lost",
            ) from error
        folders = KernelFolders(self.work_dir, private, connection)
        try:
            if self._is_unused:  # before code can put a link there
                await sync.in_worker(lambda: write_matplotlibrc(folders.matplotlib))
                self._is_unused = False
            launch = await sync.in_worker(lambda: kernel_launch(self._config, folders, self._sandbox))
        except SandboxError as error:
            raise ToolServiceError(f"Cannot run the code: {error}", code="no_sandbox") from error
        self._kernel = await Kernel.start(launch, timeout_s=self._config.start_timeout)
        self._holdings.kernel = self._kernel
        return self._kernel

    async def _drop(self) -> None:
        kernel, self._kernel = self._kernel, None
        if kernel is not None:
            await kernel.aclose()

    # --- one execution ---

    async def _execute(self, kernel: Kernel, code: str) -> Execution:
        output = Output(max_chars=self._config.max_output_chars, max_images=self._config.max_images)
        request = kernel.submit(code)
        try:
            async with asyncio.timeout(self._config.timeout):
                async for message_type, content in kernel.messages(request, most_bytes=_FLOOD_BYTES):
                    output.add(message_type, content)
        except TimeoutError:
            return await self._stopped(kernel, request, output, why=TIMED_OUT)
        except FloodError:
            return await self._stopped(kernel, request, output, why="The code printed too much.")
        except KernelDiedError as death:
            await self._drop()
            return Execution(output, (f"{self._cause_of_death(death.exit_code)} {LOST}",), "lost")
        except BaseException:  # cancelled, or the kernel broke the protocol: leave no code running
            await self._stop(kernel, request, output)
            raise
        return Execution(output, (), "kept")

    async def _stopped(self, kernel: Kernel, request: str, output: Output, *, why: str) -> Execution:
        if await self._stop(kernel, request, output):
            return Execution(output, (f"{why} It was interrupted. {KEPT}",), "kept")
        return Execution(output, (f"{why} It could not be interrupted, so the kernel was shut down. {LOST}",), "lost")

    async def _stop(self, kernel: Kernel, request: str, output: Output) -> bool:
        """Interrupt the code, and end the kernel if the code does not stop.

        Returns:
            True if the kernel keeps its state.
        """
        stopped = False
        try:
            kernel.interrupt()
            async with asyncio.timeout(_GRACE_S):
                async for message_type, content in kernel.messages(request):
                    output.add(message_type, content)
            stopped = True
        except (TimeoutError, KernelDiedError):
            await self._drop()
        finally:
            if not stopped and self._kernel is kernel:  # cancelled while waiting
                self._kernel = None
                kernel.end()
        return stopped

    def _cause_of_death(self, exit_code: int) -> str:
        name = signal_name(exit_code)
        if name == "SIGXCPU":
            return f"The kernel was terminated because it used up its CPU time ({self._config.cpu_s} s over all calls)."
        if name == "SIGKILL":
            return "The kernel was killed, possibly for using too much memory: process the data in smaller pieces."
        if name:
            return f"The kernel crashed ({name})."
        return f"The code terminated the kernel process (exit code {exit_code})."


def _short_folder() -> str | None:
    """Return the parent for the private folder, or None for the system default.

    The default is replaced by `/tmp` if its path is too long for sockets.
    """
    usual = tempfile.gettempdir()
    return None if len(os.fsencode(usual)) <= _LONGEST_FOLDER else "/tmp"  # noqa: S108 - made with mkdtemp, mode 0700
