"""A command for an agent of which most is not installed tells one command that installs all of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.environments import View

pytestmark = pytest.mark.slow

TOOLS = ("-t", "code_interpreter", "-t", "web_search", "-t", "image_gen")
PACKAGES = {"jackfield-openai", "jackfield-code-interpreter", "jackfield-web-search", "jackfield-image-gen"}
SEARCH = {"jackfield-assistant", "jackfield-retrieval", "jackfield-keyword-search"}
AGENT = """
agent: assistant
prompt: What is in it?
llm: openai:x
function_list: [code_interpreter, web_search, image_gen]
files: [report.pdf]
rag_cfg: {rag_searchers: [hybrid_search]}
"""
COMMANDS: Mapping[str, tuple[Sequence[str], set[str]]] = {
    "a run with tools": (["run", "-m", "openai:x", *TOOLS, "hi"], PACKAGES),
    "a chat with tools": (["chat", "-m", "openai:x", *TOOLS], PACKAGES),
    "a run with documents": (
        ["run", "-m", "openai:x", *TOOLS, "-f", "report.pdf", "hi"],
        PACKAGES | SEARCH | {"jackfield-pdf"},
    ),
    "a run with an attachment": (
        ["run", "-m", "openai:x", "-a", "report.pdf", "hi"],
        {"jackfield-openai", "jackfield-multimodal", "jackfield-pdf"},
    ),
    "a run of a file": (
        ["run", "--trust", "--config", "agent.yaml"],
        PACKAGES | SEARCH - {"jackfield-keyword-search"} | {"jackfield-hybrid-search", "jackfield-pdf"},
    ),
}


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory, view_in: Callable[..., View]) -> View:
    return view_in(tmp_path_factory.mktemp("bare") / "view", "jackfield", "jackfield-terminal", is_for_reading=True)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_tells_everything_that_is_missing_at_once(
    view: View, execute: Callable[..., Any], clean_env: dict[str, str], tmp_path: Path, command: str
) -> None:
    (tmp_path / "report.pdf").write_bytes(b"%PDF-1.4")
    (tmp_path / "agent.yaml").write_text(AGENT, encoding="utf-8")
    arguments, packages = COMMANDS[command]
    done = execute([view.script("jackfield"), *arguments], env=clean_env, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert done.stderr.count("pip install") == 1
    assert set(done.stderr.partition("pip install ")[2].split()) == packages
