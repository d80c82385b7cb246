"""Mention files, images, audio and videos in text by their kind and base name only."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

from jackfield.config import Lang
from jackfield.messages import ContentItem, ItemKind, basename_of

LONGEST_NAME = 120
INLINE = "inline"
"""Name for an unnamed item whose bytes are in the message itself."""

_LABELS: Mapping[Lang, Mapping[ItemKind, str]] = {
    "en": {"image": "![image]", "video": "![video]", "audio": "![audio]", "file": "[file]"},
    "zh": {"image": "![图片]", "video": "![视频]", "audio": "![音频]", "file": "[文件]"},
}
_NOTES: Mapping[Lang, str] = {"en": "(Uploaded {}) ", "zh": "（上传了 {}）"}


def mention(item: ContentItem, lang: Lang) -> str:
    """Return a mention of an item, such as `![image](cat.png)` or `[file](report.pdf)`.

    The name is only for display and cannot be used to open a file, because it may be truncated or contain separators.
    It never spans lines or closes the mention early, whatever characters a URL encodes.
    """
    kind, value = item.get_type_and_value()
    return f"{_LABELS[lang][kind]}({_name(value)})"


def is_mentioned(item: ContentItem, texts: Sequence[str]) -> bool:
    """Return True if any of the texts mentions the item, in any language."""
    return any(mention(item, lang) in text for lang in _LABELS for text in texts)


def note(mentions: Sequence[str], lang: Lang) -> str:
    """Return the note that precedes the text of a message with attachments. The English note ends with a space."""
    return _NOTES[lang].format(" ".join(mentions))


def _name(value: object) -> str:
    match value:
        case str():
            return _shown(value)
        case [str(first)]:
            return _shown(first)
        case [str(first), *_, str(last)]:  # the frames of a video
            return f"{_shown(first)} … {_shown(last)}"
        case {"data": str(data)} if data.startswith(("http://", "https://", "file://")):
            return _shown(data)
        case _:  # audio as bytes, in base64
            return INLINE


def _shown(location: str) -> str:
    """Return the base name on a single line."""
    if location[:5].lower() == "data:":
        return INLINE
    name = basename_of(location)
    if len(name) > LONGEST_NAME:
        name = f"{name[: LONGEST_NAME - 21]}…{name[-20:]}"
    # Line breaks, control characters, lone surrogates, and marks that change the writing direction.
    letters = "".join(" " if unicodedata.category(letter)[0] in "CZ" else letter for letter in name)
    return " ".join(letters.split()).replace("](", "] (") or INLINE
