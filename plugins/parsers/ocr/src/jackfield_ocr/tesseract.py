"""Run Tesseract on a picture, within limits, and return the recognised paragraphs."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from jackfield.errors import DocParserError
from jackfield_ocr.pictures import Picture

_DEFAULT_LANGUAGES = ("eng", "chi_sim")
_INSTALL = "Install it (Debian: apt install tesseract-ocr tesseract-ocr-chi-sim; macOS: brew install tesseract)"
_CJK = r"[\u2018-\u201d\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]"
_CJK_SPACE = re.compile(rf"(?<={_CJK}) (?={_CJK})")
_LANGUAGE = re.compile(r"[A-Za-z0-9_/-]+")
_LIST_S = 20.0
_COLUMNS = 12  # of Tesseract's table
_WORD_LEVEL = "5"
# The input is a pipe without data. It closes when the parser's process ends, however it ends; that ends Tesseract.
_WATCHED = """
exec 3<&0 </dev/null
"$@" 3<&- &
program=$!
{ read -r _ <&3; kill -9 $program; rm -rf -- "$0"; } >/dev/null 2>&1 &
watcher=$!
exec 3<&-
wait $program
code=$?
kill $watcher 2>/dev/null
exit $code
"""


class _Word(NamedTuple):
    paragraph: tuple[str, str]  # the numbers of its block and paragraph
    line: str
    confidence: float
    text: str


def find_program(named: str, source: str) -> str:
    """Return the path of the configured Tesseract program, or the one on the PATH.

    Raises:
        DocParserError: Tesseract is not installed.
    """
    program = shutil.which(named or "tesseract")
    if program:
        return program
    if named:
        raise DocParserError(f"{source} cannot be read: no program {named!r}, as set in `tesseract`")
    raise DocParserError(f"{source} cannot be read: OCR needs Tesseract, which is not installed. {_INSTALL}")


def describe_installation(settings: Mapping[str, object]) -> str:
    """Return a fingerprint of the installation.

    It changes when Tesseract or a language is installed, updated or removed.
    """
    program = shutil.which(str(settings.get("tesseract") or "tesseract"))
    if program is None:
        return ""
    status = Path(program).stat()
    # Languages are files, so checking their folder is enough after the first time.
    data = sorted((file.name, file.stat().st_size) for file in _language_folder(program).glob("*.traineddata"))
    return repr((program, status.st_size, status.st_mtime_ns, data))


@cache
def _language_folder(program: str) -> Path:
    """Return the language data folder, which the first line of `--list-langs` quotes."""
    try:
        listed = subprocess.run([program, "--list-langs"], capture_output=True, timeout=_LIST_S, check=False)  # noqa: S603 - a program that the user has installed
    except (OSError, subprocess.TimeoutExpired):
        return Path(os.devnull)
    folder = re.search(r'"([^"\n]+)"', listed.stdout.decode(errors="replace").partition("\n")[0])
    return Path(folder[1] if folder else os.devnull)


def choose_languages(program: str, wanted: Sequence[str], source: str) -> tuple[str, ...]:
    """Return the languages to recognise: the wanted ones, or those of the default languages that are installed.

    Raises:
        DocParserError: A wanted language is not installed, or none of the default languages is.
    """
    installed = _installed_languages(program)
    languages = tuple(wanted) or tuple(name for name in _DEFAULT_LANGUAGES if name in installed)
    missing = [name for name in languages if name not in installed or not _LANGUAGE.fullmatch(name)]
    if languages and not missing:
        return languages
    name = (missing or ["eng"])[0]
    available = ", ".join(sorted(installed)) or "none"
    raise DocParserError(
        f"{source} cannot be read: Tesseract has no data for the language {name!r} (installed: {available}). "
        f"Install its data (Debian: apt install tesseract-ocr-{name.replace('_', '-')}), or change the ocr parser's "
        "`languages`"
    )


@cache
def _installed_languages(program: str) -> frozenset[str]:
    try:
        listed = subprocess.run([program, "--list-langs"], capture_output=True, timeout=_LIST_S, check=False)  # noqa: S603 - a program that the user has installed
    except (OSError, subprocess.TimeoutExpired):
        return frozenset()
    _, *names = listed.stdout.decode(errors="replace").split("\n")
    return frozenset(name.strip() for name in names if name.strip())


def recognise(
    program: str, picture: Picture, languages: Sequence[str], source: str, *, timeout_s: float
) -> list[tuple[str, float]]:
    """Return the paragraphs of a picture in reading order, each with its mean confidence in percent.

    Raises:
        DocParserError: Tesseract failed, or took longer than `timeout_s`.
    """
    image = picture.image
    options = ["-l", "+".join(languages), "--psm", "3"]
    if picture.dpi:
        options += ["--dpi", str(picture.dpi)]
    try:
        with tempfile.TemporaryDirectory(prefix="jackfield-ocr-") as folder:
            # Tesseract opens files and addresses named in an input that is not a picture. This input is always pixels.
            file = Path(folder, "page.pgm")
            file.write_bytes(b"P5 %d %d 255\n" % image.size + image.tobytes())
            table, code = _run([program, str(file), "stdout", *options, "tsv"], folder, timeout_s)
    except subprocess.TimeoutExpired as error:
        raise DocParserError(f"{source} cannot be read: OCR of a page timed out after {timeout_s:g} s") from error
    except OSError as error:
        raise DocParserError(f"{source} cannot be read: {program} cannot be started ({error.strerror})") from error
    if code:
        raise DocParserError(f"{source} cannot be read: Tesseract exited with {code}")
    return list(_paragraphs(table.decode(errors="replace")))


def _run(command: Sequence[str], folder: str, timeout_s: float) -> tuple[bytes, int]:
    if os.name == "posix":
        command = ["/bin/sh", "-c", _WATCHED, folder, *command]
    stdin, alive = os.pipe()
    try:
        with subprocess.Popen(  # noqa: S603 - a program that the user has installed
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "OMP_THREAD_LIMIT": "1"},  # more threads cost more total time
        ) as process:
            try:
                output, _ = process.communicate(timeout=timeout_s)
            except BaseException:
                _kill(process)
                raise
        return output, process.returncode
    finally:
        os.close(stdin)
        os.close(alive)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def _paragraphs(table: str) -> Iterator[tuple[str, float]]:
    words = list(_words(table))
    for _, group in groupby(words, key=lambda word: word.paragraph):
        of_paragraph = list(group)
        lines = [" ".join(word.text for word in line) for _, line in groupby(of_paragraph, key=lambda word: word.line)]
        text = _CJK_SPACE.sub("", _join_lines(lines))
        yield text, sum(word.confidence for word in of_paragraph) / len(of_paragraph)


def _words(table: str) -> Iterator[_Word]:
    """Yield the words in Tesseract's TSV output.

    The columns are: level, page, block, paragraph, line, word, four for the box, confidence, text.
    """
    for row in table.split("\n"):
        fields = row.split("\t")
        if len(fields) == _COLUMNS and fields[0] == _WORD_LEVEL and fields[11].strip():
            with contextlib.suppress(ValueError):
                yield _Word((fields[2], fields[3]), fields[4], float(fields[10]), fields[11].strip())


def _join_lines(lines: Sequence[str]) -> str:
    text = ""
    for line in lines:
        if text.endswith("-") and len(text) > 1 and text[-2].isalpha() and line[:1].islower():
            text = text[:-1] + line
        else:
            text = f"{text} {line}" if text else line
    return text
