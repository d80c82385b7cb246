"""Become a Jupyter kernel. The interpreter that has ipykernel runs this file as a script, with the kernel's arguments.

Only the standard library and ipykernel are imported, because that interpreter may not have this package installed.
"""

from __future__ import annotations

import codecs
import logging
import os
import select
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipykernel.kernelapp import IPKernelApp

_MESSAGE_CHARS = 1_000_000
_READ_BYTES = 1 << 16
_MOST_READING_S = 2.0  # how long a program that never stops writing can delay the reply


def main() -> None:
    """Run the kernel until it ends."""
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)  # an interrupt of the kernel reaches its children, and no other process
    # ipykernel exits if this process is not its parent. The id it was given is the host's, which is not its parent.
    os.environ["JPY_PARENT_PID"] = str(os.getppid())
    # Remove the script's folder, because modules there must not shadow those of the code.
    del sys.path[0]
    _write_readme()
    _leave_out_the_debugger()
    from ipykernel.kernelapp import IPKernelApp

    _send_output_in_small_messages()
    app = IPKernelApp.instance(capture_fd_output=False)
    app.initialize()  # type: ignore[no-untyped-call]
    _show_written_output(app)
    app.start()  # type: ignore[no-untyped-call]


def _write_readme() -> None:
    """Create the README that IPython would otherwise copy.

    Copying also sets permissions, which a sandbox without namespaces forbids.
    """
    folder = os.path.join(os.environ["IPYTHONDIR"], "profile_default", "startup")  # noqa: PTH118 - light
    os.makedirs(folder, exist_ok=True)  # noqa: PTH103
    with open(os.path.join(folder, "README"), "a"):  # noqa: PTH118, PTH123
        pass


def _leave_out_the_debugger() -> None:
    """Prevent ipykernel from importing debugpy, which is unused and takes a third of the startup time."""
    sys.modules["debugpy"] = None  # type: ignore[assignment]
    import ipykernel.debugger  # noqa: F401 - it looks for debugpy once, now

    del sys.modules["debugpy"]  # the code may import it


def _send_output_in_small_messages() -> None:
    """Make `print` wait until earlier output has been sent.

    ipykernel buffers output for 0.2 seconds and sends it as one message. Without this limit, a loop that prints could
    exhaust the memory of the kernel and the host.
    """
    from ipykernel.iostream import OutStream

    write = OutStream.write
    waiting: dict[int, int] = {}

    def write_and_wait(stream: OutStream, text: str) -> int | None:
        if not isinstance(text, str):
            return write(stream, text)  # which refuses it
        for start in range(0, len(text), _MESSAGE_CHARS):
            part = text[start : start + _MESSAGE_CHARS]
            write(stream, part)
            waiting[id(stream)] = waiting.get(id(stream), 0) + len(part)
            if waiting[id(stream)] >= _MESSAGE_CHARS:
                waiting[id(stream)] = 0
                stream.flush()  # type: ignore[no-untyped-call]
        return len(text)

    OutStream.write = write_and_wait  # type: ignore[method-assign,assignment]


def _show_written_output(app: IPKernelApp) -> None:
    stdout, stderr = _WrittenOutput("stdout", 1), _WrittenOutput("stderr", 2)
    for handler in app.log.handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(stderr.log)  # the kernel's own reports are not output of the code

    def pass_on() -> None:
        stdout.pass_on()
        stderr.pass_on()

    app.shell.events.register("post_execute", pass_on)  # type: ignore[union-attr]  # a kernel has one


class _WrittenOutput:
    """Forwards output that C code and other programs write to a file descriptor to the kernel's stream.

    ipykernel's own `capture_fd_output` loses output that its thread reads after the reply. Here, all available output
    is forwarded before the kernel replies.

    Attributes:
        log: A file that writes to the descriptor's original target.
    """

    def __init__(self, name: str, descriptor: int) -> None:
        self._stream = getattr(sys, name)
        self._stream.fileno = lambda: descriptor  # so that output of programs with `stdout=sys.stdout` is shown as well
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._lock = threading.Lock()
        self._is_closed = False
        # Stays open as long as the kernel runs.
        self.log = open(os.dup(descriptor), "w", encoding="utf-8", errors="backslashreplace")  # noqa: PTH123, SIM115
        self._output, written = os.pipe()
        os.dup2(written, descriptor)
        os.close(written)
        threading.Thread(target=self._pass_on_forever, name=f"descriptor {descriptor}", daemon=True).start()

    def _pass_on_forever(self) -> None:
        while not self._is_closed:
            self._is_there(timeout_ms=None)
            self.pass_on()

    def pass_on(self) -> None:
        """Forward all output available now, for at most `_MOST_READING_S` seconds."""
        end = time.monotonic() + _MOST_READING_S
        with self._lock:
            while not self._is_closed and self._is_there(timeout_ms=0) and time.monotonic() < end:
                data = os.read(self._output, _READ_BYTES)
                self._is_closed = not data  # the code has closed or replaced the descriptor
                os.write(self.log.fileno(), data)
                self._stream.write(self._decoder.decode(data))

    def _is_there(self, *, timeout_ms: int | None) -> bool:
        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        return bool(poll.poll(timeout_ms))


if __name__ == "__main__":
    main()
