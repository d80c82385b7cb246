"""Parse files in processes of their own, so that limits of time and memory stop a hostile file.

The processes are started when a file needs one, kept for the next files, and end with the process that started them,
however that ends. They are plain subprocesses that know nothing of `__main__`, so that they work in notebooks, in web
handlers, in scripts without a guard, under threads and after a fork.
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
from jackfield.retrieval import Block, BlockKind, Document
from jackfield_documents.parsing_process import read_frame, write_frame

_MOST_PROCESSES = 6  # each holds 40 to 80 MB once it has read every kind of file
_FILES_PER_PROCESS = 200  # what parsers leak does not add up for ever
_START_S = 60.0
_END_S = 5.0  # for a process that closed its answers to end
_SIGXCPU = 24  # which Windows does not name
_KINDS = get_args(BlockKind)
_LOOKS_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)
# The path is read from the pipe: as an argument, other users would see it. `-P`: nothing is imported from the folder
# that the host happens to stand in.
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.stdin.buffer.raw.read(int(sys.argv[1]))); "
    "from jackfield_documents.parsing_process import serve; serve()"
)


@dataclass(frozen=True, slots=True)
class ParserLimits:
    """What parsing one file may take; a larger file may take more, in proportion to its size.

    Memory is limited on Linux, processor time on all systems but Windows, and the time on the clock everywhere.

    Attributes:
        cpu_s: Seconds of processor time, of a small file; twice as much with each 4 MiB more.
        wall_s: Seconds on the clock, likewise.
        memory_bytes: Memory, besides 40 times the length of the file.
        answer_bytes: What is made of it, in JSON, besides 40 times the length of the file.
    """

    cpu_s: float = 20.0
    wall_s: float = 120.0
    memory_bytes: int = 512 * 2**20
    answer_bytes: int = 64 * 2**20

    def for_file(self, size_bytes: int) -> ParserLimits:
        """The limits for a file of this size."""
        times = 1 + size_bytes / (4 * 2**20)
        more = 40 * size_bytes
        return ParserLimits(self.cpu_s * times, self.wall_s * times, self.memory_bytes + more, self.answer_bytes + more)


@dataclass(frozen=True, slots=True)
class ParseJob:
    """What to parse a file with.

    Attributes:
        name: The parser's name in errors.
        target: Its class, as `module:Class`.
        settings: The parser's settings.
        secrets: The names of the environment variables that it may read; no other that looks like a secret is passed.
        source: The name of the file, for its errors.
        codec: The encoding of the text if it is known from elsewhere, else ''; the process decodes it first.
    """

    name: str
    target: str
    settings: Mapping[str, object] | None
    secrets: tuple[str, ...]
    source: str
    codec: str = ""


class ParserUnavailableError(Exception):
    """The parser cannot be imported or made in a process of its own."""


def can_start_processes() -> bool:
    """Whether this program can start another Python; one frozen into an executable cannot."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


def processes_at_once() -> int:
    """How many files are parsed side by side: one on each core that this process may use, at most 6."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(_MOST_PROCESSES, cores))


def parse_apart(job: ParseJob, data: bytes, limits: ParserLimits) -> Document:
    """Parse a file in another process. It blocks, including the wait for a free process.

    Raises:
        DocParserError: The parser refuses the file, fails, crashes or exceeds a limit; the message names the file.
        ParserUnavailableError: The parser cannot be imported or made there.
    """
    return _pool().parse(job, data, limits)


class _CrashError(DocParserError):
    """After this, the process is not used again."""


class _GoneError(Exception):
    """The process had just ended, because nobody had asked for anything for a while."""


class _Pool:
    """The processes of this process."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._processes = processes_at_once()
        self._turn = threading.BoundedSemaphore(self._processes)
        self._lock = threading.Lock()
        self._idle: list[_Process] = []
        self._all: set[_Process] = set()
        atexit.register(self._end)

    def parse(self, job: ParseJob, data: bytes, limits: ParserLimits) -> Document:
        with self._turn:
            for _ in range(self._processes + 1):  # all that are idle may have ended
                with contextlib.suppress(_GoneError), self._process() as process:
                    return process.parse(job, data, limits)
        raise DocParserError(f"{job.source} cannot be read: the parser ended its process")

    @contextmanager
    def _process(self) -> Iterator[_Process]:
        process = self._warm() or _Process()
        with self._lock:
            self._all.add(process)
        try:
            yield process
        finally:
            if process.is_of_use():
                with self._lock:
                    self._idle.append(process)
            else:
                self._drop(process)

    def _warm(self) -> _Process | None:
        while True:
            with self._lock:
                process = self._idle.pop() if self._idle else None
            if process is None or process.is_of_use():
                return process
            self._drop(process)

    def _drop(self, process: _Process) -> None:
        with self._lock:
            self._all.discard(process)
        process.end()

    def _end(self) -> None:
        if os.getpid() == self._pid:  # a fork must not end what is its parent's
            for process in self._all.copy():
                process.end()


class _Process:
    """A process that parses files, one after the other.

    Raises:
        DocParserError: It cannot be started.
    """

    def __init__(self) -> None:
        self._path = list(sys.path)
        self._files = 0
        self._is_spent = False
        self._timed_out = False
        path = json.dumps(self._path).encode()
        try:
            self._popen = subprocess.Popen(  # noqa: S603 - this Python, and a program that stands here
                [sys.executable, "-P", "-c", _START, str(len(path))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={name: value for name, value in os.environ.items() if not _LOOKS_SECRET.search(name)},
            )
        except OSError as error:
            raise _not_started(error.strerror or "") from error
        try:
            with self._at_most(_START_S):
                self._jobs.write(path)
                self._jobs.flush()
                read_frame(self._answers, most=0)
        except (OSError, EOFError, OverflowError) as error:
            self.end()
            raise _not_started(f"it ended with {self._popen.returncode}") from error

    @property
    def _jobs(self) -> BinaryIO:
        assert self._popen.stdin is not None  # noqa: S101 - a pipe was asked for
        return cast(BinaryIO, self._popen.stdin)

    @property
    def _answers(self) -> BinaryIO:
        assert self._popen.stdout is not None  # noqa: S101 - a pipe was asked for
        return cast(BinaryIO, self._popen.stdout)

    def is_of_use(self) -> bool:
        """Whether it can parse the next file."""
        is_new_enough = self._files < _FILES_PER_PROCESS and self._path == sys.path
        return is_new_enough and not self._is_spent and self._popen.poll() is None

    def end(self) -> None:
        """End it, whatever it does."""
        self._popen.kill()
        self._popen.wait()
        for stream in (self._popen.stdin, self._popen.stdout):
            with contextlib.suppress(OSError):  # what was not written is not needed
                if stream:
                    stream.close()

    def parse(self, job: ParseJob, data: bytes, limits: ParserLimits) -> Document:
        self._files += 1
        mine = limits.for_file(len(data))
        header = _header(job, mine)
        self._is_spent = True  # until it has answered as it should
        try:
            with self._at_most(mine.wall_s):
                write_frame(self._jobs, header)
                write_frame(self._jobs, data)
                answer = self._answer(job, mine)
        except (OSError, EOFError) as error:
            raise self._why_ended(job.source, mine) from error
        except OverflowError as error:
            raise _beyond(job.source, f"its text takes more than {mine.answer_bytes / 2**20:.0f} MiB") from error
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise DocParserError(f"{job.source} cannot be read: the parser's answer is not valid") from error
        self._is_spent = isinstance(answer, _CrashError)
        if isinstance(answer, Document):
            return answer
        raise answer

    def _answer(self, job: ParseJob, limits: ParserLimits) -> Document | DocParserError | ParserUnavailableError:
        blocks: list[Block] = []
        most = limits.answer_bytes
        while True:
            frame = read_frame(self._answers, most=most)
            most -= len(frame)
            match json.loads(frame):
                case {"blocks": list(rows)}:
                    blocks += [_block(*row) for row in rows]
                case {"title": str(title), "metadata": dict(metadata)}:
                    return Document(job.source, tuple(blocks), "", title, metadata)
                case {"error": str(message)}:
                    return DocParserError(message)
                case {"failed": str(error)}:
                    return _failed(job, error, limits)
                case {"unavailable": str(why)}:
                    return ParserUnavailableError(why)
                case _:
                    raise ValueError(frame[:80])

    @contextmanager
    def _at_most(self, seconds: float) -> Iterator[None]:
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

    def _why_ended(self, source: str, limits: ParserLimits) -> Exception:
        try:
            self._popen.wait(_END_S)  # its pipe is closed
        except subprocess.TimeoutExpired:
            self.end()
            return DocParserError(f"{source} cannot be read: its parser closed its answers and went on")
        code = self._popen.returncode
        if self._timed_out:
            return _beyond(source, f"parsing it takes more than {limits.wall_s:.0f} s")
        if code == 0:
            return _GoneError()
        if code == -_SIGXCPU:
            return _beyond(source, f"parsing it takes more than {limits.cpu_s:.0f} s of processor time")
        return _beyond(
            source, f"its parser crashed ({code}), or needs more than {limits.memory_bytes / 2**20:.0f} MiB of memory"
        )


def _header(job: ParseJob, limits: ParserLimits) -> bytes:
    header = {
        "target": job.target,
        "settings": job.settings,
        "source": job.source,
        "codec": job.codec,
        "environment": {name: os.environ[name] for name in job.secrets if name in os.environ},
        "memory_bytes": limits.memory_bytes,
        "cpu_s": limits.cpu_s,
    }
    try:
        return json.dumps(header, default=_plain).encode()
    except (TypeError, ValueError) as error:
        raise ParserUnavailableError(str(error)) from error


def _plain(value: object) -> object:
    if isinstance(value, SecretStr):  # its own settings may be shown to a parser, and to nobody else
        return value.get_secret_value()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"a setting is a {type(value).__name__}")


def _block(text: str, kind: BlockKind, page: int | None, level: int) -> Block:
    """A block, if it is one: what a hostile file has taken over may answer anything."""
    types = (type(text), type(kind), type(page), type(level))
    if types not in ((str, str, int, int), (str, str, type(None), int)) or kind not in _KINDS:
        raise TypeError(kind)
    return Block(text, kind, page, level)


def _failed(job: ParseJob, error: str, limits: ParserLimits) -> DocParserError:
    if error == "MemoryError":
        return _beyond(job.source, f"parsing it takes more than {limits.memory_bytes / 2**20:.0f} MiB of memory")
    return DocParserError(f"{job.source} cannot be read: the parser {job.name} failed ({error})")


def _beyond(source: str, what: str) -> DocParserError:
    return _CrashError(f"{source} cannot be read: {what}. It may be damaged: save it again, or split it")


def _not_started(why: str) -> DocParserError:
    return DocParserError(f"cannot start a process for parsing files with {sys.executable}: {why}")


_pools: dict[int, _Pool] = {}  # by process id: a fork starts its own


def _pool() -> _Pool:
    pid = os.getpid()
    return _pools.get(pid) or _pools.setdefault(pid, _Pool())
