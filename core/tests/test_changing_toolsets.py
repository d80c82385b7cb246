"""A set that reports a change is asked again before the next turn, and its new tools replace the earlier ones."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from jackfield import FnCallAgent, Message, tool
from jackfield.agents import RunState
from jackfield.errors import ConfigError
from jackfield.events import PluginEvent, ToolFinished
from jackfield.messages import FunctionCall
from jackfield.processors import Preprocessor, Processor
from jackfield.request import ChatRequest
from jackfield.streams import CancelToken
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import FunctionTool, ToolChanges, ToolContext, ToolEntry, Toolset
from jackfield.tools._safety import split_settings, with_settings

ASK = [Message("user", "go")]


class Changing(Toolset):
    """Has the tools of `entries`, from the start or for each run."""

    name = "changing"

    def __init__(self, *entries: ToolEntry, is_fixed: bool) -> None:
        super().__init__()
        self.latest: list[Sequence[ToolEntry]] = [entries]  # copies share it
        self.is_fixed = is_fixed
        self.asked = 0
        self.changes = ToolChanges()

    def fixed_tools(self) -> Sequence[ToolEntry] | None:
        return self.latest[0] if self.is_fixed else None

    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
        self.asked += 1
        await asyncio.sleep(0)
        return self.latest[0]

    def change(self, *entries: ToolEntry) -> None:
        self.latest[:] = [entries]
        assert self.changes is not None
        self.changes.report()


def named(name: str, result: str = "", description: Any = "Work.", **options: Any) -> FunctionTool:
    def work() -> str:
        return result or name

    return tool(name=name, description=description, **options)(work)


def changing_to(toolset: list[Changing], *entries: ToolEntry) -> FunctionTool:
    """A tool that makes its set change while it is called."""

    def change() -> str:
        """Change the tools."""
        toolset[0].change(*entries)
        return "changed"

    return tool(change)


def shown(model: ScriptedModel) -> list[list[str]]:
    return [[function["name"] for function in request.functions] for request in model.requests]


def run(agent: FnCallAgent) -> list[ToolFinished]:
    async def collect() -> list[ToolFinished]:
        return [event.event async for event in agent.astream(ASK) if isinstance(event.event, ToolFinished)]

    return asyncio.run(collect())


@pytest.fixture(params=[True, False], ids=["fixed", "per_run"])
def is_fixed(request: pytest.FixtureRequest) -> bool:
    fixed: bool = request.param
    return fixed


def test_added_tools_are_offered_and_removed_ones_refused_from_the_next_turn_on(is_fixed: bool) -> None:
    sets: list[Changing] = []
    change = changing_to(sets, named("second", "new"), named("third"))
    sets.append(Changing(named("first"), named("second", "old"), is_fixed=is_fixed))
    model = ScriptedModel(
        [
            calls(("change", {}), ("second", {})),
            calls(("first", {}), ("second", {}), ("third", {})),
            answer("done"),
        ],
        processors=[],
    )
    results = run(FnCallAgent([change, sets[0], named("last")], model))
    assert [set(names) for names in shown(model)] == [
        {"change", "first", "second", "last"},
        {"change", "second", "third", "last"},
        {"change", "second", "third", "last"},
    ]
    assert shown(model)[1][-1] == "third", "the others keep their order"
    by_name = [(one.message.name, str(one.message.content)) for one in results]
    assert by_name[1] == ("second", "old"), "a turn's calls are made with the tools that it was shown"
    assert by_name[3:] == [("second", "new"), ("third", "third")]
    assert "first" in by_name[2][1]
    assert results[2].error


@pytest.mark.parametrize(("question", "texts"), [("go", ["Old.", "New."]), ("你好", ["旧。", "新。"])])
def test_a_tool_that_stays_keeps_its_place_and_is_described_anew_in_the_language_of_the_run(
    is_fixed: bool, question: str, texts: list[str]
) -> None:
    sets: list[Changing] = []
    stays = named("stays", description={"en": "Old.", "zh": "旧。"})
    new = named("stays", description={"en": "New.", "zh": "新。"})
    change = changing_to(sets, named("added"), new)
    sets.append(Changing(stays, named("goes"), is_fixed=is_fixed))
    model = ScriptedModel([calls(("change", {})), answer("done")], processors=[])
    FnCallAgent([change, sets[0], Steady(named("last"))], model).ask(question)
    first, second = shown(model)
    assert second == [*(name for name in first if name != "goes"), "added"]
    described = [{one["name"]: one["description"] for one in request.functions} for request in model.requests]
    assert [functions["stays"] for functions in described] == texts


def test_a_run_starts_with_what_changed_since_the_agent_was_made() -> None:
    toolset = Changing(named("first"), is_fixed=True)
    model = ScriptedModel(lambda _: answer("done"), processors=[])
    agent = FnCallAgent([toolset], model)
    run(agent)
    assert (shown(model), toolset.asked) == ([["first"]], 0), "a set that did not change is not asked"
    toolset.change(named("second"))
    run(agent)
    assert shown(model)[-1] == ["second"]


def test_a_set_is_asked_once_for_each_change_in_a_run() -> None:
    sets: list[Changing] = []
    change = changing_to(sets, named("first"))
    sets.append(Changing(named("first"), is_fixed=True))
    model = ScriptedModel([calls(("change", {})), *[calls(("first", {}))] * 3, answer("done")], processors=[])
    run(FnCallAgent([change, sets[0]], model))
    assert sets[0].asked == 1


def test_a_change_while_the_set_answers_is_asked_for_again() -> None:
    class Restless(Changing):
        async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
            earlier = await super().tools_of_run(context)
            if self.asked == 1:
                self.change(named("second"))
            return earlier

    toolset = Restless(named("first"), is_fixed=False)
    model = ScriptedModel(lambda _: answer("done"), processors=[])
    run(FnCallAgent([toolset], model))
    assert shown(model) == [["second"]]


def test_later_tools_have_the_settings_of_the_set() -> None:
    sets = [Changing(named("first"), is_fixed=True)]

    class Outer(Toolset):
        name = "outer"

        def fixed_tools(self) -> Sequence[ToolEntry]:
            return sets

        async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
            return sets

    outer = with_settings(Outer(), split_settings({"needs_approval": True}, name="outer")[0])
    change = changing_to(sets, named("second"))
    model = ScriptedModel([calls(("change", {})), calls(("second", {})), answer("done")], processors=[])
    asked: list[str] = []

    def approve(call: Any, *_: Any) -> bool:
        asked.append(call.name)
        return True

    run(FnCallAgent([change, outer], model, approve=approve))
    assert asked == ["second"]


def test_a_new_tool_cannot_take_the_name_of_another(is_fixed: bool) -> None:
    sets: list[Changing] = []
    change = changing_to(sets, named("last"))
    sets.append(Changing(named("first"), is_fixed=is_fixed))
    model = ScriptedModel([calls(("change", {})), answer("done")], processors=[])
    with pytest.raises(ConfigError, match="two tools are named 'last', one of them in toolset 'changing'"):
        run(FnCallAgent([change, sets[0], named("last")], model))


def test_runs_of_one_agent_change_apart() -> None:
    """The second run finds the change of the first, and the agent's own list is left as it was."""
    sets: list[Changing] = []
    change = changing_to(sets, named("second"))
    sets.append(Changing(named("first"), is_fixed=True))
    model = ScriptedModel([calls(("change", {})), answer("done"), answer("done")], processors=[])
    agent = FnCallAgent([change, sets[0]], model)
    run(agent)
    run(agent)
    assert shown(model) == [["change", "first"], ["change", "second"], ["change", "second"]]
    assert list(agent.function_map) == ["change", "first"]
    assert sets[0].asked == 2


def test_a_change_during_a_second_answer_is_asked_for_again() -> None:
    sets: list[Changing] = []

    class Restless(Changing):
        async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
            earlier = await super().tools_of_run(context)
            if self.asked == 1:
                self.change(named("third"))
            return earlier

    change = changing_to(sets, named("second"))
    sets.append(Restless(named("first"), is_fixed=True))
    model = ScriptedModel([calls(("change", {})), calls(("second", {})), answer("done")], processors=[])
    run(FnCallAgent([change, sets[0]], model))
    assert shown(model) == [["change", "first"], ["change", "second"], ["change", "third"]]


def test_two_changing_sets_cannot_have_the_same_new_name() -> None:
    sets = [Changing(named("first"), is_fixed=True), Changing(named("last"), is_fixed=True)]

    def change(number: int) -> str:
        """Change a set."""
        sets[number].change(named("new"))
        return "changed"

    model = ScriptedModel([calls(("change", {"number": 0})), calls(("change", {"number": 1}))], processors=[])
    with pytest.raises(ConfigError, match="two tools are named 'new'"):
        run(FnCallAgent([change, *sets], model))


def test_two_sets_may_change_in_one_turn() -> None:
    sets = [Changing(named("first"), is_fixed=True), Changing(named("last"), is_fixed=True)]

    def change() -> str:
        """Change both."""
        for number, toolset in enumerate(sets):
            toolset.change(named(f"new_{number}"))
        return "changed"

    model = ScriptedModel([calls(("change", {})), calls(("new_0", {}), ("new_1", {})), answer("done")], processors=[])
    finished = run(FnCallAgent([change, *sets], model))
    assert shown(model) == [["change", "first", "last"], *[["change", "new_0", "new_1"]] * 2]
    assert [event.message.content for event in finished] == ["changed", "new_0", "new_1"]


def test_a_resumed_call_of_a_removed_tool_is_refused() -> None:
    toolset = Changing(named("first"), is_fixed=True)
    model = ScriptedModel(lambda _: answer("done"), processors=[])
    agent = FnCallAgent([toolset], model)
    toolset.change(named("second"))
    pending = [*ASK, Message("assistant", "", function_call=FunctionCall("first", "{}"))]

    async def resume() -> list[ToolFinished]:
        events = agent.astream(pending, resume=True)
        return [event.event async for event in events if isinstance(event.event, ToolFinished)]

    (result,) = asyncio.run(resume())
    assert result.error
    assert "first" in str(result.message.content)
    assert shown(model) == [["second"]]


class Steady(Changing):
    """Has its tools for each run, and never changes."""

    def __init__(self, *entries: ToolEntry) -> None:
        super().__init__(*entries, is_fixed=False)
        self.changes = None


def test_a_new_tool_cannot_take_the_name_of_a_set_that_never_changes(is_fixed: bool) -> None:
    sets: list[Changing] = []
    change = changing_to(sets, named("steady"))
    sets.append(Changing(named("first"), is_fixed=is_fixed))
    model = ScriptedModel([calls(("change", {})), answer("done")])
    with pytest.raises(ConfigError, match="two tools are named 'steady', one of them in toolset 'changing'"):
        run(FnCallAgent([change, sets[0], Steady(named("steady"))], model))


@pytest.mark.parametrize("limits", [{}, {"seconds": 0.2}], ids=["cancel", "time limit"])
def test_a_run_that_is_stopped_while_it_waits_for_changed_tools_ends(limits: dict[str, float]) -> None:
    token = None if limits else CancelToken()

    class Silent(Changing):
        async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
            if token is not None:
                token.cancel()
            await asyncio.Event().wait()
            return ()

    silent = Silent(named("first"), is_fixed=True)
    agent = FnCallAgent([changing_to([silent]), silent], ScriptedModel([calls(("change", {}))]), limits=limits)

    async def end() -> Any:
        return [event.event async for event in agent.astream(ASK, cancel=token)][-1]

    ended = asyncio.run(asyncio.wait_for(end(), 30))
    assert ended.stop_reason == ("time_limit" if limits else "cancelled")


def test_a_set_makes_its_processor_for_each_run_from_what_was_reported_before() -> None:
    note, got = PluginEvent("note"), list[tuple[str, Sequence[PluginEvent]]]()

    class Reading(Changing):
        def processor_of_run(self, context: ToolContext[Any], reported: Sequence[PluginEvent]) -> None:
            got.append((context.run_id, reported))

    sets = [Reading(named("first"), is_fixed=False), Reading(named("second"), is_fixed=False)]
    agent = FnCallAgent(sets, ScriptedModel([answer("a")] * 2))

    async def main() -> list[str]:
        runs = [agent.make_run((Message("user", "go"),), "en") for _ in range(2)]
        runs[1] = replace(runs[1], start=RunState(reported=(note,)))
        for run in runs:
            async for _ in agent.events(run):
                pass
        return [run.id for run in runs]

    first, second = asyncio.run(main())
    assert got == [*[(first, ())] * 2, *[(second, (note,))] * 2]


def test_a_change_before_the_run_is_not_asked_for_a_second_time(is_fixed: bool) -> None:
    toolset = Changing(named("early"), is_fixed=is_fixed)
    toolset.change(named("first"))
    model = ScriptedModel([calls(("first", {})), answer("done")], processors=[])
    run(FnCallAgent([toolset], model))
    assert shown(model) == [["first"]] * 2
    assert toolset.asked == (0 if is_fixed else 1)


def test_only_the_set_that_changed_is_asked_again(is_fixed: bool) -> None:
    sets = [Changing(named("first"), is_fixed=is_fixed), Changing(named("other"), is_fixed=is_fixed)]
    model = ScriptedModel([calls(("change", {})), answer("done")], processors=[])
    run(FnCallAgent([changing_to(sets, named("second")), *sets], model))
    assert {*shown(model)[-1]} == {"change", "second", "other"}
    at_first = 0 if is_fixed else 1
    assert [one.asked for one in sets] == [at_first + 1, at_first]


def test_a_set_with_settings_is_asked_once_for_all_its_tools() -> None:
    asked: list[str] = []

    class Counted(Changing):  # its settings are those of a copy, which counts as well
        async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
            asked.append(self.name)
            return await super().tools_of_run(context)

    class Outer(Toolset):
        def fixed_tools(self) -> Sequence[ToolEntry]:
            return sets

        async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
            return sets

    sets: list[Changing] = [Counted(named("first"), named("second"), is_fixed=True)]
    settings, _ = split_settings({"timeout_s": 9}, name="changing")
    model = ScriptedModel([calls(("change", {})), answer("done")], processors=[])
    run(FnCallAgent([changing_to(sets, named("third")), with_settings(Outer(), settings)], model))
    assert shown(model) == [["change", "first", "second"], ["change", "third"]]
    assert asked == ["changing"]


def test_agents_leave_the_tools_of_a_set_as_they_are(is_fixed: bool) -> None:
    shared = named("first")
    agent = FnCallAgent([Changing(shared, is_fixed=is_fixed)], ScriptedModel([answer("done")]))
    run(agent)
    assert shared.origin is None


def test_the_processors_of_all_sets_act_in_a_run() -> None:
    acted: list[str] = []

    class Noting(Preprocessor):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name  # type: ignore[misc]

        def prepare(self, request: ChatRequest) -> ChatRequest:
            acted.append(self.name)
            return request

    class Reading(Changing):
        def processor_of_run(self, context: ToolContext[Any], reported: Sequence[PluginEvent]) -> Processor | None:
            name = next(iter(self.latest[0])).name  # type: ignore[union-attr]
            return None if name == "second" else Noting(str(name))

    sets = [Reading(named(name), is_fixed=False) for name in ("first", "second", "third")]
    run(FnCallAgent(sets, ScriptedModel([answer("done")])))
    assert sorted(acted) == ["first", "third"]
