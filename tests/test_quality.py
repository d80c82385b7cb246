"""The judged set is what its README says, its measures are right, and what is searched with real weights is found."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from jackfield.plugins import default_host
from jackfield.retrieval import Chunk, Corpus, Embedder
from jackfield_documents.analyzer import Analyzer
from quality.__main__ import FLOORS, main
from quality.floors import MEASURES, below
from quality.held_out.__main__ import GOALS, ask_assistant
from quality.held_out.__main__ import QUESTIONS as HELD_OUT
from quality.judged import FOLDER, LANGUAGES, JudgedSet, Question, read_set
from quality.manual.__main__ import FLOORS as MANUAL_FLOORS
from quality.manual.comparing import measure_peers
from quality.manual.measuring import SETUPS as MANUAL_SETUPS
from quality.manual.measuring import Case, cases_of
from quality.manual.questions import ManualQuestion, read_questions
from quality.manual.texts import Section
from quality.manual.tools import TableQuestion, answers_by_query, read_table_questions, summarize_by_tool
from quality.manual.wholes import Whole, mean_shares, read_wholes, show_by_assistant
from quality.measures import GROUPS, Figures, Share, figures_of, ndcg_at_10, recall_at_5, reciprocal_rank
from quality.peers import Job
from quality.searchers import SETUPS, NotInstalledError, Setup, rankings
from quality.weights import LIMIT_S, CannotInstallError, model_folder

ROOT = Path(__file__).resolve().parent.parent
CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.fixture(scope="module")
def judged() -> JudgedSet:
    return read_set()


# --- the set ---


def test_there_are_enough_passages_and_questions_in_both_languages(judged: JudgedSet) -> None:
    assert len(judged.passages) >= 300
    assert len(judged.questions) >= 80
    for of in (judged.passages, judged.questions):
        counted = Counter(one.language for one in of)
        assert set(counted) == set(LANGUAGES)
        assert max(counted.values()) <= 1.1 * min(counted.values())
    kinds = Counter((question.language, question.kind) for question in judged.questions)
    assert min(kinds.values()) >= 5
    assert len(kinds) == 10


def test_a_text_is_of_its_files_language(judged: JudgedSet) -> None:
    for passage in judged.passages:
        assert bool(CHINESE.search(passage.text)) == (passage.language == "zh"), passage
    for question in judged.questions:
        is_name = question.kind == "identifier"
        assert is_name or bool(CHINESE.search(question.text)) == (question.language == "zh"), question


def test_nothing_stands_there_twice(judged: JudgedSet) -> None:
    ids = Counter(passage.id for passage in judged.passages)
    texts = Counter(re.sub(r"\W", "", passage.text.lower()) for passage in judged.passages)
    questions = Counter(re.sub(r"\W", "", question.text.lower()) for question in judged.questions)
    for counted in (ids, texts, questions):
        assert [one for one, count in counted.items() if count > 1] == []


def test_grades_are_of_passages_that_exist_and_every_answered_question_has_an_answer(judged: JudgedSet) -> None:
    ids = {passage.id: passage.language for passage in judged.passages}
    for question in judged.questions:
        assert set(question.grades.values()) <= {1, 2}, question
        assert {ids[id_] for id_ in question.grades} <= {question.language}, question
        assert bool(question.answers) == (question.kind != "none"), question
        if question.kind == "several":
            assert len(question.grades) > 1, question


def test_a_paraphrase_shares_no_word_with_what_answers_it(judged: JudgedSet) -> None:
    analyzer, texts = Analyzer(), {passage.id: passage.text for passage in judged.passages}

    def words_of(text: str) -> set[str]:
        return {term for term in analyzer.terms(text) if len(term) > 1 or not CHINESE.match(term)}

    for question in judged.questions:
        if question.kind == "paraphrase":
            for id_ in question.grades:
                assert words_of(question.text) & words_of(texts[id_]) == set(), (question.text, id_)


def test_a_direct_question_shares_a_word_with_each_of_its_answers(judged: JudgedSet) -> None:
    terms, texts = Analyzer().terms, {passage.id: passage.text for passage in judged.passages}
    for question in judged.questions:
        if question.kind == "direct":
            for id_ in question.answers:
                assert set(terms(question.text)) & set(terms(texts[id_])), (question.text, id_)


def test_the_readme_counts_right(judged: JudgedSet) -> None:
    said = (ROOT / "quality/README.md").read_text(encoding="utf-8")
    documents = {passage.document for passage in judged.passages}
    assert (
        f"{len(judged.passages)} passages of {len(documents)} documents, and {len(judged.questions)} questions" in said
    )
    for kind, count in Counter(question.kind for question in judged.questions).items():
        assert f"| `{kind}` | {count} |" in said


@pytest.mark.parametrize(
    ("file", "line"),
    [("passages.en.txt", "no bar"), ("questions.zh.txt", "guess | text | "), ("questions.en.txt", "direct | text")],
)
def test_a_line_of_another_form_is_named(tmp_path: Path, file: str, line: str) -> None:
    for one in FOLDER.iterdir():
        (tmp_path / one.name).write_bytes(one.read_bytes())
    with (tmp_path / file).open("a", encoding="utf-8") as written:
        written.write(f"\n{line}\n")
    with pytest.raises(ValueError, match=f"{file}:\\d+"):
        read_set(tmp_path)


# --- the measures ---

QUESTION = Question("en", "several", "?", {"a": 2, "b": 2, "c": 1})


def test_measures_are_those_of_the_literature() -> None:
    best = 3 / 1 + 3 / math.log2(3) + 1 / 2
    for ranking, recall, reciprocal, gain in (
        ([], 0.0, 0.0, 0.0),
        (["a", "b", "c"], 1.0, 1.0, best),
        (["x", "b", "c", "y", "z", "a"], 0.5, 0.5, 3 / math.log2(3) + 1 / 2 + 3 / math.log2(7)),
        ([*"1234567890", "a"], 0.0, 0.0, 0.0),
        (["c", "1", "2", "a"], 0.5, 0.25, 1 + 3 / math.log2(5)),
    ):
        assert recall_at_5(ranking, QUESTION) == recall
        assert reciprocal_rank(ranking, QUESTION) == reciprocal
        assert ndcg_at_10(ranking, QUESTION) == pytest.approx(gain / best)


def test_figures_are_means_over_each_group_and_leave_out_what_has_no_answer() -> None:
    chinese = Question("zh", "paraphrase", "?", {"d": 2})
    nothing = Question("en", "none", "?")
    figures = figures_of([(QUESTION, ["a", "b", "c"]), (chinese, ["x"]), (nothing, ["a"])])
    assert figures["all"] == Figures(2, 0.5, 0.5, 0.5)
    assert figures["English"].questions == 1
    assert figures["Chinese paraphrases"] == Figures(1, 0, 0, 0)
    assert "English paraphrases" not in figures


# --- the floors ---


def test_what_is_below_its_floor_is_named_and_what_is_as_good_is_not() -> None:
    floors = {"one": {"all": {"recall": 0.5, "mrr": 0.5, "ndcg": 0.5}}}
    assert below({"one": {"all": Figures(9, 0.5, 0.6, 0.4989)}}, floors) == []
    (fault,) = below({"one": {"all": Figures(9, 0.5, 0.4, 0.5)}}, floors)
    assert fault == "one, all: mrr is 0.400 and was 0.500"
    assert below({"another": {"all": Figures(9, 0, 0, 0)}}, floors) == []


def test_there_is_a_floor_for_all_that_is_always_installed() -> None:
    floors = json.loads(FLOORS.read_text(encoding="utf-8"))
    assert set(floors) <= {setup.name for setup in SETUPS}
    assert all(set(groups) == set(GROUPS) for groups in floors.values())
    assert all(set(figures) == set(MEASURES) for groups in floors.values() for figures in groups.values())
    assert {"keyword_search", "vector_search, all-MiniLM-L6-v2"} <= set(floors)


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "quality", *words],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "QWEN_PYTHON"},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


def test_keyword_search_finds_what_it_found_before() -> None:
    done = run("--only", "keyword_search")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "keyword_search" in done.stdout


def test_a_figure_below_its_floor_fails_and_recording_lowers_the_floor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    floors = tmp_path / "floors.json"
    floors.write_text(json.dumps({"keyword_search": {"all": {"mrr": 0.99}}, "another": {"all": {"mrr": 0.5}}}))
    monkeypatch.setattr("quality.__main__.FLOORS", floors)
    monkeypatch.delenv("QWEN_PYTHON", raising=False)
    assert main(["--only", "keyword_search"]) == 1
    assert "below its floor: keyword_search, all: mrr" in capsys.readouterr().out
    assert main(["--only", "keyword_search", "--record"]) == 0
    assert main(["--only", "keyword_search"]) == 0
    assert json.loads(floors.read_text())["another"] == {"all": {"mrr": 0.5}}


def test_a_searcher_that_is_not_installed_is_skipped(judged: JudgedSet) -> None:
    with pytest.raises(NotInstalledError, match="strange_search"):
        rankings(Setup("another", {"strange_search": dict}), judged, default_host())


def test_a_name_of_nothing_is_no_success() -> None:
    done = run("--only", "keyword_serch")
    assert done.returncode == 1
    assert "keyword_serch" in done.stdout


# --- questions about the manual ---


def test_the_manual_is_asked_in_both_languages_and_in_every_way() -> None:
    questions = read_questions()
    kinds = Counter((question.language, question.kind, question.part) for question in questions)
    assert len(kinds) == 2 * 4 * 2
    assert min(count for (_, kind, _), count in kinds.items() if kind != "table") >= 20
    assert min(kinds.values()) >= 8
    texts = Counter((question.language, question.text, question.earlier) for question in questions)
    assert [text for text, count in texts.items() if count > 1] == []
    for question in questions:
        assert bool(CHINESE.search(question.text)) == (question.language == "zh"), question


def test_no_section_has_questions_in_both_halves() -> None:
    halves: dict[str, set[str]] = {}
    for question in read_questions():
        halves.setdefault(question.section, set()).add(question.part)
    assert all(len(parts) == 1 for parts in halves.values())


KINDS_OF_CASES = (", direct", ", paraphrase", ", followup", ", table")


def test_each_question_of_the_kept_half_is_measured_once_in_a_group() -> None:
    questions = read_questions()
    cases = cases_of(questions, "kept")
    kept = [question for question in questions if question.part == "kept"]
    assert sum(case.group.endswith(KINDS_OF_CASES) for case in cases) == 2 * len(kept)
    floors = json.loads(MANUAL_FLOORS.read_text(encoding="utf-8"))
    for setup in MANUAL_SETUPS:
        assert set(floors.pop(setup.name)) == {case.group for case in cases}
    assert set(floors) == {"assistant", "summarize_document", "query_table"}


@pytest.mark.parametrize("line", ["en direct no bar", "fr direct | Quoi ?", "en followup | And its price?"])
def test_a_question_of_another_form_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "questions.txt"
    path.write_text(f"# _links\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"questions\.txt:2"):
        read_questions(path)


# --- whole documents, tables, peers, and what is held out ---

PAGE = """<html><body><h1>Chapter 1. Tools</h1><h2>1.1. Editors</h2><p>The editor vim has modes.</p>
<h2>1.2. Sizes</h2><table><tr><th>package</th><th>size</th></tr><tr><td><a href="http://a.example">vim</a></td>
<td><a href="http://b.example">700</a></td></tr><tr><td>nano</td><td>300</td></tr></table></body></html>"""
WHOLE = Whole("en", 1, "Summarise this document.", ("vim", "nano"))
SUM = TableQuestion("en", 1, "How large are they?", 'SELECT SUM("size") FROM "1_2_Sizes"', "1000")


@pytest.fixture
def chapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "ch01.html"
    path.write_text(PAGE)
    for module in ("tools", "wholes"):
        monkeypatch.setattr(f"quality.manual.{module}.chapter_files", lambda _: [path])
    return path


def test_the_summary_of_a_tool_names_what_its_model_noted(chapter: Path) -> None:
    assert WHOLE.share_in(summarize_by_tool(WHOLE)) == 1
    chapter.write_text(PAGE.replace("nano", "ed"))
    assert WHOLE.share_in(summarize_by_tool(WHOLE)) == 0.5


def test_the_share_of_a_whole_document_is_of_what_the_assistant_shows(chapter: Path) -> None:
    assert WHOLE.share_in(show_by_assistant(WHOLE)) == 1
    chapter.write_text(PAGE.replace("nano", "ed"))
    shares = mean_shares([WHOLE, WHOLE], [show_by_assistant(WHOLE), ""])
    assert shares == {"English, whole document": Share(2, 0.25)}


@pytest.mark.usefixtures("chapter")
def test_a_table_is_answered_only_with_the_right_cell_of_a_listed_table() -> None:
    assert answers_by_query(SUM)
    assert not answers_by_query(replace(SUM, expected="100"))
    assert not answers_by_query(replace(SUM, sql='SELECT SUM("size") FROM "Sizes"'))


def test_whole_documents_and_tables_are_asked_in_both_languages() -> None:
    wholes, tables = read_wholes(), read_table_questions()
    for language in LANGUAGES:
        assert {one.chapter for one in wholes if one.language == language} == set(range(13))
        assert sum(one.language == language for one in tables) >= 5
    assert min(len(one.facts) for one in wholes) >= 6
    assert len(read_questions()) + len(wholes) + len(tables) >= 300


@pytest.mark.parametrize("read", [read_wholes, read_table_questions])
def test_a_whole_or_a_table_of_another_form_is_named(tmp_path: Path, read: Callable[[Path], object]) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("en 1 | Summarise.\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"lines\.txt:1"):
        read(path)


def test_each_passage_that_is_held_out_is_asked_for_in_three_ways() -> None:
    questions = read_questions(HELD_OUT)
    kinds = Counter((question.language, question.kind) for question in questions)
    assert set(kinds) == {(language, kind) for language in LANGUAGES for kind in GOALS}
    assert min(kinds.values()) >= 25
    assert Counter(Counter(question.section for question in questions).values()) == {3: len(questions) // 3}


def test_a_held_out_passage_counts_only_if_the_model_sees_it(tmp_path: Path) -> None:
    path = tmp_path / "guide.md"
    path.write_text("# Panels\n\nA panel has `48`\nsockets.\n", encoding="utf-8")
    questions = [
        ManualQuestion("en", "direct", "A panel has 48 sockets.", "How many sockets has a panel?"),
        ManualQuestion("en", "followup", "A panel has 49 sockets.", "And a panel?", ("What has a wall?", "Panels.")),
    ]
    assert [is_shown for _, is_shown in ask_assistant([str(path)], questions, {})] == [True, False]


def test_peers_get_the_passages_and_their_rankings_become_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    chunks = tuple(
        Chunk(id=f"{section}{number}", source=section, text=f"{section} {number} vim", index=number, tokens=3000)
        for section in "ab"
        for number in range(2)
    )
    asked: list[Job] = []

    def rank(jobs: Sequence[Job]) -> dict[str, list[list[list[str]]]]:
        asked.extend(jobs)
        return {"peer": [[["b1", "b0", "a0"], []], [["a0", "a1"]]]}

    monkeypatch.setattr("quality.manual.comparing.rank_with_peers", rank)
    monkeypatch.setattr(
        "quality.manual.comparing.read_sections", lambda _: [Section("a", "A", "text", 1), Section("b", "B", "text", 2)]
    )
    monkeypatch.setattr("quality.manual.comparing._vectors_of", lambda texts, _: {text: [1.0] for text in texts})
    cases = [Case("one", "en", "first", "a"), Case("two", "en", "second", "a")]
    measured = measure_peers({"en": Corpus(chunks)}, cases, [replace(WHOLE, facts=("a 0", "a 1"))], default_host())
    assert measured == {
        "peer": {
            "one": Figures(1, 1.0, 0.5, pytest.approx(1 / math.log2(3))),
            "two": Figures(1, 0, 0, 0),
            "English, whole document": Share(1, 0.5),
        }
    }
    assert [len(job["passages"]) for job in asked] == [4, 2]
    assert [[query["text"] for query in job["queries"]] for job in asked] == [["first", "second"], [WHOLE.text]]


# --- with real weights ---


@pytest.fixture(scope="module")
def weights() -> Path:
    try:
        return model_folder()
    except CannotInstallError as error:
        pytest.skip(str(error))


@pytest.mark.timeout(LIMIT_S + 100)  # of which most is for fetching them, the first time
def test_real_weights_know_what_texts_have_in_common(weights: Path) -> None:
    host = default_host()
    embedder = host.make(host.find("embedder", "transformers"), {"model": str(weights), "engine": "numpy"}, Embedder)
    texts = (
        "The cat sits on the mat.",
        "A kitten is lying on the rug.",
        "The stock market fell sharply yesterday.",
        "Share prices dropped a lot the day before today.",
    )

    def cosine(a: int, b: int) -> float:
        return sum(x * y for x, y in zip(vectors[a], vectors[b], strict=True))

    async def embedded() -> tuple[tuple[float, ...], ...]:
        try:
            return (await embedder.embed(texts)).vectors
        finally:
            await embedder.aclose()

    vectors = asyncio.run(embedded())
    assert {len(vector) for vector in vectors} == {384}
    assert cosine(0, 0) == pytest.approx(1, abs=1e-5)
    assert cosine(0, 1) > 0.4
    assert cosine(2, 3) > 0.5
    for unrelated in ((0, 2), (0, 3), (1, 2), (1, 3)):
        assert abs(cosine(*unrelated)) < 0.15
