"""Work before the first turn shows its progress, and a cancel, a time limit and Ctrl-C end it while it still waits.

The parser of these tests never finishes by itself: a run that waits for it does not end.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jackfield import Limits, create_agent, sync
from jackfield.agents import Agent, CancelToken, Event
from jackfield.events import PreparationProgress, RunFinished, RunStarted, TurnStarted
from jackfield.plugins import PluginHost
from jackfield.settings import Settings
from jackfield.streams import closing
from jackfield.testing import ScriptedModel, answer
from tests.support.command_line import CommandLine, Terminal, bare_environment, command_line
from tests.support.site import FakeSite, site

__all__ = ["command_line", "site"]

pytestmark = pytest.mark.timeout(120)  # only for a run that does not end

PATIENCE_S = 60.0
PROMPT = "\x1b[?2004h"  # an editor asks the terminal to mark pasted text before it draws its prompt
ENABLED = ("parser.acme-slow/here", "parser.acme-slow/apart")
PLUGIN = """
from jackfield.plugins import LLMSpec, ParserSpec, hook

@hook.parsers
def parsers():
    return [
        ParserSpec(name="here", target="slow_parser:Slow", extensions=("here",), in_process_bytes=1000),
        ParserSpec(name="apart", target="slow_parser:Slow", extensions=("apart",)),
    ]

@hook.llms
def llms():
    return [LLMSpec(name="echo", target="slow_parser:Echo")]
"""
PARSER = """
import os, threading
from pathlib import Path
from jackfield.events import ModelFinished, TextDelta
from jackfield.models import BaseChatModel
from jackfield.request import ModelFacts
from jackfield.retrieval import Block, Document, Parser

class Slow(Parser):
    def parse(self, data, *, source):
        begun = Path(data.decode())
        begun.with_suffix(".new").write_text(str(os.getpid()))
        begun.with_suffix(".new").replace(begun)  # once it exists, it has its text
        threading.Event().wait()
        return Document(source, (Block("never"),), "")

class Echo(BaseChatModel):
    backend = "echo"
    facts = ModelFacts()

    async def stream(self, request):
        yield TextDelta("an answer")
        yield ModelFinished("stop")
"""
PARTS = (
    "jackfield-assistant",
    "jackfield-keyword-search",
    "jackfield-retrieval",
    "jackfield-terminal",
    "jackfield-text",
)


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter that sees the core, and what answers from documents in a terminal."""
    return bare_environment(tmp_path_factory.mktemp("preparation"), ["jackfield", *PARTS])


@pytest.fixture
def slow(site: FakeSite) -> FakeSite:
    entries = dict.fromkeys(("parser.here", "parser.apart", "llm.echo"), "slow_plugin")
    site.add("acme-slow", entries, modules={"slow_plugin": PLUGIN, "slow_parser": PARSER})
    return site


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of documents that are read at once; a test adds those that are not."""
    folder = tmp_path / "documents"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.txt").write_text(f"The word of {name} is marmalade.")
    return folder


def add_slow_file(folder: Path, kind: str) -> Path:
    """Add a document whose parser never finishes; gives the file that exists once it has begun."""
    begun = folder.parent / "begun"
    (folder / f"z.{kind}").write_text(str(begun))
    return begun


@pytest.fixture
def environment(command_line: CommandLine, slow: FakeSite) -> dict[str, str]:
    return {**command_line.env, "TEST_TERM": "xterm", "JACKFIELD_PLUGINS_ENABLED": ",".join(ENABLED)}


# --- in a terminal ---


@pytest.mark.parametrize("kind", ["here", "apart"])
def test_the_first_ctrl_c_ends_run_while_a_file_is_read(
    command_line: CommandLine, environment: dict[str, str], bare_python: str, folder: Path, kind: str
) -> None:
    begun = add_slow_file(folder, kind)
    words = ["run", "-m", "echo:m", "-f", str(folder), "What is the word?"]
    terminal = Terminal(bare_python, words, command_line.folder, environment)
    terminal.wait_for("reading files: 2 of 3", within_s=PATIENCE_S)
    wait_until(begun.exists)
    terminal.type("\x03")
    assert terminal.end() == 130
    assert "cancelled" in terminal.seen
    assert "an answer" not in terminal.seen
    assert "sources" not in terminal.seen


def test_ctrl_c_in_chat_stops_reading_and_keeps_the_conversation(
    command_line: CommandLine, environment: dict[str, str], bare_python: str, folder: Path
) -> None:
    begun = add_slow_file(folder, "apart")
    words = ["chat", "-m", "echo:m", "-f", str(folder)]
    terminal = Terminal(bare_python, words, command_line.folder, environment)
    terminal.wait_for(PROMPT, within_s=PATIENCE_S)
    terminal.type("What is the word?\r")
    terminal.wait_for("reading files: 2 of 3", within_s=PATIENCE_S)
    wait_until(begun.exists)
    terminal.type("\x03")
    terminal.wait_for("cancelled", within_s=PATIENCE_S)
    terminal.wait_for(PROMPT, within_s=PATIENCE_S)
    terminal.type("/quit\r")
    assert terminal.end() == 0


def test_the_progress_is_one_line_that_the_answer_replaces(
    command_line: CommandLine, environment: dict[str, str], bare_python: str, folder: Path
) -> None:
    words = ["run", "-m", "echo:m", "-f", str(folder), "What is the word?"]
    terminal = Terminal(bare_python, words, command_line.folder, environment)
    assert terminal.end() == 0
    progress, answered, rest = terminal.seen.partition("an answer")
    assert answered
    assert "reading files" in progress
    assert "reading files" not in rest
    assert "\n" not in progress[progress.index("reading files") :]
    assert progress.endswith("\r\x1b[K")


def test_a_pipe_gets_no_progress(command_line: CommandLine, environment: dict[str, str], folder: Path) -> None:
    done = command_line("run", "-m", "echo:m", "-f", str(folder), "What is the word?", **environment)
    assert "an answer" in done.stdout
    assert "reading" not in done.stdout + done.stderr
    assert "\x1b" not in done.stdout + done.stderr


# --- in a program ---

KINDS = ("assistant", "doc_qa", "memory", "parallel_doc_qa", "dialogue_retrieval", "memo")
QUESTION = "What is the word?"


@pytest.fixture
def host(slow: FakeSite) -> PluginHost:
    return PluginHost(Settings(enabled=ENABLED))


def read_to_the_end(agent: Agent, *, begun: Path, cancel: CancelToken | None = None) -> list[Event]:
    """Run an agent, and cancel it once its slow file is being read."""

    async def read() -> list[Event]:
        seen: list[Event] = []
        async with closing(agent.astream(QUESTION, cancel=cancel)) as events:
            async for event in events:
                seen.append(event.event)
                if isinstance(event.event, PreparationProgress) and event.event.done == 2:
                    while not begun.exists():
                        await asyncio.sleep(0.01)
                    if cancel is not None:
                        cancel.cancel()
        return seen

    return sync.run(read())


@pytest.mark.parametrize("kind", KINDS)
def test_a_cancel_ends_a_run_while_a_file_is_read(host: PluginHost, folder: Path, tmp_path: Path, kind: str) -> None:
    begun = add_slow_file(folder, "here")
    agent = create_agent(
        kind, llm=ScriptedModel([answer("no")]), files=[str(folder)], workspace=str(tmp_path), host=host
    )
    seen = read_to_the_end(agent, begun=begun, cancel=CancelToken())
    assert isinstance(seen[-1], RunFinished)
    assert (seen[-1].stop_reason, seen[-1].messages) == ("cancelled", ())
    assert {type(event) for event in seen[1:-1]} == {PreparationProgress}


@pytest.mark.parametrize("kind", KINDS)
def test_the_time_limit_ends_a_run_while_a_file_is_read(
    host: PluginHost, folder: Path, tmp_path: Path, kind: str
) -> None:
    begun = add_slow_file(folder, "here")
    limits = Limits(seconds=0.5)
    model = ScriptedModel([answer("no")])
    agent = create_agent(kind, llm=model, files=[str(folder)], workspace=str(tmp_path), limits=limits, host=host)
    seen = read_to_the_end(agent, begun=begun)
    assert isinstance(seen[-1], RunFinished)
    assert seen[-1].stop_reason == "time_limit"
    assert not model.requests


def test_a_cancel_ends_the_process_that_parses_a_file(host: PluginHost, folder: Path) -> None:
    begun = add_slow_file(folder, "apart")
    agent = create_agent("assistant", llm=ScriptedModel([answer("no")]), files=[str(folder)], host=host)
    seen = read_to_the_end(agent, begun=begun, cancel=CancelToken())
    assert isinstance(seen[-1], RunFinished)
    process = int(begun.read_text())
    wait_until(lambda: not is_alive(process))


def test_reading_goes_on_where_a_cancel_has_ended_it(host: PluginHost, folder: Path) -> None:
    begun = add_slow_file(folder, "apart")
    agent = create_agent("assistant", llm=ScriptedModel([answer("yes")]), files=[str(folder)], host=host)
    read_to_the_end(agent, begun=begun, cancel=CancelToken())
    (folder / "z.apart").unlink()
    assert agent.ask(QUESTION).text == "yes"


def test_the_progress_names_each_file_and_ends_with_all_of_them(host: PluginHost, folder: Path) -> None:
    agent = create_agent("assistant", llm=ScriptedModel([answer("yes")]), files=[str(folder)], host=host)
    events = list(agent.stream(QUESTION))
    steps = [event for event in events if isinstance(event, PreparationProgress)]
    reading = [step for step in steps if step.step == "reading files"]
    assert (reading[-1].done, reading[-1].total) == (2, 2)
    assert {step.item for step in reading} <= {"a.txt", "b.txt"}
    assert isinstance(events[0], RunStarted)
    first_turn = next(index for index, event in enumerate(events) if isinstance(event, TurnStarted))
    assert all(events.index(step) < first_turn for step in steps)


def wait_until(is_so: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.01)


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
