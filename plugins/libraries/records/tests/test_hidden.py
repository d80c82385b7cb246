"""Records show no secret, and a run that goes on executes exactly what was approved."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from jackfield import FnCallAgent, ToolContext, tool
from jackfield.agents import ParentRun, run_below
from jackfield.errors import StoreError
from jackfield.events import ModelEvent
from jackfield.messages import Message
from jackfield.processors import CallNext, Processor
from jackfield.request import ChatRequest
from jackfield.secrets import secrets_of
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import Denial
from jackfield_records.entries import head_of, step_in
from jackfield_records.recording import title_of
from jackfield_testkit.records import MemoryStore

KEYS = {
    "usual": "sk-Zq83bXw4Rk2LpV7Tn",
    "quotes": "it's \"quoted\" \\ 'twice'\\\\",
    "lines": "first-line7\nsecond\tline",
    "unicode": "clé-пароль-密码-\U0001f511-42",
    "regex": "(a+)+$[^b]*\\d{3}|.^?",
    "json": '{"role": "assistant", "n": [1]}',
}


class Bank:
    """Orders cakes, and notes exactly what was ordered."""

    def __init__(self) -> None:
        self.orders: list[dict[str, str]] = []

    def agent(self, model: ScriptedModel, store: MemoryStore, **options: Any) -> FnCallAgent:
        def order(cake: str, code: str = "") -> str:
            """Order a cake."""
            self.orders.append({"cake": cake, "code": code})
            return f"ordered {cake} with {code}"

        return FnCallAgent([tool(order, needs_approval=True)], model, store=store, **options)


def all_of(store: MemoryStore) -> str:
    """Everything that a store has, decoded as far as it can be."""
    texts = []
    for kept in store.kept.values():
        texts += [str(kept.run), *kept.entries, *map(str, map(json.loads, kept.entries))]
    return "\n".join(texts)


@pytest.mark.parametrize("question", ["Order a cake.", f"Order a cake with {KEYS['usual']}."])
def test_the_head_of_an_entry_is_known_whatever_is_hidden_in_it(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", KEYS["usual"])
    store = MemoryStore()
    below = Bank().agent(ScriptedModel([answer(f"No, {question}")]), MemoryStore(), name="baker", description="Bakes.")
    script = [calls(("baker", {"request": question})), answer("Done.")]
    agent = FnCallAgent([below.as_tool()], ScriptedModel(script), store=store)
    result = agent.ask(question)
    entries = store.kept[result.run_id].entries
    heads = [head_of(entry) for entry in entries]
    assert [head.event for head in heads] == [json.loads(entry)["event"] for entry in entries]
    assert [head.event for head in heads if head.below] == ["RunStarted", "TurnFinished", "RunFinished"]
    assert [bool(head.begins) for head in heads if head.below] == [True, False, False]
    assert not any(head.begins for head in heads if not head.below)
    for entry in entries:
        assert type(step_in(entry)).__name__ == head_of(entry).event


@pytest.fixture(params=KEYS)
def key(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ACME_API_KEY", KEYS[request.param])
    return KEYS[request.param]


def test_an_approved_call_with_a_key_is_executed_exactly_after_resuming(key: str) -> None:
    store, bank = MemoryStore(), Bank()
    asked = {"cake": f"one for {key}", "code": key}
    paused = bank.agent(ScriptedModel([calls(("order", asked))]), store).ask(f"Order with {key}.")
    text = all_of(store)
    assert key not in text
    assert json.dumps(key)[1:-1] not in text
    assert "[secret:ACME_API_KEY" in text
    second = ScriptedModel([answer("Ordered.")])
    result = bank.agent(second, store).resume(paused.run_id, approvals=dict.fromkeys(paused.waiting, True))
    assert result.stop_reason == "finished"
    assert bank.orders == [asked]
    assert key in str(second.requests[-1].messages[0].content), "the model sees the conversation as it was"
    assert key not in all_of(store)


def test_the_reason_of_a_denial_is_recorded_without_the_key_in_it(key: str) -> None:
    store, bank = MemoryStore(), Bank()
    paused = bank.agent(ScriptedModel([calls(("order", {"cake": "one"}))]), store).ask("Order.")
    second = ScriptedModel([answer("Well.")])
    denials = dict.fromkeys(paused.waiting, Denial(f"Not with {key}."))
    bank.agent(second, store).resume(paused.run_id, approvals=denials)
    assert key in str(second.requests[-1].messages[-1].content)
    assert key not in all_of(store)
    assert bank.orders == []


@pytest.mark.parametrize("changed", [None, "sk-Another83bXw4Rk2"])
def test_without_the_key_an_approved_call_is_not_executed(changed: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", KEYS["usual"])
    store, bank = MemoryStore(), Bank()
    paused = bank.agent(ScriptedModel([calls(("order", {"cake": KEYS["usual"]}))]), store).ask("Order.")
    monkeypatch.delenv("ACME_API_KEY")
    if changed:
        monkeypatch.setenv("ACME_API_KEY", changed)
    with pytest.raises(
        StoreError, match=r"'order' contain a secret that is missing or has changed.*secret:ACME_API_KEY"
    ):
        bank.agent(ScriptedModel([answer("x")]), store).resume(
            paused.run_id, approvals=dict.fromkeys(paused.waiting, True)
        )
    assert bank.orders == []


@pytest.mark.parametrize("word", ["x", "messages", "assistant", "a birthday", "event", "order", "function_call"])
def test_a_word_as_a_key_changes_neither_the_record_nor_the_call(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store, bank = MemoryStore(), Bank()
    model = ScriptedModel([calls(("order", {"cake": "a birthday cake for x"}))])
    monkeypatch.setenv("ACME_API_KEY", word)
    paused = bank.agent(model, store).ask("I want a birthday cake, assistant; x messages.")
    assert "[secret" not in all_of(store)
    result = bank.agent(ScriptedModel([answer("Done.")]), store).resume(
        paused.run_id, approvals=dict.fromkeys(paused.waiting, True)
    )
    assert bank.orders == [{"cake": "a birthday cake for x", "code": ""}]
    assert result.stop_reason == "finished"


def _edit(store: MemoryStore, before: str, after: str, event: str) -> None:
    [kept] = store.kept.values()
    kept.entries = [
        entry.replace(before, after) if json.loads(entry)["event"] == event else entry for entry in kept.entries
    ]


@pytest.mark.parametrize("with_key", [False, True])
def test_a_call_that_was_changed_after_approval_was_asked_for_is_asked_about_again(
    with_key: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ACME_API_KEY", KEYS["usual"])
    store, bank = MemoryStore(), Bank()
    asked = {"cake": "plain", "code": KEYS["usual"] if with_key else "none"}
    paused = bank.agent(ScriptedModel([calls(("order", asked))]), store).ask("Order.")
    _edit(store, "plain", "huge", "TurnFinished")
    resumed = bank.agent(ScriptedModel([answer("x")]), store)
    approvals = dict.fromkeys(paused.waiting, True)
    if with_key:  # the digest of the entry does not fit any more, so its secret is not put back
        with pytest.raises(StoreError, match="contain a secret"):
            resumed.resume(paused.run_id, approvals=approvals)
    else:
        again = resumed.resume(paused.run_id, approvals=approvals)
        assert again.stop_reason == "approval_needed"
        assert "was changed in the record after approval was asked for" in caplog.text
    assert bank.orders == []


def test_a_placeholder_in_a_call_is_not_filled_with_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", KEYS["usual"])
    store, bank = MemoryStore(), Bank()
    asked = {"cake": "[secret:ACME_API_KEY]", "code": ""}
    paused = bank.agent(ScriptedModel([calls(("order", asked))]), store).ask("Order.")
    bank.agent(ScriptedModel([answer("x")]), store).resume(paused.run_id, approvals=dict.fromkeys(paused.waiting, True))
    assert bank.orders == [asked]


def test_the_keys_of_helpers_are_in_no_record() -> None:
    mark, other = "hk-7Q9zXw4Rk2Lp8Xk", "hk-8Wk2Lp8XkQ9zXw4R"

    class Asks(Processor):
        name = "asks"

        def __init__(self, token: str) -> None:
            super().__init__()
            self._token = token

        def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
            return call_next(request)

    def helper(name: str, token: str, said: str) -> FnCallAgent:
        model = ScriptedModel([answer(said)])
        model._use_processors([Asks(token)], add=False)
        return FnCallAgent(llm=model, name=name, description="Helps.")

    store = MemoryStore()
    as_tool = helper("one", mark, f"it is {mark}").as_tool()
    target = helper("two", other, f"and {other} with {mark}")
    model = ScriptedModel([calls(("one", {"request": "help"})), calls(("transfer_to_two", {}))])
    FnCallAgent([as_tool], model, handoffs=[target], store=store).ask(f"Ask, {mark}.")
    text = all_of(store)
    assert mark not in text
    assert other not in text


def test_the_keys_of_an_agent_that_only_a_function_knows_are_in_no_record() -> None:
    mark = "hk-3Xk9zXw4Rk2Lp7Q"

    class Signs(Processor):
        name = "signs"

        def __init__(self) -> None:
            super().__init__()
            self._token = mark

        def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
            return call_next(request)

    model = ScriptedModel([answer(f"it is {mark}")])
    model._use_processors([Signs()], add=False)
    helper = FnCallAgent(llm=model, name="helper", description="Helps.")

    @tool
    async def consult(context: ToolContext) -> str:
        """Ask the helper."""
        assert isinstance(context.run, ParentRun)
        async for event in run_below(helper, "Help.", context.run):
            context.run.emit(event)
        return "asked"

    store = MemoryStore()
    FnCallAgent([consult], ScriptedModel([calls(("consult", {})), answer("x")]), store=store).ask("Go.")
    text = all_of(store)
    assert mark not in text
    assert "it is [secret:" in text


@pytest.mark.parametrize("filler", ["w", " "])
def test_a_title_is_cut_after_keys_are_hidden(filler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "plain-horse-battery-staple")
    monkeypatch.setenv("OTHER_API_KEY", KEYS["usual"])
    secrets = secrets_of()
    for key in ("plain-horse-battery-staple", KEYS["usual"]):
        for count in (*range(60, 110), *range(370, 400)):
            title = title_of([Message("user", f"{filler * count} {key}")], secrets)
            assert key[:5] not in title
            assert len(title) <= 100
