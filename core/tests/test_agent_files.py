"""Files that agents and callers hand over: which are there, where they go, and how long they are kept."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from jackfield import FnCallAgent, Message, tool
from jackfield.agents._files import attach_files, check_files, file_use_of, files_in, save_attached
from jackfield.errors import MissingFileError, UnsupportedInputError
from jackfield.messages import ContentItem
from jackfield.runs import RunResources
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import BaseTool, ToolContext, toolset
from tests.support.agents import Seeing


def asks(*items: ContentItem) -> Message:
    return Message("user", [*items])


def uri(text: str = "hello", name: str = "a.md") -> str:
    return f"data:text/markdown;name={quote(name)},{text}"


def test_files_are_those_of_the_user_in_order() -> None:
    history = (
        Message("system", [ContentItem(file="/srv/system.md")]),
        asks(ContentItem(text="Look."), ContentItem(file="/srv/a.md"), ContentItem(image="/srv/b.png")),
        Message("assistant", [ContentItem(file="/srv/answer.md")]),
        Message("function", [ContentItem(image="/srv/result.png")], name="t"),
        asks(ContentItem(file=uri()), ContentItem(file=uri(name="other.md")), ContentItem(image="/srv/c.png")),
        Message("user", "And /srv/d.md?"),
    )
    paths = ["/srv/a.md", "/srv/b.png", "/srv/kept.md", "/srv/c.png"]
    assert files_in(history, {uri(): "/srv/kept.md"}) == paths


# --- contained files ---


def test_contained_files_are_kept_for_their_user_alone_until_the_resources_are_closed() -> None:
    async def save() -> tuple[Path, ...]:
        first, second = uri(), uri("two")
        async with RunResources() as resources:
            history = (asks(ContentItem(file=first)), Message("assistant", "Yes."), asks(ContentItem(file=second)))
            await save_attached(history, resources)
            saved = dict(resources.attached)
            paths = tuple(Path(saved[one]) for one in (first, second))
            assert [path.read_text() for path in paths] == ["hello", "two"]
            paths[0].write_text("changed by a tool")
            await save_attached((*history, asks(ContentItem(file=first))), resources)
            assert (resources.attached, paths[0].read_text()) == (saved, "changed by a tool"), "each is saved once"
            assert [path.name for path in paths] == ["a.md", "a.md"]
            folder = paths[0].parent.parent
            assert folder.name.startswith("jackfield-")
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            assert [len(path.parent.name) for path in paths] == [12, 12]
            return (*paths, folder)

    assert not any(path.exists() for path in asyncio.run(save()))


@pytest.mark.parametrize("role", ["system", "assistant", "function"])
def test_only_the_users_files_are_saved(role: Any) -> None:
    async def save() -> None:
        async with RunResources() as resources:
            message = Message(role, [ContentItem(file=uri())], name="t" if role == "function" else None)
            await save_attached((message, Message("user", uri()), asks(ContentItem(file="/srv/a.md"))), resources)
            assert resources.attached == {}

    asyncio.run(save())


@pytest.mark.parametrize("answered", [True, False])
def test_a_broken_file_counts_until_its_question_was_answered(answered: bool) -> None:
    async def save() -> dict[str, str]:
        async with RunResources() as resources:
            broken = ContentItem(file="data:text/plain;base64,###")
            history = [asks(broken, ContentItem(file=uri()))]
            if answered:
                history.append(Message("assistant", "I cannot read it."))
            await save_attached((*history, Message("user", "Well?")), resources)
            return dict(resources.attached)

    if answered:
        assert asyncio.run(save()).keys() == {uri()}, "the sound one beside it"
    else:
        with pytest.raises(UnsupportedInputError):
            asyncio.run(save())


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("", "file.md"),
        ("a" * 117 + ".md", "a" * 117 + ".md"),  # 120 bytes
        ("a" * 118 + ".md", "a" * 100 + ".md"),
        ("a" * 121, "a" * 100),
        ("a" * 121 + "." + "b" * 30, "a" * 100 + "." + "b" * 19),
        ("é" * 59 + ".md", "é" * 50 + ".md"),
        ("a" * 99 + "é" * 20, "a" * 99),
    ],
)
def test_a_long_name_keeps_its_beginning_and_its_extension(name: str, kept: str) -> None:
    async def save() -> str:
        async with RunResources() as resources:
            await save_attached((asks(ContentItem(file=uri(name=name))),), resources)
            [path] = resources.attached.values()
            return Path(path).name

    assert asyncio.run(save()) == kept


# --- checks ---


def test_only_files_of_the_last_question_and_of_the_agent_must_exist(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("a")
    there, gone = str(tmp_path / "a.md"), str(tmp_path / "gone.md")
    answered = (asks(ContentItem(file=gone)), Message("assistant", "Yes."))
    check_files(
        [there, "index:papers", f"{tmp_path}/*.md", "x?", "y[1]"], (*answered, asks(ContentItem(file=there))), agent="a"
    )
    check_files(
        [], (asks(ContentItem(image=gone), ContentItem(file="https://h/a.md"), ContentItem(file=uri())),), agent="a"
    )
    check_files([], (Message("system", [ContentItem(file=gone)]), Message("user", "Go.")), agent="a")
    with pytest.raises(MissingFileError) as caught:
        check_files([there, gone], (), agent="clerk")
    assert str(caught.value) == ("no such file: 'gone.md' (listed in `files` of agent 'clerk'); correct the path")
    for history in (
        (*answered, asks(ContentItem(file=gone))),
        (*answered, asks(ContentItem(file=gone)), Message("user", "Go."), Message("function", "r", name="t")),
    ):
        with pytest.raises(MissingFileError) as caught:
            check_files([], history, agent="clerk")
        assert str(caught.value) == "no such file: 'gone.md' (named in a message); correct the path"


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000])
def test_a_path_that_no_file_can_have_is_missing(name: str) -> None:
    with pytest.raises(MissingFileError):
        check_files([name], (), agent="a")


# --- the files of an agent ---


def test_an_agents_files_are_in_the_first_question_once() -> None:
    system, first, second = Message("system", "s"), Message("user", "one"), asks(ContentItem(file="/srv/b.md"))
    answer = Message("assistant", "yes")
    history = (system, first, answer, second)
    assert attach_files(history, []) is history
    assert attach_files(history, ["/srv/b.md"]) is history
    for place in (1, 3):
        again = list(history)
        again[place] = asks(ContentItem(file="/srv/x.md"))
        assert attach_files(tuple(again), ["/srv/x.md"]) == tuple(again), "in whichever question it is"
    attached = attach_files(history, ["/srv/a.md", "/srv/b.md", "/srv/c.md"])
    assert (attached[0], *attached[2:]) == (system, answer, second)
    assert attached[1].role == "user"
    assert [item.value for item in attached[1].items] == ["one", "/srv/a.md", "/srv/c.md"]
    assert attach_files((system, answer), ["/srv/a.md"]) == (system, answer, asks(ContentItem(file="/srv/a.md")))


def opening(**flags: Any) -> BaseTool:
    def look(context: ToolContext[Any]) -> str:
        return ""

    return tool(look, name="t", description="Is one.", **flags)


def without_context() -> str:
    return ""


PLAIN = tool(without_context, name="t", description="Is one.")
NAMES, OPENS = opening(file_access=True), opening(file_access=True, effects={"files"})
WRITES = tool(without_context, name="t", description="Is one.", effects={"files"})


@pytest.mark.parametrize(
    ("tools", "use"),
    [
        ([], "read"),
        ([PLAIN], "read"),
        ([WRITES], "read"),
        ([PLAIN, NAMES], "read_if_possible"),
        ([WRITES, NAMES], "read_if_possible"),
        ([NAMES, OPENS], "read_short"),
    ],
    ids=["no tool", "a plain tool", "one that writes", "one that takes names", "both", "one that opens files"],
)
def test_files_reach_the_model_as_its_tools_allow(tools: list[BaseTool], use: str) -> None:
    assert file_use_of(tools, reads_files=False) == use
    assert file_use_of(tools, reads_files=True) == "name"


@pytest.mark.parametrize("reader", ["a tool", "a tool of the run", "a member", "a member's tool of the run", None])
def test_a_file_in_a_message_is_saved_only_for_an_agent_that_can_read_it(reader: str | None) -> None:
    class Hub(Seeing):
        agents: Any = ()

    @toolset
    async def of_run(context: ToolContext[Any]) -> list[Any]:
        return [NAMES]

    tools = [] if reader is None else [of_run if "of the run" in reader else NAMES]
    below = reader is not None and "member" in reader
    hub = Hub([] if below else tools, ScriptedModel([answer("Done.")]), name="hub")
    hub.agents = (FnCallAgent(tools, ScriptedModel([]), name="member"),) if below else ()
    hub.ask([asks(ContentItem(text="Look."), ContentItem(file=uri()))])
    assert [Path(name).name for name in hub.runs[0].context.files] == ([] if reader is None else ["a.md"])


@pytest.mark.parametrize("scheme", ["data:", "DATA:", "Data:"])
def test_the_scheme_of_a_file_in_a_message_may_be_in_any_case(scheme: str) -> None:
    agent = Seeing([NAMES], ScriptedModel([answer("Done.")]))
    agent.ask([asks(ContentItem(text="Look."), ContentItem(file=uri().replace("data:", scheme)))])
    assert [Path(name).name for name in agent.runs[0].context.files] == ["a.md"]


def test_a_tool_gets_each_file_once_and_those_of_the_agent_first(tmp_path: Path) -> None:
    own, other = (str(tmp_path / name) for name in ("own.md", "other.md"))
    for name in (own, other):
        Path(name).write_text("text", encoding="utf-8")
    agent = Seeing([], ScriptedModel([answer("Done.")]), files=[own])
    agent.ask([asks(ContentItem(text="Look."), *(ContentItem(file=name) for name in (other, own, other)))])
    assert agent.runs[0].context.files == (own, other)


def test_a_file_of_the_system_message_is_read_although_the_user_attached_none(tmp_path: Path) -> None:
    (tmp_path / "rules.md").write_text("Be brief.", encoding="utf-8")
    model = ScriptedModel([answer("Hi.")])
    rules = Message("system", [ContentItem(file=str(tmp_path / "rules.md"))])
    FnCallAgent(llm=model).ask([rules, Message("user", "Hi?")])
    assert "Be brief." in model.requests[0].messages[0].get_text_content()


@pytest.mark.parametrize("stem", ["tides", "x" * 300, "文" * 100, "é" * 60, "é" * 61, "a.b" * 90])
def test_a_file_in_a_message_is_saved_under_a_name_that_file_systems_take(stem: str) -> None:
    read: list[tuple[str, bytes, str]] = []

    @tool(file_access=True, effects=["files"])
    def look(context: ToolContext) -> str:
        """Look."""
        for name in context.files:
            path = Path(name)
            read.append((path.read_text(encoding="utf-8"), os.fsencode(path.name), path.suffix))
        return "seen"

    item = ContentItem(file=f"data:text/markdown;name={quote(stem)}.md,hello")
    agent = FnCallAgent([look], ScriptedModel([calls(("look", {})), answer("Done.")]))
    agent.ask([Message("user", [ContentItem(text="Look."), item])])
    [(text, name, suffix)] = read
    assert (text, suffix) == ("hello", ".md")
    assert len(name) <= 120
    assert (name == f"{stem}.md".encode()) == (len(stem.encode()) + 3 <= 120)
