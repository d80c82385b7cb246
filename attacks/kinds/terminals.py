"""Text from models, servers, files and plugins on its way to a terminal."""

from __future__ import annotations

import errno
import io
import itertools
import os
import pty
import random
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path

from attacks.kind import Attempt, Kind, law
from attacks.speaking import server_of
from jackfield.events import (
    ApprovalNeeded,
    PluginEvent,
    ReasoningDelta,
    RetryScheduled,
    RunEvent,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)
from jackfield.messages import FunctionCall, Message
from jackfield_terminal.render import Renderer
from jackfield_testkit import replies
from tests.support.site import FakeSite

# C0 except tab and line ends, DEL, C1, direction marks and overrides, zero-width space, isolates, byte order mark.
RAW = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
_OURS = re.compile(r"\x1b\[[0-9;]*m")  # colours that the program itself uses
_DRAWN_ANEW = re.compile(r"\x1b\[\d+A\r|\x1b\[J")
INJECTED = "\x1b[5;31m"  # a colour that nothing here uses
STRINGS = {
    "escape": f"a\x1b]0;mine\x07b\x1b[2Jc{INJECTED}d",
    "C1": "a\x9b31mb\x9d0;mine\x9cc\x85d",
    "DEL and backspace": "abc\x7f\x08\x08\x08xyz",
    "bidi": "a\u202eexe.txt\u2066b\u2069\u200fc\u061cd",
    "zero width": "a\u200bb\u2060c\ufeffd",
    "NUL and bell": "a\x00b\x07c\x0ed\x0fe",
    "over the line": "good\rbad",
    "half a character": "a\ud800b",
}


def check(shown: str, *, line_ends: bool = False, rendered: bool = False) -> None:
    """Check that the output controls the terminal only through colours and line ends.

    With `rendered`, Markdown rendering may also redraw lines.
    """
    plain = _OURS.sub("", _DRAWN_ANEW.sub("", shown) if rendered else shown)
    found = RAW.search(plain)
    law(not found, f"{found[0] if found else ''!r} reaches the terminal, in {plain[:200]!r}")
    law(not line_ends or not re.search("\r(?!\n)", plain), f"a lone CR reaches the terminal, in {plain[:200]!r}")
    colours = _OURS.findall(shown)
    injected = [one for one in colours if (one == INJECTED if rendered else one not in ("\x1b[2m", "\x1b[0m"))]
    law(not injected, f"{injected} reaches the terminal")


def in_terminal(
    words: Sequence[str], *, timeout_s: float = 50, keys: bytes = b"", answer: bytes = b"", **env: str
) -> str:
    """Run a command on its own terminal and return its output.

    Args:
        words: The command.
        timeout_s: The time allowed, in seconds.
        keys: Input typed before the command starts.
        answer: Input typed at each prompt, because input typed ahead answers no prompt.
        env: Additional environment variables.
    """
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "jackfield", *words]
    process = subprocess.Popen(
        command,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "TERM": "xterm", **env},
        start_new_session=True,
    )
    os.close(slave)
    os.write(master, keys)
    shown, ends_at = b"", time.monotonic() + timeout_s
    try:
        while time.monotonic() < ends_at:
            if not select.select([master], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(master, 1 << 16)
            except OSError as error:
                if error.errno == errno.EIO:  # the terminal's last process has exited
                    break
                raise
            shown += data
            if answer and data.endswith(b": "):
                os.write(master, answer)
        else:
            law(False, f"it did not end; it showed {shown[-300:]!r}")
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        os.close(master)
    return shown.decode(errors="surrogateescape")


def _answers(place: str, text: str) -> list[replies.Reply]:
    match place:
        case "text":
            return [replies.text(text)]
        case "reasoning":
            return [replies.reasoning(text, then="done")]
        case "tool":
            return [replies.tool_call(text, {"x": 1}), replies.text("done")]
        case "arguments":
            return [replies.tool_call("look", text), replies.text("done")]
        case "error":
            return [replies.error(400, text, code=text, type=text)]
        case "retry":
            return [replies.error(503, text), replies.text("done")]
        case "stream":
            return [replies.chunks([{"error": {"message": text}}])]
    return [replies.text("fine")]


PLACES = ("text", "reasoning", "tool", "arguments", "error", "stream", "model", "file", "command")


def _command(place: str, text: str, more: Sequence[str], how: str) -> None:
    _settled()
    server = server_of("openai")
    server.clear()
    server.reply(*_answers(place, text))
    server.default = replies.text("done")
    readable = text.replace("\x00", "").replace("\ud800", "")
    words = ["-m", f"openai:{readable if place == 'model' else 'm'}", "--base-url", server.url, *more]
    if place == "file":
        words += ["-f", f"./{readable}.pdf".replace("/", "_")]
    prompt = [] if how == "chat" else ["hello"]
    words = [readable] if place == "command" else [how, *words, *prompt]
    keys = b"hello\r\x04\x04" if how == "chat" else b""
    # A line editor draws with its own control sequences; answers take the same path in both cases.
    shown = in_terminal(words, keys=keys, OPENAI_API_KEY="sk-x", TERM="dumb" if how == "chat" else "xterm")
    law("Traceback" not in shown, "a traceback")
    check(shown, line_ends=not more, rendered=how != "chat")


@cache
def _settled() -> None:
    """Answer the question about what may load, which the first command on a terminal asks once per home directory."""
    in_terminal(["plugins", "list"], answer=b"y\r")


def _listing(words: Sequence[str], text: str) -> None:
    readable = text.replace("\x00", "").replace("\ud800", "").replace("\r", "")
    with tempfile.TemporaryDirectory() as folder:
        site = FakeSite(Path(folder))
        site.add_tools("acme-odd", "odd", before=f"raise RuntimeError({text!r})")
        (site.metadata("acme-odd") / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: acme-odd\nVersion: 1.0\nSummary: {readable}\nLicense: {readable}\n"
        )
        site.add("acme-more", {f"tool.{readable}": "acme_more"}, modules={"acme_more": "x = 1"})
        path = os.pathsep.join([folder, os.environ["PYTHONPATH"]])
        shown = in_terminal([*words], PYTHONPATH=path, answer=b"n\r")
    law("Traceback" not in shown, "a traceback")
    check(shown)


def _event(text: str, place: int) -> None:
    whole = text.replace("\ud800", "")  # messages contain no lone surrogates
    result = Message("function", whole, name=whole or "x", extra={"function_id": "a"})
    events = (
        TextDelta(text),
        ReasoningDelta(text),
        ToolStarted(0, "a", FunctionCall(whole, whole)),
        ToolProgress(0, "a", text),
        ToolFinished(0, "a", result, 0.1, text, {"isolation": text}),
        RetryScheduled(1, 0.5, text),
        ApprovalNeeded((FunctionCall(whole, whole),)),
        PluginEvent(text, {"note": text}),
    )
    out = io.StringIO()
    Renderer(out, out, dim=False).show(RunEvent("r", 1, text, 0, events[place % len(events)]))
    check(out.getvalue(), line_ends=True)
    out.getvalue().encode()


def _attempts(dice: random.Random) -> Iterator[Attempt]:
    yield Attempt("nothing hostile", partial(_command, "text", "fine", (), "run"), timeout_s=60)
    for number, (name, text) in itertools.product(range(8), STRINGS.items()):
        yield Attempt(f"{name} in event {number}", partial(_event, text, number))
    # A command takes a second, so each one runs once, with the strings in turn.
    strings = itertools.cycle(STRINGS.items())
    for how, more in (("run", ()), ("chat", ()), ("run", ("--events",))):
        for place in PLACES if not more else PLACES[:4]:
            for name, text in itertools.islice(strings, 3):
                act = partial(_command, place, text, more, how)
                yield Attempt(f"{name} in {place}, {how} {' '.join(more)}", act, timeout_s=60)
    for words in (
        ["plugins", "list", "--long"],
        ["plugins", "doctor"],
        ["plugins", "info", "acme-odd"],
        ["plugins", "list", "--json"],
    ):
        name, text = next(strings)
        yield Attempt(f"{name} in metadata, {' '.join(words)}", partial(_listing, words, text), timeout_s=60)
    letters = [chr(code) for code in (*range(256), *range(0x2000, 0x2070), 0x61C, 0xFEFF, 0x1F39B, 0x5F55, 0xE0041)]
    while True:
        text = "".join(dice.choices(letters, k=dice.randrange(1, 40)))
        yield Attempt(f"{text!r} in an event", partial(_event, text, dice.randrange(8)))


KIND = Kind("Untrusted text can never control a terminal.", _attempts, 1.4, quick=66)
