"""Conversations of several that were interrupted: what was said is not asked for again."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from jackfield import Agent, FnCallAgent, tool
from jackfield.errors import ConfigError
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, Step, answer, calls
from jackfield_multi_agent import DialogueSimulator, GroupChat, GroupChatCreator, HumanSimulator, Router, UserAgent
from jackfield_records.stores import RUNNING
from jackfield_testkit.records import KilledError, MemoryStore

# Models that answer by what they read: however often they were asked before, the answer is the same.


def said(request: ChatRequest) -> str:
    return "\n".join(message.get_text_content() for message in request.messages)


@tool(read_only=True)
def look_up(word: str) -> str:
    """Look a word up."""
    return f"{word}: found"


def member(name: str) -> FnCallAgent:
    """It looks something up, and says it."""

    def step(request: ChatRequest) -> Step:
        has_result = request.messages[-1].role == "function"
        return answer(f"{name} knows {len(said(request))}.") if has_result else calls(("look_up", {"word": name}))

    return FnCallAgent([look_up], ScriptedModel(step), name=name, description=f"Is {name}.")


def next_member(request: ChatRequest) -> Step:
    return answer("al" if len(re.findall("knows", said(request))) % 2 else "bo")


def hosted(store: MemoryStore) -> Agent:
    return GroupChat([member("al"), member("bo")], llm=ScriptedModel(next_member), max_round=3, store=store)


def by_chance(store: MemoryStore) -> Agent:
    return GroupChat([member("al"), member("bo")], "random", max_round=3, seed=1, store=store)


def with_a_person(store: MemoryStore) -> Agent:
    return GroupChat([member("al"), UserAgent(name="me")], "round_robin", max_round=3, store=store)


def group_in_a_group(store: MemoryStore) -> Agent:
    inner = GroupChat([member("al"), member("bo")], "round_robin", max_round=2, name="team", description="Two.")
    return GroupChat([inner, member("cy")], "round_robin", max_round=3, store=store)


def routed(store: MemoryStore) -> Agent:
    router = ScriptedModel(lambda _: calls(("transfer_to_al", {})))
    return Router(llm=router, agents=[member("al"), member("bo")], name="router", store=store)


def dialogue(store: MemoryStore) -> Agent:
    user = HumanSimulator(llm=ScriptedModel(lambda request: answer(f'["What of {len(said(request))}?"]')))
    return DialogueSimulator(user, member("al"), max_round=2, store=store)


def designed(store: MemoryStore) -> Agent:
    design = '{"background": "b", "agents": [{"name": "al"}], "answer": "Here."}'
    return GroupChatCreator(llm=ScriptedModel(lambda _: answer(design)), store=store)


@pytest.mark.parametrize("make", [hosted, by_chance, with_a_person, group_in_a_group, routed, dialogue, designed])
def test_a_conversation_that_ended_at_any_write_goes_on_and_asks_nobody_again(
    make: Callable[[MemoryStore], Agent],
) -> None:
    whole_store = MemoryStore()
    whole = make(whole_store).ask("Hello")
    turns = len(whole_store.events("TurnFinished"))
    for point in itertools.count(1):
        store = MemoryStore()
        store.writes_left = point  # after it; before it, all is as after the one before
        try:
            make(store).ask("Hello")
        except KilledError:
            store.restarted()
        else:
            break
        for run_id in store.kept:
            result = make(store).resume(run_id)
            assert [m.model_dump() for m in result.messages] == [m.model_dump() for m in whole.messages], point
            assert result.stop_reason == whole.stop_reason, point
            assert result.usage == whole.usage, point
            assert result.path == whole.path, point
            assert len(store.events("TurnFinished")) == turns, point
            assert len(store.events("HandedOff")) == len(whole_store.events("HandedOff")), point
    assert point > turns


def test_a_call_in_a_group_chat_is_approved_in_another_program() -> None:
    store, booked = MemoryStore(), list[str]()

    @tool(needs_approval=True)
    def book(flight: str) -> str:
        """Book a flight."""
        booked.append(flight)
        return "booked"

    def chat() -> GroupChat:
        def step(request: ChatRequest) -> Step:
            return answer("Booked.") if booked else calls(("book", {"flight": "LH 400"}))

        clerk = FnCallAgent([book], ScriptedModel(step), name="clerk", description="Books.")
        return GroupChat([member("al"), clerk], "round_robin", max_round=3, store=store)

    paused = chat().ask("Book it.")
    assert (paused.stop_reason, booked) == ("approval_needed", [])
    result = chat().resume(paused.run_id, approvals=dict.fromkeys(paused.waiting, True))
    assert (result.stop_reason, booked) == ("finished", ["LH 400"])
    assert result.path == ("GroupChat", "al", "clerk", "al")


def test_a_group_chat_whose_speaker_is_gone_does_not_go_on() -> None:
    store = MemoryStore()
    run_id = GroupChat([member("al"), member("bo")], "round_robin", store=store).ask("Hello").run_id
    kept = store.kept[run_id]
    assert '"RunFinished"' in kept.entries.pop(), "as if its process had ended before it"
    kept.run = replace(kept.run, state=RUNNING)
    with pytest.raises(ConfigError, match="interrupted at agent 'bo', and 'cy' would go on now"):
        GroupChat([member("al"), member("cy")], "round_robin", store=store).resume(run_id)
