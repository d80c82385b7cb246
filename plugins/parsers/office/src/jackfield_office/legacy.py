"""Parser for Word and PowerPoint files from before 2007, which LibreOffice converts."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from jackfield.config import Config, ProgramText
from jackfield.errors import DocParserError
from jackfield.retrieval import Document, Parser
from jackfield_office.libreoffice import convert
from jackfield_office.slides import PptxParser
from jackfield_office.word import DocxParser

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_RTF = b"{\\rtf"
_KINDS = {"PowerPoint Document".encode("utf-16-le"): "pptx", "WordDocument".encode("utf-16-le"): "docx"}
_SHEETS = "Workbook".encode("utf-16-le")
_PARSERS: dict[str, type[Parser]] = {"docx": DocxParser, "pptx": PptxParser}
_PROGRAMS = ("soffice", "libreoffice")


class LegacyConfig(Config):
    """Settings for running LibreOffice."""

    soffice: ProgramText = Field(default="", description="Path of the program; if empty, looked up on the PATH")
    timeout_s: float = Field(default=100.0, gt=0, description="Time limit for converting one file")


class LegacyParser(Parser):
    """Parses `.doc` and `.ppt` files by converting each with LibreOffice, in a profile of its own."""

    name: ClassVar[str] = "doc"
    config_class = LegacyConfig
    config: LegacyConfig

    def parse(self, data: bytes, *, source: str) -> Document:
        """Parse a legacy Word or PowerPoint file into blocks.

        Raises:
            DocParserError: The file is empty, encrypted, damaged, or of another kind, or LibreOffice is not installed.
        """
        kind = _kind(data, source)
        program = self._program(source, kind)
        with tempfile.TemporaryDirectory(prefix="jackfield-office-") as folder:
            made = self._turned(program, data, kind, Path(folder), source)
        return _PARSERS[kind]().parse(made, source=source)

    def _program(self, source: str, kind: str) -> str:
        """Return the path of the configured LibreOffice program, or of one on the PATH."""
        named = self.config.soffice
        found = filter(None, map(shutil.which, (named,) if named else _PROGRAMS))
        if program := next(found, None):
            return program
        if named:
            raise DocParserError(f"{source} cannot be read: no program {named!r}, as set in `soffice`")
        raise DocParserError(
            f"{source} cannot be read: files from Office versions before 2007 require LibreOffice, which is not "
            f"installed. "
            f"Install it (Debian: apt install libreoffice), or save the file as .{kind}"
        )

    def _turned(self, program: str, data: bytes, kind: str, folder: Path, source: str) -> bytes:
        file = folder / f"document.{kind.removesuffix('x')}"
        file.write_bytes(data)
        try:
            made = convert(program, file, kind, folder, timeout_s=self.config.timeout_s)
        except subprocess.TimeoutExpired as error:
            limit = f"{self.config.timeout_s:g} s"
            raise DocParserError(f"{source} cannot be read: LibreOffice timed out after {limit}") from error
        except OSError as error:
            raise DocParserError(f"{source} cannot be read: {program} cannot be started ({error.strerror})") from error
        if not made.is_file():
            raise DocParserError(f"{source} is corrupted or encrypted: LibreOffice cannot read it")
        return made.read_bytes()


def _kind(data: bytes, source: str) -> str:
    """Return the format to convert to."""
    if not data:
        raise DocParserError(f"{source} is empty")
    if data.startswith(_RTF):
        return "docx"
    if data.startswith(b"PK"):
        raise DocParserError(f"{source} is in a newer format than its extension: rename it to .docx or .pptx")
    if not data.startswith(_OLE):
        raise DocParserError(
            f"{source} does not match its extension: the extension may be wrong, or the file corrupted"
        )
    return _kind_by_streams(data, source)


def _kind_by_streams(data: bytes, source: str) -> str:
    for stream, kind in _KINDS.items():
        if stream in data:
            return kind
    what = "a spreadsheet: rename it to .xls" if _SHEETS in data else "encrypted, or created by another program"
    raise DocParserError(f"{source} cannot be read: it is {what}")
