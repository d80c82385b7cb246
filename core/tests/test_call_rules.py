"""The rules of an agent: which calls are asked about, which are never made, and what the event stream says of it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from jackfield import Agent, FnCallAgent, FunctionCall, Message, create_agent, tool
from jackfield.errors import ConfigError
from jackfield.events import ApprovalDecided, ApprovalNeeded, ToolFinished, ToolStarted
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import BaseTool, Denial, ToolContext, find_tool
from jackfield.tools._rules import NO_RULES, CallRules, read_approval
from jackfield_records.eventjson import event_from_json, event_to_json

ASK = [Message("user", "go")]


def tools() -> list[BaseTool]:
    def named(name: str, **options: Any) -> BaseTool:
        def work(text: str = "") -> str:
            """Work."""
            return f"{name} {text}".strip()

        return tool(name=name, **options)(work)

    return [
        named("look", read_only=True),
        named("peek", read_only=True, needs_approval=True),
        named("write"),
        named("pay", needs_approval=True),
        named("fetch", effects={"network"}),
    ]


def agent_that_calls(*names: str, **options: Any) -> FnCallAgent:
    return FnCallAgent(tools(), ScriptedModel([calls(*((name, {}) for name in names)), answer("done")]), **options)


def events_of(agent: Agent, messages: Any = ASK, **options: Any) -> list[Any]:
    async def collect() -> list[Any]:
        return [event.event async for event in agent.astream(messages, **options)]

    return asyncio.run(collect())


EVERY = ("look", "peek", "write", "pay", "fetch")
RULES = {
    "nothing": (None, {"peek", "pay"}),
    "marked": ("marked", {"peek", "pay"}),
    "ask": ("ask", set(EVERY)),
    "read_only": ("read_only", {"peek", "write", "pay", "fetch"}),
    "a list": ({"allow": ["p*", "look"]}, {"write", "fetch"}),
    "a list in capitals": ({"allow": ["P*", "LOOK"]}, set(EVERY)),
    "a list, by its name": ({"ask": "allow_listed", "allow": []}, set(EVERY)),
}


@pytest.mark.parametrize(("rule", "asked_about"), RULES.values(), ids=RULES)
def test_a_rule_says_which_calls_a_run_pauses_at(rule: Any, asked_about: set[str]) -> None:
    for name in EVERY:
        events = events_of(agent_that_calls(name, approve=rule))
        pauses = events[-1].stop_reason == "approval_needed"
        assert pauses == (name in asked_about), name
        assert any(isinstance(event, ApprovalNeeded) for event in events) == pauses


@pytest.mark.parametrize(("rule", "asked_about"), RULES.values(), ids=RULES)
def test_a_rule_says_what_a_function_is_asked(rule: Any, asked_about: set[str]) -> None:
    asked: list[str] = []

    def approve(call: FunctionCall, _context: ToolContext) -> bool:
        asked.append(call.name)
        return True

    by_the_run = agent_that_calls(*EVERY, approve=rule)
    assert events_of(by_the_run, approve=approve)[-1].stop_reason == "finished"
    assert set(asked) == asked_about
    asked.clear()
    given = {"ask": rule} if isinstance(rule, str) else rule or {}
    by_the_agent = agent_that_calls(*EVERY, approve={**given, "by": approve})
    assert events_of(by_the_agent)[-1].stop_reason == "finished"
    assert set(asked) == asked_about


def test_what_the_user_said_of_one_tool_wins_over_the_rule(site: Any) -> None:
    light = (
        "from jackfield.plugins import ToolSpec, hook\n@hook.tools\ndef tools():\n"
        "    return [ToolSpec(name='act', target='acme_heavy:Act', description='Acts.', read_only=True)]\n"
    )
    heavy = (
        "from jackfield import BaseTool\nclass Act(BaseTool):\n    read_only = True\n"
        "    def call(self, params, *, context=None):\n        return 'done'\n"
    )
    site.add("acme", {"tool.act": "acme_light"}, modules={"acme_light": light, "acme_heavy": heavy})
    approval: str
    rule: Any
    for approval, rule, reason in (("never", "ask", "finished"), ("always", "read_only", "approval_needed")):
        made = find_tool({"name": "act", "approval": approval}, site.host())
        agent = FnCallAgent([made], ScriptedModel([calls(("act", {})), answer("done")]), approve=rule)
        assert events_of(agent)[-1].stop_reason == reason


WRONG = [
    ({"approve": "always"}, "one of marked, ask, read_only, allow_listed, got 'always'"),
    ({"approve": "allow_listed"}, "needs a list of tool names"),
    ({"approve": {"allow": "search_*"}}, "needs a list of tool names"),
    ({"approve": {"ask": "ask", "allow": ["a"]}}, "needs a list of tool names"),
    ({"approve": {"alow": ["a"]}}, "unknown key 'alow'"),
    ({"approve": {"by": "me"}}, "must be a function or a rule, got str"),
    ({"approve": 7}, "must be a function or a rule, got int"),
    ({"forbid": ["internet"]}, r"\(files, network, processes\), got 'internet'"),
    ({"forbid": "network"}, "must be a list of effects"),
]


@pytest.mark.parametrize(("options", "told"), WRONG)
def test_a_rule_that_cannot_be_followed_is_an_error(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        FnCallAgent([], ScriptedModel([]), **options)


def test_rules_stand_in_the_file_of_an_agent() -> None:
    config = {"agent": "fncall", "approve": {"allow": ["look"]}, "forbid": ["network"]}
    for name, reason in (("look", "finished"), ("write", "approval_needed"), ("fetch", "finished")):
        model = ScriptedModel([calls((name, {})), answer("done")])
        assert events_of(create_agent(config, llm=model, function_list=tools()))[-1].stop_reason == reason


def test_a_paused_run_is_answered_in_another_process() -> None:
    paused = agent_that_calls("write", approve="read_only").ask("go")
    kept = json.loads(json.dumps([message.model_dump(mode="json") for message in paused.history]))
    refused = "The user did not allow this call"
    for allowed, result in (
        (True, "write"),
        (False, refused),
        (Denial(" "), refused),
        (Denial("Not today."), f"{refused} and said: Not"),
    ):
        agent = FnCallAgent(tools(), ScriptedModel([answer("done")]), approve="read_only")
        done = agent.ask([], history=kept, resume=dict.fromkeys(paused.waiting, allowed))
        assert str(done.messages[0].content).startswith(result)


def test_a_denial_of_the_approval_function_refuses_the_call_and_reaches_the_model() -> None:
    for text in ("True", "Ask Ada first."):
        agent = agent_that_calls("write", approve={"ask": "ask", "by": lambda *_, text=text: Denial(text)})
        (result,) = [event for event in events_of(agent) if isinstance(event, ToolFinished)]
        assert result.error == "NotAllowed"
        assert str(result.message.content).endswith(f"said: {text}")


# --- effects ---


def test_a_call_with_a_forbidden_effect_is_refused_and_the_run_goes_on() -> None:
    asked: list[str] = []
    agent = agent_that_calls("look", "fetch", forbid=["network"], approve={"ask": "ask", "by": lambda *_: not asked})
    events = events_of(agent)
    results = {event.message.name: event for event in events if isinstance(event, ToolFinished)}
    assert results["look"].message.content == "look"
    assert results["fetch"].error == "NotAllowed"
    assert "effect 'network', which is forbidden" in str(results["fetch"].message.content)
    assert [event.call.name for event in events if isinstance(event, ToolStarted)] == ["look"]
    assert events[-1].stop_reason == "finished"


def test_a_forbidden_call_is_not_waited_for() -> None:
    events = events_of(agent_that_calls("fetch", forbid=["network", "files"], approve="ask"))
    assert events[-1].stop_reason == "finished"


def test_a_forbidden_call_is_refused_as_one_whatever_its_arguments_are() -> None:
    model = ScriptedModel([calls(("fetch", {"no such argument": 1})), answer("done")])
    events = events_of(FnCallAgent(tools(), model, forbid=["network"]))
    assert [event.error for event in events if isinstance(event, ToolFinished)] == ["NotAllowed"]


LIGHT = (
    "from jackfield.plugins import ToolSpec, hook\n@hook.tools\ndef tools():\n"
    "    return [ToolSpec(name='act', target='acme_heavy:Act', description='Acts.', effects=frozenset({effects!r}))]\n"
)
HEAVY = (
    "from jackfield import BaseTool\nclass Act(BaseTool):\n    effects = frozenset({'network'})\n"
    "    def call(self, params, *, context=None):\n        return 'done'\n"
)


@pytest.mark.parametrize(("effects", "loads"), [(["network"], False), ([], True)])
def test_an_effect_is_forbidden_before_the_tool_is_loaded_if_its_descriptor_says_it(
    site: Any, effects: list[str], loads: bool
) -> None:
    modules = {"acme_light": LIGHT.replace("{effects!r}", repr(effects)), "acme_heavy": HEAVY}
    site.add("acme", {"tool.act": "acme_light"}, modules=modules)
    made = find_tool("act", site.host())
    agent = FnCallAgent([made], ScriptedModel([calls(("act", {})), answer("done")]), forbid=["network"])
    (finished,) = [event for event in events_of(agent) if isinstance(event, ToolFinished)]
    assert finished.error == "NotAllowed"
    assert made.is_loaded == loads


# --- the record ---


def decisions(events: list[Any]) -> list[tuple[str, bool, str]]:
    return [(event.call.name, event.allowed, event.by) for event in events if isinstance(event, ApprovalDecided)]


def test_the_stream_has_who_decided_what() -> None:
    def approve(call: FunctionCall, _context: ToolContext) -> bool:
        return call.name == "write"

    agent = agent_that_calls(*EVERY, approve={"ask": "read_only", "by": approve}, forbid=["network"])
    assert decisions(events_of(agent)) == [
        ("look", True, "read_only"),
        ("peek", False, "approve"),
        ("write", True, "approve"),
        ("pay", False, "approve"),
        ("fetch", False, "forbid"),
    ]
    agent = agent_that_calls("look", "write", approve={"allow": ["look", "write"]})
    assert decisions(events_of(agent)) == [("look", True, "allow_listed"), ("write", True, "allow_listed")]


def test_a_call_that_nobody_asks_about_leaves_no_record() -> None:
    assert decisions(events_of(agent_that_calls("look", "write"))) == []


def test_an_answer_to_a_paused_run_is_in_the_record_with_the_reason_of_a_no() -> None:
    paused = agent_that_calls("pay").ask("go")
    agent = FnCallAgent(tools(), ScriptedModel([answer("done")]))
    events = events_of(agent, paused.history, resume=dict.fromkeys(paused.waiting, False))
    (decided,) = [event for event in events if isinstance(event, ApprovalDecided)]
    assert (decided.call_id, decided.allowed, decided.by) == ("call_1", False, "resume")
    (result,) = [event for event in events if isinstance(event, ToolFinished)]
    assert decided.reason == result.message.content
    assert event_from_json(json.loads(json.dumps(event_to_json(decided)))) == decided


def test_who_fails_when_asked_is_in_the_record() -> None:
    def approve(_call: FunctionCall, _context: ToolContext) -> bool:
        raise RuntimeError("nobody at home")

    (decided,) = [e for e in events_of(agent_that_calls("pay", approve=approve)) if isinstance(e, ApprovalDecided)]
    assert (decided.allowed, decided.by) == (False, "approve")
    assert "nobody at home" in decided.reason


# --- rules as they are written ---


@pytest.mark.parametrize(
    ("approve", "forbid", "said"),
    [
        (5, (), "approve must be a function or a rule, got int"),
        ({"by": 5}, (), "approve must be a function or a rule, got int"),
        ("always", (), "approve must be a function or one of marked, ask, read_only, allow_listed, got 'always'"),
        ({"asc": "ask"}, (), "approve: unknown key 'asc'; use 'ask', 'allow' or 'by'"),
        ("allow_listed", (), "approve='allow_listed' needs a list of tool names"),
        ({"allow": "search"}, (), "approve='allow_listed' needs a list of tool names"),
        ({"ask": "ask", "allow": ["a"]}, (), "approve='allow_listed' needs a list of tool names"),
        (None, 5, "forbid must be a list of effects (files, network, processes), got int"),
        (None, "network", "forbid must be a list of effects (files, network, processes), got 'network'"),
        (None, ["files", "fire"], "forbid must be a list of effects (files, network, processes), got 'fire'"),
    ],
    ids=str,
)
def test_a_rule_that_is_none_is_refused(approve: Any, forbid: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_approval(approve, forbid)
    assert str(caught.value).startswith(said)


def test_a_rule_and_a_function_may_come_together() -> None:
    def by(*_: object) -> bool:
        return True

    assert read_approval(None, ()) == (NO_RULES, None)
    assert read_approval(by, ["files"]) == (CallRules(forbid=frozenset({"files"})), by)
    assert read_approval("ask", ()) == (CallRules("ask"), None)
    assert read_approval({"allow": ["a", "b_*"], "by": by}, ()) == (CallRules("allow_listed", ("a", "b_*")), by)
    assert read_approval({"ask": "allow_listed", "allow": []}, ())[0] == CallRules("allow_listed")
    assert (bool(Denial("no")), Denial("no").reason) == (False, "no")


def test_rules_within_others_keep_what_both_forbid_and_are_named_by_the_nearest() -> None:
    inner, outer = CallRules(forbid=frozenset({"files"})), CallRules("ask", forbid=frozenset({"network"}))
    both = inner.within(outer)
    assert (both.forbid, both.outer, both.name) == ({"files", "network"}, outer, "ask")
    assert inner.within(NO_RULES) is inner
    assert CallRules("read_only").within(outer).name == "read_only"
    assert (NO_RULES.name, CallRules("allow_listed").name) == ("marked", "allow_listed")
