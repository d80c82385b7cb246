"""What is safety-relevant about a tool counts wherever it stands, and there is no way around it."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pytest

from jackfield import BaseTool, FnCallAgent, Message, tool
from jackfield.errors import ConfigError, ToolServiceError
from jackfield.events import ApprovalDecided, ApprovalNeeded, RunFinished, ToolFinished
from jackfield.messages import FunctionCall
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import PlannedCall, PluginTool, ToolContext, ToolExecutor, find_tool
from jackfield.tools._safety import Safety, SafetySettings, split_settings, with_settings

ASK = [Message("user", "go")]
GO = PlannedCall(0, "c0", FunctionCall("act", "{}"))


def finish(
    made: BaseTool, approve: Any = None, arguments: str = "{}", context: ToolContext | None = None
) -> ToolFinished:
    executor = ToolExecutor({made.name: made}, approve=approve)
    planned = PlannedCall(0, "c0", FunctionCall(made.name, arguments))
    return asyncio.run(executor.finish(planned, context or ToolContext()))


def events_of(agent: FnCallAgent, messages: Any = ASK, **options: Any) -> list[Any]:
    async def collect() -> list[Any]:
        return [event.event async for event in agent.astream(messages, **options)]

    return asyncio.run(collect())


LIGHT = (
    "from jackfield.plugins import ToolSpec, hook\n@hook.tools\ndef tools():\n"
    "    return [ToolSpec(name='act', target='acme_heavy:Act', description='Acts.'{spec})]\n"
)
LIGHT_OF_NOTHING = LIGHT.format(spec=", idempotent=True").replace("acme_heavy", "not_there").replace("'act'", "'gone'")
HEAVY = (
    "from jackfield import BaseTool\nclass Act(BaseTool):\n    name = 'act'\n    description = 'Acts.'\n{attributes}"
    "    def __init__(self, cfg=None):\n        super().__init__(cfg)\n{instance}        pass\n"
    "    def call(self, params, *, context=None):\n        return 'done'\n"
)


def plugin_tool(site: Any, *, spec: str = "", attributes: str = "", instance: str = "", **settings: Any) -> PluginTool:
    modules = {
        "acme_light": LIGHT.format(spec=f", {spec}" if spec else ""),
        "acme_heavy": HEAVY.format(
            attributes=f"    {attributes}\n" if attributes else "", instance=f"        {instance}\n" if instance else ""
        ),
    }
    site.add("acme", {"tool.act": "acme_light"}, modules=modules)
    return find_tool({"name": "act", **settings}, site.host())


PLACES: Mapping[str, dict[str, Any]] = {
    "descriptor": {"spec": "needs_approval=True"},
    "class": {"attributes": "needs_approval = True"},
    "class, as text": {"attributes": "needs_approval = 'n'"},
    "class, as an empty text": {"attributes": "needs_approval = ''"},
    "class, as a number": {"attributes": "needs_approval = 0"},
    "instance, as None": {"instance": "self.needs_approval = None"},
    "property": {"attributes": "needs_approval = property(lambda self: True)"},
    "instance": {"instance": "self.needs_approval = True"},
    "class, but not instance": {"attributes": "needs_approval = True", "instance": "self.needs_approval = False"},
    "settings": {"needs_approval": True},
    "settings' word for it": {"approval": "always"},
    "descriptor, but not settings": {"spec": "needs_approval=True", "needs_approval": False},
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_needs_approval_counts_wherever_it_stands_before_the_first_call(site: Any, place: dict[str, Any]) -> None:
    made = plugin_tool(site, **place)
    paused = events_of(FnCallAgent([made], ScriptedModel([calls(("act", {})), answer("x")])))
    assert paused[-1].stop_reason == "approval_needed"
    assert isinstance(paused[-2], ApprovalNeeded)
    assert not any(isinstance(event, ToolFinished) for event in paused)


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_without_anybody_to_ask_a_guarded_call_is_not_made(site: Any, place: dict[str, Any]) -> None:
    refused = finish(plugin_tool(site, **place))
    assert refused.error == "NotAllowed"
    assert refused.message.content != "done"


def test_only_the_users_plain_word_makes_a_call_more_lenient(site: Any) -> None:
    made = plugin_tool(site, spec="needs_approval=True", attributes="needs_approval = True", approval="never")
    assert finish(made).message.content == "done"


def test_a_user_who_needs_no_approval_may_still_ask_for_all_the_rest(site: Any) -> None:
    made = plugin_tool(site, approval="never", timeout_s=3, effects=["network"], concurrent=False, read_only=False)
    safety = made.safety()
    assert (safety.needs_approval, safety.timeout_s, safety.effects) == (False, 3, {"network"})
    assert (safety.concurrent, safety.read_only) == (False, False)


def test_what_nobody_guards_needs_no_yes(site: Any) -> None:
    assert finish(plugin_tool(site)).message.content == "done"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"approval": "no"}, "'always' or 'never', got 'no'"),
        ({"needs_approval": "n"}, "must be true or false, got 'n'"),
        ({"approval": "never", "needs_approval": True}, "contradict each other"),
        ({"timeout_s": -1}, "number of seconds above 0"),
        ({"timeout_s": "5"}, "number of seconds above 0"),
        ({"effects": "network"}, "must be a set of strings"),
    ],
)
def test_settings_that_cannot_be_understood_are_refused(site: Any, settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        plugin_tool(site, **settings)


ATTRIBUTES = [
    ("concurrent", "False", "True", False),
    ("read_only", "False", "True", False),
    ("file_access", "False", "True", False),
    ("idempotent", "False", "True", False),
    ("resumable", "False", "True", False),
    ("cacheable", "False", "True", False),
    ("needs_approval", "True", "False", True),
    ("timeout_s", "3", "5", 3),
    ("effects", "frozenset({'files'})", "frozenset({'network'})", frozenset({"files", "network"})),
]


def test_each_attribute_that_is_safety_relevant_is_compared_below() -> None:
    assert {row[0] for row in ATTRIBUTES} == {field.name for field in fields(Safety)}


@pytest.mark.parametrize("places", [*itertools.permutations(("spec", "class", "settings"), 2)], ids=str)
@pytest.mark.parametrize(("name", "one", "other", "stricter"), ATTRIBUTES, ids=[row[0] for row in ATTRIBUTES])
def test_of_every_attribute_the_stricter_wins(
    site: Any, name: str, one: str, other: str, stricter: Any, places: tuple[str, str]
) -> None:
    said = dict(zip(places, (one, other), strict=True))
    made = plugin_tool(
        site,
        # Where the third says nothing, it must not be the strictest: what grants something is never granted by silence.
        spec=f"{name}={said.get('spec', other)}",
        attributes=f"{name} = {said.get('class', other)}",
        **({name: eval(said["settings"])} if "settings" in said else {}),
    )
    made.load()
    assert getattr(made.safety(), name) == stricter


STATED: Mapping[str, tuple[object, object]] = {  # what a class says, and something more lenient
    "needs_approval": (True, False),
    "effects": (frozenset({"network"}), frozenset()),
    "concurrent": (False, True),
    "timeout_s": (3.0, None),
}


@pytest.mark.parametrize("how", ["instance", "subclass's instance", "property"])
@pytest.mark.parametrize("name", STATED)
def test_an_instance_cannot_be_more_lenient_than_its_class(name: str, how: str) -> None:
    strict, lenient = STATED[name]

    class Act(BaseTool):
        name = "act"
        description = "Act."

        def call(self, params: Any, *, context: Any = None) -> str:
            del params, context
            return "done"

    setattr(Act, name, strict)
    instance = Act() if how == "instance" else type("Sub", (Act,), {})()
    if how == "property":  # it says nothing without an instance, so what it returns counts
        setattr(Act, name, property(lambda _: strict))
    else:
        setattr(instance, name, lenient)
    assert getattr(instance.safety(), name) == strict


@pytest.mark.parametrize("spoken", [(), frozenset(), ("files",)])
def test_a_forbidden_effect_of_the_class_stops_an_instance_that_denies_it(spoken: Any) -> None:
    class Send(BaseTool):
        name = "act"
        description = "Send."
        effects = frozenset({"network"})

        def __init__(self) -> None:
            super().__init__()
            self.effects = spoken

        def call(self, params: Any, *, context: Any = None) -> str:
            del params, context
            return "done"

    agent = FnCallAgent([Send()], ScriptedModel([calls(("act", {})), answer("x")]), forbid=["network"])
    [refused] = [event for event in events_of(agent) if isinstance(event, ToolFinished)]
    assert refused.error == "NotAllowed"
    assert "network" in refused.message.get_text_content()


def test_settings_of_the_core_are_not_given_to_the_tool(site: Any) -> None:
    made = plugin_tool(site, approval="never", timeout_s=5, word="hello")
    assert dict(made.load().cfg) == {"word": "hello"}


def test_a_tool_without_access_to_files_does_not_get_those_of_the_conversation() -> None:
    class Look(BaseTool):
        name = "look"
        description = "Look."

        def call(self, params: Any, *, context: ToolContext | None = None) -> Any:
            return list(context.files) if context else None

    class LookAtFiles(Look):
        file_access = True

    context = ToolContext(files=("secret.txt",))
    assert "secret" not in str(finish(Look(), context=context).message.content)
    assert "secret" in str(finish(LookAtFiles(), context=context).message.content)


def test_a_call_made_in_qwen_agents_way_is_asked_for_as_well() -> None:
    asked: list[FunctionCall] = []

    def approve(call: FunctionCall, _context: ToolContext) -> bool:
        asked.append(call)
        return call.arguments != "{}"

    @tool(needs_approval=True)
    def act(word: str = "") -> str:
        """Act."""
        return f"done {word}"

    agent = FnCallAgent([act], ScriptedModel([]), approve=approve)
    assert "did not allow" in str(agent._call_tool("act", "{}"))
    assert agent._call_tool("act", '{"word": "x"}') == "done x"
    assert "needs approval" in str(FnCallAgent([act], ScriptedModel([]))._call_tool("act", "{}"))
    assert len(asked) == 2


# --- who is asked ---


@tool(needs_approval=True)
def act(path: str = "") -> str:
    """Act."""
    return f"done {path}"


@pytest.mark.parametrize("yes", ["n", "no", "yes", 1, None, [True], object()], ids=lambda yes: type(yes).__name__)
@pytest.mark.parametrize("is_async", [False, True])
def test_only_true_is_a_yes(yes: Any, is_async: bool) -> None:
    def plain(_call: FunctionCall, _context: ToolContext) -> Any:
        return yes

    async def waiting(_call: FunctionCall, _context: ToolContext) -> Any:
        return yes

    with pytest.raises(ConfigError, match="must return True to allow the call, or False"):
        finish(act, waiting if is_async else plain)
    assert finish(act, lambda _call, _context: False).error == "NotAllowed"
    assert finish(act, lambda _call, _context: True).message.content == "done "


def test_a_plain_approve_does_not_stand_in_the_way_of_the_event_loop() -> None:
    seen: list[int] = []

    def approve(_call: FunctionCall, _context: ToolContext) -> bool:
        seen.append(threading.get_ident())
        return True

    finish(act, approve)
    assert seen != [threading.get_ident()]


@pytest.mark.parametrize(("answers", "made"), [({}, []), ({"c0": False}, []), ({"c0": True}, ["c0"])])
def test_a_call_in_doubt_is_only_made_if_somebody_agreed(answers: dict[str, bool], made: list[str]) -> None:
    done: list[str] = []

    @tool
    def act(context: ToolContext) -> None:
        """Act."""
        done.append(context.call_id)

    async def run() -> list[Any]:
        executor = ToolExecutor({"act": act})
        plan = await executor.plan([GO], answers=answers, in_doubt=frozenset({"c0"}))
        assert [one.call_id for one in plan.waiting] == ([] if answers else ["c0"])
        return [event async for event in executor.run(plan, ToolContext())]

    assert [event.call_id for event in asyncio.run(run()) if isinstance(event, ToolFinished)] == ["c0"]
    assert done == made


def test_a_call_of_a_tool_that_cannot_be_loaded_is_not_one_that_may_be_repeated(site: Any) -> None:
    repeatable = plugin_tool(site, spec="idempotent=True", attributes="idempotent = True")
    site.add("broken", {"tool.gone": "broken_light"}, modules={"broken_light": LIGHT_OF_NOTHING})
    tools = {"act": repeatable, "gone": find_tool("gone", site.host())}
    planned = [PlannedCall(0, "c0", FunctionCall("act", "{}")), PlannedCall(1, "c1", FunctionCall("gone", "{}"))]
    plan = asyncio.run(ToolExecutor(tools).plan(planned, in_doubt=frozenset({"c0", "c1"})))
    assert plan.doubtful == {"c1"}


class Hostile(BaseException):
    def __str__(self) -> str:
        raise RuntimeError("no text either")


@pytest.mark.parametrize(
    "error", [ValueError("the terminal is gone"), KeyboardInterrupt(), SystemExit(3), Hostile()], ids=repr
)
def test_an_approve_that_fails_is_a_no_with_its_reason(error: BaseException) -> None:
    def approve(_call: FunctionCall, _context: ToolContext) -> bool:
        raise error

    refused = finish(act, approve)
    assert refused.error == "NotAllowed"
    assert type(error).__name__ in refused.message.get_text_content()


def test_what_is_approved_is_what_is_done() -> None:
    shown: list[str] = []

    def approve(call: FunctionCall, _context: ToolContext) -> bool:
        shown.append(call.arguments)
        return True

    done = finish(act, approve, '{"path": "harmless", "path": "/etc"}')
    assert shown == ['{"path": "/etc"}']
    assert done.message.content == "done /etc"


class Asks(BaseTool):
    """A tool that finds out during its call that it must ask."""

    name = "act"
    description = "Acts."

    async def call(self, params: Any, *, context: ToolContext | None = None) -> str:
        assert context is not None
        return "done" if await context.ask({"delete": 3}) else "left"


@pytest.mark.parametrize(
    ("answered", "result"), [(True, "done"), (False, "left"), (1, "True to allow"), (None, "True to allow")]
)
def test_what_comes_up_during_a_call_is_asked_for_as_the_call_is(answered: Any, result: str) -> None:
    shown: list[tuple[FunctionCall, str]] = []

    def approve(call: FunctionCall, context: ToolContext) -> Any:
        shown.append((call, context.call_id))
        return answered

    assert result in str(finish(Asks(), approve).message.content)
    assert shown == [(FunctionCall("act", '{"delete": 3}'), "c0")]
    assert finish(Asks()).message.content == "left"  # nobody can be asked


def test_a_run_asks_its_own_approve_for_what_comes_up_during_a_call() -> None:
    model = ScriptedModel([calls(("act", {})), answer("ok")])
    agent = FnCallAgent([Asks()], model, approve=lambda *_: pytest.fail("asked"))
    events = events_of(agent, approve=lambda *_: True)
    assert [event.message.content for event in events if isinstance(event, ToolFinished)] == ["done"]
    (decided,) = [event for event in events if isinstance(event, ApprovalDecided)]
    assert (decided.allowed, decided.by, decided.call.arguments) == (True, "approve", '{"delete": 3}')


def test_notes_of_an_error_are_for_people() -> None:
    @tool
    def noting() -> str:
        """Fail."""
        error = ToolServiceError("it failed")
        error.add_note("what the server printed")
        error.add_note("and more")
        raise error

    finished = finish(noting)
    assert finished.message.content == "it failed"
    assert finished.metadata == {"notes": "what the server printed\nand more"}


def test_nobody_is_asked_for_a_call_that_does_not_fit() -> None:
    assert finish(act, lambda _call, _context: pytest.fail("asked"), '{"wrong": 1}').error == "ToolArgumentError"


def test_calls_are_asked_for_one_after_the_other_and_before_any_is_made() -> None:
    log: list[str] = []

    @tool
    def free(word: str) -> str:
        """Do."""
        log.append(f"free {word}")
        return word

    async def approve(call: FunctionCall, _context: ToolContext) -> bool:
        log.append(f"ask {call.arguments}")
        await asyncio.sleep(0)
        log.append("answered")
        return True

    script = [calls(("free", {"word": "a"}), ("act", {"path": "1"}), ("act", {"path": "2"})), answer("x")]
    events_of(FnCallAgent([free, act], ScriptedModel(script), approve=approve))
    assert log == ['ask {"path": "1"}', "answered", 'ask {"path": "2"}', "answered", "free a"]


# --- pausing and resuming ---


def paused() -> list[Message]:
    model = ScriptedModel([calls(("act", {"path": "x"}))])
    end = events_of(FnCallAgent([act], model))[-1]
    assert isinstance(end, RunFinished)
    return [*ASK, *end.messages]


@pytest.mark.parametrize("options", [{}, {"resume": True}], ids=str)
def test_a_paused_run_that_gets_no_answer_pauses_again(options: Any) -> None:
    history = [Message(**message.model_dump()) for message in paused()]  # as from a file
    end = events_of(FnCallAgent([act], ScriptedModel([answer("never")])), history, **options)[-1]
    assert end.stop_reason == "approval_needed"
    assert end.messages == ()


def test_a_yes_for_one_run_is_none_for_the_next() -> None:
    agent = FnCallAgent([act], ScriptedModel([answer("a"), calls(("act", {})), answer("b")]))
    done = events_of(agent, paused(), resume=True, approve=lambda _call, _context: True)[-1]
    assert [message.content for message in done.messages] == ["done x", "a"]
    assert events_of(agent)[-1].stop_reason == "approval_needed"


def test_without_resume_no_call_of_a_given_history_is_made_even_if_all_is_approved() -> None:
    agent = FnCallAgent([act], ScriptedModel([answer("never")]), approve=lambda _call, _context: True)
    seen = events_of(agent, paused())
    assert seen[-1].stop_reason == "approval_needed"
    assert seen[-2].calls == (FunctionCall("act", '{"path": "x"}'),)


SAYS_SO: dict[str, str] = {
    "spec": "cacheable=True, idempotent=True",
    "attributes": "cacheable = True; idempotent = True",
}


@pytest.mark.parametrize(
    ("places", "settings", "holds"),
    [
        (("spec", "attributes"), {}, True),
        (("spec",), {}, False),
        (("attributes",), {}, False),
        ((), {"cacheable": True, "idempotent": True}, False),
        (("spec", "attributes"), {"cacheable": False, "idempotent": False}, False),
    ],
)
def test_a_call_may_be_repeated_and_its_result_kept_only_if_all_say_so(
    site: Any, places: tuple[str, ...], settings: dict[str, Any], holds: bool
) -> None:
    made = plugin_tool(site, **{place: SAYS_SO[place] for place in places}, **settings)
    made.load()
    assert (made.safety().cacheable, made.safety().idempotent) == (holds, holds)


@pytest.mark.parametrize("first", [None, "always", "never"])
@pytest.mark.parametrize("second", [None, "always", "never"])
def test_of_two_settings_the_nearer_one_decides_about_approval(first: Any, second: Any) -> None:
    made = tool(name="act", description="Acts.")(lambda: "done")
    nearer = with_settings(with_settings(made, SafetySettings(Safety(), first)), SafetySettings(Safety(), second))
    assert nearer._settings.approval == (second or first)
    safeties = [Safety(timeout_s=5, effects=frozenset({"files"})), Safety(timeout_s=7, concurrent=False)]
    for one, other in (safeties, safeties[::-1]):
        both = with_settings(with_settings(made, SafetySettings(one, first)), SafetySettings(other, second)).safety()
        assert (both.timeout_s, both.effects, both.concurrent) == (5, {"files"}, False)
    assert made._settings.approval is None, "other agents use the tool without them"


# --- settings of the core ---


def test_settings_of_the_core_are_split_from_those_of_the_tool() -> None:
    settings, own = split_settings({"size": 3, "timeout_s": 7, "effects": ["files"], "read_only": False}, name="t")
    assert own == {"size": 3}
    assert settings == SafetySettings(Safety(timeout_s=7, effects=frozenset({"files"}), read_only=False))
    assert split_settings({"approval": "never"}, name="t")[0] == SafetySettings(approval="never")
    applied = settings.apply(Safety(timeout_s=5, effects=frozenset({"network"})))
    assert (applied.timeout_s, applied.effects, applied.read_only) == (5, {"files", "network"}, False)
    for one, other, both in ((None, 3, 3), (3, None, 3), (3, 4, 3), (None, None, None)):
        assert Safety(timeout_s=one).stricter(Safety(timeout_s=other)).timeout_s == both


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"approval": "sometimes"}, "tool 't': 'approval' must be 'always' or 'never', got 'sometimes'"),
        (
            {"approval": "never", "needs_approval": True},
            "tool 't': 'needs_approval' and approval='never' contradict each other; remove one of them",
        ),
        ({"read_only": 1}, "tool 't': 'read_only' must be true or false, got 1"),
        ({"timeout_s": 0}, "tool 't': timeout_s must be a number of seconds above 0, or None, got 0"),
        ({"timeout_s": float("inf")}, "tool 't': timeout_s must be a number of seconds above 0, or None, got inf"),
        ({"timeout_s": True}, "tool 't': timeout_s must be a number of seconds above 0, or None, got True"),
        ({"effects": "files"}, "tool 't': effects must be a set of strings, got 'files'"),
        ({"effects": [5]}, "tool 't': effects must be a set of strings, got [5]"),
    ],
    ids=str,
)
def test_a_setting_of_the_core_that_does_not_fit_is_named(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        split_settings(settings, name="t")
    assert str(caught.value) == said


@pytest.mark.parametrize("granted", ["read_only", "idempotent", "resumable"])
def test_a_call_may_be_repeated_if_one_attribute_grants_it(granted: str) -> None:
    nothing = {"read_only": False, "idempotent": False, "resumable": False}
    assert not Safety(**nothing).is_repeatable
    assert Safety(**{**nothing, granted: True}).is_repeatable


def test_without_any_rule_all_is_allowed_and_nothing_becomes_stricter() -> None:
    lenient = Safety()
    permissions = ("read_only", "concurrent", "file_access", "idempotent", "resumable", "cacheable")
    assert all(getattr(lenient, name) is True for name in permissions)
    assert (lenient.needs_approval, lenient.effects, lenient.timeout_s) == (False, frozenset(), None)
    strict = Safety(needs_approval=True, effects=frozenset({"files"}), timeout_s=5, **dict.fromkeys(permissions, False))
    assert lenient.stricter(strict) == strict.stricter(lenient) == strict
    assert lenient.stricter(lenient) == lenient
