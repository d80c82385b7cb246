"""The agents of a service: where they come from, what they offer, and what they refuse."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jackfield import FnCallAgent, tool
from jackfield.agents import Agent, Event, Run
from jackfield.errors import ConfigError, ToolServiceError
from jackfield.events import RunFinished
from jackfield.messages import FunctionCall
from jackfield.request import ModelFacts
from jackfield.testing import ScriptedModel
from jackfield.tools import BaseTool
from jackfield_serving import MemoryStore, Serving, load_agent
from jackfield_serving.agents import describe_tool, files_of, preview_call, serve_agent
from jackfield_serving.clienttools import ClientTools
from jackfield_serving.recording import ServedStore
from jackfield_serving.requests import Request


@tool
def look(word: str) -> str:
    """Look a word up."""
    return word


def agent(name: str = "helper", tools: Any = (), **options: Any) -> FnCallAgent:
    return FnCallAgent(list(tools), ScriptedModel([]), name=name, **options)


def served(one: Any) -> Any:
    return serve_agent("a", one, ServedStore(MemoryStore(), lambda *_: None))


# --- where they come from ---


def test_an_agent_is_found_in_a_module_also_in_another_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "app_of_test.py").write_text(
        "from types import SimpleNamespace\nfrom jackfield import FnCallAgent\n"
        "from jackfield.testing import ScriptedModel\n"
        "helper = FnCallAgent(llm=ScriptedModel([]), name='helper')\nholder = SimpleNamespace(inner=helper)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert load_agent("app_of_test:helper") is load_agent("app_of_test:holder.inner")
    with pytest.raises(ConfigError, match="must be an agent, got SimpleNamespace"):
        load_agent("app_of_test:holder")
    for missing in ("app_of_test:nobody", "no_such_module_of_test:helper"):
        with pytest.raises(ConfigError, match=r"use module:name, as in app\.agents:helper"):
            load_agent(missing)
    for unnamed in (":helper", ".app_of_test:helper"):
        with pytest.raises(ConfigError, match=r"give the module's full name, as in app\.agents:helper"):
            load_agent(unnamed)


@pytest.mark.parametrize("ending", ["yaml", "yml", "toml", "json"])
def test_a_name_with_a_colon_that_ends_like_a_file_is_a_file(tmp_path: Path, ending: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_agent(str(tmp_path / f"c:agent.{ending}"))
    assert "module:name" not in str(caught.value)


def test_a_file_is_read_with_the_consent_and_the_host_of_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host: Any = object()
    made: list[tuple[Any, ...]] = []

    def create(config: Any, *, host: Any = None) -> FnCallAgent:
        made.append((config, host))
        return agent()

    monkeypatch.setattr("jackfield_agent_files.files.load_agent_config", lambda text, *, trust: (text, trust))
    monkeypatch.setattr("jackfield_serving.agents.create_agent", create)
    path = tmp_path / "helper.yaml"
    for trust in (False, True):
        serve_agent("a", path, ServedStore(MemoryStore(), lambda *_: None), host=host, trust=trust)
    assert made == [((str(path), False), host), ((str(path), True), host)]


@pytest.mark.parametrize(
    "agents", [{}, {"": agent()}, {"a": agent(), "": agent()}], ids=["none", "no name", "one of two"]
)
def test_a_service_has_agents_with_names(agents: Any) -> None:
    with pytest.raises(ConfigError, match="a service needs named agents"):
        Serving(agents)


def test_the_agent_of_the_caller_stays_as_it_is() -> None:
    one = agent()
    before = one.store
    copy = served(one)
    assert copy.agent is not one
    assert (one.store, copy.agent.store is not None) == (before, True)


# --- what they offer ---


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, (False, False, False, False)),
        ({"images": True}, (True, False, False, False)),
        ({"audio": True}, (False, True, False, False)),
        ({"video": True}, (False, False, True, False)),
        ({"files": True}, (False, False, False, True)),
    ],
    ids=str,
)
def test_an_agent_takes_the_media_that_its_model_takes(facts: Any, expected: tuple[bool, ...]) -> None:
    model = ScriptedModel([], facts=ModelFacts(native_tools=True, **facts))
    info = served(FnCallAgent([look], model, name="clerk", description="Looks.", suggestions=["Tide?"])).info()
    assert (info.images, info.audio, info.video, info.files) == expected
    assert (info.name, info.description, info.tools, info.suggestions) == ("a", "Looks.", ("look",), ("Tide?",))
    assert (info.takes_output, info.takes_client_tools) == (True, True)
    assert info.model == "scripted:scripted"
    assert info.workspace == str(Path.cwd() / "workspace")

    class Reader(FnCallAgent):
        """Reads attached files itself."""

        reads_files = True

    assert served(Reader(llm=model)).info().files, "the model gets their names only"


def test_an_agent_is_shown_with_the_choices_that_people_have() -> None:
    model = ScriptedModel([], config={"model": "m", "generate_cfg": {"temperature": 0.5}})
    one = FnCallAgent(
        llm=model, workspace="below", models=["offline:extractive"], adjustable=["temperature", "top_p"], name="a"
    )
    info = served(one).info()
    assert info.models == ("offline:extractive",)
    assert info.adjustable.keys() == {"temperature", "top_p"}
    assert info.workspace == str(Path.cwd() / "below")
    assert not served(FnCallAgent(name="none")).info().takes_output


def test_a_choice_of_model_is_made_once_and_recorded_as_its_own() -> None:
    one = served(FnCallAgent(llm=ScriptedModel([]), models=["offline:extractive"], name="a"))
    assert one.recorder.model == "scripted:scripted"
    vars(one.agent)["_recorder"] = one.recorder  # its first run keeps it there
    other = one.with_model("offline:extractive")
    assert "_recorder" not in vars(other.agent)
    assert (other.name, other.recorder.model, other.agent.llm.backend) == ("a", "offline:extractive", "offline")
    assert one.with_model("offline:extractive") is other
    assert one.agent.llm.backend == "scripted"
    with pytest.raises(ConfigError, match="available: offline:extractive"):
        one.with_model("x")


def test_a_tool_is_shown_with_its_schema_and_whether_it_only_reads() -> None:
    @tool(read_only=True)
    def read() -> str:
        """Read."""
        return ""

    shown = [describe_tool(one) for one in (look, read)]
    assert [(one.name, one.description, one.read_only) for one in shown] == [
        ("look", "Look a word up.", False), ("read", "Read.", True),
    ]  # fmt: skip
    assert shown[0].parameters["required"] == ["word"]


def test_the_files_of_agents_below_and_beside_are_listed_once() -> None:
    def of(name: str, *files: str, **more: Any) -> Any:
        return SimpleNamespace(name=name, files=files, **more)

    last = of("last", "d.md", "a.md")
    member = of("member", "c.md")
    beside = of("beside", "b.md", agents=(member,))
    head = of("head", "a.md", handoffs=(SimpleNamespace(agent=beside), SimpleNamespace(agent=last)))
    last.handoffs = (SimpleNamespace(agent=head),)  # in a circle
    assert files_of(head) == ("a.md", "b.md", "d.md", "c.md")
    assert files_of(member) == ("c.md",)
    unnamed = FnCallAgent([Showing("+ x")], ScriptedModel([]))
    group = SimpleNamespace(name="group", agents=[unnamed])
    assert preview_call(group, FunctionCall("change", "{}"), "FnCallAgent") == "+ x"  # type: ignore[arg-type]
    assert files_of(SimpleNamespace(name="none")) == ()  # type: ignore[arg-type]


class Showing(BaseTool):
    """Shows what it would change."""

    name, description, parameters = "change", "Changes.", {"type": "object", "properties": {}}

    def __init__(self, shown: str | Exception) -> None:
        super().__init__()
        self.shown = shown

    def preview(self, *_: Any, **__: Any) -> str:
        if isinstance(self.shown, Exception):
            raise self.shown
        return self.shown

    def call(self, *_: Any, **__: Any) -> str:
        return "changed"


@pytest.mark.parametrize(
    ("shown", "expected", "is_logged"),
    [("+ half \ud83d", "+ half ?", False), (ValueError("of the tool"), "", True)],
    ids=["a surrogate", "an error"],
)
def test_a_preview_is_shown_whatever_its_tool_does(
    shown: Any, expected: str, is_logged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="jackfield.serving"):
        assert preview_call(agent(tools=[Showing(shown)]), FunctionCall("change", "{}")) == expected
    assert bool(caplog.messages) is is_logged
    assert preview_call(agent(tools=[Showing("x")]), FunctionCall("other", "{}")) == ""
    assert preview_call(agent(tools=[Showing("x")]), FunctionCall("change", "{}"), "nobody") == ""


# --- what they refuse ---


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (Request(call=FunctionCall("pay", "{}")), "agent 'a' has no tool 'pay'"),
        (
            Request(client_tools=({"name": "look", "parameters": {"type": "object"}},)),
            "tool name 'look' is already in use",
        ),
        (
            Request(client_tools=({"name": "x", "parameters": {"type": "object"}},) * 2),
            "tool name 'x' is already in use",
        ),
        (Request(config={"colour": "red"}), "colour"),
    ],
    ids=["a tool", "a tool of the agent", "a tool twice", "an option"],
)
def test_a_request_that_an_agent_cannot_serve_is_refused(request_: Request, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        served(agent(tools=[look])).check(request_)
    served(agent(tools=[look])).check(Request(call=FunctionCall("look", "{}"), config={"temperature": 0}))


def test_tools_of_a_client_join_those_of_the_agent_for_one_run() -> None:
    tools, own = (ClientTools([{"name": name}], {}) for name in ("locate", "own"))
    one = served(agent(tools=[own]))
    joined = one.with_client_tools(tools)
    assert list(joined.toolsets) == [own, tools]
    assert list(one.agent.toolsets) == [own]


def test_a_clients_tool_has_a_name_and_runs_in_a_run_only() -> None:
    tools = ClientTools([{"name": "locate"}, {"name": "ask", "description": None, "parameters": {}}], {})
    assert (tools.names, tools.effects) == (["locate", "ask"], ())
    for one in tools._tools:
        assert (one.description, one.resumable) == ("", True)
        assert one.schema()["parameters"]["type"] == "object"
        with pytest.raises(ToolServiceError, match=f"{one.name} can only run in the client"):
            asyncio.run(one.call({}))
    for schema in ({}, {"name": 1}, {"name": "a b"}):
        with pytest.raises(ConfigError):
            ClientTools([schema], {})


def test_an_agent_that_cannot_continue_after_a_pause_takes_no_tools_of_clients() -> None:
    class Forgetful(Agent):
        async def events(self, run: Run) -> AsyncIterator[Event]:
            yield RunFinished("finished", ())

    one = served(Forgetful())
    assert not one.takes_client_tools
    with pytest.raises(ConfigError, match="agent 'a' does not accept client tools: remove them"):
        one.check(Request(client_tools=({"name": "x", "parameters": {"type": "object"}},)))


def test_only_a_model_that_the_agent_offers_is_taken() -> None:
    one = served(agent())
    assert one.with_model("") is one
    with pytest.raises(ConfigError, match="agent 'a' does not offer model 'x'; available: none"):
        one.with_model("x")
