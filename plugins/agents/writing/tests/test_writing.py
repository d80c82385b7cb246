"""Outlines, sections, whole texts, and texts from documents."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from jackfield import Message, create_agent
from jackfield.agents import Agent, CancelToken
from jackfield.errors import ConfigError, ModelRequestError
from jackfield.events import HandedOff, ModelEvent, ModelFinished, RunFinished, TextDelta
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, answer
from jackfield_testkit.installed import plain_host
from jackfield_testkit.records import MemoryStore, interrupted
from jackfield_testkit.suites.agent_parts import agents_in
from jackfield_writing import (
    ArticleAgent,
    ContinueWriting,
    ExpandWriting,
    OutlineWriting,
    WriteFromScratch,
    sections_of,
)

KINDS = ["write_from_scratch", "article"]  # the others pass the suite


def system_of(agent: Any, number: int = 0) -> str:
    return str(agent.llm.requests[number].messages[0].get_text_content())


@pytest.mark.parametrize(
    ("outline", "sections"),
    [
        ("I. Tea\nII. Coffee\nIII. Milk", ["I. Tea", "II. Coffee", "III. Milk"]),
        ("1. Tea\n   1.1 Green\n2. Coffee", ["1. Tea", "2. Coffee"]),
        ("1. Tea\n1.1. Green\n2. Coffee", ["1. Tea", "2. Coffee"]),
        ("一、茶\n二、咖啡\n", ["一、茶", "二、咖啡"]),
        ("第一章 茶\n第二章 咖啡", ["第一章 茶", "第二章 咖啡"]),
        ("## I. Tea\n**II. Coffee**", ["I. Tea", "II. Coffee"]),
        ("Introduction\nData\nConclusion", ["Introduction", "Data", "Conclusion"]),
        ("I. Introduction\nData of it\nII. Conclusion\n1. Sums", ["I. Introduction", "II. Conclusion"]),
        ("- Tea\n  - Green\n- Coffee", ["Tea", "Coffee"]),
        ("引言\n正文", ["引言", "正文"]),
        ("```\nI. Tea\n```", ["I. Tea"]),
        ("```markdown\nTea\nCoffee\n```", ["Tea", "Coffee"]),
        ("第一章 茶\n一、绿茶\n第二章 咖啡", ["第一章 茶", "第二章 咖啡"]),
        ("引言\n　　背景\n正文", ["引言", "正文"]),
        ("Tea\n\t\tGreen\n  Black\nCoffee", ["Tea", "Coffee"]),
        ("Tea\n\tGreen\nCoffee", ["Tea", "Coffee"]),
        ("引言\n　背景\n正文", ["引言", "正文"]),
        ("Tea\n Coffee\n\u00a0\u00a0Beans", ["Tea", "Coffee"]),  # one space is a slip
        ("  I. Tea\n    1. Green\n  II. Coffee", ["I. Tea", "II. Coffee"]),
        ("\tTea\n\t\tGreen\n\tCoffee", ["Tea", "Coffee"]),
        ("**Tea**\nCoffee", ["Tea", "Coffee"]),
        ("# Tea\nA leaf.", ["Tea"]),
        ("# Drinks\n\n## Tea\n- Green\n- Black\n## Coffee\n### Beans", ["Tea", "Coffee"]),
        ("# Tea\nA leaf.\n# Coffee", ["Tea", "Coffee"]),
        ("**Tea**\n- Green\n**Coffee**\n- Beans", ["Tea", "Coffee"]),
        ("- **Tea**\n- **Coffee**", ["Tea", "Coffee"]),
        ("Tea\n- Green\n- Black\nCoffee\n- Beans", ["Tea", "Coffee"]),
        ("Here is the outline:\n\n- Tea\n- Coffee", ["Tea", "Coffee"]),
        ("大纲如下：\n引言\n正文", ["引言", "正文"]),
        ("XXXIX. Tea\nXL. Milk\nL. Rum", ["XXXIX. Tea", "XL. Milk", "L. Rum"]),
        ("9. Tea\n10. Coffee\n11) Milk", ["9. Tea", "10. Coffee", "11) Milk"]),
        ("九、茶\n十一、咖啡\n一百二十、奶", ["九、茶", "十一、咖啡", "一百二十、奶"]),
        ("第1节 茶\n茶叶\n第12部分 咖啡\n第 3 篇 奶", ["第1节 茶", "第12部分 咖啡", "第 3 篇 奶"]),
        ("Tea:", ["Tea:"]),
        ("**Here is the outline:**\nTea\nCoffee", ["Tea", "Coffee"]),
        ("# Drinks\n### Tea\n#### Green\n### Coffee", ["Tea", "Coffee"]),
        ("Tea\n* Green\n• Black\nCoffee", ["Tea", "Coffee"]),
        ("• Tea\n• Coffee", ["Tea", "Coffee"]),
        ("- **Tea**\nA leaf.\n- **Coffee**\nA bean.", ["Tea", "Coffee"]),
        ("\n  \n", []),
        ("", []),
    ],
)
def test_the_sections_of_an_outline_are_found(outline: str, sections: list[str]) -> None:
    assert sections_of(outline) == sections


def test_the_agents_of_an_article_find_the_plugins_that_it_finds() -> None:
    agent = ArticleAgent(llm=ScriptedModel([]), host=plain_host())
    made = list(agents_in(vars(agent)))
    assert len(made) >= 3
    assert all(one.host is agent.host for one in made)


def test_a_whole_text_is_its_outline_and_each_section() -> None:
    agent = WriteFromScratch(llm=ScriptedModel([answer("I. Tea\nII. Coffee"), answer("Leaf."), answer("Bean.")]))
    stream = agent.stream("Write about drinks.")
    events = list(stream)
    result = stream.result
    assert [(message.name, message.content) for message in result.messages] == [
        ("outliner", "I. Tea\nII. Coffee\n\n"),
        ("writer", "Leaf.\n\n"),
        ("writer", "Bean."),
    ]
    assert result.text == "Leaf.\n\nBean."
    passed_on = [(event.by, event.to) for event in events if isinstance(event, HandedOff)]
    assert passed_on == [("WriteFromScratch", "outliner"), ("outliner", "writer"), ("writer", "writer")]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)).endswith("Leaf.Bean.")
    assert "section 1 of the text" in system_of(agent, 1)
    assert "Stop before this section begins: II. Coffee" in system_of(agent, 1)
    assert "Stop before" not in system_of(agent, 2)
    assert result.usage.total_tokens == 6


def test_an_outline_of_nothing_and_limits_end_it_with_what_there_is() -> None:
    empty = WriteFromScratch(llm=ScriptedModel([answer("")])).ask("Write.")
    assert empty.stop_reason == "empty_reply"
    agent = WriteFromScratch(llm=ScriptedModel(lambda _: answer("I. Tea\nII. Coffee")), limits={"tokens": 4})
    result = agent.ask("Write.")
    assert (result.stop_reason, len(result.messages)) == ("token_limit", 2)
    cancel = CancelToken()
    cancel.cancel()
    assert agent.run_nonstream("Write.", cancel=cancel).stop_reason == "cancelled"


def test_material_is_summarised_for_the_outline_within_the_limits_of_the_whole() -> None:
    def written(*texts: str, **limits: int) -> tuple[WriteFromScratch, Any]:
        agent = WriteFromScratch(llm=ScriptedModel([answer(text) for text in texts]), limits=limits)
        config = {"temperature": 0.25}
        return agent, agent.run_nonstream("Write.", knowledge="All about tea.", config=config)  # type: ignore[call-arg]

    agent, response = written("Tea.", "I. Tea", "Leaf.")
    assert [message.name for message in response] == ["outliner", "writer"]
    assert response.usage.total_tokens == 6
    assert [request.config.temperature for request in agent.llm.requests] == [0.25] * 3  # type: ignore[union-attr]
    assert ["All about tea." in system_of(agent, number) for number in (1, 2)] == [False, True]
    agent, _ = written("", "I. Tea", "Leaf.")
    assert "All about tea." in system_of(agent, 1), "without a summary, the outline is made from all of it"
    _, stopped = written("Tea.", tokens=2)
    assert (stopped.stop_reason, len(stopped)) == ("token_limit", 0)
    agent = WriteFromScratch(llm=ScriptedModel([]))
    cancel = CancelToken()
    cancel.cancel()
    assert agent.run_nonstream("Write.", knowledge="x", cancel=cancel).stop_reason == "cancelled"  # type: ignore[call-arg]


class Waits(ScriptedModel):
    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        await asyncio.Event().wait()
        yield ModelFinished("stop")


def test_a_time_limit_ends_it_while_the_material_is_summarised() -> None:
    agent = WriteFromScratch(llm=Waits([]), limits={"seconds": 0.05})
    stopped = agent.run_nonstream("Write.", knowledge="All about tea.")  # type: ignore[call-arg]
    assert (stopped.stop_reason, len(stopped)) == ("time_limit", 0)


def test_what_the_search_for_an_article_used_counts(tmp_path: Path) -> None:
    (tmp_path / "tea.md").write_text("Tea came to Assam in 1823.\n", encoding="utf-8")
    llm = ScriptedModel([answer('{"keywords_en": ["tea"]}'), answer("In 1823.")])
    agent = ArticleAgent(
        llm=llm, files=[str(tmp_path / "tea.md")], rag_cfg={"rag_keygen_strategy": "GenKeyword"}, limits={"tokens": 100}
    )
    result = agent.run_nonstream("When did tea come to Assam?", lang="zh")
    assert ([request.lang for request in llm.requests], result.usage.total_tokens) == (["zh", "zh"], 4)
    assert [message.content for message in result] == ["In 1823."]


@pytest.mark.parametrize("reason", ["time_limit", "cancelled"])
def test_an_article_that_is_stopped_during_its_search_says_why(reason: str, tmp_path: Path) -> None:
    (tmp_path / "tea.md").write_text("Tea came to Assam in 1823.\n", encoding="utf-8")
    rag_cfg = {"rag_keygen_strategy": "GenKeyword"}
    cancel, limits = CancelToken(), {"seconds": 0.05} if reason == "time_limit" else {}
    if reason == "cancelled":
        cancel.cancel()
    agent = ArticleAgent(llm=Waits([]), files=[str(tmp_path / "tea.md")], rag_cfg=rag_cfg, limits=limits)
    assert agent.ask("When?", cancel=cancel).stop_reason == reason


def look_up(word: str) -> str:
    """Look a word up."""
    return word


@pytest.mark.parametrize(
    "kind", ["outline_writing", "expand_writing", "continue_writing", "write_from_scratch", "article"]
)
def test_tools_are_never_offered_to_the_model(kind: str) -> None:
    llm = ScriptedModel(lambda _: answer("I. Tea"))
    create_agent(kind, llm=llm, function_list=[look_up]).ask("Write.")
    assert [request.functions for request in llm.requests] == [()] * len(llm.requests)


@pytest.mark.parametrize("full", [False, True])
def test_an_article_has_the_name_of_its_agent_and_its_prompts(full: bool) -> None:
    llm = ScriptedModel(lambda _: answer("I. Tea"))
    prompts = {"continue": "Go on.", "outline": "Plan it."}
    agent = ArticleAgent(llm=llm, name="press", prompts=prompts)
    response = agent.run_nonstream("Write.", full_article=full)  # type: ignore[call-arg]
    assert llm.requests[0].messages[0].content == ("Plan it." if full else "Go on.")
    assert [message.name for message in response] == (["outliner", "writer"] if full else ["press"])
    handed = [event.by for event in agent.stream("Write.", full_article=full) if isinstance(event, HandedOff)]  # type: ignore[call-arg]
    assert handed[:1] == (["press"] if full else [])


def test_one_section_and_the_rest_of_a_text_are_written_in_its_language() -> None:
    expand = ExpandWriting(llm=ScriptedModel([answer("x")]))
    expand.run_nonstream("写", outline="一、茶", index=1, capture="一、茶", knowledge="茶来自中国")  # type: ignore[call-arg]
    assert "第 1 节" in system_of(expand)
    assert "茶来自中国" in system_of(expand)
    go_on = ContinueWriting(llm=ScriptedModel([answer("upon a time.")]), system_message="Be brief.")
    assert go_on.ask("Once").text == "upon a time."
    assert system_of(go_on).startswith("Be brief.\n\nContinue the user's text")
    mine = OutlineWriting(llm=ScriptedModel([answer("x")]), prompts={"outline": "Outline, please."})
    mine.ask("Write.")
    assert system_of(mine) == "Outline, please."
    with pytest.raises(ConfigError, match="have no option 'knowlege'; did you mean 'knowledge'"):
        mine.run_nonstream("Write.", knowlege="x")  # type: ignore[call-arg]


def test_an_article_is_written_from_documents(tmp_path: Path) -> None:
    (tmp_path / "tea.md").write_text("# Tea\n\nTea came to Assam in 1823.\n", encoding="utf-8")
    script = [answer("It came in 1823."), answer("Tea in Assam."), answer("I. Past"), answer("In 1823.")]
    agent = ArticleAgent(llm=ScriptedModel(script), files=[str(tmp_path / "tea.md")])
    short = agent.ask("When did tea come to Assam?")
    assert short.text == "It came in 1823."
    assert "Tea came to Assam in 1823." in system_of(agent)
    assert [str(source) for source in short.sources] == ["tea.md"]
    whole = agent.run_nonstream("When did tea come to Assam?", full_article=True)  # type: ignore[call-arg]
    assert [message.content for message in whole] == ["I. Past\n\n", "In 1823."]
    assert agent.llm.requests[1].messages[-1].get_text_content().startswith("Summarise the main points")  # type: ignore[union-attr]
    assert "Tea in Assam." in system_of(agent, 2)
    assert "Tea came to Assam in 1823." in system_of(agent, 3)


@pytest.fixture
def manual(tmp_path: Path) -> str:
    """A file far longer than what a request shows of it."""
    parts = [f"# Valve {n}\n\n" + f"Valve {n} opens at {n} bar. " * 10 for n in range(60)]
    (tmp_path / "manual.md").write_text("\n\n".join(parts), encoding="utf-8")
    return str(tmp_path / "manual.md")


RAG: dict[str, Any] = {"max_ref_token": 300, "chunk_size": 60}


@pytest.mark.parametrize("full_article", [False, True])
@pytest.mark.parametrize("is_attached", [False, True])
def test_the_model_sees_passages_of_a_long_file_and_knows_it(
    manual: str, is_attached: bool, full_article: bool
) -> None:
    llm = ScriptedModel(lambda _: answer("I. Valves"))
    agent = ArticleAgent(llm=llm, files=[] if is_attached else [manual], rag_cfg=RAG)
    question = Message("user", [{"text": "When does valve 33 open?"}, *([{"file": manual}] if is_attached else [])])
    agent.run_nonstream([question], full_article=full_article)  # type: ignore[call-arg]
    for request in llm.requests:
        texts = [message.get_text_content() for message in request.messages]
        assert sum(map(len, texts)) < 5000
    assert "Valve 33 opens at 33 bar." in system_of(agent, -1)
    assert "Only a part of the documents is shown" in system_of(agent, -1)
    assert ("manual.md" in llm.requests[-1].messages[-1].get_text_content()) == is_attached


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_streams_takes_plain_text_and_all_ways_to_run_agree(kind: str) -> None:
    def fresh() -> Agent:
        return create_agent(kind, llm=ScriptedModel(lambda _: answer("I. Tea")))

    expected = fresh().run_nonstream("Write.")
    assert expected
    assert fresh().run_nonstream([{"role": "user", "content": "Write."}])[-1]["content"] == expected[-1].content
    assert list(fresh().run([Message("user", "Write.")]))[-1] == expected
    stream = fresh().stream("Write.")
    events = list(stream)
    assert list(stream.result.messages) == expected
    assert sum(isinstance(event, RunFinished) for event in events) == 1
    with pytest.raises(ModelRequestError):
        create_agent(kind, llm=ScriptedModel(lambda _: [ModelRequestError("refused", backend="s")])).ask("Write.")


@pytest.mark.parametrize("kind", ["continue_writing", "write_from_scratch", "article"])
def test_an_interrupted_text_goes_on_and_no_part_is_written_twice(kind: str, tmp_path: Path) -> None:
    (tmp_path / "tea.md").write_text("Tea came to Assam in 1823.\n", encoding="utf-8")
    options: dict[str, Any] = {"files": [str(tmp_path / "tea.md")]} if kind == "article" else {}
    asked = dict[str, Any](full_article=True) if kind == "article" else {}

    def script(request: ChatRequest) -> list[ModelEvent]:
        told = request.messages[0].get_text_content()
        if "Write the outline" in told:
            return answer("I. Tea\nII. Coffee")
        return answer(f"Words {len(told)}.")

    def fresh(store: MemoryStore) -> Agent:
        return create_agent(kind, llm=ScriptedModel(script), store=store, **options)

    recorded = MemoryStore()
    whole = fresh(recorded).run_nonstream("When did tea come to Assam?", **asked)
    for store in interrupted(lambda store: fresh(store).run_nonstream("When did tea come to Assam?", **asked)):
        for run_id in store.kept:
            resumed = fresh(store).resume(run_id, **asked)
            assert [message.content for message in resumed.messages] == [message.content for message in whole]
            assert resumed.usage == whole.usage
            assert len(store.events("TurnFinished")) == len(recorded.events("TurnFinished"))


def test_a_resumed_article_still_knows_that_it_sees_a_part(manual: str) -> None:
    def script(request: ChatRequest) -> list[ModelEvent]:
        return answer(f"Words {'Only a part' in request.messages[0].get_text_content()}.")

    def ask(store: MemoryStore) -> Agent:
        return ArticleAgent(llm=ScriptedModel(script), store=store, files=[manual], rag_cfg=RAG)

    for store in interrupted(lambda store: ask(store).run_nonstream("When does valve 33 open?")):
        for run_id in store.kept:
            assert ask(store).resume(run_id).text == "Words True."


CJK = re.compile("[\u4e00-\u9fff]")
ALL = ["outline_writing", "expand_writing", "continue_writing", "write_from_scratch", "article"]


@pytest.mark.parametrize(("question", "lang"), [("写一写茶", "en"), ("Write about tea.", "zh")])
@pytest.mark.parametrize("kind", ALL)
def test_every_prompt_is_in_the_language_of_the_run(kind: str, question: str, lang: Any, tmp_path: Path) -> None:
    (tmp_path / "tea.md").write_text(question, encoding="utf-8")
    options: dict[str, Any] = {"files": [str(tmp_path / "tea.md")]} if kind == "article" else {}
    asked: dict[str, Any] = {"full_article": True} if kind == "article" else {"knowledge": question}
    if kind == "expand_writing":
        asked |= {"outline": question, "capture": question, "capture_later": question}
    llm = ScriptedModel(lambda _: answer("1. ?\n2. !"))
    create_agent(kind, llm=llm, **options).run_nonstream(question, lang=lang, **asked)
    assert {request.lang for request in llm.requests} == {lang}, "that of the caller, whatever the material says"
    for request in llm.requests:
        prompt = request.messages[0].get_text_content().replace(question, "")
        assert bool(CJK.search(prompt)) == (lang == "zh")


def test_a_section_is_told_its_number_its_heading_and_where_to_stop() -> None:
    def told(**options: Any) -> str:
        agent = ExpandWriting(llm=ScriptedModel([answer("x")]))
        agent.run_nonstream("Write.", **options)
        return system_of(agent)

    for nothing in ({}, {"index": ""}, {"index": 0}):
        assert "section 1 of the text" in told(**nothing)
    assert "section 3 of the text" in told(index="3")
    prompts = ExpandWriting(llm=ScriptedModel([])).prompts
    about_material = prompts.text("knowledge", "en", knowledge="%").partition("%")[0].strip()
    assert about_material
    assert about_material in told(knowledge="All about milk.")
    for nothing in ({}, {"knowledge": None}, {"knowledge": ""}):
        assert about_material not in told(**nothing)
        assert "None" not in told(**nothing)
    text = told(outline="I. Tea\nII. Milk", index=2, capture="II. Milk", knowledge="All about milk.")
    assert all(part in text for part in ("section 2 of", "I. Tea\nII. Milk", "II. Milk", "All about milk."))
    assert "Stop before" not in text
    assert "Stop before this section begins: III. Rum" in told(capture="II. Milk", capture_later="III. Rum")
    assert "{" not in text


def test_prompts_of_a_whole_text_are_those_of_its_parts() -> None:
    prompts = {"outline": "Plan it.", "expand": "Write {capture}.", "summary": "Sum up {knowledge}."}
    for make in (WriteFromScratch, ArticleAgent):
        agent: Any = make(llm=ScriptedModel(lambda _: answer("I. Tea\nII. Milk")), prompts=prompts)
        asked = {"full_article": True} if make is ArticleAgent else {"knowledge": "tea"}
        agent.run_nonstream("Write.", **asked)
        told = [request.messages[0].get_text_content() for request in agent.llm.requests]
        assert told[-3:] == ["Plan it.", "Write I. Tea.", "Write II. Milk."]
        assert make is ArticleAgent or agent.llm.requests[0].messages[-1].content == "Sum up tea."


def test_a_section_ends_with_one_blank_line_and_the_last_one_as_it_is() -> None:
    script = [answer("I. Tea\nII. Milk\n\n\n"), answer("Leaf. \n\n\n"), answer("Cow.\n")]
    result = WriteFromScratch(llm=ScriptedModel(script)).ask("Write.")
    assert [message.content for message in result.messages] == ["I. Tea\nII. Milk\n\n", "Leaf.\n\n", "Cow.\n"]


@pytest.mark.parametrize(("tokens", "parts"), [(2, 1), (3, 2), (4, 2), (5, 3), (100, 3)])
def test_a_text_ends_before_the_part_that_a_limit_forbids(tokens: int, parts: int) -> None:
    agent = WriteFromScratch(llm=ScriptedModel(lambda _: answer("I. Tea\nII. Milk")), limits={"tokens": tokens})
    result = agent.ask("Write.")
    assert len(result.messages) == parts
    assert result.stop_reason == ("finished" if parts == 3 else "token_limit")
    handed = [event for event in agent.stream("Write.") if isinstance(event, HandedOff)]
    assert len(handed) == parts, "no part begins that the limit forbids"


def test_an_attached_file_is_read_by_a_writer_that_is_asked_itself(tmp_path: Path) -> None:
    (tmp_path / "tea.md").write_text("Tea came to Assam in 1823.\n", encoding="utf-8")
    agent = ContinueWriting(llm=ScriptedModel([answer("Then.")]))
    agent.run_nonstream([Message("user", [{"text": "Go on."}, {"file": str(tmp_path / "tea.md")}])])
    assert "Tea came to Assam in 1823." in agent.llm.requests[0].messages[-1].get_text_content()  # type: ignore[union-attr]


def test_turns_are_those_of_each_part() -> None:
    agent = WriteFromScratch(llm=ScriptedModel(lambda _: answer("I. Tea\nII. Milk")), limits={"turns": 1})
    assert (agent.ask("Write.").stop_reason, len(agent.ask("Write.").messages)) == ("finished", 3)


@pytest.mark.parametrize("full", [False, True])
def test_an_article_has_passages_of_a_long_document_and_not_all_of_it(full: bool, tmp_path: Path) -> None:
    lines = [f"Bird {number} nests on cliff {number}." for number in range(2000)]
    (tmp_path / "birds.txt").write_text("\n\n".join([*lines, "The kestrel nests in a tower."]), encoding="utf-8")
    llm = ScriptedModel(lambda _: answer("I. Birds"))
    rag_cfg = {"max_ref_token": 200, "parser_page_size": 60}
    agent = ArticleAgent(llm=llm, files=[str(tmp_path / "birds.txt")], rag_cfg=rag_cfg)
    agent.run_nonstream("Where does the kestrel nest?", full_article=full)  # type: ignore[call-arg]
    sent = ["\n".join(message.get_text_content() for message in request.messages) for request in llm.requests]
    assert max(len(text) for text in sent) < 5000
    assert "The kestrel nests in a tower." in sent[0]
