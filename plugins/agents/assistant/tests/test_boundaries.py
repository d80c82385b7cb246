"""Limits at their boundary, languages, and the work after a failure, in every kind of this package."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from jackfield import Agent, FnCallAgent, Message, create_agent
from jackfield.errors import ModelRequestError
from jackfield.events import ModelEvent, PluginEvent, TurnFinished
from jackfield.messages import ContentItem, FunctionCall, Usage
from jackfield.request import ChatRequest, ModelFacts
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_agent_parts import Prompts
from jackfield_assistant import DialogueRetrievalAgent, MemoAssistant, ParallelDocQA, VirtualMemoryAgent
from jackfield_assistant.agent import CITED, Assistant, _report_marks
from jackfield_assistant.citing import Checked, Numbered, check_marks
from jackfield_assistant.dialogue import LONG_CHARS
from jackfield_assistant.extent import extent_note
from jackfield_assistant.knowledge import knowledge_block
from jackfield_assistant.memo import TURNS_SEEN, _last_turns, kept_in
from jackfield_assistant.memory import PROMPTS, RETRIEVED, Memory
from jackfield_assistant.parallel import PROGRESS
from jackfield_assistant.rewriting import QuestionRewriter, earlier_exchanges
from jackfield_assistant.virtual import Paging
from jackfield_documents.followups import Exchange

CJK = re.compile("[\u4e00-\u9fff]")


@pytest.fixture
def guide(tmp_path: Path) -> str:
    path = tmp_path / "guide.md"
    path.write_text("# Panels\n\nA panel has 48 sockets.\n", encoding="utf-8")
    return str(path)


def texts_of(agent: Agent, number: int) -> list[str]:
    assert isinstance(agent.llm, ScriptedModel)
    return [message.get_text_content() for message in agent.llm.requests[number].messages]


def plugin_data(events: list[Any], name: str) -> list[Mapping[str, Any]]:
    return [event.data for event in events if isinstance(event, PluginEvent) and event.name == name]


# --- languages ---

ALL: dict[str, dict[str, Any]] = {
    "assistant": {"rag_cfg": {"rag_keygen_strategy": "SplitQueryThenGenKeywordWithKnowledge"}},
    "doc_qa": {"rag_cfg": {"rag_keygen_strategy": "GenKeyword"}},
    "parallel_doc_qa": {},
    "memo": {},
    "dialogue_retrieval": {},
    "virtual_memory": {},
}


@pytest.mark.parametrize(("question", "lang"), [("面板有几个插孔?", "en"), ("How many sockets?", "zh")])
@pytest.mark.parametrize("kind", ALL)
def test_every_prompt_is_in_the_language_of_the_run(
    kind: str, question: str, lang: Any, guide: str, tmp_path: Path
) -> None:
    llm = ScriptedModel(lambda _: answer("{}"))
    history = [Message("user", f"{question} {'x' * LONG_CHARS}"), Message("assistant", "?!")] * 2
    agent = create_agent(kind, llm=llm, files=[guide], workspace=str(tmp_path / "work"), **ALL[kind])
    agent.run_nonstream([*history, history[0]], lang=lang)
    assert {request.lang for request in llm.requests} == {lang}, "that of the caller, whatever the documents say"
    for request in llm.requests:
        prompts = [message.get_text_content().replace(question, "") for message in request.messages]
        prompts = [text for text in prompts if text.strip(" x") not in ("", "?!", "{}")]
        assert prompts
        assert {bool(CJK.search(text)) for text in prompts} == {lang == "zh"}


# --- knowledge ---


@pytest.mark.parametrize(
    ("text", "fence"),
    [("plain", "```"), ("`a`", "```"), ("``a``", "```"), ("```\na\n```", "````"), ("`````", "``````")],
)
def test_a_fence_is_longer_than_any_inside(text: str, fence: str) -> None:
    block = knowledge_block([{"url": "a.md", "text": [text]}], "en")
    assert block == f"# Knowledge Base\n\n## The content from [file](a.md):\n\n{fence}\n{text}\n{fence}"


def test_a_note_comes_after_the_heading_and_blank_passages_are_left_out() -> None:
    passages = [{"url": "a.md", "text": [" \n"]}, {"url": "b.md", "text": ["b"]}]
    block = knowledge_block(passages, "en", note="A note.")
    assert block.startswith("# Knowledge Base\n\nA note.\n\n## The content from [file](b.md)")
    assert knowledge_block(passages[:1], "en", note="A note.") == "", "without passages there is nothing to note"


MOON = [{"url": "moon.md", "text": ["The moon is far."]}]


def test_knowledge_has_no_marks_in_an_answer_that_is_data() -> None:
    llm = ScriptedModel([answer('{"far": true}')])
    form = {"type": "object", "properties": {"far": {"type": "boolean"}}, "required": ["far"]}
    result = create_agent("assistant", llm=llm).ask("Far?", output=form, knowledge=MOON)
    assert result.output == {"far": True}
    assert "[1]" not in llm.requests[0].messages[0].get_text_content()


@pytest.mark.parametrize(("count", "named", "others"), [(4, 4, 0), (5, 5, 0), (6, 5, 1), (8, 5, 3)])
@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_note_names_five_documents_and_counts_the_others(count: int, named: int, others: int, missing: int) -> None:
    shown = [{"count": 1, "total": 9, "unit": "pages", "location": f"{n}.pdf"} for n in range(count)]
    note = extent_note({"shown": shown, "documents": count + missing}, "en")
    assert note.count(".pdf") == named
    assert (f" and parts of {others} more documents" in note) == bool(others)
    assert (f"Nothing of {missing} other documents is shown." in note) == bool(missing)


# --- marks ---


@pytest.mark.parametrize(("wrong", "more"), [(49, 0), (50, 0), (51, 1), (60, 10)])
def test_a_report_names_fifty_wrong_marks(wrong: int, more: int) -> None:
    lines = Checked(dropped={(str(n), "no passage has this number"): 1 for n in range(wrong)}).report()["warnings"]
    assert isinstance(lines, list)
    assert len(lines) == min(wrong, 50) + bool(more)
    noun = "citation" if more == 1 else "citations"
    assert (lines[-1] == f"{more} more invalid {noun} in the answer") == bool(more)


@pytest.mark.parametrize(
    ("quote", "is_verbatim"),
    [
        ("ab cd efghi", False),  # 11 characters
        ("ab cd efghij", True),  # 12 characters
        ("abcdef ghijklmnop", False),  # 2 words
        ("一二三四五", False),
        ("一二三四五六", True),
        ("㐀㐀㐀㐀㐀鿿", True),
    ],
)
def test_a_long_quotation_that_is_in_no_passage_is_wrong(quote: str, is_verbatim: bool) -> None:
    checked = check_marks(f"“{quote}” [1]", [Numbered("1", "a.pdf", "Another text.")])
    assert bool(checked.dropped) == is_verbatim


@pytest.mark.parametrize(("length", "is_cut"), [(199, False), (200, False), (201, True)])
def test_a_wrong_quotation_is_reported_up_to_two_hundred_characters(length: int, is_cut: bool) -> None:
    quote = "ab cd " + "x" * (length - 6)
    (reason,) = [why for _, why in check_marks(f"“{quote}” [1]", [Numbered("1", "a.pdf", "Other.")]).dropped]
    assert ("…" in reason) == is_cut
    assert quote[:200] in reason


def report_of(*messages: Message) -> PluginEvent | None:
    numbered = [Numbered("1", "a.pdf", "A text.")]
    return asyncio.run(_report_marks(TurnFinished(1, messages, Usage(), 0.0), numbered, "?"))


@pytest.mark.parametrize("bracket", ["[1]", "【1】"])
def test_marks_are_those_of_a_complete_answer(bracket: str) -> None:
    said = Message("assistant", f"So {bracket}.")
    report = report_of(said)
    assert report is not None
    assert report.name == CITED
    call = Message("assistant", "", function_call=FunctionCall("look", "{}"))
    assert report_of(said, call) is None, "the answer comes after the calls"
    assert report_of(Message("assistant", "So.")) is None


# --- long conversations ---


@pytest.mark.parametrize(("length", "requests"), [(LONG_CHARS, 1), (LONG_CHARS + 1, 2)])
def test_a_question_is_long_from_a_thousand_characters_on(length: int, requests: int, tmp_path: Path) -> None:
    llm = ScriptedModel(lambda _: answer("Tea?"))
    DialogueRetrievalAgent(llm=llm, workspace=str(tmp_path)).ask("x" * length)
    assert len(llm.requests) == requests


def test_a_long_question_keeps_its_attachments_and_both_ends_where_the_model_says_nothing(tmp_path: Path) -> None:
    llm = ScriptedModel([answer(" "), answer("Tea.")], facts=ModelFacts(images=True))
    agent = DialogueRetrievalAgent(llm=llm, workspace=str(tmp_path))
    question = "beginning " + "x" * 3000 + " end"
    agent.ask([Message("user", [ContentItem(text=question), ContentItem(image="data:image/png;base64,AA==")])])
    content = llm.requests[1].messages[-1].items
    assert content[0].text == f"{question[:LONG_CHARS]}\n…\n{question[-LONG_CHARS:]}"
    assert "image" in str(content[1:])


def test_a_dialogue_keeps_system_messages_and_the_agents_own_files(guide: str, tmp_path: Path) -> None:
    llm = ScriptedModel(lambda _: answer("48."))
    agent = DialogueRetrievalAgent(llm=llm, workspace=str(tmp_path), files=[guide], system_message="Be short.")
    said = [Message("system", "Rhyme."), *[Message("user", "Tea is green."), Message("assistant", "Yes.")] * 3]
    agent.ask([*said, Message("user", "How many sockets has a panel?")])
    system = texts_of(agent, 0)[0]
    assert all(part in system for part in ("Rhyme.", "Be short.", "48 sockets", "Tea is green."))


def test_a_conversation_has_one_file_from_its_first_question_on(tmp_path: Path) -> None:
    agent = DialogueRetrievalAgent(llm=ScriptedModel(lambda _: answer("Yes.")), workspace=str(tmp_path))

    def names_after(*questions: str) -> set[str]:
        said = [part for text in questions for part in (Message("user", text), Message("assistant", "Yes."))]
        agent.ask([*said, Message("user", "And?")])
        return {path.name for path in (tmp_path / "dialogues").iterdir()}

    assert names_after("Tea?", "Green?") == names_after("Tea?", "Green?", "Black?")
    assert len(names_after("Coffee?", "Black?")) == 2, "another conversation has another file"


# --- notes ---


def conversation(questions: int) -> list[Message]:
    return [Message("user", str(number)) for number in range(questions)]


@pytest.mark.parametrize(("questions", "first"), [(TURNS_SEEN - 1, 0), (TURNS_SEEN, 0), (TURNS_SEEN + 1, 1)])
def test_the_last_four_hundred_questions_are_seen(questions: int, first: int) -> None:
    opening = [Message("system", "Be brief."), Message("assistant", "Welcome.")]
    seen = _last_turns([*opening, *conversation(questions)])
    assert [one.content for one in seen if one.role == "user"] == [str(number) for number in range(first, questions)]
    assert ("Welcome." in [one.content for one in seen]) == (first == 0)
    assert seen[0] == opening[0]


def stored(key: str, value: str, operate: str = "put", number: str = "1") -> list[Message]:
    arguments = f'{{"operate": "{operate}", "key": "{key}", "value": "{value}"}}'
    extra = {"function_id": number}
    return [
        Message("assistant", "", function_call=FunctionCall("storage", arguments), extra=extra),
        Message("function", "Saved.", name="storage", extra=extra),
    ]


def test_a_key_is_the_same_with_and_without_its_slash() -> None:
    assert kept_in([*stored("/a", "1"), *stored("a", "2")]) == {"a": "2"}
    assert kept_in([*stored("a", "1"), *stored("/a", "", "delete")]) == {}


def test_the_conversation_knows_better_than_the_storage_and_a_broken_storage_costs_only_its_notes(
    tmp_path: Path,
) -> None:
    config = {"storage_root_path": str(tmp_path / "notes")}
    MemoAssistant(
        llm=ScriptedModel([calls(("storage", {"operate": "put", "key": "tea", "value": "green"})), answer("Noted.")]),
        storage_cfg=config,
    ).ask("Green tea.")
    agent = MemoAssistant(llm=ScriptedModel(lambda _: answer("Yes.")), storage_cfg=config)
    agent.ask([Message("user", "Black tea."), *stored("tea", "black"), Message("user", "Which tea?")])
    assert texts_of(agent, 0)[0].endswith("- tea: black")
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    broken = MemoAssistant(
        llm=ScriptedModel(lambda _: answer("Yes.")), storage_cfg={"storage_root_path": str(tmp_path / "file")}
    )
    assert broken.ask([*stored("tea", "black"), Message("user", "Which tea?")]).text == "Yes."
    assert texts_of(broken, 0)[0].endswith("- tea: black")


# --- searches ---


@pytest.mark.parametrize("question", ["", "  "])
def test_a_blank_question_searches_for_nothing(question: str, guide: str) -> None:
    llm = ScriptedModel(lambda _: answer("48."), facts=ModelFacts(images=True))
    content = [ContentItem(text=question), ContentItem(image="data:image/png;base64,AA==")]
    events = list(Assistant(llm=llm, files=[guide]).stream([Message("user", content)]))
    assert plugin_data(events, RETRIEVED) == []


def keywords(request: ChatRequest) -> list[ModelEvent]:
    prompt = request.messages[-1].get_text_content()
    if "instruction" in prompt:
        return answer('{"information": ["a longer text than the question itself was"]}')
    return answer('{"keywords_en": [" tea ", "Tea?", "tea"], "keywords_zh": ["茶"]}')


@pytest.mark.parametrize(
    ("question", "strategy", "text"),
    [
        ("Tea?", "GenKeyword", "Tea? 茶 tea"),
        ("Tea?", "SplitQueryThenGenKeyword", "Tea? 茶 tea"),
    ],
)
def test_a_query_has_each_word_once_and_never_more_than_was_asked(
    question: str, strategy: str, text: str, guide: str
) -> None:
    llm = ScriptedModel(keywords)
    agent = create_agent("memory", llm=llm, files=[guide], rag_cfg={"rag_keygen_strategy": strategy})
    (data,) = plugin_data(list(agent.stream(question)), RETRIEVED)
    assert data["query"] == text


def test_a_failed_split_leaves_the_keywords_and_they_are_none_of_the_split(guide: str) -> None:
    def script(request: ChatRequest) -> list[Any]:
        prompt = request.messages[-1].get_text_content()
        if "instruction" in prompt:
            return [*answer('{"information": [], "keywords_en": ["wrong"]}')]
        return [ModelRequestError("refused", backend="scripted")]

    agent = create_agent(
        "memory",
        llm=ScriptedModel(script),
        files=[guide],
        rag_cfg={"rag_keygen_strategy": "SplitQueryThenGenKeyword"},
    )
    (data,) = plugin_data(list(agent.stream("How many sockets?")), RETRIEVED)
    assert "query" not in data


def test_a_question_about_the_whole_costs_no_keywords(guide: str) -> None:
    llm = ScriptedModel(lambda _: answer("{}"))
    agent = create_agent("memory", llm=llm, files=[guide], rag_cfg={"rag_keygen_strategy": "GenKeyword"})
    assert "48 sockets" in agent.ask("Summarise the whole document").text
    assert llm.requests == []


@pytest.mark.parametrize(
    ("content", "documents"),
    [
        (lambda path: [ContentItem(image=path)], 0),
        (lambda path: [ContentItem(image=path), ContentItem(file=path)], 1),
    ],
)
def test_a_picture_is_a_document_only_if_it_is_also_a_file(
    content: Callable[[str], list[ContentItem]], documents: int, guide: str
) -> None:
    agent = create_agent("memory")
    question = Message("user", [ContentItem(text="How many sockets?"), *content(guide)])
    assert len(plugin_data(list(agent.stream([question])), RETRIEVED)) == documents


TURNS = [
    Message("user", "one"),
    Message("assistant", "", function_call=FunctionCall("look", "{}")),
    Message("assistant", "first"),
    Message("assistant", " "),
    Message("user", " "),
    Message("assistant", "second"),
    Message("user", "last"),
]


def test_earlier_exchanges_have_a_question_and_its_last_words() -> None:
    assert earlier_exchanges(TURNS) == [Exchange("one", "first")]
    assert earlier_exchanges([Message("assistant", "Welcome."), *TURNS]) == [Exchange("one", "first")]


@pytest.mark.parametrize(("length", "is_cut"), [(1000, False), (1001, True)])
def test_a_rewriting_model_sees_three_exchanges_and_a_thousand_characters_of_each_text(
    length: int, is_cut: bool, guide: str
) -> None:
    llm = ScriptedModel(lambda _: answer('{"question": "tea"}'))
    agent = create_agent("memory", llm=llm, files=[guide], rag_cfg={"question_rewriting": "model"})
    said = [
        part
        for number in range(5)
        for part in (Message("user", f"q{number}"), Message("assistant", f"a{number}" + "x" * (length - 2)))
    ]
    agent.ask([*said, Message("user", "And?")])
    prompt = texts_of(agent, 0)[-1]
    assert [f"q{number}" in prompt for number in range(5)] == [False, False, True, True, True]
    assert f"a4{'x' * 998}" in prompt
    assert ("x …" in prompt) == is_cut


class Found:
    """A result of the retrieval tool whose documents are in one script."""

    def __init__(self, *scripts: str, shown: tuple[Any, ...] = ({"count": 1},)) -> None:
        self.scripts = frozenset(scripts)
        self.shown = shown


@pytest.mark.parametrize(
    ("found", "rewriting", "may"),
    [
        (Found("latin"), "model", True),
        (Found("latin"), "words", False),
        (Found("latin"), "none", False),
        (Found("latin", "chinese"), "model", False),
        (Found(), "model", False),
        (Found("latin", shown=()), "model", False),
    ],
)
def test_only_a_question_in_another_script_is_translated(found: Found, rewriting: Any, may: bool) -> None:
    agent = FnCallAgent(llm=ScriptedModel([]))
    memory = Memory()
    rewriter = QuestionRewriter(rewriting, agent, memory.prompts)
    assert rewriter.may_translate("阀门", found) == may
    assert not QuestionRewriter(rewriting, None, memory.prompts).may_translate("阀门", found)


# --- parts ---


def book(tmp_path: Path, parts: int) -> str:
    path = tmp_path / "book.md"
    path.write_text("\n\n".join(f"# Chapter {n}\n\nPanel {n} has {n}0 sockets." for n in range(1, parts + 1)))
    return str(path)


def part_of(request: ChatRequest) -> str:
    text = request.messages[-1].get_text_content()
    return text if "Part:" in text else ""


class LastFirst(ScriptedModel):
    """Answers about the first part after it has answered about all others."""

    def __init__(self, others: int) -> None:
        super().__init__(self._find)
        self._others = others
        self._done = asyncio.Event()

    def _find(self, request: ChatRequest) -> list[ModelEvent]:
        number = re.search(r"Panel (\d)", part_of(request))
        return answer(f'{{"res": "ans", "content": "finding {number[1]}"}}' if number else "So.")

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        if "Panel 1 " in part_of(request):
            await self._done.wait()
        async for event in super().stream(request):
            yield event
        self._others -= 1
        if not self._others:
            self._done.set()


def test_findings_are_in_the_order_of_the_parts_which_are_read_once(tmp_path: Path) -> None:
    agent = ParallelDocQA(llm=LastFirst(2), files=[book(tmp_path, 3)], part_tokens=20)
    progress = plugin_data(list(agent.stream("How many sockets?")), PROGRESS)
    assert re.findall(r"finding (\d)", texts_of(agent, -1)[0]) == ["1", "2", "3"]
    assert [data["done"] for data in progress] == [1, 2, 3]


def test_findings_are_searched_for_and_parts_do_not_overlap(tmp_path: Path) -> None:
    facts = [f"Bird {number} nests on cliff {number}." for number in range(200)]
    facts[150] = "The kestrel nests in a tower."
    (tmp_path / "birds.txt").write_text(" ".join(facts), encoding="utf-8")

    def script(request: ChatRequest) -> list[ModelEvent]:
        if not (part := part_of(request)):
            return answer("In a tower.")
        return answer(f'{{"res": "ans", "content": "{"kestrel tower" if "kestrel" in part else ""}"}}')

    llm = ScriptedModel(script)
    rag_cfg = {"max_ref_token": 200, "parser_page_size": 60}
    ParallelDocQA(llm=llm, files=[str(tmp_path / "birds.txt")], part_tokens=100, rag_cfg=rag_cfg).ask("Where is it?")
    *parts, last = [request.messages for request in llm.requests]
    assert "The kestrel nests in a tower." in last[0].get_text_content()
    assert sum(messages[-1].get_text_content().count("Bird 77 ") for messages in parts) == 1
    assert all(sum(one[-1].get_text_content().count(fact) for one in parts) <= 1 for fact in facts)


@pytest.mark.parametrize(
    ("said", "is_finding"),
    [
        ('{"res": "ans", "content": "48"}', True),
        ('{"res": "none", "content": "48"}', False),
        ('{"res": "ans", "content": " "}', False),
        ('{"content": "48"}', False),
    ],
)
def test_only_an_answer_is_a_finding(said: str, is_finding: bool, guide: str) -> None:
    agent = ParallelDocQA(
        llm=ScriptedModel(lambda request: answer(said if part_of(request) else "So.")), files=[guide], rounds=1
    )
    agent.ask("How many?")
    assert ("What was found" in texts_of(agent, -1)[0]) == is_finding


def test_a_part_is_named_by_its_number_from_one(tmp_path: Path) -> None:
    def script(request: ChatRequest) -> list[Any]:
        failing = "Panel 1 " in part_of(request)
        return [ModelRequestError("refused", backend="s")] if failing else [*answer('{"res": "ans", "content": "x"}')]

    agent = ParallelDocQA(llm=ScriptedModel(script), files=[book(tmp_path, 3)], part_tokens=20)
    named = [data["part"] for data in plugin_data(list(agent.stream("How many?")), PROGRESS) if "part" in data]
    assert named == ["part 1 of book.md"]


def test_parts_follow_a_file_that_changes(tmp_path: Path) -> None:
    agent = ParallelDocQA(
        llm=ScriptedModel(lambda request: answer('{"res": "ans", "content": "x"}' if part_of(request) else "So.")),
        files=[book(tmp_path, 1)],
        part_tokens=20,
    )
    agent.ask("How many?")
    (tmp_path / "book.md").write_text("# Chapter\n\nPanel 7 is new, and its text is longer.\n", encoding="utf-8")
    agent.ask("How many?")
    assert isinstance(agent.llm, ScriptedModel)
    assert any("Panel 7 is new" in part_of(request) for request in agent.llm.requests)


def test_a_searched_result_of_parts_has_small_passages_and_may_have_no_marks(guide: str) -> None:
    agent = ParallelDocQA(llm=ScriptedModel([]), files=[guide], citations=False)
    assert agent.citations is False
    assert (agent.rag_cfg.max_ref_token, agent.rag_cfg.parser_page_size) == (4500, 300)


@pytest.mark.parametrize("option", ["part_tokens", "at_once", "rounds"])
def test_one_is_the_least_of_each_number(option: str) -> None:
    options: dict[str, Any] = {option: 1}
    assert getattr(ParallelDocQA(llm=ScriptedModel([]), **options), option) == 1


def test_a_file_of_the_conversation_that_cannot_be_read_leaves_the_question(tmp_path: Path) -> None:
    (tmp_path / "half.pdf").write_bytes(b"%PDF-1.7")
    agent = ParallelDocQA(llm=ScriptedModel(lambda _: answer("So.")))
    question = [ContentItem(text="How many?"), ContentItem(file=str(tmp_path / "half.pdf"))]
    assert agent.ask([Message("user", question)]).text == "So."


# --- passages that are moved ---


def result_of(**texts: list[str]) -> Message:
    found = [{"url": f"{name}.md", "text": passages} for name, passages in texts.items()]
    return Message("function", json.dumps(found), name="retrieval")


def test_a_source_that_is_found_twice_is_shown_once_with_all_its_passages() -> None:
    messages = (Message("user", "go"), result_of(a=["one", "two"], b=["three"]), result_of(a=["two", "four"]))
    prepared = Paging(Prompts.read(PROMPTS), 1000).prepare(ChatRequest(model="m", messages=messages)).messages
    system = prepared[0].get_text_content()
    assert "[file](a.md):\n\n```\none\n\n...\n\ntwo\n\n...\n\nfour\n```" in system
    assert system.count("[file]") == 2


def test_settings_for_documents_are_those_of_the_tool(tmp_path: Path) -> None:
    text = "\n\n".join(f"# Part {number}\n\n" + f"Otter {number} swims. " * 30 for number in range(20))
    (tmp_path / "long.md").write_text(text, encoding="utf-8")
    llm = ScriptedModel([calls(("retrieval", {"query": "otter"})), answer("So.")])
    rag_cfg = {"max_ref_token": 200, "parser_page_size": 60}
    VirtualMemoryAgent(llm=llm, files=[str(tmp_path / "long.md")], rag_cfg=rag_cfg).ask("Otters?")
    assert 0 < llm.requests[1].messages[0].get_text_content().count("swims.") < 100
