"""Encodings that a page, a file or a server may name.

Python decodes far more than browsers do, and some of it in quadratic time: a megabyte of `punycode` takes minutes in C
code that holds the interpreter. So a name from outside is looked up in the Encoding Standard alone.
"""

from __future__ import annotations

# Both have no text: "replacement" stands for encodings that are attacks, "x-user-defined" for bytes as they are.
_WITHOUT_TEXT = ("replacement", "x-user-defined")


def codec_of(label: str) -> str | None:
    """Python's name for an encoding that a document names, by the labels of WHATWG's Encoding Standard.

    Returns:
        A codec that decodes in linear time; None if the standard has no such label, or if it does not encode text.

    Source: https://encoding.spec.whatwg.org/#names-and-labels, as `webencodings` has it.
    """
    import webencodings

    encoding = webencodings.lookup(label) if label.isascii() else None
    if encoding is None or encoding.name in _WITHOUT_TEXT:
        return None
    # GBK is a part of GB18030, which every browser reads in its place.
    return "gb18030" if encoding.name == "gbk" else str(encoding.codec_info.name)


def as_marked_utf8(data: bytes, codec: str) -> bytes:
    """A text in UTF-8 with a byte order mark, so that every parser reads it alike; bytes that do not fit become U+FFFD.

    Args:
        data: The text.
        codec: The encoding that it is in: one that `codec_of` gave.
    """
    return data.decode(codec, "replace").encode("utf-8-sig", "replace")
