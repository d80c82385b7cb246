"""A search looks at the question and the answers of a run."""

from __future__ import annotations

import asyncio

from jackfield import FnCallAgent, Message, sync
from jackfield.messages import ContentItem
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_records import search_words, searched_text
from jackfield_records.searching import excerpt_of
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


def test_words_are_folded_as_the_text_is() -> None:
    assert search_words(" STRASSE  É\0x \ud83d ") == ["strasse", "é", "x", "?"]
    store = MemoryStore()
    FnCallAgent(llm=ScriptedModel([answer("Straße")]), store=store).ask("É")
    assert len(asyncio.run(store.search("strasse é"))) == 1
