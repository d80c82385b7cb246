"""Become a Jupyter kernel. Run as a script, by the interpreter that has ipykernel, with the kernel's own arguments.

Only the standard library and ipykernel are used, because the interpreter may differ from that of this package.
"""

from __future__ import annotations

import os
import sys

_MESSAGE_CHARS = 1_000_000


def main() -> None:
    """Start the kernel; this returns when it has ended."""
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)  # an interrupt of the kernel reaches what it started, and nobody else
    # ipykernel leaves when this process is not its parent; it was told the host's, which is not.
    os.environ["JPY_PARENT_PID"] = str(os.getppid())
    # The script's folder: modules beside it must not hide those of the code.
    del sys.path[0]
    _write_readme()
    _leave_out_the_debugger()
    from ipykernel.kernelapp import launch_new_instance

    _send_output_in_small_messages()
    launch_new_instance()


def _write_readme() -> None:
    """Write the file that IPython would copy with its permissions, which no sandbox without namespaces lets it set."""
    folder = os.path.join(os.environ["IPYTHONDIR"], "profile_default", "startup")  # noqa: PTH118 - light
    os.makedirs(folder, exist_ok=True)  # noqa: PTH103
    with open(os.path.join(folder, "README"), "a"):  # noqa: PTH118, PTH123
        pass


def _leave_out_the_debugger() -> None:
    """Keep ipykernel from importing debugpy, which nothing uses and takes a third of the start."""
    sys.modules["debugpy"] = None  # type: ignore[assignment]
    import ipykernel.debugger  # noqa: F401 - it looks for debugpy once, now

    del sys.modules["debugpy"]  # the code may import it


def _send_output_in_small_messages() -> None:
    """Make `print` wait until earlier output is sent.

    ipykernel collects for a fifth of a second and sends that as one message: a loop that prints could fill the memory
    of the kernel, and of the host, with it.
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


if __name__ == "__main__":
    main()
