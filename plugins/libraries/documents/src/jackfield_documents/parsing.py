"""Parse files in subprocesses, where time and memory limits stop a hostile file.

A subprocess starts when a file needs one, serves further files, and ends with its parent, even if the parent is killed.
Subprocesses do not import `__main__`, so parsing works in notebooks, web handlers and scripts without a main guard,
under threads and after a fork.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, cast, get_args

from pydantic import SecretStr

from jackfield.errors import DocParserError
from jackfield.retrieval import Block, BlockKind, Document, PageImage, Part
from jackfield_documents.parsing_process import read_frame, write_frame

_MAX_PROCESSES = 32  # started as files wait; each takes 40 to 80 MB once it has read every kind of file
_FILES_PER_PROCESS = 200  # bounds memory leaks of parsers
_START_S = 60.0
_END_S = 5.0  # for a process to exit after closing its output
_PNG = b"\x89PNG\r\n\x1a\n"
_MAX_PIXELS = 16_000_000
_SIGXCPU = 24  # missing from `signal` on Windows
_KINDS = get_args(BlockKind)
# Broader than `environment_secrets`, which finds values to hide: a parser can do without AUTHOR, but must not see
# PGPASSWORD.
_LOOKS_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)
# `sys.path` goes through the pipe: other users can see arguments. `-P` keeps the current directory off `sys.path`.
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.stdin.buffer.raw.read(int(sys.argv[1]))); "
    "from jackfield_documents.parsing_process import serve; serve()"
)


@dataclass(frozen=True, slots=True)
class ParserLimits:
    """Limits for parsing one file, which grow with the file's size.

    Memory is limited on Linux only, CPU time everywhere except on Windows, and wall-clock time everywhere.

    Attributes:
        cpu_s: CPU time in seconds, plus the same again per 4 MiB of the file.
        wall_s: Wall-clock time in seconds, plus the same again per 4 MiB of the file.
        memory_bytes: Memory, plus 40 times the file's size.
        answer_bytes: Size of the parsed document as JSON, plus 40 times the file's size.
    """

    cpu_s: float = 20.0
    wall_s: float = 120.0
    memory_bytes: int = 512 * 2**20
    answer_bytes: int = 64 * 2**20

    def for_file(self, size_bytes: int) -> ParserLimits:
        """Return the limits for a file of this size."""
        times = 1 + size_bytes / (4 * 2**20)
        more = 40 * size_bytes
        return ParserLimits(self.cpu_s * times, self.wall_s * times, self.memory_bytes + more, self.answer_bytes + more)


@dataclass(frozen=True, slots=True)
class ParseJob:
    """A parser, its settings, and its input for one file.

    Attributes:
        name: The parser's name, for errors.
        target: The parser's class, as `module:Class`.
        settings: The parser's settings.
        secrets: Environment variables that the parser may read. Others whose names suggest a secret are withheld.
        source: The file's name, for errors.
        codec: The text's encoding as declared by the server, or ''. If set, the subprocess first decodes the text.
        draw: A page and a passage on it. If set, the page is rendered instead of parsing the file.
    """

    name: str
    target: str
    settings: Mapping[str, object] | None
    secrets: tuple[str, ...]
    source: str
    codec: str = ""
    draw: tuple[int, str] | None = None


class StopSignal:
    """Kills the subprocesses that parse a file and its parts once no caller waits for the document."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_set = False
        self._processes: set[subprocess.Popen[bytes]] = set()

    def set(self) -> None:
        """Kill the subprocesses and prevent new ones from starting."""
        with self._lock:
            self._is_set = True
            for process in self._processes:
                process.kill()

    @contextmanager
    def covers(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        """Kill this process if the signal is set inside the block.

        Raises:
            DocParserError: The signal was already set.
        """
        with self._lock:
            if self._is_set:
                raise DocParserError("reading was cancelled")
            self._processes.add(process)
        try:
            yield
        finally:
            with self._lock:
                self._processes.discard(process)


class ParserUnavailableError(Exception):
    """The parser cannot be imported or created in a subprocess."""


def can_start_processes() -> bool:
    """Return True if this program can start another Python process, which a frozen executable cannot."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


def processes_at_once() -> int:
    """Return the process pool's size: one per core available to this process, at most 32."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(_MAX_PROCESSES, cores))


def parse_in_subprocess(job: ParseJob, data: bytes, limits: ParserLimits, stop: StopSignal | None = None) -> Document:
    """Parse a file in a subprocess. Blocks until the document is ready, or until `stop` is set.

    Raises:
        DocParserError: The parser rejects the file, fails, crashes or exceeds a limit; the message names the file.
        ParserUnavailableError: The parser cannot be imported or created in the subprocess.
    """
    answer = _pool().parse(job, data, limits, stop or StopSignal())
    assert isinstance(answer, Document)  # noqa: S101 - the answer to a job without a page to draw
    return answer


def draw_in_subprocess(job: ParseJob, data: bytes, limits: ParserLimits, stop: StopSignal | None = None) -> PageImage:
    """Render the page given by `job.draw`, like `parse_in_subprocess`.

    Raises:
        DocParserError: See `parse_in_subprocess`.
        ParserUnavailableError: The parser cannot be imported or created in the subprocess.
    """
    answer = _pool().parse(job, data, limits, stop or StopSignal())
    assert isinstance(answer, PageImage)  # noqa: S101 - the answer to a job with a page to draw
    return answer


def _pool() -> _Pool:
    pid = os.getpid()
    return _pools.get(pid) or _pools.setdefault(pid, _Pool())


class _CrashError(DocParserError):
    """The process crashed or exceeded a limit, and cannot be reused."""


class _IdleExitError(Exception):
    """The process exited just before the job, because it was idle."""


class _Pool:
    """The pool of parsing subprocesses of this process."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._size = processes_at_once()
        self._slots = threading.BoundedSemaphore(self._size)
        self._lock = threading.Lock()
        self._idle: list[_Process] = []
        self._all: set[_Process] = set()
        atexit.register(self._end)

    def parse(self, job: ParseJob, data: bytes, limits: ParserLimits, stop: StopSignal) -> Document | PageImage:
        with self._slots:
            for _ in range(self._size + 1):  # every idle process may have ended
                with contextlib.suppress(_IdleExitError), self._process() as process:
                    return process.parse(job, data, limits, stop)
        raise DocParserError(f"{job.source} cannot be read: its parser exited unexpectedly")

    @contextmanager
    def _process(self) -> Iterator[_Process]:
        process = self._pop_idle() or _Process()
        with self._lock:
            self._all.add(process)
        try:
            yield process
        finally:
            if process.is_reusable():
                with self._lock:
                    self._idle.append(process)
            else:
                self._drop(process)

    def _pop_idle(self) -> _Process | None:
        while True:
            with self._lock:
                process = self._idle.pop() if self._idle else None
            if process is None or process.is_reusable():
                return process
            self._drop(process)

    def _drop(self, process: _Process) -> None:
        with self._lock:
            self._all.discard(process)
        process.end()

    def _end(self) -> None:
        if os.getpid() == self._pid:  # a fork must not end its parent's processes
            for process in self._all.copy():
                process.end()


class _Process:
    """A subprocess that parses one file after another.

    Raises:
        DocParserError: The subprocess cannot be started.
    """

    def __init__(self) -> None:
        self._path = list(sys.path)
        self._files = 0
        self._is_spent = False
        self._timed_out = False
        path = json.dumps(self._path).encode()
        try:
            self._popen = subprocess.Popen(  # noqa: S603 - this Python, with a constant program
                [sys.executable, "-P", "-c", _START, str(len(path))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={name: value for name, value in os.environ.items() if not _LOOKS_SECRET.search(name)},
            )
        except OSError as error:
            raise _start_error(error.strerror or "") from error
        try:
            with self._kill_after(_START_S):
                self._stdin.write(path)
                self._stdin.flush()
                read_frame(self._stdout, most=0)
        except (OSError, EOFError, OverflowError) as error:
            self.end()
            raise _start_error(f"exit status {self._popen.returncode}") from error

    @property
    def _stdin(self) -> BinaryIO:
        assert self._popen.stdin is not None  # noqa: S101 - always a pipe
        return cast(BinaryIO, self._popen.stdin)

    @property
    def _stdout(self) -> BinaryIO:
        assert self._popen.stdout is not None  # noqa: S101 - always a pipe
        return cast(BinaryIO, self._popen.stdout)

    def is_reusable(self) -> bool:
        """Return True if the process can parse another file."""
        is_current = self._files < _FILES_PER_PROCESS and self._path == sys.path
        return is_current and not self._is_spent and self._popen.poll() is None

    def end(self) -> None:
        """Kill the process and close its pipes."""
        self._popen.kill()
        self._popen.wait()
        for stream in (self._stdin, self._stdout):
            with contextlib.suppress(OSError):  # closing flushes, and the reader has ended
                stream.close()

    def parse(self, job: ParseJob, data: bytes, limits: ParserLimits, stop: StopSignal) -> Document | PageImage:
        self._files += 1
        limits = limits.for_file(len(data))
        header = _encode_header(job, limits)
        self._is_spent = True  # until a valid answer arrives
        try:
            with stop.covers(self._popen), self._kill_after(limits.wall_s):
                write_frame(self._stdin, header)
                write_frame(self._stdin, data)
                answer = self._read_answer(job, limits)
        except (OSError, EOFError) as error:
            raise self._explain_exit(job.source, limits) from error
        except OverflowError as error:
            raise _limit_error(job.source, f"its text is larger than {limits.answer_bytes / 2**20:.0f} MiB") from error
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise DocParserError(f"{job.source} cannot be read: the parser returned invalid output") from error
        self._is_spent = isinstance(answer, _CrashError)
        if isinstance(answer, Document | PageImage):
            return answer
        raise answer

    def _read_answer(
        self, job: ParseJob, limits: ParserLimits
    ) -> Document | PageImage | DocParserError | ParserUnavailableError:
        blocks: list[Block] = []
        parts: list[Part] = []
        remaining = limits.answer_bytes
        while True:
            frame = read_frame(self._stdout, most=remaining)
            remaining -= len(frame)
            match json.loads(frame):
                case {"blocks": list(rows)}:
                    blocks += [_parse_block(*row) for row in rows]
                case {"part": str(name), "page": int() | None as page}:
                    parts.append(Part(name, read_frame(self._stdout, most=remaining), page))
                    remaining -= len(parts[-1].data)
                case {
                    "page": int(page),
                    "size": [int(width), int(height)],
                    "boxes": list(boxes),
                    "has_text": bool(has_text),
                } if job.draw:
                    png = read_frame(self._stdout, most=remaining)
                    return _check_image(PageImage(page, png, width, height, tuple(map(_parse_box, boxes)), has_text))
                case {"title": str(title), "metadata": dict(metadata)} if not job.draw:
                    return Document(job.source, tuple(blocks), "", title, metadata, tuple(parts))
                case {"error": str(message)}:
                    return DocParserError(message)
                case {"failed": "MemoryError"}:
                    size = f"{limits.memory_bytes / 2**20:.0f} MiB"
                    return _limit_error(job.source, f"parsing requires more than {size} of memory")
                case {"failed": str(error)}:
                    return DocParserError(f"{job.source} cannot be read: parser {job.name} failed ({error})")
                case {"unavailable": str(reason)}:
                    return ParserUnavailableError(reason)
                case _:
                    raise ValueError(frame[:80])

    @contextmanager
    def _kill_after(self, seconds: float) -> Iterator[None]:
        timer = threading.Timer(seconds, self._time_out)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _time_out(self) -> None:
        self._timed_out = True
        self._popen.kill()

    def _explain_exit(self, source: str, limits: ParserLimits) -> Exception:
        try:
            self._popen.wait(_END_S)  # the pipe is closed, so the process should be ending
        except subprocess.TimeoutExpired:
            self.end()
            return DocParserError(f"{source} cannot be read: its parser closed its output but kept running")
        code = self._popen.returncode
        if self._timed_out:
            return _limit_error(source, f"parsing took longer than {limits.wall_s:.0f} s")
        if code == 0:
            return _IdleExitError()
        if code == -_SIGXCPU:
            return _limit_error(source, f"parsing used more than {limits.cpu_s:.0f} s of CPU time")
        return _limit_error(
            source, f"its parser crashed ({code}), or needed more than {limits.memory_bytes / 2**20:.0f} MiB of memory"
        )


def _encode_header(job: ParseJob, limits: ParserLimits) -> bytes:
    header = {
        "target": job.target,
        "settings": job.settings,
        "source": job.source,
        "codec": job.codec,
        "draw": job.draw,
        "environment": {name: os.environ[name] for name in job.secrets if name in os.environ},
        "memory_bytes": limits.memory_bytes,
        "cpu_s": limits.cpu_s,
    }
    try:
        return json.dumps(header, default=_encode_setting).encode()
    except (TypeError, ValueError) as error:
        raise ParserUnavailableError(str(error)) from error


def _encode_setting(value: object) -> object:
    if isinstance(value, SecretStr):  # a parser may see its own secrets
        return value.get_secret_value()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"a parser setting of type {type(value).__name__} cannot be encoded as JSON")


def _parse_block(text: str, kind: BlockKind, page: int | None, level: int) -> Block:
    """Validate and build a block. A subprocess compromised by a hostile file may send anything."""
    types = (type(text), type(kind), type(page), type(level))
    if types not in ((str, str, int, int), (str, str, type(None), int)) or kind not in _KINDS:
        raise TypeError(kind)
    return Block(text, kind, page, level)


def _check_image(image: PageImage) -> PageImage:
    """Return the image if its size matches its PNG. A browser decodes the PNG, so the size is also limited here."""
    head = image.png[:24]
    size = (int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big"))
    if not head.startswith(_PNG) or size != (image.width, image.height) or not 0 < size[0] * size[1] <= _MAX_PIXELS:
        raise ValueError(size)
    return image


def _parse_box(box: object) -> tuple[float, float, float, float]:
    match box:
        case [int() | float() as left, int() | float() as top, int() | float() as right, int() | float() as bottom]:
            return float(left), float(top), float(right), float(bottom)
    raise TypeError(box)


def _limit_error(source: str, cause: str) -> DocParserError:
    return _CrashError(f"{source} cannot be read: {cause}. The file may be corrupted: save it again, or split it")


def _start_error(cause: str) -> DocParserError:
    return DocParserError(f"cannot start a process for parsing files with {sys.executable}: {cause}")


_pools: dict[int, _Pool] = {}  # by process id: a fork starts its own
