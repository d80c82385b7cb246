"""Contract tests for an agent kind among other agents: as a tool, after a hand-off, and under their rules."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from jackfield import ChatRequest, create_agent, sync
from jackfield.agents import Agent, CancelToken, FnCallAgent
from jackfield.errors import ConfigError
from jackfield.events import HandedOff, ModelEvent, RunEvent, RunStarted, TextDelta, TurnFinished
from jackfield.messages import FunctionCall, Message, Usage
from jackfield.stores import RUNNING
from jackfield.testing import answer, calls
from jackfield.tools import ToolContext, tool
from jackfield_testkit.installed import plain_host
from jackfield_testkit.records import MemoryStore
from jackfield_testkit.suites.agent_parts import (
    QUESTION,
    AgentTests,
    Waiting,
    asking,
    assert_calls_are_answered,
    assert_numbered,
    end_of,
    forever,
    gathered,
    of_kind,
    repeat,
    requests_of,
    results_of,
    resumed,
    scripted,
    turns_of,
    within,
)


class AnswerTreeTests(AgentTests):
    """Tests for all agent kinds."""

    def test_a_question_in_any_form_and_asked_in_any_way_has_one_answer(self) -> None:
        def fresh() -> Agent:
            return self.make_agent([answer("Twice.")])

        text = QUESTION.get_text_content()
        result = fresh().ask(text)
        assert (result.text, result.stop_reason, result.history[0]) == ("Twice.", "finished", QUESTION)
        assert result.run_id
        assert sum(result.usage_by_agent.values(), Usage()) == result.usage, (
            "the usage of its turns differs from its reported usage"
        )
        expected = list(result.messages)
        stream = fresh().stream([QUESTION])
        assert "".join(event.text for event in stream if isinstance(event, TextDelta)).endswith("Twice.")
        assert list(stream.result.messages) == expected
        dicts = [QUESTION.model_dump()]
        for asked, as_dicts in ((text, False), (QUESTION, False), ([QUESTION], False), (dicts, True)):
            for response in (fresh().run_nonstream(asked), sync.run(fresh().arun(asked)), list(fresh().run(asked))[-1]):
                assert {isinstance(message, dict) for message in response} == {as_dicts}
                assert [Message(**entry) if as_dicts else entry for entry in response] == expected

    def test_an_option_that_it_does_not_have_is_refused_by_its_name(self) -> None:
        with pytest.raises(ConfigError, match="no_such_option"):
            create_agent(self.component, host=plain_host(), **{**self.config, "no_such_option": 1})
        agent = self.make_agent([answer("Twice.")])
        with pytest.raises(ConfigError, match="no_such_option"):
            agent.run_nonstream(QUESTION, no_such_option=1)  # type: ignore[call-arg]
        assert not requests_of(agent)

    def test_as_a_tool_it_answers_one_level_deeper_and_what_it_uses_counts(self) -> None:
        child = self.make_agent([answer("Twice.")], name="child", description="Knows.")
        parent = asking(child)
        stream = parent.stream(QUESTION)
        events = list(stream)
        below = [event for event in events if isinstance(event, RunEvent)]
        assert {event.depth for event in below if event.run_id == below[0].run_id} == {1}
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Done."
        result = stream.result
        assert results_of(result.messages) == ["Twice."]
        assert sum(result.usage_by_agent.values(), Usage()) == result.usage
        assert len(result.usage_by_agent) > 1
        assert result.usage.total_tokens == 2 * (len(requests_of(child)) + len(requests_of(parent)))

    def test_as_a_tool_it_does_not_say_that_a_failed_call_may_be_repeated(self) -> None:
        safety = self.make_agent([answer("Twice.")]).as_tool(name="helper", description="Helps.").safety()
        assert safety.read_only or not safety.idempotent, "a repeated call would redo the work done before the failure"

    def test_a_conversation_that_is_handed_over_to_it_goes_on_in_the_same_run(self) -> None:
        agent = self.make_agent(lambda _: answer("Twice."), name="child", description="Knows.")
        desk = FnCallAgent(llm=scripted([calls(("transfer_to_child", {}))] * 2), name="desk", handoffs=[agent])
        events = self._events(desk)
        assert {(event.run_id, event.depth) for event in events if event.agent == "child"} == {(events[0].run_id, 0)}
        result = desk.ask(QUESTION)
        assert result.path[:2] == ("desk", "child")
        assert (result.text, result.stop_reason) == ("Twice.", "finished")
        assert_calls_are_answered(result.messages)
        assert sum(result.usage_by_agent.values(), Usage()) == result.usage
        assert agent.ask("Are you sure?", history=result.history).text == "Twice."

    def test_an_answer_that_is_recorded_is_not_asked_for_again(self) -> None:
        def fresh(store: MemoryStore) -> Agent:
            return self.make_agent(lambda _: answer("Twice."), store=store)

        recorded = MemoryStore()
        whole = fresh(recorded).ask(QUESTION)
        assert list(recorded.kept) == [whole.run_id]
        for again in resumed(fresh):
            assert (again.result.text, again.result.usage) == (whole.text, whole.usage)
            assert len(again.store.events("TurnFinished")) == len(recorded.events("TurnFinished"))
        # The end is written together with the last answer, so a record with only the answer is created by hand.
        answers = len(recorded.events("TurnFinished"))
        kept = recorded.kept[whole.run_id]
        assert json.loads(kept.entries.pop())["event"] == "RunFinished"
        kept.run, kept.is_held = replace(kept.run, state=RUNNING), False
        try:
            result = fresh(recorded).resume(whole.run_id)
        except ConfigError as error:
            if "cannot resume" not in str(error):
                raise
        else:
            assert (result.text, result.usage) == (whole.text, whole.usage)
            assert len(recorded.events("TurnFinished")) == answers, "an answered question is asked again"


class AgentTreeTests(AgentTests):
    """Tests for agent kinds whose model calls tools."""

    def test_as_a_tool_of_another_agent_it_answers_within_the_limits_of_both(self) -> None:
        script = [calls(("repeat", {"text": "ha"})), answer("It is ha ha.")]
        child = self.make_agent(script, [repeat()], name="child", description="Repeats.")
        parent = asking(child)
        events = self._events(parent)
        begun = next(event for event in events if event.depth == 1)
        inner = [event for event in events if event.run_id == begun.run_id]
        assert "child" in {event.agent for event in inner}
        assert_numbered(inner)
        assert isinstance(begun.event, RunStarted)
        assert results_of(end_of(events).messages) == ["It is ha ha."]
        used = sum(turn.usage.total_tokens for turn in of_kind(events, TurnFinished))
        assert end_of(events).usage.total_tokens == used, (
            "the usage of the nested agent is not counted in the calling agent"
        )
        child = self.make_agent(forever, [repeat()], name="child", description="Repeats.")
        events = self._events(asking(child, limits={"tokens": 7}))
        assert end_of(events).stop_reason == "token_limit"
        assert turns_of(events) <= 5, "the nested agent continues after the calling agent has reached its limit"

    def test_agents_are_tools_of_it_and_what_they_use_counts(self) -> None:
        script = [calls(("below", {"request": "Say it."})), answer("Done.")]
        below = FnCallAgent(llm=scripted([answer("Said.")]), name="below", description="Says it.")
        agent = self.make_agent(script, [below.as_tool()])
        events = self._events(agent)
        assert results_of(end_of(events).messages) == ["Said."]
        assert max(event.depth for event in events if event.agent == "below") >= 1
        assert end_of(events).usage.total_tokens == 6
        assert end_of(events).messages[-1].content == "Done."

    def test_it_hands_a_conversation_over_or_refuses_handoffs(self) -> None:
        other = FnCallAgent(llm=scripted([answer("Gladly.")]), system_message="You are other.", name="other")
        other.description = "Knows more."
        script = [calls(("transfer_to_other", {})), answer("I keep it.")]
        if not self.make_agent(script).supports_handoff:
            with pytest.raises(ConfigError, match="handoffs"):
                self.make_agent(script, handoffs=[other])
            return
        agent = self.make_agent(script, system_message="You are first.", name="first", handoffs=[other])
        stream = agent.stream(QUESTION)
        assert HandedOff("first", "other") in list(stream)
        assert (stream.result.text, stream.result.path) == ("Gladly.", ("first", "other"))
        assert_calls_are_answered(stream.result.messages)
        told = requests_of(other)[0].messages[0].get_text_content()
        assert ("You are other." in told, "You are first." in told) == (True, False)
        with pytest.raises(ConfigError, match="itself"):
            self.make_agent(script, name="other", handoffs=[other])

    def test_cancelling_an_agent_above_ends_what_it_does(self) -> None:
        cancel = CancelToken()
        waiting = Waiting(cancel)
        child = self.make_agent([calls(("wait", {}))], [waiting.tool()], name="child", description="Waits.")
        events = sync.run(within(self.patience_s, gathered(asking(child).astream([QUESTION], cancel=cancel))))
        assert end_of(events).stop_reason == "cancelled"
        assert waiting.ended, "the nested agent's call continues in the background"

    def test_cancelling_it_ends_the_agents_that_it_has_asked(self) -> None:
        cancel = CancelToken()
        waiting = Waiting(cancel)
        below = FnCallAgent([waiting.tool()], scripted([calls(("wait", {}))]), name="below", description="Waits.")
        agent = self.make_agent([calls(("below", {"request": "Wait."}))], [below.as_tool()])
        events = sync.run(within(self.patience_s, gathered(agent.astream([QUESTION], cancel=cancel))))
        assert (end_of(events).stop_reason, waiting.ended) == ("cancelled", True)
        assert_calls_are_answered(end_of(events).messages)

    def test_the_agent_above_decides_about_calls_that_need_approval(self) -> None:
        script = [calls(("repeat", {"text": "ha"})), answer("It is ha ha.")]
        asked: list[str] = []

        def approve(call: FunctionCall, _: ToolContext) -> bool:
            asked.append(call.name)
            return True

        for guarded, rule in ((True, None), (False, {"allow": ["child"]})):
            child = self.make_agent(script, [repeat(needs_approval=guarded)], name="child", description="Repeats.")
            assert asking(child, approve=rule).ask(QUESTION, approve=approve).stop_reason == "finished"
            assert asked.count("repeat") == 1, "a nested call is made without approval"
            asked.clear()
        child = self.make_agent(script, [repeat(needs_approval=True)], name="child", description="Repeats.")
        alone = asking(child).ask(QUESTION)
        (told,) = results_of(alone.messages)
        assert (alone.stop_reason, "repeat" in str(told)) == ("finished", True), "the call is made without approval"

    def test_what_it_has_recorded_is_not_done_again_wherever_it_was_interrupted(self) -> None:
        paid: list[str] = []
        days: list[int] = []

        @tool(name="pay", description="Pays.", read_only=True)  # a call in progress may be made again
        def pay() -> str:
            paid.append("paid")
            return "paid"

        def script(request: ChatRequest) -> Sequence[ModelEvent]:
            return answer("Done.") if "paid" in request.messages[-1].get_text_content() else calls(("pay", {}))

        def fresh(store: MemoryStore) -> Agent:
            paid.clear()
            days.append(len(days))  # a prompt may contain the date
            return self.make_agent(script, [pay], system_message=f"Today is day {len(days)}.", store=store)

        whole = MemoryStore()
        assert [fresh(whole).ask(QUESTION).run_id] == list(whole.kept)
        for again in resumed(fresh):
            assert again.result.text == "Done."
            assert again.result.run_id in again.store.kept
            assert_calls_are_answered(again.result.history)
            assert len(paid) + again.calls_before == 1, "finished work is repeated"
