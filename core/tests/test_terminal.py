"""Nothing that a model, a tool, a file or a plugin names reaches a terminal raw."""

from __future__ import annotations

import io
import json
import re
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.cli import escape_line, escape_text, needs_ascii, print_json
from jackfield.cli._terminal import Terminal, guard_output, unguard_output
from tests.support.command_line import Tty

HOSTILE = "a\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\x85\r\u202eevil\u2066\u200b\u2060\ufeff\u2028\U000e0041\x00b"
PRINTED_RAW = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
OURS = re.compile(r"\x1b\[(2|0)m")  # the Renderer's own, which dim a line

PLUGIN = f"""
HOSTILE = {HOSTILE!r}
"""
HOOK = """
from jackfield.plugins import LLMSpec, ToolSpec, hook
from bad_plugin import HOSTILE

@hook.llms
def llms():
    return [LLMSpec(name="bad", target="bad_plugin.backend:Bad", summary="says bad things")]

@hook.tools
def tools():
    return [ToolSpec(name="fail", target="bad_plugin.backend:Fail", description="Fails.")]
"""
BACKEND = """
from bad_plugin import HOSTILE
from jackfield.errors import ModelRequestError, ToolServiceError
from jackfield.events import FunctionCallDelta, ModelFinished, PluginEvent, ReasoningDelta, TextDelta
from jackfield.models import BaseChatModel
from jackfield.request import ModelFacts
from jackfield.tools import BaseTool

class Bad(BaseChatModel):
    backend = "bad"
    facts = ModelFacts()

    async def stream(self, request):
        last = request.messages[-1]
        if last.get_text_content() == "fail":
            raise ModelRequestError(HOSTILE, backend="bad")
        if last.role == "user" and request.functions:
            yield FunctionCallDelta(0, id="c0", name="fail", arguments='{"a": "' + HOSTILE + '"}')
            yield FunctionCallDelta(1, id="c1", name=HOSTILE, arguments=HOSTILE)
            yield ModelFinished("tool_calls")
            return
        yield PluginEvent("bad", {"note": HOSTILE})
        for char in HOSTILE:
            yield ReasoningDelta(char)
        for char in HOSTILE:
            yield TextDelta(char)
        yield ModelFinished("stop")

class Fail(BaseTool):
    def call(self, params, *, context=None):
        raise ToolServiceError(HOSTILE)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    package = tmp_path / "bad_plugin"
    package.mkdir()
    for name, source in {"__init__": PLUGIN, "plugin": HOOK, "backend": BACKEND}.items():
        (package / f"{name}.py").write_text(source, encoding="utf-8")
    info = tmp_path / "acme_bad-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: acme-bad\nVersion: 1.0\nSummary: {HOSTILE}\n")
    lines = "llm.bad = bad_plugin.plugin\ntool.fail = bad_plugin.plugin\n"
    (info / "entry_points.txt").write_text(f"[jackfield.v1]\n{lines}tool.\x1b[31mx = y\n")
    odd = tmp_path / "evil_\x1b[31m-1.0.dist-info"
    odd.mkdir()
    (odd / "METADATA").write_text(f"Metadata-Version: 2.1\nName: evil-{HOSTILE}\nVersion: {HOSTILE}\n")
    (odd / "entry_points.txt").write_text("[jackfield.v1]\ntool.evil = evil.plugin\n")
    (tmp_path / "agent.json").write_text(json.dumps({"llm": "bad:m", "function_list": [HOSTILE.replace("\0", "")]}))
    (tmp_path / "odd.json").write_text(json.dumps({HOSTILE: 1}))
    (tmp_path / "\x1b[31m.json").write_text("{")
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "-m", "bad:m", "hello"),
        ("run", "-m", "bad:m", "-t", "fail", "hello"),
        ("run", "--events", "-m", "bad:m", "-t", "fail", "hello"),
        ("run", "-m", "bad:m", "fail"),
        ("run", "-m", "bad:\x1b[31mm\x9b", "hello"),
        ("run", "-m", "\x1b[31m:m", "hello"),
        ("run", "-m", "bad:m", "-t", "\x1b[31m\u202e", "hello"),
        ("run", "--lang", "\x1b[31m\u202e", "hello"),
        ("run", "--\x1b[31m\u202e", "hello"),
        ("\x1b[31m\u202e",),
        ("pipeline", "-m", "bad:\x1b[31m\u202e"),
        ("pipeline", "--json", "-m", "bad:\x9b\u202e"),
        ("pipeline", "agent.json"),
        ("requirements", "agent.json"),
        ("requirements", "odd.json"),
        ("run", "-C", "\x1b[31m.json", "hello"),
        ("run", "-C", "agent.json", "hello"),
        ("plugins", "list"),
        ("plugins", "list", "--json"),
        ("plugins", "info", "bad"),
        ("plugins", "info", "\x1b[31m\u202e"),
        ("plugins", "search", "\x1b[31m\u202e"),
        ("plugins", "why", "\x1b[31m\u202e"),
    ],
    ids=lambda given: re.sub(r"[^a-z]+", "-", " ".join(given)),
)
def test_what_reaches_a_terminal_has_no_order_of_others(
    folder: Path, arguments: tuple[str, ...], open_terminal: Callable[..., Any], environment_of: Any
) -> None:
    said = everything(open_terminal(arguments, folder, environment_of(folder)))
    raw = PRINTED_RAW.search(OURS.sub("", said).replace("\r\n", "\n").replace("\r", ""))
    assert raw is None, said[max(0, raw.start() - 80) : raw.end() + 40]
    said = said.replace("y\r\n", "")
    assert said.strip(), "it printed nothing: nothing is tested"
    if any("\x1b" in argument for argument in arguments) or arguments[-1] in ("hello", "fail"):
        assert "x1b" in said or "u001b" in said, "what is hostile was not printed at all"
    assert "Traceback" not in said


@pytest.fixture
def environment_of() -> Callable[[Path], dict[str, str]]:
    import os

    def of(folder: Path) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("JACKFIELD") and "KEY" not in key}
        homes = {name: str(folder / name.lower()) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")}
        return {**kept, **homes, "PYTHONPATH": str(folder), "LANG": "C.UTF-8"}

    return of


def everything(terminal: Any) -> str:
    """All that a command prints, and yes to whatever it asks."""
    terminal.type("y\n" * 5)
    terminal.end()
    return str(terminal.seen)


# --- the function -----------------------------------------------------------------------------------------------------


@given(st.text() | st.text(st.sampled_from(HOSTILE + "ab é\u200d\ufe0f")))
def test_no_text_has_an_order_in_it(text: str) -> None:
    for shown in (escape_text(text), escape_line(text)):
        assert not PRINTED_RAW.search(shown)
        assert not [char for char in shown if unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t"]
    assert "\n" not in escape_line(text)


@pytest.mark.parametrize(
    ("text", "as_text", "as_line"),
    [
        ("a\r\nb\rc\td", "a\nb\\rc\td", "a\\r\\nb\\rc\\td"),
        ("é\r\nb\rc\td", "é\nb\\rc\td", "é\\r\\nb\\rc\\td"),
        ("é\x85\x9b", "é\\x85\\x9b", "é\\x85\\x9b"),
        ("\u200b\U000e0041", "\\u200b\\U000e0041", "\\u200b\\U000e0041"),
        ("plain é", "plain é", "plain é"),
    ],
    ids=repr,
)
def test_a_text_keeps_its_lines_and_a_line_shows_where_it_would_break(text: str, as_text: str, as_line: str) -> None:
    assert (escape_text(text), escape_line(text)) == (as_text, as_line)


# --- streams ---


def test_the_guard_escapes_on_terminals_alone_and_is_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = Tty(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)

    def write() -> None:
        with guard_output():
            sys.stdout.write("a\x1b[2J\n")
            sys.stdout.writelines(["b\x07", "\n"])
            sys.stderr.write("a\x1b[2J\n")
            with unguard_output():
                sys.stdout.write("\x1b[1m")
            with pytest.raises(KeyError), unguard_output():
                raise KeyError
            sys.stdout.write("\x1b[1m")
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        write()
    assert out.getvalue() == "a\\x1b[2J\nb\\x07\n\x1b[1m\\x1b[1m"
    assert err.getvalue() == "a\x1b[2J\n"
    assert (sys.stdout, sys.stderr) == (out, err)


def test_a_guarded_stream_is_a_stream() -> None:
    stream = Terminal(Tty())
    assert stream.write("a\x1b") == 2
    assert stream.isatty()
    assert stream.encoding == "utf-8"


@pytest.mark.parametrize("name", ["stdout", "stderr"])
@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_characters_that_cannot_be_encoded_are_escaped(monkeypatch: pytest.MonkeyPatch, name: str, errors: str) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, name, io.TextIOWrapper(raw, encoding="ascii", errors=errors))
    with guard_output():
        getattr(sys, name).write("é")
        getattr(sys, name).flush()
    assert raw.getvalue() == b"\\xe9"


@pytest.mark.parametrize(
    ("stream", "is_needed"),
    [
        (Tty(), True),
        (SimpleNamespace(isatty=lambda: False, encoding="UTF-8"), False),
        (SimpleNamespace(isatty=lambda: False, encoding="utf8"), False),
        (SimpleNamespace(isatty=lambda: False, encoding="latin-1"), True),
        (SimpleNamespace(isatty=lambda: False, encoding=None), True),
    ],
    ids=["terminal", "UTF-8", "utf8", "latin-1", "none"],
)
def test_json_is_ascii_on_terminals_and_streams_that_are_not_utf8(stream: Any, is_needed: bool) -> None:
    assert needs_ascii(stream) is is_needed


def test_json_is_indented(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": "é"})
    assert capsys.readouterr().out == '{\n  "a": "é"\n}\n'
