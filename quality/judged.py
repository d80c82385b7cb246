"""The judged set: passages, questions, and grades for how well each passage answers a question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from jackfield.retrieval import Chunk, Corpus

FOLDER = Path(__file__).with_name("set")
LANGUAGES = ("en", "zh")

Kind = Literal["direct", "identifier", "several", "paraphrase", "none"]
"""Kinds of questions: shares words with the answer; is or contains a name from code or a number; has several answers;
shares no word with any answer; has no answer in the set."""

ANSWERS, HELPS = 2, 1
"""Grades: the passage answers the question, or a part that can stand alone; or it only helps."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage and the document that contains it."""

    id: str
    language: str
    document: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the grades of judged passages, by passage id."""

    language: str
    kind: Kind
    text: str
    grades: Mapping[str, int] = field(default_factory=dict)

    @property
    def answers(self) -> frozenset[str]:
        """The ids of the passages that answer the question."""
        return frozenset(id_ for id_, grade in self.grades.items() if grade == ANSWERS)


@dataclass(frozen=True, slots=True)
class JudgedSet:
    """All passages and questions."""

    passages: tuple[Passage, ...]
    questions: tuple[Question, ...]

    @property
    def corpus(self) -> Corpus:
        """The passages in all languages, one chunk each."""
        places: dict[str, int] = {}
        chunks = []
        for passage in self.passages:
            index = places[passage.document] = places.get(passage.document, -1) + 1
            tokens = max(1, len(passage.text) // 3)
            chunks.append(Chunk(id=passage.id, source=passage.document, text=passage.text, index=index, tokens=tokens))
        return Corpus(tuple(chunks))


def read_set(folder: Path = FOLDER) -> JudgedSet:
    """Read the set from the files in a folder.

    Raises:
        ValueError: A line does not have the format described in the README. The message names the line.
    """
    passages = [one for language in LANGUAGES for one in _passages(folder / f"passages.{language}.txt", language)]
    questions = [one for language in LANGUAGES for one in _questions(folder / f"questions.{language}.txt", language)]
    return JudgedSet(tuple(passages), tuple(questions))


def _passages(path: Path, language: str) -> Iterable[Passage]:
    document = ""
    for where, line in _lines(path):
        if line.startswith("# "):
            document = line[2:]
            continue
        id_, bar, text = line.partition(" | ")
        if not bar or not id_ or not text or not document:
            raise ValueError(f"{where}: a passage is `id | text`, below a line `# document`")
        yield Passage(id_, language, document, text)


def _questions(path: Path, language: str) -> Iterable[Question]:
    for where, line in _lines(path):
        parts = [part.strip() for part in line.split("|")]
        if len(parts) != 3 or parts[0] not in get_args(Kind):
            raise ValueError(f"{where}: a question is `kind | text | id=grade …`, with a kind of {get_args(Kind)}")
        kind, text, graded = parts
        grades = dict(one.split("=", 1) for one in graded.split())
        yield Question(language, kind, text, {id_: int(grade) for id_, grade in grades.items()})  # type: ignore[arg-type]


def _lines(path: Path) -> Iterable[tuple[str, str]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip():
            yield f"{path.name}:{number}", line.strip()
