"""Sets of tools: one entry of `function_list` that stands for several tools, the same for all runs or made for each."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from jackfield import Agent, BaseTool, BasicAgent, FnCallAgent, Message, call_tool, create_agent, tool
from jackfield.agents import CancelToken
from jackfield.errors import (
    BrokenPluginError,
    ConfigError,
    JackfieldError,
    PluginBlockedError,
    PluginNotFoundError,
    ToolServiceError,
)
from jackfield.events import RunFinished, RunStarted, ToolFinished
from jackfield.plugins import _known
from jackfield.runs import RunResources
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import FunctionTool, ToolContext, ToolEntry, Toolset, as_tool, toolset
from jackfield.tools._safety import split_settings, with_settings

ASK = [Message("user", "go")]


def named(name: str, result: str = "", **options: Any) -> FunctionTool:
    def work() -> str:
        """Work."""
        return result or name

    return tool(name=name, **options)(work)


class Fixed(Toolset):
    """The same for all runs."""

    name = "fixed"

    def __init__(self, *entries: ToolEntry) -> None:
        super().__init__()
        self.entries = entries
        self.asked = 0

    def fixed_tools(self) -> Sequence[ToolEntry]:
        self.asked += 1
        return self.entries

    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
        raise AssertionError("its tools are fixed")


class PerRun(Toolset):
    """Made for each run."""

    name = "per_run"

    def __init__(self, *entries: ToolEntry) -> None:
        super().__init__()
        self.entries = entries
        self.contexts: list[ToolContext[Any]] = []

    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
        self.contexts.append(context)
        return self.entries


def events_of(agent: Agent, messages: Any = ASK, **options: Any) -> list[Any]:
    async def collect() -> list[Any]:
        return [event.event async for event in agent.astream(messages, **options)]

    return asyncio.run(collect())


def end_of(agent: Agent, messages: Any = ASK, **options: Any) -> RunFinished:
    last = events_of(agent, messages, **options)[-1]
    assert isinstance(last, RunFinished)
    return last


def agent_with(*entries: ToolEntry, script: Any = None, **options: Any) -> tuple[FnCallAgent, ScriptedModel]:
    model = ScriptedModel(script or (lambda _: answer("done")))
    return FnCallAgent(entries, model, **options), model


def shown(model: ScriptedModel, number: int = -1) -> list[str]:
    return [function["name"] for function in model.requests[number].functions]


# --- the same for every run ---


def test_a_fixed_set_is_asked_once_when_the_agent_is_made() -> None:
    fixed = Fixed(named("one"), named("two"))
    agent, model = agent_with(named("zero"), fixed)
    assert list(agent.function_map) == ["zero", "one", "two"]
    assert agent.toolsets == []
    for _ in range(2):
        end_of(agent)
    assert fixed.asked == 1
    assert shown(model) == ["zero", "one", "two"]


def test_a_set_may_hold_sets_and_classes_and_functions() -> None:
    class Inner(Fixed):
        def __init__(self) -> None:
            super().__init__(named("inner"))

    def plain(text: str) -> str:
        """Repeat a text."""
        return text

    agent, _ = agent_with(Fixed(Fixed(Inner), plain))
    assert list(agent.function_map) == ["inner", "plain"]


def test_tools_of_one_name_are_an_error_that_names_it() -> None:
    with pytest.raises(ConfigError, match="two tools are named 'one', one of them in toolset 'fixed'"):
        agent_with(named("one"), Fixed(named("one"), named("two")))


@pytest.mark.parametrize("entries", ["one", {"one": 1}, None, 7])
def test_a_set_that_gives_no_list_is_an_error_that_names_the_set(entries: Any) -> None:
    class Odd(Fixed):
        def fixed_tools(self) -> Any:
            return entries if entries is not None else 0

    with pytest.raises(ConfigError, match="toolset 'fixed' must return a list"):
        agent_with(Odd())


def test_a_set_that_fails_when_an_agent_is_made_is_an_error_that_names_the_set() -> None:
    class Failing(Fixed):
        def fixed_tools(self) -> Any:
            raise LookupError("nothing")

    with pytest.raises(ToolServiceError, match="'fixed' failed: LookupError: nothing"):
        agent_with(Failing())


def test_a_set_is_not_one_tool() -> None:
    with pytest.raises(ConfigError, match="expected one tool, got a toolset; specify one of its tools: one, two"):
        call_tool(Fixed(named("one"), named("two")))
    with pytest.raises(ConfigError, match=r"expected one tool, got a toolset\Z"):
        call_tool(PerRun())


# --- made for each run ---


def test_a_set_is_made_for_each_run_from_what_the_run_knows(tmp_path: Path) -> None:
    @toolset
    def of_user(context: ToolContext[str]) -> list[ToolEntry]:
        return [
            named(f"{context.deps}_{context.lang}", ",".join((*context.files, context.messages[-1].get_text_content())))
        ]

    plan = tmp_path / "plan.txt"
    plan.write_text("Go.")
    agent, model = agent_with(named("zero"), of_user, script=_calls_last_tool, files=[str(plan)])
    for user, question in (("anna", "go"), ("bob", "走吧")):
        results = [event for event in events_of(agent, question, deps=user) if isinstance(event, ToolFinished)]
        assert [(result.message.name, result.message.content) for result in results] == [
            (f"{user}_{'en' if user == 'anna' else 'zh'}", f"{plan},{question}")
        ]
    assert shown(model) == ["zero", "bob_zh"]
    assert list(agent.function_map) == ["zero"]


def _calls_last_tool(request: Any) -> Any:
    if request.messages[-1].role == "function":
        return answer("done")
    return calls((request.functions[-1]["name"], {}))


def test_runs_at_the_same_time_do_not_see_each_others_tools() -> None:
    async def of_user(context: ToolContext[str]) -> list[ToolEntry]:
        await both.wait()
        return [named("whoami", context.deps)]

    both = asyncio.Barrier(2)
    agent, _ = agent_with(toolset(of_user), script=_calls_last_tool)

    async def ask(user: str) -> str:
        result = await agent.aask("who?", deps=user)
        return str(result.messages[1].content)

    async def main() -> list[str]:
        return list(await asyncio.gather(ask("anna"), ask("bob")))

    assert asyncio.run(main()) == ["anna", "bob"]


def test_a_set_is_asked_once_in_a_run_of_several_turns_and_answers() -> None:
    made = PerRun(named("one"))
    script = [calls(("one", {})), calls(("one", {})), answer("no number"), answer("7")]
    agent, model = agent_with(made, script=script)
    assert agent.ask("how many?", output=int).output == 7
    assert len(made.contexts) == 1
    assert shown(model) == ["one", "answer"]


def test_what_a_set_opens_is_closed_with_the_run() -> None:
    closed: list[str] = []

    class Connection:
        async def aclose(self) -> None:
            closed.append("closed")

    async def opened() -> Connection:
        return Connection()

    async def connected(context: ToolContext[Any]) -> list[ToolEntry]:
        await context.resources.get("connection", opened)
        return [named("one", "too late" if closed else "open")]

    agent, _ = agent_with(toolset(connected), script=_calls_last_tool)
    results = [event.message.content for event in events_of(agent) if isinstance(event, ToolFinished)]
    assert results == ["open"]
    assert closed == ["closed"]

    async def kept() -> list[str]:
        async with RunResources() as resources:
            await agent.aask("go", resources=resources)
            return list(closed)

    assert asyncio.run(kept()) == ["closed"]
    assert closed == ["closed", "closed"]


def test_a_plain_function_makes_its_set_in_a_worker_thread() -> None:
    threads: list[str] = []

    @toolset
    def blocking(_context: ToolContext[Any]) -> list[ToolEntry]:
        threads.append(threading.current_thread().name)
        return [named("one")]

    agent, model = agent_with(blocking)
    end_of(agent)
    assert threads == ["jackfield-worker"]
    assert shown(model) == ["one"]


def test_a_plain_function_may_return_what_is_to_be_awaited() -> None:
    async def gather(name: str) -> list[ToolEntry]:
        return [named(name)]

    def pass_on(_context: ToolContext[Any]) -> Any:
        return gather("one")

    agent, model = agent_with(toolset(pass_on))
    end_of(agent)
    assert shown(model) == ["one"]


def test_a_set_keeps_its_own_host_and_otherwise_has_that_of_its_agent(site: Any) -> None:
    own, other = site.host(), site.host()
    sets = [Fixed(named("one")), PerRun(named("two"))]
    sets[1].host = own
    agent_with(*sets, host=other)
    assert [one.host for one in sets] == [other, own]


def test_a_set_may_give_sets_of_which_some_are_made_for_the_run() -> None:
    outer = PerRun(Fixed(named("one")), PerRun(named("two"), PerRun(named("three"))), "tool_of_nobody")
    agent, _ = agent_with(outer)
    with pytest.raises(PluginNotFoundError, match="tool_of_nobody"):
        end_of(agent)
    outer.entries = outer.entries[:2]
    agent, model = agent_with(outer)
    end_of(agent)
    assert shown(model) == ["one", "two", "three"]


@pytest.mark.parametrize("entries", [(named("zero"),), (named("one"), named("one"))], ids=["the agent's", "its own"])
def test_a_name_that_is_taken_ends_the_run_with_an_error_that_names_tool_and_set(entries: Any) -> None:
    agent, model = agent_with(named("zero"), PerRun(*entries))
    with pytest.raises(ConfigError, match=f"two tools are named '{entries[0].name}', one of them in toolset 'per_run'"):
        end_of(agent)
    assert model.requests == []


FAILURES: Mapping[str, BaseException] = {
    "an error": KeyError("nobody"),
    "an exit": SystemExit(3),
    "Ctrl-C of its own": KeyboardInterrupt(),
    "a cancellation": asyncio.CancelledError(),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_a_set_that_fails_ends_the_run_and_nothing_else(failure: BaseException) -> None:
    @toolset
    def failing(_context: ToolContext[Any]) -> list[ToolEntry]:
        raise failure

    agent, model = agent_with(failing)
    # On the shared loop, which goes on for others.
    with pytest.raises(JackfieldError, match="toolset 'failing' failed"):
        agent.ask("go")
    assert model.requests == []
    assert FnCallAgent([], ScriptedModel([answer("fine")])).ask("go").text == "fine"


def test_a_set_that_hangs_is_given_up_after_the_time_for_tools() -> None:
    async def hanging(_context: ToolContext[Any]) -> list[ToolEntry]:
        await asyncio.Event().wait()
        return []

    agent, _ = agent_with(toolset(hanging), tool_timeout_s=0.05)
    with pytest.raises(ToolServiceError, match=r"'hanging' was not ready within 0\.05 s"):
        end_of(agent)


def test_a_run_is_cancelled_while_a_set_is_made() -> None:
    token = CancelToken()
    ended: list[str] = []

    async def hanging(_context: ToolContext[Any]) -> list[ToolEntry]:
        token.cancel()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")
        return []

    agent, model = agent_with(toolset(hanging))
    events = events_of(agent, cancel=token)
    assert [type(event) for event in events] == [RunStarted, RunFinished]
    assert events[-1].stop_reason == "cancelled"
    assert ended == ["ended"]
    assert model.requests == []


def test_a_paused_run_goes_on_with_the_tools_of_its_set() -> None:
    @toolset
    def guarded(context: ToolContext[str]) -> list[ToolEntry]:
        return [named("pay", f"paid by {context.deps}", needs_approval=True)]

    script = [calls(("pay", {})), answer("done")]
    agent, _ = agent_with(guarded, script=script)
    paused = agent.ask("go", deps="anna")
    assert paused.stop_reason == "approval_needed"
    kept = json.loads(json.dumps([message.model_dump(mode="json") for message in paused.history]))
    other, _ = agent_with(guarded, script=script[1:])
    done = other.ask([], history=kept, resume=dict.fromkeys(paused.waiting, True), deps="bob")
    assert [message.content for message in done.messages] == ["paid by bob", "done"]


def test_an_agent_that_cannot_have_such_tools_says_so() -> None:
    class Old(Agent):
        def _run(self, messages: Any, lang: Any = "en", **_: Any) -> Any:
            yield []

    with pytest.raises(ConfigError, match="'per_run'"):
        Old([PerRun()])
    assert BasicAgent([PerRun(named("one"))], ScriptedModel([answer("hi")])).ask("go").text == "hi"


def test_a_tool_with_methods_of_its_own_is_called_and_not_asked_for_another_tool() -> None:
    class Loads(BaseTool):
        name, description = "loads", "Has its own idea of loading."
        is_loaded = False

        def load(self, path: str) -> str:
            return path

        def claims(self, what: str) -> str:
            return what

        def call(self, params: Any, *, context: ToolContext[Any] | None = None) -> str:
            return self.load("loaded")

    agent, _ = agent_with(Loads(), script=_calls_last_tool)
    results = [event.message.content for event in events_of(agent) if isinstance(event, ToolFinished)]
    assert results == [call_tool(Loads())] == ["loaded"]


# --- installed sets ---

LIGHT = """
from jackfield.plugins import ToolSpec, ToolsetSpec, hook

@hook.tools
def tools():
    return [ToolSpec(name=name, target="acme_tools:Tool", description=name) for name in ("read", "write")]

@hook.toolsets
def toolsets():
    return [
        ToolsetSpec(name="files", tools=("read", "write")),
        ToolsetSpec(
            name="server", target="acme_server:Server", config="acme_server:ServerConfig", keys=("acmeServers",)
        ),
        ToolsetSpec(name="odd", target="acme_server:ServerConfig"),
    ]
"""
TOOLS = """
from jackfield import BaseTool

class Tool(BaseTool):
    def call(self, params, *, context=None):
        return f"done with {dict(self.cfg)}"
"""
SERVER = """
from jackfield import tool
from jackfield.config import Config
from jackfield.tools import Toolset

class ServerConfig(Config):
    acmeServers: dict[str, str] = {}

class Server(Toolset):
    config_class = ServerConfig

    def fixed_tools(self):
        return [tool(name=name)(_of(text)) for name, text in self.config.acmeServers.items()]

    async def tools_of_run(self, context):
        return []

def _of(text):
    def work() -> str:
        "Work."
        return text
    return work
"""
ENTRIES = {f"tool.{name}": "acme_light" for name in ("read", "write", "files", "server", "odd")}


@pytest.fixture
def acme(site: Any) -> Any:
    site.add("acme", ENTRIES, modules={"acme_light": LIGHT, "acme_tools": TOOLS, "acme_server": SERVER})
    return site


def test_an_installed_set_is_named_like_a_tool_and_loads_none(acme: Any) -> None:
    agent, _ = agent_with("acme/files", host=acme.host())
    assert list(agent.function_map) == ["read", "write"]
    assert not any(one.is_loaded for one in agent.function_map.values())  # type: ignore[attr-defined]


def test_an_installed_set_has_the_tools_of_its_own_package(acme: Any) -> None:
    light = LIGHT.replace("acme_", "other_")
    acme.add("other", {"tool.read": "other_light"}, modules={"other_light": light, "other_tools": TOOLS})
    agent, _ = agent_with("acme/files", host=acme.host())
    assert list(agent.function_map) == ["read", "write"]


def test_of_two_installed_sets_with_a_tool_of_one_name_the_error_names_one(acme: Any) -> None:
    with pytest.raises(ConfigError, match="two tools are named 'read', one of them in toolset 'acme/files'"):
        agent_with("read", "acme/files", host=acme.host())


def test_settings_of_a_set_of_tools_go_to_each_of_them(acme: Any) -> None:
    agent, _ = agent_with({"name": "acme/files", "approval": "always", "depth": 3}, host=acme.host())
    assert [one.safety().needs_approval for one in agent.function_map.values()] == [True, True]
    assert call_tool(agent.function_map["read"]) == "done with {'depth': 3}"


def test_a_set_with_a_class_is_made_with_its_settings(acme: Any) -> None:
    entry = {"name": "server", "acmeServers": {"one": "1"}, "approval": "always"}
    agent, _ = agent_with(entry, host=acme.host())
    assert call_tool(agent.function_map["one"]) == "1"
    assert agent.function_map["one"].safety().needs_approval
    with pytest.raises(ConfigError, match="unknown setting 'servers'"):
        agent_with({"name": "server", "servers": 1}, host=acme.host())


def test_a_dict_without_a_name_means_the_known_set_that_has_its_setting(
    acme: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = {"acmeServers": {"one": "1"}}
    with pytest.raises(ConfigError, match="needs a 'name'"):
        agent_with(entry, host=acme.host())
    known = {"tool.server": _known.Known("acme", "", keys=("acmeServers",))}
    monkeypatch.setattr(_known, "known_components", lambda: known)
    agent, _ = agent_with(entry, host=acme.host())
    assert list(agent.function_map) == ["one"]
    made = create_agent({"function_list": [entry]}, llm=ScriptedModel([answer("hi")]), host=acme.host())
    assert list(made.function_map) == ["one"]


def test_a_set_that_is_no_set_is_broken_and_one_that_is_blocked_names_the_rule(acme: Any) -> None:
    with pytest.raises(BrokenPluginError, match="acme"):
        agent_with("odd", host=acme.host())
    with pytest.raises(PluginBlockedError, match="files"):
        agent_with("acme/files", host=acme.host(block=("tool.files",)))
    with pytest.raises(PluginBlockedError, match="read"):
        agent_with("acme/files", host=acme.host(block=("tool.read",)))


def test_a_tool_of_an_installed_set_can_be_named_alone(acme: Any) -> None:
    assert as_tool("read", acme.host()).name == "read"
    with pytest.raises(ConfigError, match="specify one of its tools: read, write"):
        as_tool("acme/files", acme.host())


def test_settings_of_a_set_do_not_reach_tools_that_others_have(acme: Any) -> None:
    shared = named("one")

    settings, _ = split_settings({"approval": "always", "timeout_s": 5}, name="mine")
    agent, _ = agent_with(with_settings(Fixed(shared), settings))
    assert agent.function_map["one"].safety().needs_approval
    assert agent.function_map["one"].safety().timeout_s == 5
    assert not shared.safety().needs_approval
