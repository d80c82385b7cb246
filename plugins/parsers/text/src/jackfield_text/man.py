"""Parser for Unix manual pages with man or mdoc macros."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from jackfield.retrieval import Block, Document, Parser
from jackfield_documents import decode, pipe_table
from jackfield_text.plain import TextParser

_PAGE = re.compile(r"^[.']\s*(?:TH|Dd|Dt|SH|Sh)\b", re.MULTILINE)
_ESCAPE = re.compile(
    r"\\(?:[\"#].*|[fFmMgkn](?:\[[^\]\n]*\]|\(..|[+-]?.)|s(?:[+-]?\d{1,2}|\[[^\]\n]*\])|[hvwlLbDoxzSHR]'[^'\n]*'"
    r"|\[(?P<name>[^\]\n]*)\]|\((?P<pair>..)|\*(?:\[(?P<string>[^\]\n]*)\]|\((?P<two>..)|(?P<one>.))|(?P<single>.))"
)
_CHARACTERS = {
    "em": "—", "en": "–", "hy": "-", "bu": "•", "co": "©", "rg": "®", "aq": "'", "dq": '"', "lq": "“", "rq": "”",
    "oq": "‘", "cq": "’", "ha": "^", "ti": "~", "rs": "\\", "mi": "−", "->": "→", "<-": "←", "ga": "`", "at": "@",
    "sh": "#", "Do": "$", "ba": "|", "ul": "_", "ss": "ß", "Eu": "€", "de": "°", "mu": "×", "+-": "±", "<=": "≤",
    ">=": "≥", "R": "®", "Tm": "™", ":a": "ä", ":o": "ö", ":u": "ü", "'e": "é", "`e": "è",
}  # fmt: skip
_SINGLES = {"-": "-", "e": "\\", "\\": "\\", " ": " ", "~": "\xa0", "0": " ", "t": "\t", "'": "´", "`": "`", ".": "."}
_ARGUMENT = re.compile(r'"((?:[^"]|"")*)"?|((?:[^\s\\]|\\.)+)')
_CONDITIONS = re.compile(r"^(?:[.']\s*+i[fe]\s++n\s++)++")  # those in a condition: read one by one, they nest
_FONTS = frozenset(("BR", "RB", "BI", "IB", "RI", "IR"))
_SKIPPED_TO_END = {"de": "..", "de1": "..", "am": "..", "ig": ".."}
_QUOTES = {
    "Op": "[]", "Bq": "[]", "Pq": "()", "Aq": "<>", "Brq": "{}", "Dq": "“”", "Qq": '""', "Sq": "‘’", "Ql": "‘’",
}  # fmt: skip
_PARTS = "Ar Pa Ev Cm Li Sy Em Va Vt Ic Dv Er Fn Fa Ft Tn Ad Lk Mt An In No Cd Ms St Bx Ux Nx Ox Fx"
_PLAIN = frozenset(_PARTS.split())
_OPENING_WORDS = {"Oo": "[", "Bo": "[", "Po": "(", "Ao": "<", "Bro": "{", "Do": "“", "Qo": '"', "So": "‘", "Xo": ""}
_CLOSING_WORDS = {"Oc": "]", "Bc": "]", "Pc": ")", "Ac": ">", "Brc": "}", "Dc": "”", "Qc": '"', "Sc": "’", "Xc": ""}
_MDOC = _PLAIN.union(_QUOTES, _OPENING_WORDS, _CLOSING_WORDS, ("Fl", "Nm", "Nd", "Xr", "Ns"))
_CLOSING = frozenset(".,:;)]?!")


class ManParser(Parser):
    """Parses manual pages: sections as headings, paragraphs, options as lists, examples as code, and tables.

    A file without sections, such as a rotated log, is read as plain text.
    """

    name: ClassVar[str] = "man"

    def parse(self, data: bytes, *, source: str) -> Document:
        """Parse a manual page into blocks.

        Raises:
            DocParserError: The file is empty, binary, or in an unknown encoding.
        """
        decoded = decode(data, source=source)
        page = _Page()
        for line in decoded.text.split("\n") if _PAGE.search(decoded.text) else ():
            page.read(line)
        blocks = page.finish()
        if not blocks:
            return TextParser().parse(data, source=source)
        metadata = {"encoding": decoded.encoding}
        return Document(source, tuple(blocks), content_hash="", title=page.title, metadata=metadata)


class _Page:
    """Reads a manual page line by line."""

    def __init__(self) -> None:
        self.title = ""
        self._blocks: list[Block] = []
        self._words: list[str] = []
        self._items: list[str] = []
        self._lead = ""
        self._is_tag = False
        self._heading = 0
        self._code: list[str] | None = None
        self._table: list[str] | None = None
        self._end_of_skipped = ""
        self._has_begun = False
        self._name = ""

    def read(self, line: str) -> None:
        """Read the next line."""
        if line.endswith("\\") and not line.endswith("\\\\"):  # the line continues in the next
            line = line[:-1]
        if self._end_of_skipped:
            if "".join(line.split()) == self._end_of_skipped:
                self._end_of_skipped = ""
        elif line[:1] in (".", "'"):
            name, _, rest = line[1:].lstrip().partition(" ")
            self._macro(name.strip(), rest.strip())
        elif self._table is not None:
            self._table.append(line)
        elif self._code is not None:
            self._code.append(_unescape(line))
        elif not line.strip():
            self._end_paragraph()
        else:
            self._text(_unescape(line))

    def finish(self) -> list[Block]:
        """Return all blocks."""
        self._end_code()
        self._end_table()
        self._end_list()
        return self._blocks

    def _macro(self, name: str, rest: str) -> None:
        if name in _SKIPPED_TO_END:
            self._end_of_skipped = _SKIPPED_TO_END[name]
        elif action := _MACROS.get(name):
            action(self, rest)
        elif name in ("B", "I", "SM", "SB"):
            self._text(" ".join(_arguments(rest)))
        elif name in _FONTS:
            self._text("".join(_arguments(rest)))
        elif name in _MDOC:
            self._text(self._mdoc([name, *_arguments(rest)]))

    def _text(self, text: str) -> None:
        if not self._has_begun or not text.strip():
            return
        if self._heading:
            level, self._heading = self._heading, 0
            self._begin_section(text, level)
        elif self._is_tag:
            self._is_tag = False
            self._lead = " ".join(text.split())
        elif self._code is not None:
            self._code.append(text)
        else:
            self._words.append(text.strip())

    def _begin_section(self, rest: str, level: int) -> None:
        self._end_code()
        self._end_list()
        text = " ".join(" ".join(_arguments(rest)).split())
        self._has_begun = True
        if text:
            self._blocks.append(Block(text, kind="heading", level=level))
        else:  # it is on the next line
            self._heading = level

    def _section(self, rest: str) -> None:
        self._begin_section(rest, 1)

    def _subsection(self, rest: str) -> None:
        self._begin_section(rest, 2)

    def _name_page(self, rest: str) -> None:
        words = _arguments(rest)
        self.title = f"{words[0]}({words[1]})" if len(words) > 1 else "".join(words)

    def _paragraph(self, _: str) -> None:
        self._end_list()

    def _end_paragraph(self, _: str = "") -> None:
        text, self._words = " ".join(self._words), []
        lead, self._lead = self._lead, ""
        if lead:
            self._items.append(f"- {lead}: {text}" if text else f"- {lead}")
        elif text and self._items:
            self._items.append(f"  {text}")
        elif text:
            self._blocks.append(Block(text))

    def _end_list(self, _: str = "") -> None:
        self._end_paragraph()
        if self._items:
            self._blocks.append(Block("\n".join(self._items), kind="list"))
            self._items = []

    def _tag(self, _: str) -> None:
        self._end_paragraph()
        self._is_tag = True

    def _item(self, rest: str) -> None:
        self._end_paragraph()
        tag = next(iter(_arguments(rest)), "")
        self._lead = "" if tag in ("•", "o", "*") else " ".join(tag.split())

    def _mdoc_item(self, rest: str) -> None:
        self._end_paragraph()
        self._lead = self._mdoc(_arguments(rest))

    def _begin_code(self, _: str) -> None:
        self._end_list()
        self._code = []

    def _end_code(self, _: str = "") -> None:
        text = "\n".join(self._code or ()).strip("\n").rstrip()
        if text.strip():
            self._blocks.append(Block(text, kind="code"))
        self._code = None

    def _begin_table(self, _: str) -> None:
        self._end_list()
        self._table = []

    def _end_table(self, _: str = "") -> None:
        lines, self._table = self._table or [], None
        start = next((place + 1 for place, line in enumerate(lines) if line.rstrip().endswith(".")), 0)
        separator = re.search(r"tab\s*\((.)\)", lines[0]) if lines else None
        rows = [_unescape(line).split(separator[1] if separator else "\t") for line in _join_cells(lines[start:])]
        cells = [[cell.replace("T{", "").replace("T}", "").strip() for cell in row] for row in rows]
        if table := pipe_table(row for row in cells if row not in (["_"], ["="])):
            self._blocks.append(Block(table, kind="table"))

    def _conditional(self, rest: str) -> None:
        condition, _, line = rest.partition(" ")
        line = _CONDITIONS.sub("", line.strip(), count=1)
        if condition == "n" and not line.startswith("\\{"):
            self.read(line)

    def _link(self, rest: str) -> None:
        self._text(" ".join(_arguments(rest)))

    def _mdoc(self, line: list[str]) -> str:
        """Return the text of an mdoc line, where macros appear among ordinary words."""
        text = ""
        closing: list[str] = []
        is_glued = True
        words = deque(line)
        while words:
            word = words.popleft()
            if word in _QUOTES:
                shown, next_glued = _QUOTES[word][0], True
                closing.append(_QUOTES[word][1])
            elif word in _OPENING_WORDS:
                shown, next_glued = _OPENING_WORDS[word], True
            elif word in _CLOSING_WORDS:
                text += _CLOSING_WORDS[word]
                is_glued = False
                continue
            elif word == "Fl":
                shown, next_glued = "-", bool(words)
            elif word in _PLAIN or word == "Nd":
                shown, next_glued = "— " if word == "Nd" else "", is_glued or word == "Nd"
            elif word == "Nm":
                shown, next_glued = words.popleft() if words and words[0] not in _CLOSING else self._name, False
                self._name = self._name or shown
            elif word == "Xr" and len(words) > 1:
                shown, next_glued = f"{words.popleft()}({words.popleft()})", False
            elif word == "Ns":
                shown, next_glued = "", True
            else:
                shown, next_glued = word, False
            text += shown if is_glued or word in _CLOSING or not shown else f" {shown}"
            is_glued = next_glued
        return text + "".join(reversed(closing))


_MACROS: dict[str, Callable[[_Page, str], None]] = {
    "TH": _Page._name_page, "Dt": _Page._name_page, "SH": _Page._section, "Sh": _Page._section,
    "SS": _Page._subsection, "Ss": _Page._subsection,
    **dict.fromkeys(("PP", "P", "LP", "Pp", "HP"), _Page._paragraph),
    **dict.fromkeys(("sp", "br", "RS", "RE", "Bl"), _Page._end_paragraph),
    "El": _Page._end_list, "TP": _Page._tag, "TQ": _Page._tag, "IP": _Page._item, "It": _Page._mdoc_item,
    **dict.fromkeys(("nf", "EX", "Bd", "Vb"), _Page._begin_code),
    **dict.fromkeys(("fi", "EE", "Ed", "Ve"), _Page._end_code),
    "TS": _Page._begin_table, "TE": _Page._end_table, "if": _Page._conditional, "ie": _Page._conditional,
    "UR": _Page._link, "MT": _Page._link,
}  # fmt: skip
"""Macros that do more than print their arguments."""


def _join_cells(lines: Sequence[str]) -> Iterator[str]:
    """Yield the rows of a table. A cell between `T{` and `T}` spans several lines."""
    row: list[str] = []
    is_open = False
    for line in lines:
        row.append(line.strip() if is_open else line)
        is_open = line.rstrip().endswith("T{") or (is_open and not line.startswith("T}"))
        if not is_open:
            yield " ".join(row)
            row.clear()
    if row:
        yield " ".join(row)


def _arguments(rest: str) -> list[str]:
    return [
        _unescape(match[1].replace('""', '"') if match[1] is not None else match[2])
        for match in _ARGUMENT.finditer(rest.partition(' \\"')[0])
    ]


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(escape: re.Match[str]) -> str:
    if single := escape["single"]:
        return _SINGLES.get(single, "")
    name = escape["name"] or escape["pair"] or escape["string"] or escape["two"] or escape["one"] or ""
    if name[:1] == "u" and re.fullmatch(r"u[0-9A-F]{4,5}", name):
        return chr(int(name[1:], 16))
    return _CHARACTERS.get(name, "")
