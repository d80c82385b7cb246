"""The screen of a run: effects of tools, files, problems, warnings and summaries."""

from __future__ import annotations

import argparse
import io
import logging
from pathlib import Path
from typing import Any

import pytest

from jackfield import FnCallAgent, tool
from jackfield.events import RunEvent, RunFinished, ToolFinished
from jackfield.messages import Message, Usage
from jackfield.secrets import Secret, Secrets
from jackfield.testing import ScriptedModel
from jackfield_terminal.screen import Screen, describe_tools, show_warnings


@tool(effects=["files"], read_only=True)
def look() -> str:
    """Look."""
    return ""


@tool(effects=["network", "files"], needs_approval=True)
def send() -> str:
    """Send."""
    return ""


@tool
def think() -> str:
    """Think."""
    return ""


def screen_of(folder: Path, *, quiet: bool = False) -> tuple[Screen, io.StringIO]:
    notes = io.StringIO()
    options = argparse.Namespace(plain=True, quiet=quiet, output=str(folder / "out"))
    return Screen(options, bare=io.StringIO(), notes=notes), notes


def test_tools_are_described_by_their_effects_and_the_rules_of_the_agent() -> None:
    agent = FnCallAgent([look, send, think], ScriptedModel([]), forbid=["network"])
    assert describe_tools(agent) == [
        "tool look: reads files",
        "tool send: reads and writes files, uses the network, each call needs approval, calls are forbidden here",
    ]


def finished(run: str, *, files: list[str] | None = None) -> list[RunEvent]:
    message = Message("function", "done", name="painter")
    metadata: dict[str, Any] = {"files": files, "files_are_temporary": True} if files else {}
    return [
        RunEvent(run, 1, "a", 0, ToolFinished(0, "c", message, 0.1, "", metadata)),
        RunEvent(run, 2, "a", 0, RunFinished("finished", (), Usage(prompt_tokens=4))),
    ]


@pytest.mark.parametrize("quiet", [False, True])
def test_each_saved_file_and_each_problem_is_noted_once_even_quietly(tmp_path: Path, quiet: bool) -> None:
    (tmp_path / "a.txt").write_text("x")
    screen, notes = screen_of(tmp_path, quiet=quiet)
    for event in finished("r", files=[str(tmp_path / name) for name in ("a.txt", "gone")]):
        screen.record(event)
    assert notes.getvalue().count(f"saved {tmp_path}/out/a.txt") == 1
    assert notes.getvalue().count("gone could not be saved") == 1
    assert screen.output_files.problems == []


def test_the_last_summary_is_of_one_run_and_the_total_of_all(tmp_path: Path) -> None:
    screen, notes = screen_of(tmp_path)
    screen.report_summary()
    assert notes.getvalue() == "", "no run has ended"
    for run in ("one", "two"):
        screen.start_run()
        for event in finished(run):
            screen.record(event)
    assert [(summary.calls, summary.usage.prompt_tokens) for summary in (screen.last, screen.total)] == [(1, 4), (2, 8)]
    screen.report_summary()
    assert "4 + 0 tokens" in notes.getvalue()


def test_warnings_are_notes_without_secrets_for_as_long_as_a_run_is_shown(tmp_path: Path) -> None:
    screen, notes = screen_of(tmp_path)
    log = logging.getLogger("jackfield.tests")
    with show_warnings(screen.renderer, Secrets([Secret("KEY", "Zq83bXw4Rk2LpV7Tn")])):
        for _ in range(2):
            log.warning("the key\n%s is old", "Zq83bXw4Rk2LpV7Tn")
        log.info("nothing")
    log.warning("afterwards")
    lines = [line for line in notes.getvalue().splitlines() if line]
    assert len(lines) == 1
    assert lines[0].startswith("! the key ")
    assert lines[0].endswith(" is old")
    assert "Zq83" not in lines[0]
