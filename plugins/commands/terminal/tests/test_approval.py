"""Approval on the command line: asked for on a terminal, or given later to a run that was saved."""

from __future__ import annotations

import fcntl
import json
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import ConfigError
from jackfield.messages import FunctionCall, Message
from jackfield.secrets import Secrets
from jackfield_terminal.approval import describe_call
from jackfield_terminal.saved_runs import claim_run, load_run, save_run

LIGHT = """
from jackfield.plugins import LLMSpec, ToolSpec, hook

@hook.llms
def llms():
    return [LLMSpec(name="caller", target="acme_heavy:Caller")]

@hook.tools
def tools():
    return [ToolSpec(name="remove", target="acme_heavy:Remove", description="Removes.", needs_approval=True,
        parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]})]
"""
HEAVY = """
from pathlib import Path
from jackfield import BaseTool
from jackfield.events import FunctionCallDelta, ModelFinished, TextDelta
from jackfield.models import BaseChatModel
from jackfield.request import ModelFacts

class Caller(BaseChatModel):
    backend = "caller"
    facts = ModelFacts()

    async def stream(self, request):
        last = request.messages[-1]
        done = sum(message.role == "function" for message in request.messages)
        if last.role == "user" or (done < 2 and "twice" in request.messages[-3 if done else -1].get_text_content()):
            yield FunctionCallDelta(0, name="remove", arguments='{"path": "' + "a" * 300 + '\\\\u001b[2J end"}')
            yield ModelFinished("tool_calls")
            return
        yield TextDelta("the tool says: " + last.get_text_content())
        yield ModelFinished("stop")

class Remove(BaseTool):
    name = "remove"

    def call(self, params, *, context=None):
        with open("removed", "a") as file:
            file.write("x")
        return "gone"
"""


@pytest.fixture
def acme(site: Any) -> None:
    site.add(
        "acme",
        {"llm.caller": "acme_light", "tool.remove": "acme_light"},
        modules={"acme_light": LIGHT, "acme_heavy": HEAVY},
    )


@pytest.fixture
def ask(acme: None, command_line: Any) -> Callable[..., Any]:
    """Runs `jackfield run` with the tool, and nobody at the terminal."""

    def run(*arguments: str) -> Any:
        return command_line("run", "-m", "caller:m", "-t", "remove", *arguments)

    return run


def removed(command_line: Any) -> int:
    file = Path(command_line.folder) / "removed"
    return len(file.read_text()) if file.exists() else 0


def test_without_a_terminal_the_run_pauses_and_says_what_to_do(ask: Callable[..., Any], command_line: Any) -> None:
    done = ask("go")
    assert done.returncode == 1
    assert "needs approval: remove" in done.stderr
    assert "--save FILE" in done.stderr
    assert removed(command_line) == 0


@pytest.mark.parametrize(("answer", "said", "times"), [("--approve", "gone", 1), ("--deny", "did not allow", 0)])
def test_a_saved_run_goes_on_with_the_answer(
    ask: Callable[..., Any], command_line: Any, answer: str, said: str, times: int
) -> None:
    paused = ask("go", "--save", "run.json")
    file = Path(command_line.folder) / "run.json"
    assert f"jackfield run --resume {file.name} --model caller:m --tool remove --approve" in paused.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = ask("--resume", "run.json")
    assert again.returncode == 1
    assert removed(command_line) == 0
    done = ask("--resume", "run.json", answer, "--save", "run.json")
    assert (done.returncode, f"the tool says: {said}" in done.stdout or said in done.stdout) == (0, True)
    assert removed(command_line) == times
    assert json.loads(file.read_text())["stop_reason"] == "finished"


def test_a_saved_run_that_was_resumed_is_not_resumed_again_unless_that_is_meant(
    ask: Callable[..., Any], command_line: Any
) -> None:
    ask("go", "--save", "run.json")
    assert ask("--resume", "run.json").returncode == 1, "it makes no call, so the file stays as it was"
    assert ask("--resume", "run.json", "--approve").returncode == 0
    refused = ask("--resume", "run.json", "--approve")
    assert (refused.returncode, removed(command_line)) == (1, 1)
    assert "was resumed on" in refused.stderr
    assert "--again" in refused.stderr
    assert stat.S_IMODE((Path(command_line.folder) / "run.json").stat().st_mode) == 0o600
    assert ask("--resume", "run.json", "--approve", "--again").returncode == 0
    assert removed(command_line) == 2


def test_of_processes_that_resume_one_file_at_once_one_does(tmp_path: Path) -> None:
    file, folder = tmp_path / "run.json", ThreadPoolExecutor(8)
    save_run(file, [Message("user", "Go.")], "approval_needed", Secrets())

    def claim(_: int) -> str:
        try:
            claim_run(file)
        except ConfigError:
            return "refused"
        return "claimed"

    with folder as pool:
        assert sorted(pool.map(claim, range(8))) == ["claimed", *["refused"] * 7]


def test_a_claim_waits_for_the_one_before_it(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    save_run(file, [Message("user", "Go.")], "approval_needed", Secrets())
    with file.open("r+") as held, ThreadPoolExecutor(1) as pool:
        fcntl.flock(held, fcntl.LOCK_EX)
        claim = pool.submit(claim_run, file)
        assert wait([claim], timeout=0.3).not_done
        fcntl.flock(held, fcntl.LOCK_UN)


def test_a_run_that_is_resumed_again_and_again_can_still_be_read(tmp_path: Path) -> None:
    file, said = tmp_path / "run.json", [Message("user", "Go.")]
    save_run(file, said, "approval_needed", Secrets())
    for _ in range(3):
        claim_run(file, again=True)
        assert list(load_run(file, Secrets(), trust=True)) == said


def test_a_yes_is_for_the_calls_that_wait_and_for_no_later_one(ask: Callable[..., Any], command_line: Any) -> None:
    ask("twice", "--save", "run.json")
    later = ask("--resume", "run.json", "--approve", "--save", "run.json")
    assert later.returncode == 1
    assert "needs approval: remove" in later.stderr
    assert removed(command_line) == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "no prompt: pass one"),
        (("go", "--resume", "x.json"), "remove the prompt"),
        (("go", "--approve"), "require --resume FILE"),
        (("go", "--again"), "--again requires --resume FILE"),
        (("--resume", "none.json"), "cannot be read"),
    ],
)
def test_options_that_do_not_go_together_are_one_clear_line(
    ask: Callable[..., Any], arguments: tuple[str, ...], told: str
) -> None:
    done = ask(*arguments)
    assert done.returncode == 1
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.fixture
def chat(acme: None, command_line: Any, open_terminal: Callable[..., Any]) -> Any:
    arguments = ["chat", "-m", "caller:m", "-t", "remove"]
    terminal = open_terminal(arguments, command_line.folder, command_line.env)
    terminal.wait_for("> ")
    return terminal


def test_a_person_sees_the_whole_call_and_is_asked_until_always(chat: Any, command_line: Any) -> None:
    chat.type("go\n")
    chat.wait_for("The model wants to call remove:")
    chat.wait_for("a" * 300)
    chat.wait_for("\\u001b[2J end")
    chat.wait_for("a(lways for remove): ")
    chat.type("what\n")
    chat.wait_for("a(lways for remove): ")
    chat.type("n\n")
    chat.wait_for("did not allow this call")
    chat.wait_for("> ")
    assert removed(command_line) == 0
    chat.type("go\n")
    chat.wait_for("a(lways for remove): ")
    chat.type("y\n")
    chat.wait_for("the tool says: gone")
    chat.wait_for("> ")
    chat.type("go\n")
    chat.wait_for("a(lways for remove): ")
    chat.type("a\n")
    chat.wait_for("the tool says: gone")
    chat.wait_for("> ")
    chat.type("go\n")
    chat.wait_for("the tool says: gone")
    assert removed(command_line) == 3
    chat.wait_for("> ")
    chat.type("/exit\n")
    assert chat.end() == 0


def test_the_whole_call_is_shown_and_no_text_of_it_can_look_like_ours() -> None:
    code = "import os\nThe model wants to call nothing\n\x1b[2J\u202e\r"
    lines = describe_call(FunctionCall("run", json.dumps({"code": code, "n": [1, "ü"], "k\n": 1})))
    assert lines == [
        "The model wants to call run:",
        "  code:",
        "    │ import os",
        "    │ The model wants to call nothing",
        "    │ \\x1b[2J\\u202e\\r",
        '  n: [1, "ü"]',
        "  k\\n: 1",
    ]
    assert describe_call(FunctionCall("run", "rm -r\nall")) == [
        "The model wants to call run:",
        "    │ rm -r",
        "    │ all",
    ]


def test_a_saved_run_comes_back_as_it_was_and_nothing_else_is_taken_for_one(tmp_path: Path) -> None:
    history = [Message("user", "go"), Message("assistant", "", function_call=FunctionCall("f", "{}"))]
    save_run(tmp_path / "run.json", history, "approval_needed", Secrets())
    assert list(load_run(tmp_path / "run.json", Secrets())) == history
    for text in (
        "",
        "[]",
        "{}",
        '{"format": "jackfield-run/1"}',
        '{"format": "jackfield-run/1", "messages": [{}]}',
        "[" * 9999,
    ):
        (tmp_path / "other.json").write_text(text)
        with pytest.raises(ConfigError, match=r"other\.json is not a conversation"):
            load_run(tmp_path / "other.json", Secrets())
    with pytest.raises(ConfigError, match="cannot save the conversation"):
        save_run(tmp_path / "none" / "run.json", history, "finished", Secrets())


def test_the_commands_can_be_imported_where_there_is_no_fcntl() -> None:
    code = "import sys; sys.modules['fcntl'] = None; import jackfield_terminal.run, jackfield_terminal.chat"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif(sys.platform == "win32", reason="it locks in the way of other systems")
def test_a_process_that_resumes_a_file_waits_for_the_one_that_is_marking_it(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    file = tmp_path / "run.json"
    save_run(file, [Message("user", "Go.")], "approval_needed", Secrets())
    with ThreadPoolExecutor(1) as pool:
        with file.open("a") as marking:
            fcntl.flock(marking, fcntl.LOCK_EX)
            claim = pool.submit(claim_run, file)
            with pytest.raises(TimeoutError):
                claim.result(timeout=0.2)
            marking.write('\n{"resumed": "2020-01-01 00:00"}')
        with pytest.raises(ConfigError, match="was resumed on"):
            claim.result(timeout=30)
