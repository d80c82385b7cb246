"""Detect text encodings."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from dataclasses import dataclass
from itertools import islice

from jackfield.errors import DocParserError

_MARKS = (  # UTF-32 first: its mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_PDF = b"%PDF-"  # a PDF file may consist of ASCII characters only
_SAMPLE_BYTES = 64 * 1024
_MAX_ACCENTS = 8
_LATIN = rb"[\xc0-\xd6\xd8-\xf6\xf8-\xff\x80\x85\x91-\x97\xa0\xa3\xa7\xa9\xab\xb0\xb4\xb7\xbb]"
# One, or two beside a letter.
_ACCENTS = re.compile(rb"(?:%b|(?<=[A-Za-z])%b{2}|%b{2}(?=[A-Za-z]))(?![\x80-\xff])" % (_LATIN, _LATIN, _LATIN))
_ASIAN = frozenset((0, 0x30, *range(0x4E, 0xA0), *range(0xAC, 0xD8), 0xFF))  # Chinese, kana, Korean and their signs
_WHITE_AND_FORMAT = re.compile(r"[\s\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff\x1a\x1b]")
# All control characters but those of texts: tab, line and page ends, escape (coloured logs), backspace, final Ctrl-Z.
_CONTROL = re.compile(r"[\x00-\x07\x0b\x0e-\x19\x1c-\x1f\x7f]")
_HIGH_BYTES = re.compile(rb"[\x80-\xff]+")
_PAIR = re.compile(rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]")
# Encodings in actual use; with all that exist, more of them match by accident.
_LIKELY = (
    *("cp1252", "cp1250", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1255", "cp1256"),
    *("big5", "cp932", "euc_jis_2004", "cp949", "gb18030"),
)


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded text with `\\n` line endings, and its original encoding."""

    text: str
    encoding: str


def decode(data: bytes, *, source: str) -> Decoded:
    """Decode a text file by its byte order mark, else as UTF-16, UTF-8 or GB18030, else by statistics.

    Raises:
        DocParserError: The file is not text, or its encoding cannot be detected; the message names `source`.
    """
    if data.startswith(_PDF):
        raise DocParserError(f"{source} is a PDF file, not text: rename it to .pdf")
    binary = f"{source} contains binary data, not text: its extension may be wrong"
    unknown = f"{source} cannot be read: unknown encoding. Save the file as UTF-8"
    encoding = _detect(data)
    if encoding is None:
        raise DocParserError(binary if b"\0" in data else unknown)
    try:
        text = data.decode(encoding)
    except (UnicodeDecodeError, LookupError) as error:
        raise DocParserError(unknown) from error
    text = text.rstrip("\0\x1a").replace("\r\n", "\n").replace("\r", "\n")
    if len(_CONTROL.findall(text)) > len(text) // 100:
        raise DocParserError(binary)
    if not text.strip():
        raise DocParserError(f"{source} is empty or contains only whitespace")
    return Decoded(text.replace("\0", ""), encoding)


def _detect(data: bytes) -> str | None:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    # UTF-16 comes before UTF-8, because zeros between letters are valid UTF-8.
    if utf16 := _detect_utf16(data):
        return utf16
    try:
        data.decode()
    except UnicodeDecodeError:
        return _detect_short_latin(data) or _detect_chinese_or_korean(data) or _detect_by_statistics(data)
    return "utf-8"


def _detect_utf16(data: bytes) -> str | None:
    if b"\0" not in data.rstrip(b"\0"):
        return None  # zeros at the end are padding
    sample = data[:_SAMPLE_BYTES]
    for high, low, encoding in (
        (sample[1::2], sample[::2], "utf-16-le"),
        (sample[::2], sample[1::2], "utf-16-be"),
    ):
        zeros = high.count(0)
        if 2 * low.count(0) < zeros and _are_high_bytes(high, zeros) and _is_printable(data, encoding):
            return encoding
    return None


def _are_high_bytes(high: bytes, zeros: int) -> bool:
    """Return True if these may be UTF-16 high bytes: 0 in Latin text, and one value per other alphabet."""
    frequent = sum(count for _, count in Counter(high).most_common(2))
    return 2 * zeros >= len(high) or 10 * frequent >= 9 * len(high) or all(byte in _ASIAN for byte in high)


def _is_printable(data: bytes, encoding: str) -> bool:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return _WHITE_AND_FORMAT.sub("", text[:_SAMPLE_BYTES]).rstrip("\0").isprintable()


def _detect_short_latin(data: bytes) -> str | None:
    """Return CP1252 for a few accents between letters, which are too few for statistics; pairs look Chinese."""
    runs = list(islice(_HIGH_BYTES.finditer(data), _MAX_ACCENTS + 1))
    is_short = 0 < sum(len(run[0]) for run in runs) <= _MAX_ACCENTS
    return "cp1252" if is_short and all(_ACCENTS.match(data, run.start()) for run in runs) else None


def _detect_chinese_or_korean(data: bytes) -> str | None:
    """Return GB18030 or CP949 if the bytes look like it. Decoding proves nothing, because almost any bytes decode."""
    sample = data[:_SAMPLE_BYTES]
    if b"\0" in data or not _is_of_pairs(sample, is_all=len(sample) == len(data)):
        return None
    leads = [pair[0] for pair in _PAIR.findall(sample)]
    kana = leads.count(0xA4) + leads.count(0xA5)
    letters = [lead for lead in leads if lead >= 0xB0]
    if not letters or len(letters) < 0.4 * len(leads) or kana > 0.1 * len(leads):
        return None  # EUC-JP, or no letters
    # Korean syllables end at lead byte 0xC8; most Chinese characters are above it.
    return "cp949" if len(letters) >= 20 and max(letters) <= 0xC8 else "gb18030"


def _is_of_pairs(sample: bytes, *, is_all: bool) -> bool:
    """Return True if high bytes come in pairs, as for Chinese and Korean characters.

    In Cyrillic and Greek, every other word has an odd length. In Big5 and Shift JIS, the second byte is often a low
    byte.
    """
    lengths = [run.end() - run.start() for run in _HIGH_BYTES.finditer(sample) if is_all or run.end() < len(sample)]
    return sum(length % 2 == 0 for length in lengths) >= 0.9 * len(lengths)


def _detect_by_statistics(data: bytes) -> str | None:
    if b"\0" in data:
        return None
    from charset_normalizer import from_bytes

    candidates = from_bytes(data[:_SAMPLE_BYTES], cp_isolation=list(_LIKELY))
    best = candidates.best()
    if best is None:
        return None
    if best.encoding in ("cp1250", "cp1254"):
        # They differ from CP1252 in few letters, and CP1252 is far more frequent: prefer it if it fits about as well.
        for match in candidates:
            if match.encoding == "cp1252":
                is_as_good = match.chaos <= best.chaos + 0.02 and match.coherence >= best.coherence - 0.1
                return "cp1252" if is_as_good else best.encoding
    return best.encoding
