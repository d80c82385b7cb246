"""Word and PowerPoint files of before 2007, which LibreOffice turns into newer ones."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from jackfield.config import Config
from jackfield.errors import DocParserError
from jackfield.retrieval import Document, Parser
from jackfield_office.slides import PptxParser
from jackfield_office.word import DocxParser

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_RTF = b"{\\rtf"
_WORD, _SLIDES, _SHEETS = (name.encode("utf-16-le") for name in ("WordDocument", "PowerPoint Document", "Workbook"))
_MEMORY_KIB = 4 * 2**20
_CPU_S = 90
# Nothing that a document names is loaded, and nothing in it is run.
_SETTINGS = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema">
<item oor:path="/org.openoffice.Office.Common/Security/Scripting">
<prop oor:name="BlockUntrustedRefererLinks" oor:op="fuse"><value>true</value></prop>
<prop oor:name="DisableActiveContent" oor:op="fuse"><value>true</value></prop>
<prop oor:name="DisableMacrosExecution" oor:op="fuse"><value>true</value></prop>
</item></oor:items>
"""


class LegacyConfig(Config):
    """Where LibreOffice is."""

    soffice: str = Field(default="", description="The program; looked for on the PATH if it is empty")
    timeout_s: float = Field(default=100.0, gt=0, description="How long turning one file may take")


class LegacyParser(Parser):
    """Reads `.doc` and `.ppt` files through LibreOffice, which it starts for each, with a profile of its own."""

    name: ClassVar[str] = "doc"
    config_class = LegacyConfig
    config: LegacyConfig

    def parse(self, data: bytes, *, source: str) -> Document:
        """Turn an old Word or PowerPoint file into blocks.

        Raises:
            DocParserError: It is empty, encrypted, damaged or of another kind; or LibreOffice is not installed.
        """
        kind = _kind(data, source)
        program = self.config.soffice or shutil.which("soffice") or shutil.which("libreoffice")
        if not program:
            raise DocParserError(
                f"{source} cannot be read: files of Office before 2007 need LibreOffice, which is not installed. "
                f"Install it (Debian: apt install libreoffice), or save the file as .{kind}"
            )
        with tempfile.TemporaryDirectory(prefix="jackfield-office-") as folder:
            made = self._turned(program, data, kind, Path(folder), source)
        return (DocxParser() if kind == "docx" else PptxParser()).parse(made, source=source)

    def _turned(self, program: str, data: bytes, kind: str, folder: Path, source: str) -> bytes:
        file = folder / ("document.doc" if kind == "docx" else "document.ppt")
        file.write_bytes(data)
        settings = folder / "profile" / "user" / "registrymodifications.xcu"
        settings.parent.mkdir(parents=True)
        settings.write_text(_SETTINGS)
        profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
        options = ["--headless", "--norestore", "--nolockcheck", profile]
        command = [program, *options, "--convert-to", kind, "--outdir", str(folder / "made"), str(file)]
        try:
            _run(command, folder, self.config.timeout_s)
        except subprocess.TimeoutExpired as error:
            limit = f"{self.config.timeout_s:g} s"
            raise DocParserError(f"{source} cannot be read: LibreOffice takes more than {limit}") from error
        except OSError as error:
            raise DocParserError(f"{source} cannot be read: {program} cannot be started ({error.strerror})") from error
        made = folder / "made" / f"document.{kind}"
        if not made.is_file():
            raise DocParserError(f"{source} is damaged or encrypted: LibreOffice cannot read it")
        return made.read_bytes()


def _kind(data: bytes, source: str) -> str:
    """What it is turned into."""
    if not data:
        raise DocParserError(f"{source} is empty")
    if data.startswith(_RTF):
        return "docx"
    if data.startswith(b"PK"):
        raise DocParserError(f"{source} is a newer file with an old extension: rename it to .docx or .pptx")
    if not data.startswith(_OLE):
        raise DocParserError(f"{source} is not what its name says: its extension may be wrong, or it is damaged")
    if _SLIDES in data:
        return "pptx"
    if _WORD in data:
        return "docx"
    what = "a spreadsheet: rename it to .xls" if _SHEETS in data else "encrypted, or of another program"
    raise DocParserError(f"{source} cannot be read: it is {what}")


def _run(command: Sequence[str], folder: Path, timeout_s: float) -> None:
    """Run LibreOffice, which needs more memory than a parser may have, with limits of its own."""
    if os.name == "posix":
        limits = f"ulimit -S -v {_MEMORY_KIB}; ulimit -S -t {_CPU_S}; " + 'exec "$0" "$@"'
        command = ["/bin/sh", "-c", limits, *command]
    nowhere = "http://127.0.0.1:9"
    process = subprocess.Popen(  # noqa: S603 - a program that the user has installed
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "HOME": str(folder), "http_proxy": nowhere, "https_proxy": nowhere},
    )
    try:
        process.wait(timeout_s)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL) if os.name == "posix" else process.kill()
            process.wait()
