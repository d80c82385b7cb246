"""`jackfield run`, as a person types it."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jackfield import RunResult
from jackfield_testkit import replies
from jackfield_testkit.server import FakeOpenAI
from tests.support.command_line import CommandLine

Shell = Callable[..., subprocess.CompletedProcess[str]]


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
def test_events_are_lines_of_json_in_order(command_line: CommandLine) -> None:
    events = [json.loads(line) for line in command_line("run", "-m", "echo:m", "--events", "hi").stdout.splitlines()]
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
        (("run", "hi"), "jackfield models default backend:model. Installed backends: echo"),
        (("run", "-m", "ecko:m", "hi"), "did you mean 'echo'?"),
        (("run", "-m", "echo:", "hi"), "no model specified for echo"),
        (("run", "-m", "echo:m", "-t", "cloc", "hi"), "no tool 'cloc' is installed; did you mean 'clock'?"),
        (("run", "-m", "echo:m", "--agent", "nobody", "hi"), "no agent 'nobody'"),
        (("rin", "hi"), "did you mean 'jackfield run'?"),
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


# --- what is asked ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("echo")
@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("echo piped | jackfield run -m echo:m Sum", "Sum\n\npiped"),
        ("echo piped | jackfield run -m echo:m", "piped"),
        ("echo piped | jackfield run -m echo:m -", "piped"),
        ("jackfield run -m echo:m Sum < text.txt", "Sum\n\nfrom a file"),
        ("jackfield run -m echo:m Sum < /dev/null", "Sum"),
        (": | jackfield run -m echo:m Sum", "Sum"),
        ("printf '你好' | jackfield run -m echo:m Sum", "Sum\n\n你好"),
    ],
)
def test_what_comes_through_a_pipe_joins_the_prompt(
    shell: Shell, command_line: CommandLine, line: str, asked: str
) -> None:
    (command_line.folder / "text.txt").write_text("from a file")
    done = shell(line)
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().partition("\\x1b")[0].rstrip() == f"you said: {asked}"


@pytest.mark.usefixtures("echo")
@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("jackfield run -m echo:m < /dev/null", "no prompt: pass one"),
        ("jackfield run -m echo:m '  ' < /dev/null", "no prompt: pass one"),
        ("jackfield run -m echo:m - < /dev/null", "no prompt: pass one"),
        ("printf '\\377' | jackfield run -m echo:m x", "not valid UTF-8 (invalid byte at position 0)"),
        ("echo text | jackfield run -m echo:m -a - x", "does not contain a PNG"),
        ("jackfield run -m echo:m -a none.png x", "the attachment 'none.png' is not in"),
        ("jackfield run -m echo:m -f none.md x", "no files or folders match 'none.md'"),
        ("touch file; jackfield run -m echo:m --output file x", "--output file is a file: specify a folder"),
        (
            "echo '{}' > r.json; jackfield run --resume r.json -m echo:m",
            "or /save: its format is not 'jackfield-run/1'",
        ),
    ],
)
def test_what_cannot_be_asked_is_one_clear_line(shell: Shell, line: str, told: str) -> None:
    done = shell(line)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert told in done.stderr


@pytest.mark.usefixtures("echo")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_no_fault_of_the_package(shell: Shell) -> None:
    done = shell("jackfield run -m echo:m x > /dev/full")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "jackfield: No space left on device: free some space and try again"


@pytest.mark.usefixtures("echo")
def test_who_waits_for_a_pipe_says_so(shell: Shell) -> None:
    # The pipe ends only after that was said, however long the program takes to start.
    late = "(until grep -q 'reading standard input until it ends' said; do sleep 0.1; done; echo late)"
    done = shell(f"touch said; {late} | jackfield run -m echo:m Sum 2> said")
    assert "late" in done.stdout


@pytest.mark.usefixtures("echo")
def test_attachments_go_beside_the_question(shell: Shell, command_line: CommandLine) -> None:
    png = base64.b64decode("iVBORw0KGgo=")
    (command_line.folder / "a.png").write_bytes(png)
    (command_line.folder / "b.csv").write_text("1")
    done = shell("jackfield run -m echo:m -a a.png -a b.csv -a https://acme.example/c.jpg look")
    assert (
        'you said: look\n<file name="b.csv">\n1\n</file> + image:a.png, image:https://acme.example/c.jpg' in done.stdout
    )
    piped = shell("cat a.png | jackfield run -m echo:m -a - look")
    assert "you said: look + image:data:image/png;base64,iVBORw0KGgo=" in piped.stdout


# --- what is shown ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("echo")
def test_sources_usage_and_time_come_after_the_answer_and_quiet_hides_them(command_line: CommandLine) -> None:
    done = command_line("run", "-m", "echo:m", "hello")
    sources, used = done.stderr.splitlines()[-2:]
    assert sources == "sources: guide.pdf; b\\x1b[31m.md"
    assert used.startswith("7 + 3 tokens, ")
    assert used.endswith(" s")
    assert command_line("run", "-q", "-m", "echo:m", "hello").stderr == ""


@pytest.mark.usefixtures("echo")
def test_effects_and_isolation_are_told_once_and_not_in_the_answer(command_line: CommandLine) -> None:
    done = command_line("run", "-m", "echo:m", "-t", "paint", "-t", "clock", "-t", "look", "use it")
    assert done.stderr.startswith("tool paint: reads and writes files\ntool look: reads files\n")
    assert done.stderr.count("isolation of clock") == 0
    assert "isolation" not in done.stdout
    painted = command_line("run", "-m", "echo:m", "-t", "paint", "use it")
    assert painted.stderr.count("isolation of paint: none: a test") == 1
    assert "! it is painted\\x1b[31m\n" in painted.stderr, "a warning has a line of its own"
    assert "isolation" not in painted.stdout


@pytest.mark.usefixtures("echo")
@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
@pytest.mark.parametrize("folder", ["jackfield-output", "made here"])
def test_what_code_makes_is_saved_and_its_paths_are_printed(
    command_line: CommandLine, folder: str, quiet: tuple[str, ...]
) -> None:
    named = () if folder == "jackfield-output" else ("--output", folder)
    done = command_line("run", "-m", "echo:m", "-t", "paint", *named, *quiet, "use it")
    assert [line for line in done.stderr.splitlines() if line.startswith("saved")] == [
        f"saved {folder}/paint-1.png",
        f"saved {folder}/table.csv",
    ]
    assert (command_line.folder / folder / "table.csv").read_text() == "1,2"


@pytest.mark.usefixtures("echo")
def test_json_is_one_object_at_the_end_and_nothing_else(command_line: CommandLine) -> None:
    done = command_line("run", "-m", "echo:m", "--json", "-t", "paint", "use it")
    result = json.loads(done.stdout)
    assert result.keys() == {*RunResult.__dataclass_fields__} - {"history", "data", "way"} | {"text", "files"}
    assert result["text"].startswith("you said: painted")
    assert [message["role"] for message in result["messages"]][:2] == ["assistant", "function"]
    assert result["messages"][-1]["content"] == result["text"]
    assert result["usage"]["total_tokens"] == 10
    assert [source["location"] for source in result["sources"]] == ["guide.pdf", "b\x1b[31m.md"]
    assert result["files"] == ["jackfield-output/paint-1.png", "jackfield-output/table.csv"]
    assert result["stop_reason"] == "finished"
    assert "→" not in done.stderr


@pytest.mark.usefixtures("echo")
def test_a_run_that_did_not_finish_says_so_in_its_object(command_line: CommandLine) -> None:
    done = command_line("run", "-m", "echo:m", "--json", "--max-turns", "1", "-t", "clock", "use it")
    assert done.returncode == 1
    result = json.loads(done.stdout)
    assert (result["stop_reason"], result["text"]) == ("turn_limit", "")


@pytest.mark.usefixtures("echo")
@pytest.mark.parametrize(
    ("rule", "stop_reason"),
    [
        (["--ask", "ask"], "approval_needed"),
        (["--allow", "clo*"], "finished"),
        (["--allow", "other"], "approval_needed"),
        (["--ask", "marked", "--forbid", "network"], "finished"),
    ],
)
def test_a_rule_of_the_command_line_says_which_calls_need_approval(
    command_line: CommandLine, rule: list[str], stop_reason: str
) -> None:
    done = command_line("run", "-m", "echo:m", "--json", *rule, "-t", "clock", "use it")
    assert json.loads(done.stdout)["stop_reason"] == stop_reason


def test_two_rules_for_the_same_calls_are_an_error(command_line: CommandLine) -> None:
    done = command_line("run", "-m", "offline:extractive", "--ask", "ask", "--allow", "clock", "use it")
    assert done.returncode == 1
    assert "remove one of them" in done.stderr


@pytest.mark.usefixtures("echo")
def test_a_folder_of_documents_says_what_it_left_out(command_line: CommandLine) -> None:
    (command_line.folder / "docs").mkdir()
    (command_line.folder / "docs/a.md").write_text("a")
    (command_line.folder / "docs/empty\x1b[31m.md").write_text("")
    done = command_line("run", "-m", "echo:m", "--agent", "fncall", "-t", "paint", "-f", "docs", "hi")
    assert done.returncode == 0
    assert "! skipped docs/empty\\x1b[31m.md: empty\n" in done.stderr


@pytest.mark.usefixtures("echo")
@pytest.mark.parametrize(
    ("more", "options", "is_rendered"),
    [
        ({"TEST_TERM": "xterm-256color"}, (), True),
        ({"TEST_TERM": "xterm-256color"}, ("--plain",), False),
        ({"TEST_TERM": "xterm-256color", "NO_COLOR": "1"}, (), True),
        ({}, (), False),  # a dumb terminal
    ],
)
def test_markdown_is_rendered_where_the_terminal_can(
    command_line: CommandLine,
    open_terminal: Callable[..., object],
    more: dict[str, str],
    options: tuple[str, ...],
    is_rendered: bool,
) -> None:
    terminal = open_terminal(
        ["run", "-m", "echo:m", *options, "markdown"], command_line.folder, {**command_line.env, **more}
    )
    assert terminal.end() == 0
    assert ("**bold**" not in terminal.seen) == is_rendered
    assert ("# Title" not in terminal.seen) == is_rendered
    assert "two\\x1b[31m" in terminal.seen, "what the model wrote steers nothing"


@pytest.mark.usefixtures("echo")
def test_neither_an_editor_nor_a_renderer_is_loaded_where_nobody_sees_it(
    command_line: CommandLine, bare_python: str
) -> None:
    program = (
        "import sys; from jackfield.cli.main import main\n"
        "codes = [main(['chat', '-m', 'echo:m']), main(['run', '-m', 'echo:m', 'markdown'])]\n"
        "print(codes, sorted({'rich', 'prompt_toolkit', 'markdown_it', 'pygments'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [bare_python, "-c", program],
        cwd=command_line.folder, env=command_line.env, input="markdown\n/help\n", capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout.endswith("[0, 0] []\n"), done.stdout + done.stderr
    assert done.stdout.count("**bold**") == 2


AGENT = """
llm: {{model_type: openai, model: test-model, base_url: "{url}", api_key: sk-x}}
function_list: [{{name: code_interpreter, approval: never}}]
"""
CODE = """
import matplotlib.pyplot as plt
plt.plot([1, 2])
plt.savefig("chart.svg")
"""


@pytest.mark.slow
def test_a_plot_of_the_code_interpreter_is_saved(tmp_path: Path) -> None:
    with FakeOpenAI() as server:
        server.reply(replies.tool_call("code_interpreter", {"code": CODE}), replies.text("Here it is."))
        (tmp_path / "agent.yaml").write_text(AGENT.format(url=server.url))
        done = subprocess.run(
            [sys.executable, "-m", "jackfield", "run", "--trust", "-C", "agent.yaml", "Plot it."],
            cwd=tmp_path,
            env={**os.environ, "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    assert done.stdout == "Here it is.\n", done.stderr
    assert (tmp_path / "jackfield-output/code_interpreter-1.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "jackfield-output/chart.svg").read_text()
    assert "saved jackfield-output/chart.svg\n" in done.stderr
    assert done.stderr.count("isolation of code_interpreter") == 1


@pytest.mark.parametrize("words", [("run",), ("chat",), ("runs",), ("runs", "list"), ("runs", "search")])
def test_help_fits_into_80_columns(command_line: CommandLine, words: tuple[str, ...]) -> None:
    done = command_line(*words, "--help", COLUMNS="80")
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []
    if words[0] != "runs":
        assert "--no-record" in done.stdout.split("options:")[1], "how to record nothing is said where people look"
