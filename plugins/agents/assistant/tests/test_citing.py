"""Citations: the marks in an answer, checked against the passages that the model was shown."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from jackfield import Agent, create_agent
from jackfield.citations import Citation, citations_in
from jackfield.events import PluginEvent, TextDelta, TurnFinished
from jackfield.results import RunResult
from jackfield.retrieval import Block, Document
from jackfield.testing import ScriptedModel, answer
from jackfield_assistant.agent import CITED
from jackfield_assistant.citing import Folded, Numbered, check_marks, find_quote, number_chunks, number_texts
from jackfield_documents import chunk_document

PANELS = Numbered(
    "1", "guide.pdf", "[page: 3]\nA panel has\n48 sockets, and each socket takes one plug.", 3, ("Panels",)
)
RETURNS = Numbered("2", "returns.md", "退货请在收到商品后三十天内\n提出申请。Refunds take a week.", None, ("Returns",))
TEXTS = st.text(st.sampled_from('ab. \n"“”*[]1>…'), max_size=40)


@pytest.fixture
def guide(tmp_path: Path) -> str:
    path = tmp_path / "guide.md"
    path.write_text("# Panels\n\nA panel has 48 sockets.\n\n# Plugs\n\nA plug is red.\n")
    return str(path)


def cite(text: str, *, question: str = "") -> tuple[list[tuple[str, str]], list[str]]:
    checked = check_marks(text, [PANELS, RETURNS], question=question)
    return [(one.mark, one.quote) for one in checked.citations], [
        mark for mark, _ in Counter(checked.dropped).elements()
    ]


def ask(
    guide: str, text: str, question: Any = "How many sockets?", **options: Any
) -> tuple[RunResult[Any], ScriptedModel]:
    model = ScriptedModel([answer(text)])
    return create_agent("assistant", llm=model, files=[guide], **options).ask(question), model


# --- marks and quotations ---


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("48 [1].", ["1"]),
        ("A week [2]. 48 sockets [1].", ["2", "1"]),
        ("Both [1][2].", ["1", "2"]),
        ("Both [1, 2].", ["1", "2"]),
        ("Both [1-2].", ["1", "2"]),
        ("三十天【2】。", ["2"]),
        ("Twice [1], and again [1].", ["1"]),
        ("See [1](https://a.test).", []),
        ("`array[1]` and\n```\nx[1]\n```\n", []),
        ("In [2024], nothing.", []),
    ],
)
def test_a_mark_names_a_passage(text: str, marks: list[str]) -> None:
    assert cite(text) == ([(mark, "") for mark in marks], [])


@pytest.mark.parametrize(
    ("text", "citations", "dropped"),
    [
        ('It says "a panel has 48 sockets" [1].', [("1", "A panel has\n48 sockets")], []),
        ("It says “A panel has **48** sockets … takes one plug.” [1]",
         [("1", "A panel has\n48 sockets, and each socket takes one plug")], []),
        ("As [1] says: “each socket takes one plug”.", [("1", "each socket takes one plug")], []),
        ("> each socket takes one plug [1]", [("1", "each socket takes one plug")], []),
        ("“收到商品后三十天内提出申请” [2]", [("2", "收到商品后三十天内\n提出申请")], []),
        ("It says “A panel has 64 sockets” [1].", [], ["1"]),
        ("“each socket takes one plug” [2]", [], ["2"]),
        ("“each socket takes … A panel has” [1]", [], ["1"]),
        ("“A panel has … A panel has” [1]", [], ["1"]),
        ("“请在九十天内提出退货申请” [2]", [], ["2"]),
        ("A so-called “mega panel” [1].", [("1", "")], []),
        ("“Refunds take a week” [1][2]", [("1", ""), ("2", "Refunds take a week")], []),
        ("No such [7]. Nor [7] and [0].", [], ["7", "7", "0"]),
        ("“A panel has 64 sockets”, he wrote.\n\nIt has 48 [1].", [("1", "")], []),
    ],
)  # fmt: skip
def test_a_quotation_is_in_its_passage_or_its_mark_is_dropped(
    text: str, citations: list[tuple[str, str]], dropped: list[str]
) -> None:
    assert cite(text) == (citations, dropped)


def test_words_of_the_question_are_no_quotation() -> None:
    question = "Does a panel have 64 sockets?"
    assert cite("“a panel have 64 sockets”? No, 48 [1].", question=question) == ([("1", "")], [])


@given(TEXTS, st.integers(0, 40), st.integers(1, 40))
def test_any_part_of_a_text_is_found_in_it(text: str, start: int, size: int) -> None:
    part = text[start : start + size]
    ends = find_quote(part, Folded.of(text))
    assert ends is None or (0 <= ends[0] < ends[1] <= len(text))
    if any(char in "ab1[]" for char in part) and "…" not in part and "..." not in part:
        assert ends is not None


@given(
    st.lists(
        st.sampled_from(["[1]", "[2]", "[9]", "“A panel has", "”", '"', "48 ", "\n", "> ", "`", "```\n"]), max_size=30
    )
)
def test_any_answer_is_checked_and_ranges_are_in_it(pieces: Sequence[str]) -> None:
    text = "".join(pieces)
    checked = check_marks(text, [PANELS, RETURNS])
    for citation in checked.citations:
        assert citation.is_in(text)
        assert citation.passage[citation.start : citation.end] == (citation.quote or citation.passage)
        assert Citation(
            **{**citation.to_dict(), "headings": citation.headings, "answer_ranges": citation.answer_ranges}
        )
    assert citations_in(json.loads(json.dumps(checked.report()))) == list(checked.citations)


# --- numbers ---


def test_each_chunk_has_a_number_and_a_quotation_may_go_on_in_the_next_one() -> None:
    sentences = [f"The harbour number {number} has a crane of {number} tons." for number in range(30)]
    document = Document("/srv/harbour.txt", (Block(" ".join(sentences)),), "x")
    chunks = chunk_document(document, size_tokens=60)
    shown, numbered = number_chunks(chunks)
    (text,) = shown[0]["text"]
    assert [f"[{one.mark}]" for one in numbered] == [line for line in text.splitlines() if line.startswith("[")]
    assert (
        " ".join(line for line in text.splitlines() if not line.startswith("[")).split()
        == document.blocks[0].text.split()
    )
    assert {one.location for one in numbered} == {"harbour.txt"}
    quote = " ".join(sentences[2:5])  # longer than what chunks repeat
    for one in numbered:
        if find_quote(quote, Folded.of(one.joined)) and not find_quote(quote, Folded.of(one.text)):
            break
    else:
        pytest.fail("no quotation crosses the end of a chunk")
    assert check_marks(f"“{quote}” [{one.mark}]", numbered).citations[0].quote == quote.rstrip(".")


def test_no_quotation_goes_on_in_a_chunk_that_is_not_the_next_one() -> None:
    sentences = [f"The harbour number {number} has a crane of {number} tons." for number in range(60)]
    chunks = chunk_document(Document("/srv/harbour.txt", (Block(" ".join(sentences)),), "x"), size_tokens=60)
    other = chunk_document(Document("/srv/ships.txt", (Block(" ".join(sentences)),), "x"), size_tokens=60)
    for shown in ([chunks[0], chunks[2], chunks[4]], [chunks[0], other[1], chunks[2]]):
        assert [one.joined for one in number_chunks(shown)[1]] == ["", "", ""]
    assert all(one.joined for one in number_chunks(chunks[:3])[1])


def test_marks_differ_from_the_references_of_a_paper() -> None:
    shown, numbered = number_texts([{"url": "paper.pdf", "text": ["As shown in [12].", "Others disagree."]}])
    assert [one.mark for one in numbered] == ["P1", "P2"]
    assert shown[0]["text"] == ["[P1]\nAs shown in [12].", "[P2]\nOthers disagree."]
    assert [one.mark for one in check_marks("So [P2], but see [12].", numbered).citations] == ["P2"]


# --- a run ---


def test_the_result_has_the_passages_that_the_answer_uses(guide: str) -> None:
    result, model = ask(guide, "It has “48 sockets” [1].")
    assert "[1]\n# Panels" in model.requests[0].messages[0].get_text_content()
    (citation,) = result.citations
    assert (citation.location, citation.headings, citation.quote) == ("guide.md", ("Panels",), "48 sockets")
    assert citation.passage[citation.start : citation.end] == "48 sockets"
    assert [result.text[start:end] for start, end in citation.answer_ranges] == ["[1]"]
    assert str(citation) == "[1] guide.md, Panels: “48 sockets”"
    assert [str(source) for source in result.sources] == ["guide.md"]
    assert citations_in(result.to_dict()) == [citation]
    assert "[1] guide.md, Panels: “48 sockets”" in result._repr_markdown_()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such names")
def test_a_name_with_a_line_break_or_a_backslash_is_shown_whole(tmp_path: Path) -> None:
    files = [tmp_path / "new\nline.md", tmp_path / r"back\slash.md"]
    for file in files:
        file.write_text("A panel has 48 sockets.\n")
    model = ScriptedModel([answer("48 sockets [1] [2].")])
    result = create_agent("assistant", llm=model, files=[str(file) for file in files]).ask("How many sockets?")
    assert sorted(map(str, result.sources)) == [r"back\slash.md", r"new\nline.md"]
    assert sorted(one.location for one in result.citations) == [r"back\slash.md", r"new\nline.md"]


def test_a_wrong_mark_is_dropped_and_reported(guide: str) -> None:
    result, _ = ask(guide, "It has 48 [4], “as everybody knows” [1].")
    assert result.citations == ()
    assert result.warnings == (
        "citation [4] in the answer is invalid: no passage has this number",
        "citation [1] in the answer is invalid: the passage does not say “as everybody knows”",
    )


def test_citations_can_be_switched_off_and_data_has_none(guide: str) -> None:
    result, model = ask(guide, "48 [1].", citations=False)
    assert result.citations == result.warnings == ()
    assert "[1]" not in model.requests[0].messages[0].get_text_content()

    class Count(BaseModel):
        numbers: list[int]

    model = ScriptedModel([answer('{"numbers": [1]}')])
    result = create_agent("assistant", llm=model, files=[guide]).ask("How many?", output=Count)
    assert (result.output, result.citations) == (Count(numbers=[1]), ())
    assert "[1]\n" not in model.requests[0].messages[0].get_text_content()


def test_given_knowledge_is_cited_too() -> None:
    knowledge = [{"url": "https://a.test/moon.html", "text": ["The moon is far.", "Mars is red."]}]
    result = create_agent("assistant", llm=ScriptedModel([answer("Red [2].")])).ask("Mars?", knowledge=knowledge)
    (citation,) = result.citations
    assert (citation.location, citation.passage) == ("https://a.test/moon.html", "Mars is red.")


def test_the_text_streams_and_the_citations_come_with_the_end_of_the_turn(guide: str) -> None:
    agent = create_agent("assistant", llm=ScriptedModel([answer("48 sockets [1].")]), files=[guide])

    async def collect() -> list[Any]:
        return [event.event async for event in agent.astream("How many?")]

    events = asyncio.run(collect())
    kinds = [
        "cited" if isinstance(event, PluginEvent) and event.name == CITED else type(event).__name__ for event in events
    ]
    assert kinds.index("cited") == kinds.index(TurnFinished.__name__) - 1
    assert kinds.index(TextDelta.__name__) < kinds.index("cited")


def test_a_record_keeps_the_citations(guide: str, tmp_path: Path) -> None:
    def agent(*steps: Any) -> Agent:
        store = {"name": "sqlite", "path": str(tmp_path / "runs.db")}
        return create_agent("assistant", llm=ScriptedModel(steps), files=[guide], store=store)

    result = agent(answer("It has “48 sockets” [1].")).ask("How many sockets?")
    again = agent().resume(result.run_id)
    assert again.citations == result.citations != ()
    assert again.sources == result.sources


@pytest.mark.parametrize("kind", ["doc_qa", "memo", "dialogue_retrieval", "parallel_doc_qa"])
def test_the_other_kinds_cite_as_well(kind: str, guide: str, tmp_path: Path) -> None:
    def reply(request: Any) -> Any:
        if "Knowledge Base" in request.messages[0].get_text_content():
            return answer("48 [1].")
        return answer('{"res": "ans", "content": "48 sockets"}')

    agent = create_agent(kind, llm=ScriptedModel(reply), files=[guide], workspace=str(tmp_path / "work"))
    (citation,) = agent.ask("How many sockets has a panel?").citations
    assert citation.location == "guide.md"


def test_a_report_of_many_wrong_marks_is_short() -> None:
    passages = [Numbered(str(number), "a.pdf", f"A passage with the number {number}.") for number in range(1, 41)]
    report = check_marks(f"“{'these words are in no passage ' * 99}” [1-40]\n" * 20, passages).report()
    assert [entry["times"] for entry in report["dropped"]] == [20] * 40  # type: ignore[attr-defined]
    other = check_marks("".join(f"“words number {n} of no passage” [1-40]\n" for n in range(20)), passages).report()
    for one in (report, other):
        assert len(json.dumps(one)) < 60_000
    assert other["warnings"][-1] == "750 more invalid citations in the answer"  # type: ignore[index]


def test_each_passage_is_folded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    folded: list[str] = []
    fold = Folded.of

    def note(text: str) -> Folded:
        folded.append(text)
        return fold(text)

    monkeypatch.setattr(Folded, "of", note)
    passage = Numbered("1", "a.pdf", "A passage with several words in it.")
    checked = check_marks("“passage with several words” [1]\n" * 50, [passage])
    assert len(checked.citations[0].answer_ranges) == 50
    assert folded.count(passage.text) == 1


def test_a_quotation_belongs_to_the_next_mark() -> None:
    passages = [Numbered(str(n), "a.pdf", f"The mill number {n} stands here.") for n in range(1, 4)]
    answer = "".join(f"“the mill number {n} stands” [{n}] and " for n in range(1, 4))
    assert [one.quote for one in check_marks(answer, passages).citations] == [
        f"The mill number {n} stands" for n in range(1, 4)
    ]
    assert [mark for mark, _ in check_marks("[2] “the mill number 2 stands”", passages).citations[0].answer_ranges] == [
        0
    ]
