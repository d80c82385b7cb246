"""A search looks at the question and the answers of a run."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from jackfield import FnCallAgent, Message, sync
from jackfield.events import TurnFinished
from jackfield.messages import ContentItem, Usage
from jackfield.stores import StoredRun
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_records import search_words, searched_text
from jackfield_records.entries import entry_of
from jackfield_records.searching import excerpt_of, texts_of
from jackfield_records.stores import has_words
from jackfield_testkit.records import MemoryStore


def text_of_last_run(store: MemoryStore) -> str:
    [run, *_] = sync.run(store.runs(limit=1))
    return searched_text(sync.run(store.read(run.run_id))[1])


def test_earlier_questions_and_what_other_agents_said_are_not_searched() -> None:
    store = MemoryStore()
    helper = FnCallAgent(
        llm=ScriptedModel([answer("helper's answer")]), name="helper", description="Helps.", system_message="secret"
    )
    model = ScriptedModel([calls(("helper", {"request": "helper's question"})), answer("The Answer.")])
    agent = FnCallAgent([helper.as_tool()], model, system_message="system text", store=store)
    history = [Message("user", "earlier question"), Message("assistant", "earlier answer")]
    agent.ask([*history, Message("user", [ContentItem(text="QUESTION"), ContentItem(text="Straße")])])
    assert text_of_last_run(store).split() == ["question", "strasse", "the", "answer."]


def test_a_run_without_content_has_no_text() -> None:
    store = MemoryStore()
    store.content = False
    FnCallAgent(llm=ScriptedModel([answer("The answer.")]), store=store).ask("Question")
    assert text_of_last_run(store) == ""


def test_what_is_no_entry_has_no_text() -> None:
    broken = ['"messages"', '{"messages": 5}', '{"event": "RunStarted", "messages": [5, {"role": "user"}]}', "{"]
    assert searched_text(broken) == ""


def test_an_excerpt_is_where_most_of_the_words_occur() -> None:
    store = MemoryStore()
    reply = f"{'before ' * 50}Low water at six.{' after' * 50}"
    FnCallAgent(llm=ScriptedModel([answer(reply)]), store=store).ask("Water?")
    [run] = sync.run(store.runs(limit=1))
    entries = sync.run(store.read(run.run_id))[1]
    excerpt = excerpt_of(entries, search_words("six WATER"))
    assert "Low water at six." in excerpt
    assert (excerpt[0], excerpt[-1], len(excerpt)) == ("…", "…", 162)
    assert excerpt_of(entries, ["water?"]) == "Water?"
    assert excerpt_of([], ["water"]) == ""


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("x" * 20, [], "x" * 20),
        ("x" * 21, [], f"{'x' * 20}…"),
        ("The TIDE is low", ["tide"], "The TIDE is low"),
        (f"{'a' * 30} tide", ["tide"], f"…{'a' * 5} tide"),
        (f"{'a' * 30} TIDE", ["tide"], f"…{'a' * 5} TIDE"),
        (f"tide {'a' * 30} low", ["low", "tide"], f"tide {'a' * 15}…"),
        (" two\n\tlines ", ["lines"], "two lines"),
    ],
    ids=["all", "one more", "capitals", "the end", "capitals at the end", "the first word", "lines"],
)
def test_an_excerpt_is_cut_where_the_text_goes_on(text: str, words: list[str], expected: str) -> None:
    entry = entry_of(TurnFinished(1, (Message("assistant", text),), Usage()), with_texts=True)
    assert excerpt_of([entry], words, most_chars=20) == expected


def test_of_texts_with_as_many_words_the_first_one_is_shown() -> None:
    turns = [TurnFinished(1, (Message("assistant", text),), Usage()) for text in ("no", "tide one", "tide two", "low")]
    entries = [entry_of(turn, with_texts=True) for turn in turns]
    assert excerpt_of(entries, ["tide"]) == "tide one"
    assert excerpt_of(entries, ["sea"]) == "no"
    deep = entry_of(TurnFinished(1, (Message("assistant", "deep sea"),), Usage()), with_texts=True)
    below = f'{{"below": 1, {deep[1:]}'
    assert excerpt_of([*entries, below], ["sea"]) == "no", "agents that the run asked have texts of their own"


def test_a_search_passes_over_a_run_that_is_deleted_meanwhile() -> None:
    class Deleting(MemoryStore):
        async def read(self, run_id: str, *, after: int = 0) -> tuple[StoredRun, list[str]]:
            if run_id == self.gone:
                await self.delete(run_id)
            return await super().read(run_id, after=after)

        gone = ""

    store = Deleting()
    runs = [FnCallAgent(llm=ScriptedModel([answer("tide")]), store=store).ask("tide").run_id for _ in range(3)]
    store.gone = runs[1]
    assert [run.run_id for run in asyncio.run(store.search("tide"))] == [runs[2], runs[0]]
    assert [run.run_id for run in asyncio.run(store.search("tide", limit=1))] == [runs[2]]


def test_words_are_folded_as_the_text_is() -> None:
    assert search_words(" STRASSE  É\0x \ud83d ") == ["strasse", "é", "x", "?"]
    store = MemoryStore()
    FnCallAgent(llm=ScriptedModel([answer("Straße")]), store=store).ask("É")
    assert len(asyncio.run(store.search("strasse é"))) == 1


def test_a_search_looks_at_all_runs_of_an_owner_and_at_none_without_a_word() -> None:
    async def main() -> None:
        store = MemoryStore()
        entry = entry_of(TurnFinished(1, (Message("assistant", "tide"),), Usage()), with_texts=True)
        for run_id, owner in (("mine", "ada"), ("theirs", "bob"), *((f"r{number}", "ada") for number in range(100))):
            await store.create(StoredRun(run_id=run_id, owner=owner), [entry])
        assert [run.run_id for run in await store.search("tide", owner="bob")] == ["theirs"]
        assert [run.run_id for run in await store.search("tide", owner="ada", limit=200)][-1] == "mine"
        assert await store.search(" ") == []

    asyncio.run(main())


def test_records_are_searched_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def looks(_entries: object, _words: object) -> bool:
        threads.append(threading.current_thread())
        return True

    monkeypatch.setattr("jackfield_records.stores.has_words", looks)
    store = MemoryStore()
    asyncio.run(store.create(StoredRun(run_id="r"), []))
    assert len(asyncio.run(store.search("tide"))) == 1
    assert threading.current_thread() not in threads


@pytest.mark.parametrize("event", ["TurnFinished", "RunFinished"])
def test_of_the_messages_of_a_step_only_answers_are_searched_and_every_word_counts(event: str) -> None:
    """The end of a run may have results of calls that were stopped."""
    messages = [{"role": "function", "content": "secret tide"}, {"role": "assistant", "content": "Low water"}]
    entries = [json.dumps({"event": event, "messages": messages})]
    assert texts_of(entries[0]) == ["Low water"]
    found = {words: has_words(entries, words) for words in (("low", "water"), ("low", "tide"), ("tide",), ("water",))}
    assert found == {("low", "water"): True, ("low", "tide"): False, ("tide",): False, ("water",): True}
