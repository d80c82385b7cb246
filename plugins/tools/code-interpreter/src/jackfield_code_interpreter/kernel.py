"""A single kernel process: start it, send code, read messages, interrupt it and end it."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import zmq
import zmq.asyncio
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.channels import ZMQSocketChannel
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager

from jackfield.errors import ToolServiceError
from jackfield_code_interpreter.launch import MARK, KernelFolders, KernelLaunch
from jackfield_confine.barriers import NONE
from jackfield_confine.strays import end_marked

_log = logging.getLogger(__name__)

_POLL_S = 0.25  # how often a silent kernel is checked
_LOST_AFTER_S = 2.0  # silence after the reply, after which the message that says "done" is considered lost
_END_S = 5.0  # for the guard to kill everything that the kernel started
# Unread messages take memory of the host, so larger messages are not read at all, and each channel holds only a few.
_MAX_MESSAGE_BYTES = 32 << 20
_MAX_WAITING_MESSAGES = 16
_MESSAGE_COST = 1024  # the least cost of reading a message, in bytes, so that a flood of empty ones counts as well
_MAX_REPLIES = 64  # messages to look through for the expected one
_MESSAGES_IN_A_ROW = 16  # then other tasks get a turn, because reading messages that are already there never waits
_MAX_LOG_BYTES = 4000


class KernelDiedError(Exception):
    """The kernel process ended. After a signal, `exit_code` is 128 plus the signal number."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"the kernel exited with code {exit_code}")
        self.exit_code = exit_code


class FloodError(Exception):
    """The code printed more output than is worth reading."""


class Kernel:
    """A running kernel, created by `start`.

    Always finish with `aclose`, or with `end` to stop immediately. Otherwise the garbage collector may collect the
    ZeroMQ context before its sockets, and the context then waits for them forever.
    """

    def __init__(self, manager: AsyncKernelManager, folders: KernelFolders) -> None:
        self.barrier = NONE  # the sandbox, or the barrier between the code and other processes
        self._folders = folders
        self.process: subprocess.Popen[bytes] | None = None
        self.loop: asyncio.AbstractEventLoop | None = None  # owns the channels; None if they must be reopened
        self._manager = manager
        self._context: zmq.asyncio.Context | None = manager.context
        self._client: AsyncKernelClient | None = None

    @classmethod
    async def start(cls, launch: KernelLaunch, *, timeout_s: float) -> Kernel:
        """Start a kernel and wait until it responds.

        Raises:
            ToolServiceError: The kernel failed to start; its output is in the log.
        """
        kernel = cls(
            AsyncKernelManager(
                kernel_spec_manager=_OneSpec(launch),
                kernel_name=_OneSpec.name,
                connection_file=str(launch.folders.connection_file),
                transport="ipc",
            ),
            launch.folders,
        )
        try:
            await kernel._launch(launch)
            await kernel.connect(timeout_s=timeout_s)
            # Read now, before code can change it.
            kernel.barrier = launch.layer or launch.folders.report.read_text(encoding="ascii")
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
        """Open the channels on the running event loop, which then owns the sockets. Any earlier channels are closed.

        Raises:
            RuntimeError: The kernel has ended or did not respond in time.
        """
        self._disconnect()
        self._context = zmq.asyncio.Context()
        self._context.setsockopt(zmq.MAXMSGSIZE, _MAX_MESSAGE_BYTES)
        self._context.setsockopt(zmq.RCVHWM, _MAX_WAITING_MESSAGES)
        self._client = self._manager.client(context=self._context)
        self._client.start_channels(stdin=False, hb=False)
        self.loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout_s):
                await self._answer()
        except TimeoutError:
            raise RuntimeError(f"no response within {timeout_s:g} s") from None

    async def _answer(self) -> None:
        """Wait until the kernel replies and its iopub messages arrive."""
        client = self._connected()
        while True:
            requests = {self._send("kernel_info_request", {})}
            if await self._take_reply(requests) is not None and await _receive(client.iopub_channel, _POLL_S):
                return
            if not self.is_alive:
                raise RuntimeError("it exited before responding")

    @property
    def is_alive(self) -> bool:
        """True if the process is still running."""
        return self.process is not None and self.process.poll() is None

    def submit(self, code: str) -> str:
        """Send code for execution, and return the request id."""
        # With `stop_on_error`, a request that arrives soon after a failed one would not run at all.
        return self._send(
            "execute_request",
            {
                "code": code,
                "silent": False,
                "store_history": True,
                "user_expressions": {},
                "allow_stdin": False,
                "stop_on_error": False,
            },
        )

    async def messages(
        self, request: str, *, most_bytes: int | None = None
    ) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        """Yield the kernel's messages about a request as (type, content) pairs until the request is done.

        Leaving the loop early loses nothing; iterating again continues. The code can forge its kernel's messages:
        malformed ones are skipped, and "done" counts only once a reply confirms it. Messages cannot be forged ahead of
        a later request, because its id cannot be guessed.

        Raises:
            FloodError: More than `most_bytes` arrived.
            KernelDiedError: The process ended first.
        """
        client = self._connected()
        course = _Course(request, {request})
        while True:
            # The code may have forged the end; everything the kernel sent before the reply has arrived by now.
            parts = await _receive(client.iopub_channel, 0 if course.is_over else _POLL_S)
            if parts:
                await course.count(parts, most_bytes)
                message = _parse_message(client, parts)
                if message is not None and await self._concerns(course, message):
                    yield message.kind, message.content
            elif course.is_over:
                break
            elif not self.is_alive:
                raise KernelDiedError(self._exit_code())
            elif await self._is_silent(course):
                self.loop = None  # a message that was too large closed the channel, which is reopened for the next call
                yield "stream", {"name": "stderr", "text": "[output lost: too much at once]\n"}
                break
        if error := course.untold_error():
            yield "error", error  # its message was lost, or could not be encoded because of a lone surrogate

    async def _concerns(self, course: _Course, message: _Message) -> bool:
        """Return True if a message belongs to the request. Messages about its end are recorded instead."""
        course.silence_s = 0.0
        if message.request not in course.awaited:
            return False
        if message.kind == "status":
            if message.content.get("execution_state") == "idle":
                await self._note_idle(course)
            return False
        course.error_told = course.error_told or message.kind == "error"
        return message.request == course.request

    async def _note_idle(self, course: _Course) -> None:
        if course.reply is None:
            course.reply = await self._take_reply(course.awaited)
        course.is_over = course.reply is not None
        if not course.is_over:
            # The reply is lost, or the code only pretends to be done; a request sent now is answered once it is done.
            course.awaited = {course.request, self._send("kernel_info_request", {})}

    async def _is_silent(self, course: _Course) -> bool:
        """Return True if the kernel has replied but stays silent, which means that its last output is lost."""
        # The reply arrives on another channel, even if a flood of output made this one lose its end.
        if course.reply is None:
            course.reply = await self._take_reply(course.awaited, timeout_s=0)
        course.silence_s = 0.0 if course.reply is None else course.silence_s + _POLL_S
        return course.silence_s >= _LOST_AFTER_S

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the running code and in the processes it started."""
        client = self._connected()
        client.control_channel.send(client.session.msg("interrupt_request", content={}))

    def end(self) -> None:
        """Ask the guard to kill the kernel and everything it started. Does not wait."""
        self._disconnect()
        if self.process is not None:
            self.process.terminate()

    async def aclose(self) -> None:
        """End the kernel, and wait until all of its processes have exited."""
        self.end()
        try:
            async with asyncio.timeout(_END_S):
                while self.is_alive:  # noqa: ASYNC110 - a process is polled: nobody sets an event when it ends
                    await asyncio.sleep(0.01)
        except TimeoutError:
            _log.warning(
                "a kernel's guard process did not exit and is being killed; processes started by the code may keep "
                "running"
            )
        finally:
            self._make_sure()
        await self._manager.cleanup_resources()

    def close_from_anywhere(self) -> None:
        """Close the kernel from any thread, with or without an event loop. Blocking version of `aclose`."""
        if self.process is not None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=_END_S)
            self._make_sure()
        if self.loop is not None and self.loop.is_running():
            self.loop.call_soon_threadsafe(self._disconnect)  # sockets are closed where they are used
        else:
            self._disconnect()

    def _make_sure(self) -> None:
        if self.process is not None and self.is_alive:
            self.process.kill()  # the kernel ends with its guard
            self.process.wait()
        if self.process is not None and self.process.returncode < 0 and self.barrier == NONE:
            end_marked(MARK, str(self._folders.connection))  # the guard was killed before it could

    def _connected(self) -> AsyncKernelClient:
        if self._client is None:
            raise RuntimeError("the kernel has been shut down")
        return self._client

    def _disconnect(self) -> None:
        if self._context is None:
            return
        # While the client still holds the sockets, because unreferenced ones would be collected instead of closed.
        self._context.destroy(linger=0)
        self._context = self._client = None

    def _exit_code(self) -> int:
        returncode = self.process.returncode if self.process else 0
        # Negative if the guard itself was killed; the kernel ended with it.
        return returncode if returncode >= 0 else 128 - returncode

    def _send(self, kind: str, content: dict[str, Any]) -> str:
        """Send a request, and return its id."""
        client = self._connected()
        message = client.session.msg(kind, content)
        # The library's ids count up, so code could send answers to future requests.
        message["msg_id"] = message["header"]["msg_id"] = uuid4().hex
        client.shell_channel.send(message)
        return str(message["msg_id"])

    async def _take_reply(self, requests: Set[str], *, timeout_s: float = 1.0) -> Mapping[str, object] | None:
        """Return the reply to one of the requests, or None if no reply arrives in time. Other messages are dropped."""
        client = self._connected()
        give_up = time.monotonic() + timeout_s
        for _ in range(_MAX_REPLIES):
            parts = await _receive(client.shell_channel, max(0.0, give_up - time.monotonic()))
            if not parts:
                return None
            message = _parse_message(client, parts)
            if message is not None and message.request in requests and message.kind.endswith("_reply"):
                return message.content
        await asyncio.sleep(0)
        return None


@dataclass(slots=True)
class _Course:
    """The progress of a request.

    Attributes:
        awaited: Ids of the requests whose reply or idle status means that the code has finished.
        silence_s: Seconds without a message since the reply arrived.
    """

    request: str
    awaited: Set[str]
    reply: Mapping[str, object] | None = None
    is_over: bool = False
    error_told: bool = False
    silence_s: float = 0.0
    received: int = 0
    received_bytes: int = 0

    def untold_error(self) -> Mapping[str, object] | None:
        """Return the error in the reply, or None if a message has already reported it."""
        if self.reply is None or self.error_told:
            return None
        return self.reply if self.reply.get("status") == "error" else None

    async def count(self, parts: list[bytes], most_bytes: int | None) -> None:
        """Count received data, and yield to other tasks from time to time.

        Raises:
            FloodError: More than `most_bytes` arrived.
        """
        self.received += 1
        self.received_bytes += _MESSAGE_COST + sum(map(len, parts))
        if most_bytes is not None and self.received_bytes > most_bytes:
            raise FloodError
        if self.received % _MESSAGES_IN_A_ROW == 0:
            await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class _Message:
    """A kernel message: the id of the request it belongs to, its type and its content."""

    request: str
    kind: str
    content: Mapping[str, object]


async def _receive(channel: ZMQSocketChannel, timeout_s: float) -> list[bytes]:
    """Return the parts of the next message, or [] if none arrives in time."""
    socket: Any = channel.socket
    if socket is None or not await socket.poll(int(timeout_s * 1000)):
        return []
    parts: list[bytes] = await socket.recv_multipart()
    return parts


def _parse_message(client: AsyncKernelClient, parts: list[bytes]) -> _Message | None:
    """Parse a message, or return None if it is malformed.

    The code knows the signing key, so a valid signature proves nothing.
    """
    try:
        _, rest = client.session.feed_identities(parts)
        message = client.session.deserialize(rest)
        request, kind, content = message["parent_header"].get("msg_id"), message["msg_type"], message["content"]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):  # any exception is possible
        return None
    if not (isinstance(request, str) and isinstance(kind, str) and isinstance(content, dict)):
        return None
    return _Message(request, kind, content)


class _OneSpec(KernelSpecManager):
    """Provides only the kernel to start, regardless of the kernels installed on the machine."""

    name = "jackfield"

    def __init__(self, launch: KernelLaunch) -> None:
        super().__init__()
        self._spec = KernelSpec(
            argv=list(launch.argv), display_name=self.name, language="python", interrupt_mode="message"
        )

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:  # noqa: ARG002 - there is one
        """Return the spec for any name."""
        return self._spec


# Patterns in the log of a kernel that did not start, and the remedy for each.
_STEPS = (
    (
        "No module named.*ipykernel|ipykernel.*No module named",
        "install ipykernel for the interpreter in the setting 'python' (python -m pip install ipykernel)",
    ),
    ("MemoryError|failed to map|Cannot allocate memory", "increase the setting 'memory_mb'"),
    ("can't start new thread|Resource temporarily unavailable", "increase the setting 'processes'"),
    (
        "",
        "see the kernel's output in the log, and check the settings "
        "'python', 'work_dir', 'memory_mb' and 'start_timeout'",
    ),
)


def _not_started(launch: KernelLaunch, reason: str) -> ToolServiceError:
    log_text = _end_of_log(launch)
    _log.warning("the kernel of the code interpreter did not start: %s\n%s", reason, log_text)
    step = next(step for words, step in _STEPS if re.search(words, log_text, re.DOTALL))
    last = log_text.strip().rpartition("\n")[2]
    return ToolServiceError(
        f"The code interpreter's kernel did not start: {last or reason}. No code was run, and trying again will not "
        f"help. Ask the user to fix the setup: {step}.",
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
    """Return the signal's name for an exit code, such as `SIGKILL` for 137, or '' if no signal caused it."""
    try:
        return signal.Signals(exit_code - 128).name
    except ValueError:
        return ""
