"""Tell the model how much of the documents it sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from jackfield.config import Lang

_MOST_NAMED = 5  # maximum number of documents named
_UNITS: Mapping[Lang, Mapping[str, str]] = {"en": {}, "zh": {"pages": "页", "parts": "段"}}
_ONE: Mapping[Lang, str] = {
    "en": "{count} of {total} {unit} of {location}",
    "zh": "{location} 共 {total} {unit}中的 {count} {unit}",
}
_MORE: Mapping[Lang, str] = {"en": " and parts of {count} more documents", "zh": "，以及另外 {count} 个文档的部分内容"}
_MISSING: Mapping[Lang, str] = {
    "en": " Nothing of {count} other documents is shown.",
    "zh": "另有 {count} 个文档没有显示任何内容。",
}
_BETWEEN: Mapping[Lang, str] = {"en": ", ", "zh": "，"}
_PART: Mapping[Lang, str] = {
    "en": "Only a part of the documents is shown: {shown}.{missing} If the question needs all of it, as a summary, a "
    "complete list or a sum does, say that you have seen a part only.",
    "zh": "这里只显示了文档的一部分：{shown}。{missing}"
    "如果问题需要全部内容（例如总结、完整列表或合计），请说明你只看到了一部分。",
}
_NO_MATCH: Mapping[Lang, str] = {
    "en": "Nothing in the documents matches the words of the question. What follows is only how they begin, and was "
    "not found by the search.",
    "zh": "文档中没有与问题用词相符的内容。下面只是文档的开头，并不是检索结果。",
}
_OUTLINE: Mapping[Lang, str] = {"en": "headings of {name}", "zh": "{name} 的标题"}


def extent_note(facts: Mapping[str, Any], lang: Lang) -> str:
    """Return a note for the model that nothing matches or only excerpts are shown, or '' if it sees everything.

    Args:
        facts: The retrieval's metadata: `matched`, `shown` and `documents`.
        lang: The language of the note.
    """
    notes = [] if facts.get("matched", True) else [_NO_MATCH[lang]]
    shown = cast("Sequence[Mapping[str, Any]]", facts.get("shown", ()))
    if shown:
        notes.append(_part_note(shown, int(facts.get("documents", len(shown))), lang))
    return "\n".join(notes)


def outline_heading(name: str, lang: Lang) -> str:
    """Return the source name under which a document's outline is shown."""
    return _OUTLINE[lang].format(name=name)


def _part_note(shown: Sequence[Mapping[str, Any]], documents: int, lang: Lang) -> str:
    units = _UNITS[lang]
    named = [_ONE[lang].format_map({**one, "unit": units.get(one["unit"], one["unit"])}) for one in shown[:_MOST_NAMED]]
    text = _BETWEEN[lang].join(named)
    if len(shown) > _MOST_NAMED:
        text += _MORE[lang].format(count=len(shown) - _MOST_NAMED)
    missing = documents - len(shown)
    return _PART[lang].format(shown=text, missing=_MISSING[lang].format(count=missing) if missing > 0 else "")
