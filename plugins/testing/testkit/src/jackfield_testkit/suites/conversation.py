"""Contract tests for agent kinds in which other agents talk."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from jackfield import ChatRequest, create_agent, sync
from jackfield.agents import Agent, BasicAgent, CancelToken, FnCallAgent
from jackfield.errors import ConfigError, ModelRequestError
from jackfield.events import HandedOff, ModelEvent, RunEvent, RunFailed, RunFinished, TextDelta
from jackfield.messages import ASSISTANT, FUNCTION, USER, Usage
from jackfield.testing import Script, answer, calls
from jackfield.tools import ToolEntry, tool
from jackfield_testkit.installed import plain_host
from jackfield_testkit.records import MemoryStore
from jackfield_testkit.suites.agent_parts import (
    QUESTION,
    AgentTests,
    Waiting,
    assert_calls_are_answered,
    end_of,
    gathered,
    gathered_into,
    left_after,
    of_kind,
    repeat,
    requests_of,
    results_of,
    resumed,
    scripted,
    within,
)


class ConversationSuite(AgentTests):
    """Contract of agent kinds that let other agents talk to each other in one run, such as a group chat.

    ```python
    class TestPanel(ConversationSuite):
        component = "jackfield-acme/panel"
    ```

    The conversation starts with a question from the user, and the second of two members speaks no later than directly
    after the first. Override `make_conversation` if your kind does not receive its members as `agents=`.

    Attributes:
        component: The agent kind to test, as `distribution/name`, or only the name if it is unique.
        config: Options for the kind, other than its members, such as how the next speaker is chosen.
        patience_s: How long to wait for something that should happen immediately, in seconds.
    """

    def make_conversation(self, members: Sequence[Agent], **options: Any) -> Agent:
        """Create a conversation between these members."""
        return create_agent(self.component, host=plain_host(), **{**self.config, "agents": members, **options})

    def test_each_speaks_under_its_own_name_in_the_one_run(self) -> None:
        events = self._events(self.make_conversation(_two()))
        for name in ("anna", "ben"):
            own = [event for event in events if event.agent == name]
            assert {(event.run_id, event.depth) for event in own} == {(events[0].run_id, 0)}
            assert "".join(piece.text for piece in of_kind(own, TextDelta)).startswith(f"I am {name}.")
        assert {handed.to for handed in of_kind(events, HandedOff)} == {"anna", "ben"}
        texts = [(message.name, message.get_text_content()) for message in end_of(events).messages]
        assert [name for name, text in texts if text] == [_name_in(text) for _, text in texts if text]
        result = self.make_conversation(_two()).ask(QUESTION)
        assert {"anna", "ben"} <= set(result.path)
        assert list(result.messages) == list(end_of(events).messages)

    def test_each_hears_what_was_said_before_in_a_valid_conversation(self) -> None:
        members = _two()
        result = self.make_conversation(members).ask(QUESTION)
        first, second = (message.name for message in result.messages[:2])
        request = requests_of({one.name: one for one in members}[second])[0]
        assert any(f"I am {first}." in message.get_text_content() for message in request.messages)
        assert [message.role for message in request.messages].count("system") <= 1
        assert request.messages[-1].role == USER
        assert_calls_are_answered(request.messages)

    def test_what_they_use_adds_up_and_a_limit_holds_for_all(self) -> None:
        result = self.make_conversation(_two()).ask(QUESTION)
        assert sum(result.usage_by_agent.values(), Usage()) == result.usage
        assert {"anna", "ben"} <= set(result.usage_by_agent)
        used = next(iter(result.usage_by_agent.values())).total_tokens
        stopped = self.make_conversation(_two(), limits={"tokens": 1}).ask(QUESTION)
        assert stopped.stop_reason == "token_limit"
        assert 0 < stopped.usage.total_tokens <= used

    def test_it_goes_on_where_it_ended(self) -> None:
        conversation = self.make_conversation(_two())
        before = conversation.ask(QUESTION)
        after = conversation.ask("Go on.", history=before.history)
        assert after.messages
        assert after.history[: len(before.history)] == before.history

    def test_a_call_that_needs_approval_waits_and_is_made_by_the_one_who_wanted_it(self) -> None:
        def members(*script: Any) -> list[Agent]:
            tools = [repeat(needs_approval=True)]
            return [_speaker("anna"), _speaker("ben", [*script, answer("I am ben.")] * 3, tools)]

        paused = self.make_conversation(members(calls(("repeat", {"text": "ha"})))).ask(QUESTION)
        assert (paused.stop_reason, len(paused.waiting)) == ("approval_needed", 1)
        resumed = self.make_conversation(members())
        again = resumed.ask([], history=paused.history)
        assert again.stop_reason == "approval_needed", (
            "calls in a given history need approval, because anyone who can write a history can write a call"
        )
        done = resumed.ask([], history=paused.history, resume=dict.fromkeys(paused.waiting, True))
        assert results_of(done.messages) == ["ha ha"]
        assert next(message.name for message in done.messages if message.role == ASSISTANT) == "ben"
        assert_calls_are_answered(done.history)

    def test_its_rules_for_calls_hold_for_its_members(self) -> None:
        script = [calls(("repeat", {"text": "ha"})), answer("I am ben.")] * 3
        members = [_speaker("anna"), _speaker("ben", script, [repeat()])]
        result = self.make_conversation(members, approve="ask").ask(QUESTION)
        assert result.stop_reason == "approval_needed", (
            "a call that needs approval in the conversation was made without it"
        )

    def test_cancelling_it_ends_the_speech_and_leaves_a_valid_history(self) -> None:
        cancel = CancelToken()
        waiting = Waiting(cancel)
        members = [_speaker("anna"), _speaker("ben", [calls(("wait", {}))], [waiting.tool()])]
        run = self.make_conversation(members).astream([QUESTION], cancel=cancel)
        finished = end_of(sync.run(within(self.patience_s, gathered(run))))
        assert (finished.stop_reason, waiting.ended) == ("cancelled", True)
        assert_calls_are_answered(finished.messages)

    def test_left_at_any_point_it_has_closed_all_that_it_iterates(self) -> None:
        for number in range(1, len(self._events(self.make_conversation(_two())))):
            leaving = left_after(number, self.make_conversation(_two()).astream([QUESTION]))
            assert not sync.run(within(self.patience_s, leaving)), "close streams where they are iterated"

    def test_a_recorded_one_goes_on_wherever_it_was_interrupted_or_says_that_it_cannot(self) -> None:
        repeated: list[str] = []

        @tool(name="note", description="Notes.", read_only=True)  # a call that was under way may be made again
        def note() -> str:
            repeated.append("noted")
            return "noted"

        def ben(request: ChatRequest) -> Sequence[ModelEvent]:
            return answer("I am ben.") if request.messages[-1].role == FUNCTION else calls(("note", {}))

        def fresh(store: MemoryStore) -> Agent:
            repeated.clear()
            return self.make_conversation([_speaker("anna"), _speaker("ben", ben, [note])], store=store)

        recorded = MemoryStore()
        whole = fresh(recorded).ask(QUESTION)
        for again in resumed(fresh):
            assert (again.result.messages, again.result.path) == (whole.messages, whole.path)
            calls_in_all = len(recorded.events("ToolFinished"))
            assert len(repeated) + again.calls_before == calls_in_all, "finished work is repeated"

    def test_a_member_that_fails_ends_it_with_the_error(self) -> None:
        failing = _speaker("ben", lambda _: [ModelRequestError("refused", backend="scripted")])
        seen: list[RunEvent] = []
        with pytest.raises(ModelRequestError, match="refused"):
            sync.run(gathered_into(seen, self.make_conversation([_speaker("anna"), failing]).astream([QUESTION])))
        assert isinstance(seen[-1].event, RunFailed)

    def test_an_empty_answer_ends_it_and_says_so(self) -> None:
        events = self._events(
            self.make_conversation([_speaker(name, lambda _: answer("")) for name in ("anna", "ben")])
        )
        assert end_of(events).stop_reason == "empty_reply"
        assert len(of_kind(events, RunFinished)) == 1

    def test_members_that_cannot_be_told_apart_are_refused(self) -> None:
        twins = [_speaker("anna"), _speaker("anna")]
        for members in ([], twins, [_speaker("anna"), BasicAgent(llm=scripted([]))]):
            with pytest.raises(ConfigError):
                self.make_conversation(members)


def _two() -> list[Agent]:
    return [_speaker("anna"), _speaker("ben")]


def _speaker(name: str, script: Script | None = None, tools: Sequence[ToolEntry] = ()) -> Agent:
    """Return an agent that says its name, or follows a script if there is one."""
    said = script or (lambda _: answer(f"I am {name}."))
    return FnCallAgent(tools, scripted(said), f"You are {name}.", name, f"Is {name}.")


def _name_in(text: str) -> str:
    return text.removeprefix("I am ").removesuffix(".")
