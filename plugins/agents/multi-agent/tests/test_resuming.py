"""Conversations of several that were interrupted: what was said is not asked for again."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from jackfield import Agent, FnCallAgent, Message, sync, tool
from jackfield.agents import Run
from jackfield.errors import ConfigError
from jackfield.request import ChatRequest
from jackfield.stores import RUNNING
from jackfield.testing import ScriptedModel, Step, answer, calls
from jackfield_multi_agent import DialogueSimulator, GroupChat, GroupChatCreator, HumanSimulator, Router, UserAgent
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


class Mentioning(GroupChat):
    """Begins with two agents, as if the question mentioned them."""

    def first_speakers(self, run: Run) -> list[str]:
        return super().first_speakers(run) or ["bo", "al"]


def by_mention(store: MemoryStore) -> Agent:
    return Mentioning([member("al"), member("bo")], "round_robin", max_round=3, store=store)


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


@pytest.mark.parametrize(
    "make", [hosted, by_chance, by_mention, with_a_person, group_in_a_group, routed, dialogue, designed]
)
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
    with pytest.raises(ConfigError, match="interrupted at agent 'bo', but would resume at 'cy'"):
        GroupChat([member("al"), member("cy")], "round_robin", store=store).resume(run_id)


def test_runs_with_one_seed_have_one_order_one_after_another_beside_each_other_and_resumed() -> None:
    def chat(store: MemoryStore) -> GroupChat:
        return GroupChat([member("al"), member("bo"), member("cy")], "random", max_round=6, seed=1, store=store)

    def order(messages: Sequence[Message]) -> list[str | None]:
        return [one.name for one in messages if one.role == "assistant" and not one.function_call]

    async def beside_each_other() -> list[list[str | None]]:
        results = await asyncio.gather(*(shared.aask("Go.") for _ in range(3)))
        return [order(result.messages) for result in results]

    shared = chat(MemoryStore())
    first, *others = [order(shared.ask("Go.").messages) for _ in range(3)]
    assert len(set(first)) == 3
    assert [*others, *sync.run(beside_each_other())] == [first] * 5
    for writes in range(2, 20, 4):
        store = MemoryStore()
        store.writes_left = writes
        with pytest.raises(KilledError):
            chat(store).ask("Go.")
        store.restarted()
        [run_id] = store.kept
        assert order(chat(store).resume(run_id).messages) == first, writes
