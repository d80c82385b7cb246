"""Questions about whole documents, and the share of required facts that reaches the model."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from jackfield import create_agent
from jackfield.testing import ScriptedModel, answer
from quality.manual.texts import chapter_files
from quality.measures import Share

FILE = Path(__file__).with_name("wholes.txt")
TOKENS_OF_CHAPTER, TOKENS_OF_MANUAL = 4_000, 20_000
_LANGUAGES = {"en": "English", "zh": "Chinese"}


@dataclass(frozen=True, slots=True)
class Whole:
    """A question about a chapter, or the whole manual (chapter 0), with the facts that a summary must mention."""

    language: str
    chapter: int
    text: str
    facts: tuple[str, ...]

    @property
    def max_tokens(self) -> int:
        """The maximum number of document tokens in a request."""
        return TOKENS_OF_CHAPTER if self.chapter else TOKENS_OF_MANUAL

    def share_in(self, text: str) -> float:
        """Return the share of the facts that a text mentions."""
        return fmean(names(text, fact) for fact in self.facts)


def names(text: str, fact: str) -> bool:
    """Return True if a text mentions a fact, ignoring case, white space, and emphasis and code markers."""
    return _plain(fact) in _plain(text)


def read_wholes(path: Path = FILE) -> list[Whole]:
    """Read the questions in a file.

    Raises:
        ValueError: A line does not have the format `LANGUAGE CHAPTER | TEXT | FACT; FACT`.
    """
    wholes = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        match = re.fullmatch(r"(en|zh) (\d+) \| ([^|]+) \| ([^|]+)", line)
        if not match:
            raise ValueError(f"{path.name}:{number}: expected `LANGUAGE CHAPTER | TEXT | FACT; FACT`")
        language, chapter, text, facts = match.groups()
        wholes.append(Whole(language, int(chapter), text, tuple(fact.strip() for fact in facts.split(";"))))
    return wholes


def mean_shares(wholes: Sequence[Whole], texts: Sequence[str]) -> dict[str, Share]:
    """Return the mean share of facts mentioned, by language, given one text per question."""
    shares = defaultdict(list)
    for whole, text in zip(wholes, texts, strict=True):
        shares[f"{_LANGUAGES[whole.language]}, whole document"].append(whole.share_in(text))
    return {group: Share(len(values), fmean(values)) for group, values in shares.items()}


def show_by_assistant(whole: Whole) -> str:
    """Return the system message that `assistant` sends to its model."""
    model = ScriptedModel(lambda _: answer("noted"))
    agent = create_agent("assistant", llm=model, files=_files(whole), rag_cfg={"max_ref_token": whole.max_tokens})
    agent.run_nonstream([{"role": "user", "content": whole.text}])
    return str(model.requests[-1].messages[0].content)


def _files(whole: Whole) -> list[str]:
    files = [str(path) for path in chapter_files(whole.language)]
    return files[whole.chapter - 1 : whole.chapter] if whole.chapter else files


def _plain(text: str) -> str:
    return re.sub(r"[\s`*_\\]+", " ", text).casefold()
