"""Look up encodings declared by pages, files and servers.

Python has far more codecs than browsers, and some take quadratic time: a megabyte of `punycode` takes minutes in C code
that holds the GIL. Therefore, only labels in the Encoding Standard are accepted.
"""

from __future__ import annotations

# Neither encodes text: "replacement" covers encodings used in attacks, "x-user-defined" covers raw bytes.
_WITHOUT_TEXT = ("replacement", "x-user-defined")


def codec_of(label: str) -> str | None:
    """Return Python's codec for a document's encoding label, following the WHATWG Encoding Standard.

    Returns:
        A codec that decodes in linear time, or None if the label is not in the standard or the encoding is not for
        text.

    Source: https://encoding.spec.whatwg.org/#names-and-labels, as implemented by `webencodings`.
    """
    import webencodings

    encoding = webencodings.lookup(label) if label.isascii() else None
    if encoding is None or encoding.name in _WITHOUT_TEXT:
        return None
    # GB18030 is a superset of GBK; browsers use it instead.
    return "gb18030" if encoding.name == "gbk" else str(encoding.codec_info.name)


def as_marked_utf8(data: bytes, codec: str) -> bytes:
    """Convert text bytes to UTF-8 with a byte order mark, which all parsers detect. Invalid bytes become U+FFFD.

    Args:
        data: The encoded text.
        codec: The text's encoding, as returned by `codec_of`.
    """
    return data.decode(codec, "replace").encode("utf-8-sig", "replace")
