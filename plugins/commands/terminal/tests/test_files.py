"""What `jackfield run` says of files, of errors in mid-answer and of colours."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

BREAKS = """
from jackfield.plugins import LLMSpec, hook

@hook.llms
def llms():
    return [LLMSpec(name="breaks", target="acme_breaks:Breaks"), LLMSpec(name="thinks", target="acme_breaks:Thinks")]
"""
BREAKS_TARGETS = """
from jackfield.errors import ModelRequestError
from jackfield.events import ModelFinished, ReasoningDelta, TextDelta
from jackfield.models import BaseChatModel

class Breaks(BaseChatModel):
    backend = "breaks"
    async def stream(self, request):
        yield TextDelta("half an ans")
        raise ModelRequestError("the model broke")

class Thinks(BaseChatModel):
    backend = "thinks"
    async def stream(self, request):
        yield ReasoningDelta("hm")
        yield TextDelta("done")
        yield ModelFinished("stop")
"""


@pytest.fixture
def breaks(site: Any) -> None:
    entries = {"llm.breaks": "acme_light", "llm.thinks": "acme_light"}
    site.add("acme-breaks", entries, modules={"acme_light": BREAKS, "acme_breaks": BREAKS_TARGETS})


@pytest.mark.usefixtures("breaks")
def test_an_error_in_mid_answer_begins_a_line_of_its_own(command_line: Any) -> None:
    done = command_line("run", "-m", "breaks:m", "hi")
    assert done.returncode == 1
    assert done.stdout == "half an ans\n"
    assert "the model broke" in done.stderr


@pytest.mark.usefixtures("breaks")
@pytest.mark.parametrize(
    ("more", "dimmed"), [({"TEST_TERM": "xterm"}, True), ({"TEST_TERM": "xterm", "NO_COLOR": "1"}, True), ({}, False)]
)
def test_reasoning_is_dim_where_the_terminal_can_and_that_is_no_colour(
    command_line: Any, open_terminal: Callable[..., Any], more: dict[str, str], dimmed: bool
) -> None:
    env = {**command_line.env, **more}
    terminal = open_terminal(["run", "-m", "thinks:m", "hi"], command_line.folder, env)
    terminal.end()
    assert "done" in terminal.seen
    assert ("\x1b[2m" in terminal.seen) == dimmed


@pytest.mark.usefixtures("breaks")
def test_a_file_that_cannot_be_read_is_an_error_that_says_what_to_install(command_line: Any) -> None:
    (command_line.folder / "a.xyz").write_bytes(bytes(range(256)))
    for option in ("-f", "-a"):
        done = command_line("run", "-m", "thinks:m", "--agent", "fncall", option, "a.xyz", "hi")
        assert done.returncode == 1
        assert "a.xyz cannot be read" in done.stderr
        assert done.stdout == ""


@pytest.mark.usefixtures("breaks")
def test_the_files_of_an_agents_file_are_beside_it_and_a_missing_one_is_told_with_its_folder(command_line: Any) -> None:
    folder = command_line.folder / "agents"
    folder.mkdir()
    (folder / "a.yaml").write_text("llm: thinks:m\nagent: fncall\nfiles: [guide.md]\n")
    done = command_line("run", "--trust", "-C", "agents/a.yaml", "hi")
    assert done.returncode == 1
    assert f"agents/a.yaml refers to the file 'guide.md', which is not in {folder}" in done.stderr
    (folder / "guide.md").write_text("text")
    assert command_line("run", "--trust", "-C", "agents/a.yaml", "hi").returncode == 0


@pytest.mark.usefixtures("breaks")
def test_each_file_of_a_folder_that_is_not_read_is_in_the_result(command_line: Any) -> None:
    folder = command_line.folder / "papers"
    folder.mkdir()
    (folder / "guide.md").write_text("Forty sockets.")
    (folder / "empty.txt").touch()
    (folder / "photo.raw").write_bytes(b"\xff\xd8\xff")
    done = command_line("run", "-m", "thinks:m", "--agent", "fncall", "-f", "papers", "--json", "hi")
    assert json.loads(done.stdout)["warnings"] == [
        "papers/empty.txt: empty",
        "papers/photo.raw: no installed package can read .raw files",
    ]
    assert "! skipped papers/photo.raw: no installed package can read .raw files" in done.stderr
