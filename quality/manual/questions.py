"""The questions about the manual, and the section that answers each."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

FILE = Path(__file__).with_name("questions.txt")

Kind = Literal["direct", "paraphrase", "followup", "table"]
Part = Literal["tuned", "kept"]
"""Settings may be tuned on one half of the questions, but never on the other."""


@dataclass(frozen=True, slots=True)
class ManualQuestion:
    """A question and the id of the section that answers it.

    Attributes:
        language: `en` or `zh`.
        kind: `direct` questions share words with the answer, `paraphrase` few or none. `followup` questions depend on
            earlier turns, and the answer to a `table` question is a table cell.
        section: The id of the section.
        text: The question.
        earlier: The earlier turns of a follow-up, starting with the user; () for other kinds.
    """

    language: str
    kind: Kind
    section: str
    text: str
    earlier: tuple[str, ...] = ()

    @property
    def part(self) -> Part:
        """The half that the question belongs to. All questions about a section are in the same half."""
        return "tuned" if zlib.crc32(self.section.encode()) % 2 else "kept"


def read_questions(path: Path = FILE) -> list[ManualQuestion]:
    """Read the questions in a file.

    Raises:
        ValueError: A line does not have the format described in the README.
    """
    questions, section = [], ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("# "):
            section = line[2:].strip()
        elif line.strip():
            head, bar, text = line.partition(" | ")
            language, _, kind = head.partition(" ")
            *earlier, question = (part.strip() for part in text.split(" >> "))
            is_right = language in {"en", "zh"} and kind in get_args(Kind) and bool(earlier) == (kind == "followup")
            if not (bar and section and is_right):
                raise ValueError(f"{path.name}:{number}: expected `LANGUAGE KIND | TEXT` below a line `# SECTION`")
            questions.append(ManualQuestion(language, cast(Kind, kind), section, question, tuple(earlier)))
    return questions
