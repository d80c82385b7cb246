"""One kernel process: start it, send it code, read what it says, interrupt it, end it."""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

import zmq
import zmq.asyncio
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager

from jackfield.errors import ToolServiceError
from jackfield_code_interpreter.launch import KernelLaunch

_log = logging.getLogger(__name__)

_POLL_S = 0.25  # how often a silent kernel is looked after
_LOST_AFTER_S = 2.0  # silence after the reply: the message that says "done" is not going to come
_END_S = 5.0  # for the guard to kill what the kernel started
# A larger message is not read at all: what one print may cost the host's memory.
_MAX_MESSAGE_BYTES = 64 << 20
_MAX_LOG_BYTES = 4000


class KernelDiedError(Exception):
    """The process ended; `exit_code` is 128 and the signal's number if a signal ended it."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"the kernel ended with exit code {exit_code}")
        self.exit_code = exit_code


class Kernel:
    """A kernel that runs; made by `start`, ended by `aclose`, or at once by `end`.

    One of the two must be called. Left to the garbage collector, a context may be collected before its sockets, and
    then waits for them for ever.
    """

    def __init__(self, manager: AsyncKernelManager) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.loop: asyncio.AbstractEventLoop | None = None  # whose the channels are; None if they must be opened anew
        self._manager = manager
        self._context: zmq.asyncio.Context | None = manager.context
        self._client: AsyncKernelClient | None = None

    @classmethod
    async def start(cls, launch: KernelLaunch, *, timeout_s: float) -> Kernel:
        """Start a kernel and wait until it answers.

        Raises:
            ToolServiceError: It does not start; what it wrote is in the log.
        """
        kernel = cls(
            AsyncKernelManager(
                kernel_spec_manager=_OneSpec(launch),
                kernel_name=_OneSpec.name,
                connection_file=str(launch.folders.connection_file),
                transport="ipc",
            )
        )
        try:
            await kernel._launch(launch)
            await kernel.connect(timeout_s=timeout_s)
        except (OSError, RuntimeError) as error:
            await kernel.aclose()
            raise _not_started(launch, str(error)) from error
        except BaseException:
            kernel.end()
            raise
        return kernel

    async def _launch(self, launch: KernelLaunch) -> None:
        try:
            with launch.folders.log.open("wb") as log:
                await self._manager.start_kernel(
                    env=dict(launch.env), cwd=str(launch.folders.work), stdout=subprocess.DEVNULL, stderr=log
                )
        finally:  # it may run even if this was cancelled meanwhile
            self.process = getattr(self._manager.provisioner, "process", None)

    async def connect(self, *, timeout_s: float) -> None:
        """Open the channels for the running event loop, which the sockets belong to, in place of earlier ones.

        Raises:
            RuntimeError: The kernel has ended, or does not answer in time.
        """
        self._disconnect()
        self._context = zmq.asyncio.Context()
        self._context.setsockopt(zmq.MAXMSGSIZE, _MAX_MESSAGE_BYTES)
        self._client = self._manager.client(context=self._context)
        self._client.start_channels(stdin=False, hb=False)
        self.loop = asyncio.get_running_loop()
        await self._client.wait_for_ready(timeout=timeout_s)

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self.process is not None and self.process.poll() is None

    def submit(self, code: str) -> str:
        """Send code to be run; the id of the request."""
        # With `stop_on_error`, a request that comes soon after a failed one is not run at all.
        return str(self._connected().execute(code, allow_stdin=False, stop_on_error=False))

    async def messages(self, request: str) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        """What the kernel says about a request, as type and content, until it has done it.

        Leaving early loses nothing: iterating again goes on.

        Raises:
            KernelDiedError: The process ended first.
        """
        client = self._connected()
        silence_s = 0.0
        error_told = False
        while True:
            try:
                message = await client.get_iopub_msg(timeout=_POLL_S)
            except queue.Empty:
                if not self.is_alive:
                    raise KernelDiedError(self._exit_code()) from None
                # The reply comes on another channel: it is there even if a flood of output made this one lose its end.
                silence_s = silence_s + _POLL_S if await client.shell_channel.msg_ready() else 0.0
                if silence_s >= _LOST_AFTER_S:
                    self.loop = None  # too large a message closed the channel: it is opened anew for the next call
                    yield "stream", {"name": "stderr", "text": "[output was lost: it was too much at once]\n"}
                    break
                continue
            silence_s = 0.0
            if message["parent_header"].get("msg_id") != request:
                continue
            if message["msg_type"] == "status":
                if message["content"].get("execution_state") == "idle":
                    break
                continue
            error_told = error_told or message["msg_type"] == "error"
            yield message["msg_type"], message["content"]
        reply = await self._take_reply(request)
        if reply.get("status") == "error" and not error_told:
            yield "error", reply  # its message was lost, or could not be written: an exception about half a character

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the code that runs, and in what it started."""
        client = self._connected()
        client.control_channel.send(client.session.msg("interrupt_request", content={}))

    def end(self) -> None:
        """Let the guard kill the kernel and all it started; do not wait for it."""
        self._disconnect()
        if self.process is not None:
            self.process.terminate()

    async def aclose(self) -> None:
        """End the kernel and wait until nothing of it is left."""
        self.end()
        try:
            async with asyncio.timeout(_END_S):
                while self.is_alive:  # noqa: ASYNC110 - a process is polled: nobody sets an event when it ends
                    await asyncio.sleep(0.01)
        except TimeoutError:
            _log.warning("the guard of a kernel does not end: it is killed, and what the code started may live on")
        finally:
            self._kill()
        await self._manager.cleanup_resources()

    def close_from_anywhere(self) -> None:
        """As `aclose`, from any thread, with or without an event loop; it blocks until the kernel has ended."""
        if self.process is not None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=_END_S)
            self._kill()
        if self.loop is not None and self.loop.is_running():
            self.loop.call_soon_threadsafe(self._disconnect)  # sockets are closed where they are used
        else:
            self._disconnect()

    def _kill(self) -> None:
        if self.process is not None and self.is_alive:
            self.process.kill()  # the kernel goes with its guard
            self.process.wait()

    def _connected(self) -> AsyncKernelClient:
        if self._client is None:
            raise RuntimeError("the kernel has been ended")
        return self._client

    def _disconnect(self) -> None:
        if self._context is None:
            return
        # While the client still holds the sockets: those nobody holds are collected instead of closed.
        self._context.destroy(linger=0)
        self._context = self._client = None

    def _exit_code(self) -> int:
        returncode = self.process.returncode if self.process else 0
        # Negative if the guard itself was killed; the kernel went with it.
        return returncode if returncode >= 0 else 128 - returncode

    async def _take_reply(self, request: str) -> Mapping[str, Any]:
        client = self._connected()
        with suppress(queue.Empty):
            while True:
                reply = await client.get_shell_msg(timeout=1)
                if reply["parent_header"].get("msg_id") == request:
                    content: Mapping[str, Any] = reply["content"]
                    return content
        return {}


class _OneSpec(KernelSpecManager):
    """Knows the one kernel that is to be started, instead of those installed on the machine."""

    name = "jackfield"

    def __init__(self, launch: KernelLaunch) -> None:
        super().__init__()
        self._spec = KernelSpec(
            argv=list(launch.argv), display_name=self.name, language="python", interrupt_mode="message"
        )

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:  # noqa: ARG002 - there is one
        """The spec, whatever it is called."""
        return self._spec


def _not_started(launch: KernelLaunch, reason: str) -> ToolServiceError:
    said = _end_of_log(launch)
    _log.warning("the kernel of the code interpreter did not start: %s\n%s", reason, said)
    if "No module named" in said and "ipykernel" in said:
        step = "install ipykernel for the interpreter of the setting 'python' (python -m pip install ipykernel)"
    elif "MemoryError" in said or "failed to map" in said or "Cannot allocate memory" in said:
        step = "raise the setting 'memory_mb'"
    elif "can't start new thread" in said or "Resource temporarily unavailable" in said:
        step = "raise the setting 'processes'"
    else:
        step = "its own words are in the log; check the settings 'python', 'work_dir', 'memory_mb' and 'start_timeout'"
    last = said.strip().rpartition("\n")[2]
    return ToolServiceError(
        f"The code interpreter's kernel did not start: {last or reason}. No code was run, and trying again will not "
        f"help. Whoever set it up can mend it: {step}.",
        code="kernel_not_started",
    )


def _end_of_log(launch: KernelLaunch) -> str:
    try:
        with launch.folders.log.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - _MAX_LOG_BYTES))
            return log.read().decode("utf-8", "replace")
    except OSError:
        return ""


def signal_name(exit_code: int) -> str:
    """`SIGKILL` for 137; '' for a code that is no signal's."""
    try:
        return signal.Signals(exit_code - 128).name
    except ValueError:
        return ""
