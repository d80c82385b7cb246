"""Interpret RTF tokens: groups with their properties, and the paragraphs, tables and notes in them.

Source: Rich Text Format Specification 1.9.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from jackfield.retrieval import Block
from jackfield_documents import codec_of, pipe_table
from jackfield_rtf.tokens import Token

_LONGEST_LINK = 300  # characters
_MOST_SKIPPED = 16  # characters after \u
_MOST_INDENT = 8
_HYPERLINK = re.compile(r'HYPERLINK\s+"([^"]+)"')
_NUMBERED = re.compile(r"\(?[0-9A-Za-z]{1,6}[.)]")
_HEADING = re.compile(r"heading ([1-9])\b")
_CHARACTERS = {
    "tab": "\t", "line": "\n", "lbr": "\n", "emdash": "—", "endash": "–", "bullet": "•", "lquote": "‘", "rquote": "’",
    "ldblquote": "“", "rdblquote": "”", "emspace": " ", "enspace": " ", "qmspace": " ", "softline": "\n",
}  # fmt: skip
_SYMBOLS = {"~": "\xa0", "_": "-", "{": "{", "}": "}", "\\": "\\"}
_PARAGRAPH_ENDS = frozenset(("par", "sect", "page", "column"))
_IGNORED = frozenset(
    (
        "colortbl", "pict", "objdata", "objclass", "objname", "header", "headerl", "headerr", "headerf", "footer",
        "footerl", "footerr", "footerf", "listtable", "listoverridetable", "rsidtbl", "generator", "themedata",
        "colorschememapping", "datastore", "latentstyles", "xmlnstbl", "nonshppict", "sn", "sv", "revtbl", "filetbl",
        "bkmkstart", "bkmkend", "xe", "tc", "ftnsep", "ftnsepc", "aftnsep", "aftnsepc", "template", "pnseclvl",
        "listpicture", "atnid", "atnauthor", "atndate", "atnref", "atrfstart", "atrfend", "wgrffmtfilter",
        "nonesttables", "mmathPr",
    )
)  # fmt: skip
# Groups that old programs skip, and that have text.
_READ_THOUGH_NEW = frozenset(("shpinst", "shptxt", "annotation", "fldinst", "listtext", "pntext"))
_STATED = {"title": "title", "author": "author", "subject": "subject", "keywords": "keywords"}
_KEPT_APART = frozenset(("fldinst", "listtext", "pntext", *_STATED))
_CODE_PAGES = {
    77: "macintosh", 128: "shift_jis", 129: "euc-kr", 134: "gbk", 136: "big5", 161: "windows-1253",
    162: "windows-1254", 163: "windows-1258", 177: "windows-1255", 178: "windows-1256", 186: "windows-1257",
    204: "windows-1251", 222: "windows-874", 238: "windows-1250",
}  # fmt: skip
_LABELS = {932: "shift_jis", 936: "gbk", 949: "euc-kr", 950: "big5", 65001: "utf-8", 10000: "macintosh"}


@dataclass(frozen=True, slots=True)
class _Group:
    """The properties of a group, which nested groups inherit."""

    destination: str = ""
    is_ignored: bool = False
    is_hidden: bool = False
    is_first: bool = True  # no word has come yet
    is_new: bool = False  # after \*
    skipped: int = 1  # characters after \u that stand for it in old programs
    codec: str = ""


@dataclass(slots=True)
class _Text:
    """The text of a paragraph, a note or a metadata field, collected in several encodings."""

    parts: list[str] = field(default_factory=list)
    units: list[int] = field(default_factory=list)  # of UTF-16
    raw: bytearray = field(default_factory=bytearray)
    codec: str = ""

    def add(self, text: str) -> None:
        self.flush()
        self.parts.append(text)

    def add_bytes(self, data: bytes, codec: str) -> None:
        if self.units or codec != self.codec:
            self.flush()
            self.codec = codec
        self.raw += data

    def add_unit(self, unit: int) -> None:
        if self.raw:
            self.flush()
        self.units.append(unit & 0xFFFF)

    def flush(self) -> None:
        if self.raw:
            self.parts.append(self.raw.decode(self.codec, "replace"))
            self.raw.clear()
        if self.units:
            data = b"".join(unit.to_bytes(2, "little") for unit in self.units)
            self.parts.append(data.decode("utf-16-le", "replace"))
            self.units.clear()

    def take(self) -> str:
        """Return the text, and start a new one."""
        self.flush()
        text = "".join(self.parts).replace("\0", "")
        self.parts.clear()
        return text


class Reader:
    """Reads tokens one by one into blocks.

    Args:
        spare_chars: The number of characters that may be repeated for merged cells.

    Attributes:
        stated: Metadata declared in the file: `title`, `author`, `subject`, `keywords`.
    """

    def __init__(self, *, spare_chars: int) -> None:
        self.stated: dict[str, str] = {}
        self._blocks: list[Block] = []
        self._group = _Group()
        self._outer: list[_Group] = []
        self._text = _Text()
        self._outer_texts: list[tuple[int, _Text, tuple[int, int, bool]]] = []  # depth and properties of each
        self._to_skip = 0
        self._default_codec = "cp1252"
        self._fonts: dict[int, str] = {}
        self._font = -1
        self._styles: dict[int, int] = {}
        self._style = -1
        self._level = 0
        self._notes: list[str] = []
        self._note_counts: dict[str, int] = {}
        self._link = ""
        self._link_start: list[tuple[int, int]] = []  # depth, number of parts
        self._marker = ""
        self._indent = 0
        self._list: list[str] = []
        self._in_table = False
        self._cell: list[str] = []
        self._row: list[str] = []
        self._rows: list[list[str]] = []
        self._merged: list[bool] = []
        self._next_merged = False
        self._spare_chars = spare_chars

    def read(self, token: Token) -> None:
        """Read the next token."""
        match token.kind:
            case "open":
                self._outer.append(self._group)
                self._group = replace(self._group, is_first=True, is_new=False)
            case "close":
                self._close()
            case "word":
                self._word(token.value, token.number)
            case "symbol":
                self._symbol(token.value)
            case _:
                self._add_bytes(token.data)

    def finish(self) -> list[Block]:
        """Return all blocks, with the notes at the end."""
        while self._outer:  # the file was cut off
            self._close()
        self._end_paragraph()
        self._end_table()
        self._end_list()
        return [*self._blocks, *map(Block, self._notes)]

    # --- groups ---

    def _close(self) -> None:
        depth = len(self._outer)
        if self._link_start and self._link_start[-1][0] == depth:
            self._end_link(self._link_start.pop()[1])
        if self._outer_texts and self._outer_texts[-1][0] == depth:
            self._end_text()
        if self._outer:
            self._group = self._outer.pop()

    def _begin_text(self) -> None:
        self._outer_texts.append((len(self._outer), self._text, (self._level, self._indent, self._in_table)))
        self._text = _Text()

    def _end_text(self) -> None:
        destination = self._group.destination
        text = self._text.take()
        _, self._text, (self._level, self._indent, self._in_table) = self._outer_texts.pop()
        line = " ".join(text.split())
        if destination == "fldinst":
            link = _HYPERLINK.search(line)
            self._link = link[1] if link and len(link[1]) <= _LONGEST_LINK else ""
        elif destination in ("listtext", "pntext"):
            self._marker = line or "•"
        elif destination in _STATED and line:
            self.stated[_STATED[destination]] = line
        elif destination in ("footnote", "annotation") and line:
            kind = "c" if destination == "annotation" else ""
            self._note_counts[kind] = self._note_counts.get(kind, 0) + 1
            mark = f"[^{kind}{self._note_counts[kind]}]"
            self._notes.append(f"{mark}: {line}")
            self._text.add(mark)

    def _end_link(self, start: int) -> None:
        if not self._link:  # a link inside this one has used the address
            return
        self._text.flush()
        shown = "".join(self._text.parts[start:])
        if shown.strip() and "\n" not in shown and not self._link.startswith("#"):
            target = self._link.replace("(", "%28").replace(")", "%29")
            self._text.parts[start:] = [f"[{shown.strip()}]({target})"]
        self._link = ""

    # --- words ---

    def _word(self, word: str, number: int | None) -> None:
        group = self._group
        is_first = group.is_first
        if is_first:
            self._group = group = replace(group, is_first=False)
            if word in _IGNORED or (group.is_new and word not in _READ_THOUGH_NEW):
                self._group = replace(group, is_ignored=True)
        if self._group.is_ignored or self._begin_destination(word):
            return
        if group.destination == "fonttbl":
            self._font_word(word, number)
        elif group.destination == "stylesheet":
            self._style_word(word, number)
        elif action := _ACTIONS.get(word):
            action(self, 0 if number is None else number)
        elif word in _PARAGRAPH_ENDS:
            self._end_paragraph()
        elif word in _CHARACTERS:
            self._add(_CHARACTERS[word])
        elif word in ("v", "deleted", "htmlrtf"):
            self._group = replace(self._group, is_hidden=number != 0)

    def _begin_destination(self, word: str) -> bool:
        """Switch to content outside of the paragraph. Return False if the word is not a destination."""
        if word in ("fonttbl", "stylesheet", "info"):
            self._group = replace(self._group, destination=word)
            if word == "stylesheet":
                self._begin_text()
        elif word in _STATED and self._group.destination != "info":
            return False
        elif word in _KEPT_APART or word in ("footnote", "annotation"):
            self._group = replace(self._group, destination=word)
            self._begin_text()
        elif word == "fldrslt" and self._link:
            self._text.flush()
            self._link_start.append((len(self._outer), len(self._text.parts)))
        else:
            return word == "fldrslt"
        return True

    def _symbol(self, symbol: str) -> None:
        if symbol == "*":
            self._group = replace(self._group, is_new=True)
        elif symbol in _SYMBOLS:
            self._add(_SYMBOLS[symbol])
        elif symbol in "\r\n":
            self._end_paragraph()

    def _font_word(self, word: str, number: int | None) -> None:
        if word == "f":
            self._font = number or 0
        elif word == "fcharset" and number in _CODE_PAGES:
            self._fonts[self._font] = codec_of(_CODE_PAGES[number]) or ""
        elif word == "cpg" and number:
            self._fonts[self._font] = _codec(number) or self._fonts.get(self._font, "")

    def _style_word(self, word: str, number: int | None) -> None:
        if word == "s":
            self._style = number or 0
        elif word == "outlinelevel" and number is not None and 0 <= number < 9:
            self._styles[self._style] = number + 1

    # --- text ---

    def _is_shown(self) -> bool:
        group = self._group
        return not (group.is_ignored or group.is_hidden or group.destination in ("fonttbl", "info"))

    def _add(self, text: str) -> None:
        if self._to_skip:
            self._to_skip -= 1
        elif self._is_shown():
            self._text.add(text)

    def _add_bytes(self, data: bytes) -> None:
        self._group = replace(self._group, is_first=False) if self._group.is_first else self._group
        skipped = min(self._to_skip, len(data))
        self._to_skip -= skipped
        data = data[skipped:]
        if not data or not self._is_shown():
            return
        if self._group.destination == "stylesheet":
            self._name_styles(data)
        else:
            self._text.add_bytes(data, self._group.codec or self._default_codec)

    def _name_styles(self, data: bytes) -> None:
        """Record the heading level of a style by its name.

        A name may arrive in several chunks; the level is in the first one.
        """
        name = data.decode("latin-1").strip().rstrip(";").lower()
        heading = _HEADING.match(name)
        if heading or name == "title":
            self._styles.setdefault(self._style, int(heading[1]) if heading else 1)

    def _unicode(self, number: int) -> None:
        self._to_skip = 0
        if self._is_shown():
            self._text.add_unit(number)
        self._to_skip = self._group.skipped

    def _skip_after_unicode(self, number: int) -> None:
        self._group = replace(self._group, skipped=max(0, min(number, _MOST_SKIPPED)))

    def _use_font(self, number: int) -> None:
        self._group = replace(self._group, codec=self._fonts.get(number, ""))

    def _use_plain_text(self, _: int) -> None:
        self._group = replace(self._group, codec="", is_hidden=False)

    def _use_code_page(self, number: int) -> None:
        self._default_codec = _codec(number) or self._default_codec

    # --- paragraphs ---

    def _begin_paragraph(self, _: int) -> None:
        self._level = self._indent = 0
        self._in_table = False

    def _use_style(self, number: int) -> None:
        self._level = self._styles.get(number, 0)

    def _use_level(self, number: int) -> None:
        self._level = number + 1 if 0 <= number < 9 else 0

    def _use_indent(self, number: int) -> None:
        self._indent = max(0, min(number, _MOST_INDENT))

    def _enter_table(self, _: int) -> None:
        self._in_table = True

    def _end_paragraph(self) -> None:
        if self._outer_texts:  # of a note
            self._text.add("\n")
            return
        text = self._text.take().strip()
        marker, self._marker = self._marker, ""
        if self._in_table:
            if text:
                self._cell.append(f"{marker} {text}".strip())
            return
        self._end_table()
        if not text:
            return
        if marker and not self._level:
            lead = marker if _NUMBERED.fullmatch(marker) else "-"
            self._list.append("  " * self._indent + f"{lead} {' '.join(text.split())}")
            return
        self._end_list()
        if self._level:
            line = " ".join(f"{marker} {text}".split())
            self._blocks.append(Block(line, kind="heading", level=self._level))
        else:
            self._blocks.append(Block(text))

    def _end_list(self) -> None:
        if self._list:
            self._blocks.append(Block("\n".join(self._list), kind="list"))
            self._list.clear()

    # --- tables ---

    def _end_cell(self, _: int) -> None:
        if self._outer_texts:
            return
        marker, self._marker = self._marker, ""
        if text := self._text.take().strip():
            self._cell.append(f"{marker} {text}".strip())
        self._row.append("\n".join(self._cell))
        self._cell.clear()

    def _end_nested_cell(self, _: int) -> None:
        self._add("\n")

    def _begin_row(self, _: int) -> None:
        self._merged.clear()
        self._next_merged = False

    def _merge_down(self, _: int) -> None:
        self._next_merged = True

    def _end_definition(self, _: int) -> None:
        self._merged.append(self._next_merged)
        self._next_merged = False

    def _end_row(self, _: int) -> None:
        if self._outer_texts:
            return
        above = self._rows[-1] if self._rows else []
        for column in range(min(len(self._row), len(self._merged), len(above))):
            if self._merged[column] and not self._row[column] and len(above[column]) <= self._spare_chars:
                self._row[column] = above[column]
                self._spare_chars -= len(above[column])
        if self._row:
            self._rows.append(self._row)
        self._row = []

    def _end_table(self) -> None:
        if self._cell or self._row:  # cut off
            self._row += ["\n".join(self._cell)] if self._cell else []
            self._cell = []
            self._end_row(0)
        if table := pipe_table(self._rows):
            self._end_list()
            self._blocks.append(Block(table, kind="table"))
        self._rows = []


_ACTIONS: dict[str, Callable[[Reader, int], None]] = {
    "u": Reader._unicode,
    "uc": Reader._skip_after_unicode,
    "f": Reader._use_font,
    "plain": Reader._use_plain_text,
    "ansicpg": Reader._use_code_page,
    "pard": Reader._begin_paragraph,
    "s": Reader._use_style,
    "outlinelevel": Reader._use_level,
    "ilvl": Reader._use_indent,
    "intbl": Reader._enter_table,
    "cell": Reader._end_cell,
    "nestcell": Reader._end_nested_cell,
    "trowd": Reader._begin_row,
    "clvmrg": Reader._merge_down,
    "cellx": Reader._end_definition,
    "row": Reader._end_row,
}


def _codec(page: int) -> str | None:
    return codec_of(_LABELS.get(page, f"windows-{page}"))
