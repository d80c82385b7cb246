"""Detect Chinese text by its script. A single Chinese word is not enough, nor are the kanji in Japanese text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jackfield.config import Lang

_HAN = "\u3007\u3105-\u312f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_HANGUL = "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3"
_HAN_RUN = re.compile(f"[{_HAN}]+")
_OTHER_RUN = re.compile(f"[{_KANA}{_HANGUL}]+")
_WORD = re.compile(rf"[^\W\d_{_HAN}{_KANA}{_HANGUL}]+(?:['’-][^\W\d_{_HAN}{_KANA}{_HANGUL}]+)*")
_HAN_OR_WORD = re.compile(f"{_HAN_RUN.pattern}|{_WORD.pattern}")
# Code and URLs have no language. An unclosed fence extends to the end.
_NO_LANGUAGE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://[!-~]+", re.DOTALL)
# Japanese and Korean texts have far more kana or hangul than this; a Chinese text that quotes a の has less.
_HAN_FOR_EACH_KANA = 10
_HAN_FOR_EACH_WORD = 1.5  # Han characters per Chinese word
_LOOKED_AT = 1000  # characters at each end of a text; more would add nothing, and the text may be a book


def language_of_text(text: str) -> Lang | None:
    """Return `zh` for Chinese text, `en` for any other language, or None if there are no words.

    A user's request is at the start or end of the text, next to any material it refers to. Therefore only the first and
    last lines matter: the text is Chinese if one of them has at least as many Chinese words as words in other scripts.
    """
    said = _ends(_without_code(text))
    han, others = _count(_HAN_RUN, said), _count(_OTHER_RUN, said)
    if han == 0 or others * _HAN_FOR_EACH_KANA >= han:
        return "en" if others or _HAN_OR_WORD.search(said) else None
    lines = list(filter(_HAN_OR_WORD.search, said.splitlines()))
    return "zh" if any(map(_is_chinese, (lines[0], lines[-1]))) else "en"


def language_of_most(texts: Sequence[str]) -> Lang | None:
    """Return the most common language of the texts, or None if none has words. The last text breaks a tie."""
    found = [lang for lang in map(language_of_text, texts) if lang]
    if not found:
        return None
    chinese = found.count("zh")
    if 2 * chinese == len(found):
        return found[-1]
    return "zh" if 2 * chinese > len(found) else "en"


def _without_code(text: str) -> str:
    return _NO_LANGUAGE.sub("\n", text) if "`" in text or "http" in text else text


def _ends(text: str) -> str:
    return text if len(text) <= 2 * _LOOKED_AT else f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"


def _count(run: re.Pattern[str], text: str) -> int:
    """Count the characters in all matches of a pattern."""
    return sum(map(len, run.findall(text)))


def _is_chinese(line: str) -> bool:
    han = _count(_HAN_RUN, line)
    return han > 0 and han >= _HAN_FOR_EACH_WORD * len(_WORD.findall(line))
