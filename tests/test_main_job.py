"""The main job: documents, a question, a calculation; without a key, and against a server with the real protocol."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from jackfield_testkit import replies
from jackfield_testkit.forks import Forks
from jackfield_testkit.replies import Reply
from jackfield_testkit.server import FakeOpenAI, RecordedRequest

ROOT = Path(__file__).parent.parent
DEMO = ROOT / "examples" / "documents-and-code" / "main.py"
Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


# As `python main.py` does.
RUNNER = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"


@pytest.fixture
def run(forks: Forks) -> Run:
    """Runs a program, in the environment of nobody's own settings and some more variables."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OPENAI", "JACKFIELD"))}

    def run(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return forks.run(RUNNER, *words, cwd=ROOT, env={**kept, "XDG_CONFIG_HOME": os.devnull, **environment})

    return run


def said_by(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def as_a_model_would(request: RecordedRequest) -> Reply:
    """Reads the two numbers out of the passages it was given, has them multiplied, and answers with the result."""
    messages = request.json["messages"]
    if messages[-1]["role"] == "tool":
        result = re.search(r"\d+\.\d", messages[-1]["content"])
        return replies.text(f"At the latest after {result and result[0]} minutes [field-guide.pdf, tools.zh.md].")
    system = messages[0]["content"]
    turns = re.search(r"turn limit of a run is (\d+)", system)
    seconds = re.search(r"默认超时是 (\d+) 秒", system)
    assert turns, system
    assert seconds, system
    return replies.tool_call("code_interpreter", {"code": f"print({turns[1]} * {seconds[1]} / 60)"})


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(models=("old-model", "new-model", "text-embedding-x")) as server:
        server.respond(as_a_model_would)
        yield server


def test_the_demo_needs_no_key_and_says_which_model_it_used_and_why(run: Run) -> None:
    said = said_by(run(DEMO))
    assert "offline:extractive (there is no OPENAI_API_KEY" in said
    assert "→ code_interpreter" in said
    assert "100.0 minutes" in said
    assert "isolation of code_interpreter:" in said
    answer = said.partition("← code_interpreter")[2]
    assert "field-guide.pdf" in answer
    assert "tools.zh.md" in answer


def test_the_demo_takes_the_model_it_is_given(run: Run, server: FakeOpenAI) -> None:
    said = said_by(run(DEMO, "--model", "openai:mine", "--base-url", server.url))
    assert "openai:mine (--model says so)" in said
    assert "At the latest after 100.0 minutes" in said
    assert {request.model for request in server.requests} == {"mine"}


def test_with_a_key_the_demo_asks_the_server_which_models_it_has(run: Run, server: FakeOpenAI) -> None:
    said = said_by(run(DEMO, OPENAI_API_KEY="sk-test-SECRET", OPENAI_BASE_URL=server.url))
    assert "OPENAI_API_KEY is set" in said
    assert "At the latest after 100.0 minutes" in said
    assert "sk-test-SECRET" not in said


def test_a_model_that_cannot_be_reached_is_one_clear_line(run: Run) -> None:
    done = run(DEMO, "--model", "openai:mine", "--base-url", "http://127.0.0.1:9/v1")
    assert done.returncode == 1
    assert "cannot be reached" in done.stderr
    assert "Traceback" not in done.stderr + done.stdout


def test_the_example_of_the_readme_does_the_same_job(run: Run, server: FakeOpenAI, tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    example = next(block for block in blocks if "code_interpreter" in block)
    script = tmp_path / "example.py"
    script.write_text(example)
    environment = {"OPENAI_API_KEY": "sk-test", "OPENAI_MODEL": "mine", "OPENAI_BASE_URL": server.url}
    assert said_by(run(script, **environment)).strip().startswith("At the latest after 100.0 minutes")
