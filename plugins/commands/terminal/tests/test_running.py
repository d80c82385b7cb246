"""`jackfield run`, as a person types it."""

from __future__ import annotations

import json

import pytest

from jackfield_testkit.command_line import CommandLine


@pytest.mark.usefixtures("echo")
def test_run_prints_the_answer_alone_on_standard_output(command_line: CommandLine) -> None:
    done = command_line("run", "-m", "echo:m", "hello")
    assert (done.returncode, done.stdout) == (0, "you said: hello\\x1b[31m (1 messages)\n")
    assert "let me see" in done.stderr


@pytest.mark.usefixtures("echo")
def test_a_models_escape_sequences_do_not_reach_the_terminal(command_line: CommandLine) -> None:
    assert "\x1b" not in command_line("run", "-m", "echo:m", "hello").stdout


@pytest.mark.usefixtures("echo")
def test_run_shows_tool_calls_beside_the_answer(command_line: CommandLine) -> None:
    done = command_line("run", "-m", "echo:m", "-t", "clock", "use it")
    assert "→ clock {}" in done.stderr
    assert "noon" in done.stderr
    assert done.stdout.startswith("you said: noon")


@pytest.mark.usefixtures("echo")
def test_run_as_json_prints_every_event_in_order(command_line: CommandLine) -> None:
    events = [json.loads(line) for line in command_line("run", "-m", "echo:m", "--json", "hi").stdout.splitlines()]
    assert [event["number"] for event in events] == list(range(1, len(events) + 1))
    assert (events[0]["event"], events[-1]["event"]) == ("RunStarted", "RunFinished")
    assert events[-1]["messages"][-1]["content"].startswith("you said: hi")


@pytest.mark.usefixtures("echo")
def test_the_model_may_come_from_the_environment(command_line: CommandLine) -> None:
    assert command_line("run", "hi", JACKFIELD_MODEL="echo:m").returncode == 0


@pytest.mark.usefixtures("echo")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("run", "hi"), "Pass --model backend:model, or set JACKFIELD_MODEL. Installed backends: echo"),
        (("run", "-m", "ecko:m", "hi"), "did you mean 'echo'?"),
        (("run", "-m", "echo:", "hi"), "which model of echo?"),
        (("run", "-m", "echo:m", "-t", "cloc", "hi"), "no tool 'cloc' is installed; did you mean 'clock'?"),
        (("run", "-m", "echo:m", "-a", "nobody", "hi"), "no agent 'nobody'"),
        (("rin", "hi"), "did you mean 'run'?"),
    ],
)
def test_a_mistake_is_one_clear_line(command_line: CommandLine, arguments: tuple[str, ...], told: str) -> None:
    done = command_line(*arguments)
    assert done.returncode == 1
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.usefixtures("echo")
def test_a_backend_that_may_not_load_is_one_clear_line(command_line: CommandLine) -> None:
    blocked = command_line("run", "-m", "echo:m", "hi", JACKFIELD_PLUGINS_BLOCK="acme-echo")
    assert "is blocked" in blocked.stderr
    assert blocked.stderr.count("\n") == 1
