"""Checks that need the whole answer: JSON, language, functions, and judge models."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from jackfield import sync
from jackfield.config import Lang
from jackfield.jsonschemas import SchemaChecker, UncheckableError
from jackfield.messages import Usage

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_KANA = re.compile(r"[\u3040-\u30ff]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_FEW_LETTERS = 10  # fewer letters do not reveal the language


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of checking an answer.

    Attributes:
        passes: True if the answer may pass.
        reason: An explanation of the problem, only for the model that is asked again.
        usage: The usage of the check itself.
    """

    passes: bool
    reason: str = ""
    usage: Usage = field(default_factory=Usage)


Opinion: TypeAlias = bool | str | Verdict
"""True if the answer passes; otherwise False, or a string that describes the problem."""


class WholeCheck(Protocol):
    """Checks the text of a complete answer."""

    async def __call__(self, answer: str, lang: Lang, /) -> Verdict:
        """Return the verdict, with reasons in the language `lang`."""


class JsonCheck:
    """Checks that an answer is JSON and matches a schema.

    Args:
        schema: The schema, or True to accept any JSON.
    """

    def __init__(self, schema: Mapping[str, Any] | bool) -> None:
        self._checker = None if isinstance(schema, bool) else SchemaChecker(schema)

    async def __call__(self, answer: str, lang: Lang) -> Verdict:
        """Return the verdict, with the JSON parser's error or the schema violations as the reason."""
        return await sync.in_worker(self._look, answer, lang)

    def _look(self, answer: str, lang: Lang) -> Verdict:
        try:
            value = json.loads(answer)
        except (ValueError, RecursionError) as error:
            text = (
                "它必须是一个 JSON 文档，别无其他" if lang == "zh" else "it must be one JSON document and nothing else"
            )
            return Verdict(False, f"{text} ({error})")
        try:
            misfits = self._checker.misfits(value) if self._checker else []
        except UncheckableError as error:  # never accepted as valid
            return Verdict(False, str(error))
        return Verdict(not misfits, "; ".join(misfits))


_MUST_BE_IN: Mapping[Lang, Mapping[Lang, str]] = {
    "en": {"en": "it must be written in English", "zh": "it must be written in Chinese"},
    "zh": {"en": "它必须用英文书写", "zh": "它必须用中文书写"},
}


class LanguageCheck:
    """Checks an answer's language by its letters: Latin for English, Han for Chinese.

    Code is ignored, and answers with fewer than ten letters pass.
    """

    def __init__(self, language: Lang) -> None:
        self._language = language

    async def __call__(self, answer: str, lang: Lang) -> Verdict:
        """Return the verdict, with the required language as the reason."""
        text = _CODE.sub(" ", answer)
        letters = sum(map(str.isalpha, text))
        if letters < _FEW_LETTERS or self._fits(text, letters):
            return Verdict(True)
        return Verdict(False, _MUST_BE_IN[lang][self._language])

    def _fits(self, text: str, letters: int) -> bool:
        if self._language == "en":
            return len(_LATIN.findall(text)) >= 0.8 * letters
        # Almost a third is a lot, because one Chinese character carries as much text as four letters of a name or term.
        return len(_HAN.findall(text)) >= 0.3 * letters and len(_KANA.findall(text)) < 0.1 * letters


class FunctionCheck:
    """Checks an answer with a user's function. A plain function runs in a worker thread."""

    def __init__(self, function: Callable[[str], Opinion | Awaitable[Opinion]]) -> None:
        self._function = function

    async def __call__(self, answer: str, lang: Lang) -> Verdict:  # noqa: ARG002 - the interface's
        """Call the function and return its result as a verdict."""
        if inspect.iscoroutinefunction(self._function):
            opinion = await self._function(answer)
        else:
            opinion = await sync.in_worker(self._function, answer)
            if inspect.isawaitable(opinion):
                opinion = await opinion
        if isinstance(opinion, Verdict):
            return opinion
        return Verdict(False, opinion) if isinstance(opinion, str) else Verdict(bool(opinion))
