"""Extract a run's searchable text: its question and its answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

_ANSWERS = ("TurnFinished", "RunFinished")


def search_words(text: str) -> list[str]:
    """Split a search into words, normalised like `searched_text`."""
    return _fold(text).split()


def searched_text(entries: Iterable[str]) -> str:
    """Return a run's question and answers, case-folded, or '' if its content was not recorded.

    Earlier questions, which belong to earlier runs in the conversation, and texts from nested agents are left out.
    """
    return _fold("\n".join(text for entry in entries for text in texts_of(entry)))


def excerpt_of(entries: Iterable[str], words: Sequence[str], *, most_chars: int = 160) -> str:
    """Return a one-line excerpt from the question or answer that contains the most words, or '' without content.

    Args:
        entries: The run's record.
        words: The words, as returned by `search_words`.
        most_chars: The excerpt's maximum length.
    """
    best, best_starts = "", list[int]()
    for text in (" ".join(text.split()) for entry in entries for text in texts_of(entry)):
        starts = [start for word in words if (start := text.lower().find(word)) >= 0]
        if not best or len(starts) > len(best_starts):
            best, best_starts = text, starts
    begin = max(0, min(best_starts, default=0) - most_chars // 3)
    end = begin + most_chars
    return ("…" if begin else "") + best[begin:end] + ("…" if end < len(best) else "")


def texts_of(entry: str) -> list[str]:
    """Return the question or the answers in an entry."""
    if '"messages"' not in entry:
        return []
    try:
        fields = json.loads(entry)
    except (ValueError, RecursionError):
        return []
    if not isinstance(fields, dict) or "below" in fields:
        return []
    messages = fields.get("messages")
    texts = list(_texts(messages if isinstance(messages, list) else ()))
    if fields.get("event") == "RunStarted":
        return [text for role, text in texts if role == "user"][-1:]
    return [text for role, text in texts if role == "assistant"] if fields.get("event") in _ANSWERS else []


def _texts(messages: Iterable[Any]) -> Iterator[tuple[object, str]]:
    """Yield each message's role and text."""
    for message in messages:
        match message:
            case {"role": role, "content": str(text)}:
                yield role, text
            case {"role": role, "content": list(items)}:
                parts = [item.get("text") for item in items if isinstance(item, Mapping)]
                yield role, "\n".join(part for part in parts if isinstance(part, str))


def _fold(text: str) -> str:
    # NULs and lone surrogates are not searchable, and some stores cannot hold them.
    return text.replace("\0", " ").encode("utf-8", "replace").decode().casefold()
