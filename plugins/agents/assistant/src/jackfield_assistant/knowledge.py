"""Format retrieved passages for a system message, each in a fence below a heading that names its source."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from jackfield.config import Lang
from jackfield.messages import basename_of, name_in_file

_HEADING: Mapping[Lang, str] = {"en": "# Knowledge Base", "zh": "# 知识库"}
_SNIPPET: Mapping[Lang, str] = {
    "en": "## The content from {source}:\n\n{fence}\n{content}\n{fence}",
    "zh": "## 来自 {source} 的内容：\n\n{fence}\n{content}\n{fence}",
}
_FILE: Mapping[Lang, str] = {"en": "[file]({name})", "zh": "[文件]({name})"}
_UPLOADED: Mapping[Lang, str] = {"en": "uploaded document", "zh": "上传的文档"}
_BETWEEN_PASSAGES = "\n\n...\n\n"


def knowledge_block(passages: str | Sequence[Mapping[str, Any]], lang: Lang, *, note: str = "") -> str:
    """Return the knowledge block for the system message, or '' if there are no passages.

    Args:
        passages: A list of `{"url": …, "text": [passage, …]}`, or its JSON. Any other text is treated as one unnamed
            source.
        lang: The language of the headings.
        note: Text to insert before the passages.
    """
    snippets = [_snippet(source, text, lang) for source, text in _sources(passages, lang) if text.strip()]
    return "\n\n".join(part for part in (_HEADING[lang], note, *snippets) if part) if snippets else ""


def listed_passages(knowledge: object) -> list[Mapping[str, Any]] | None:
    """Return the sources from a list or its JSON, or None for plain text."""
    return _parsed(knowledge) if isinstance(knowledge, str) else list(cast("Sequence[Mapping[str, Any]]", knowledge))


def _sources(passages: str | Sequence[Mapping[str, Any]], lang: Lang) -> list[tuple[str, str]]:
    listed = _parsed(passages) if isinstance(passages, str) else passages
    if listed is None:
        return [(_UPLOADED[lang], str(passages))]
    return [
        (_FILE[lang].format(name=_name_of(source)), _BETWEEN_PASSAGES.join(map(str, source["text"])))
        for source in listed
    ]


def _name_of(source: Mapping[str, Any]) -> str:
    return name_in_file(basename_of(str(source["url"])), str(source.get("part", "")))


def _parsed(text: str) -> list[Mapping[str, Any]] | None:
    """Parse a JSON list of sources, or return None for any other text."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if isinstance(value, list) and all(isinstance(entry, dict) and {"url", "text"} <= entry.keys() for entry in value):
        return value
    return None


def _snippet(source: str, text: str, lang: Lang) -> str:
    # A document may contain fences, so ours is longer than any of them and cannot be closed from inside.
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    return _SNIPPET[lang].format(source=source, fence="`" * max(3, longest + 1), content=text)
