"""Find out in which encoding a text is."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from jackfield.errors import DocParserError

_MARKS = (  # UTF-32 first: its mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE_BYTES = 64 * 1024
# Control characters that texts have: tab, line and page ends, escape (coloured logs), backspace, Ctrl-Z at the end.
_CONTROL = re.compile(r"[\x00-\x07\x0b\x0e-\x19\x1c-\x1f\x7f]")
_HIGH_BYTES = re.compile(rb"[\x80-\xff]+")
_PAIR = re.compile(rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]")
# What text files are really in; among all that exist, one more often fits by accident.
_LIKELY = (
    *("cp1252", "cp1250", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1255", "cp1256"),
    *("big5", "cp932", "euc_jis_2004", "cp949", "gb18030"),
)


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text, with `\\n` as its line end, and the encoding it was in."""

    text: str
    encoding: str


def decode(data: bytes, *, source: str) -> Decoded:
    """Decode a text file: a byte order mark, then UTF-8, then GB18030, then what statistics say.

    Raises:
        DocParserError: It is no text, or its encoding cannot be told; the text names `source`.
    """
    encoding = _marked(data) or _utf8(data) or _utf16_without_mark(data) or _chinese_or_korean(data) or _detected(data)
    if encoding is None:
        raise DocParserError(_no_text(source) if b"\0" in data else _unknown(source))
    try:
        text = data.decode(encoding)
    except (UnicodeDecodeError, LookupError) as error:
        raise DocParserError(_unknown(source)) from error
    text = text.rstrip("\0\x1a").replace("\r\n", "\n").replace("\r", "\n")
    if len(_CONTROL.findall(text)) > len(text) // 100:
        raise DocParserError(_no_text(source))
    if not text.strip():
        raise DocParserError(f"{source} is empty: it holds nothing but white space")
    return Decoded(text.replace("\0", ""), encoding)


def _no_text(source: str) -> str:
    return f"{source} holds binary data, not text: its name may have the wrong extension"


def _unknown(source: str) -> str:
    return f"{source} cannot be read: its encoding is unknown. Save it as UTF-8"


def _marked(data: bytes) -> str | None:
    return next((encoding for mark, encoding in _MARKS if data.startswith(mark)), None)


def _utf8(data: bytes) -> str | None:
    try:
        data.decode()
    except UnicodeDecodeError:
        return None
    return "utf-8"


def _utf16_without_mark(data: bytes) -> str | None:
    sample = data[:_SAMPLE_BYTES]
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    # Latin letters have a zero byte each, always on the same side.
    if odd > half // 2 and even < half // 20:
        return "utf-16-le"
    if even > half // 2 and odd < half // 20:
        return "utf-16-be"
    return None


def _chinese_or_korean(data: bytes) -> str | None:
    """GB18030 or CP949 if the bytes look like it. That they can be decoded proves nothing: almost any can."""
    sample = data[:_SAMPLE_BYTES]
    runs = [run for run in _HIGH_BYTES.finditer(sample) if run.end() < len(sample) or len(sample) == len(data)]
    even = sum((run.end() - run.start()) % 2 == 0 for run in runs)
    # Characters are pairs of high bytes: in Cyrillic and Greek every other word is odd, and in Big5 and Shift JIS the
    # second byte is often a low one.
    if b"\0" in data or even < 0.9 * len(runs):
        return None
    leads = [pair[0] for pair in _PAIR.findall(sample)]
    kana = sum(lead in (0xA4, 0xA5) for lead in leads)
    letters = [lead for lead in leads if lead >= 0xB0]
    if not letters or len(letters) < 0.4 * len(leads) or kana > 0.1 * len(leads):
        return None  # EUC-JP, or no letters
    # The syllables of Korean end where the characters of Chinese have just begun.
    return "cp949" if len(letters) >= 20 and max(letters) <= 0xC8 else "gb18030"


def _detected(data: bytes) -> str | None:
    if b"\0" in data:
        return None
    from charset_normalizer import from_bytes

    candidates = from_bytes(data[:_SAMPLE_BYTES], cp_isolation=list(_LIKELY))
    best = candidates.best()
    if best is None:
        return None
    for candidate in candidates:
        # Western and Central European differ in a few letters only: where both read well, it is the frequent one.
        if candidate.encoding == "cp1252" and best.encoding in ("cp1250", "cp1254"):
            well = candidate.chaos <= best.chaos + 0.02 and candidate.coherence >= best.coherence - 0.1
            return "cp1252" if well else best.encoding
    return best.encoding
