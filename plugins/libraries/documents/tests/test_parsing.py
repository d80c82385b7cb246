"""Files are parsed in processes of their own, and what such a file does ends there."""

from __future__ import annotations

import asyncio
import io
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jackfield.errors import DocParserError
from jackfield.plugins import PluginHost
from jackfield.retrieval import Document
from jackfield.settings import Settings
from jackfield_documents import DocumentReader, ParserLimits, parsing
from jackfield_documents.parsing import processes_at_once
from jackfield_documents.parsing_process import write_frame
from jackfield_testkit.forks import output_of

MIB = 2**20
PARSER = """
    import os, signal, sys, time
    from jackfield.errors import DocParserError
    from jackfield.retrieval import Block, Document, PageImage, Parser

    class Tricky(Parser):
        def wait(self, text):
            if text.startswith("wait "):
                place = text.split()[1]
                with open(place + ".new", "w") as file:
                    file.write(str(os.getpid()))
                os.rename(place + ".new", place)
                time.sleep(600)

        def draw_page(self, data, *, page, passage, source):
            word = data.decode()
            self.wait(word)
            if word == "crash":
                os.kill(os.getpid(), signal.SIGKILL)
            if word == "loop":
                while True:
                    pass
            size, text = {"huge": (20000, 20000), "none": (0, 5), "lies": (3, 5)}.get(word, (2, 5)), b""
            if word != "html":
                text = b"\\x89PNG\\r\\n\\x1a\\n" + bytes(8) + size[0].to_bytes(4, "big") + size[1].to_bytes(4, "big")
            boxes = ((0, "a", 1, 1),) if word == "box" else ((0, 0.5, 1, 1),)
            return PageImage(page, text, *((2, 5) if word == "lies" else size), boxes)

        def parse(self, data, *, source):
            word = data.decode().split()[0]
            self.wait(data.decode())
            if word == "memory":
                kept = []
                while True:
                    kept.append(bytearray(2**20))
            if word == "loop":
                while True:
                    pass
            if word == "sleep":
                time.sleep(600)
            if word == "close":
                os.closerange(4, 50)  # not 3, the jobs: whoever waits for them would end the process
                time.sleep(600)
            if word == "die":
                os.kill(os.getpid(), signal.SIGSEGV)
            if word.startswith("exit"):
                os._exit(int(word[4:]))
            if word == "deep":
                self.parse(data, source=source)
            if word == "print":
                print("0" * 100_000, flush=True)
                os.write(1, b"0" * 100)
            if word == "forge":
                for fd in range(3, 20):
                    try:
                        os.write(fd, len(data[6:]).to_bytes(8, "big") + data[6:])
                    except OSError:
                        pass
            if word == "long":
                return Document(source, (Block("x" * 2**20),) * 8, "")
            if word == "halves":
                return Document(source, (Block("a \\ud800 b"),), "", title="\\udfff")
            shown = {"pid": os.getpid(), "cfg": dict(self.cfg)}
            shown["seen"] = [os.environ.get(name) for name in ("TRICKY_API_KEY", "OTHER_API_KEY", "TRICKY_PLACE")]
            shown["main"] = getattr(sys.modules["__main__"], "__file__", None)
            return Document(source, (Block(data.decode()),), "", metadata=shown)
"""
_SLOW_STEP = re.compile(r"Executing <.*> took \d+\.\d+ seconds")
ENABLED = ("parser.tricky/tricky",)
FACTS = "extensions=('trick',), secrets=('TRICKY_API_KEY',), draws_pages=True, pictures='parser_tricky:Tricky'"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("site")
    metadata = folder / "tricky-1.0.dist-info"
    metadata.mkdir()
    (metadata / "entry_points.txt").write_text("[jackfield.v1]\nparser.tricky = parser_tricky_plugin\n")
    (folder / "parser_tricky.py").write_text(textwrap.dedent(PARSER))
    (folder / "parser_tricky_plugin.py").write_text(
        "from jackfield.plugins import ParserSpec, hook\n"
        "@hook.parsers\n"
        f"def parsers():\n    return [ParserSpec(name='tricky', target='parser_tricky:Tricky', {FACTS})]\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        patch.setenv("JACKFIELD_PLUGINS_ENABLED", *ENABLED)  # also in the processes that tests start
        yield folder
    sys.modules.pop("parser_tricky_plugin", None)


@pytest.fixture
def read(site: Path, tmp_path: Path) -> Callable[..., Document]:
    def read_text(text: str, **options: Any) -> Document:
        path = tmp_path / "a.trick"
        path.write_text(text)
        return asyncio.run(
            DocumentReader(PluginHost(Settings(enabled=ENABLED), paths=[str(site)]), **options).read(path)
        )

    return read_text


Read = Callable[..., Document]


def test_files_are_parsed_in_another_process_that_stays_for_the_next(read: Read) -> None:
    pids = {read(f"file {number}").metadata["pid"] for number in range(5)}
    assert len(pids) == 1
    assert os.getpid() not in pids


def test_a_process_is_replaced_after_some_files(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    assert parsing._FILES_PER_PROCESS == 200
    read("first")  # of a process that other tests may have used
    monkeypatch.setattr(parsing, "_FILES_PER_PROCESS", 2)
    monkeypatch.setattr(parsing, "_pools", {})
    pids = [read(f"file {number}").metadata["pid"] for number in range(4)]
    assert pids[0] == pids[1] != pids[2] == pids[3]


def test_a_pool_ends_the_processes_of_its_own_process_only() -> None:
    pool, ended = parsing._Pool(), list[str]()

    class Process:
        def end(self) -> None:
            ended.append("ended")

    pool._all = {Process()}  # type: ignore[arg-type]
    pool._pid += 1
    pool._end()
    assert ended == []
    pool._pid -= 1
    pool._end()
    assert ended == ["ended"]


@pytest.mark.parametrize(
    "frames",
    [[b'{"blocks": []}'] * 3, [b'{"part": "a", "page": null}', b"x" * 5, b'{"blocks": []}']],
    ids=["blocks", "a part"],
)
@pytest.mark.parametrize("is_enough", [True, False])
def test_all_frames_of_an_answer_share_its_limit(frames: list[bytes], is_enough: bool) -> None:
    end = b'{"title": "", "metadata": {}}'
    pipe = io.BytesIO()
    for frame in (*frames, end):
        write_frame(pipe, frame)
    process = parsing._Process.__new__(parsing._Process)
    process._popen = SimpleNamespace(stdout=io.BytesIO(pipe.getvalue()))  # type: ignore[assignment]
    limits = ParserLimits(answer_bytes=sum(map(len, frames)) + len(end) - (not is_enough))
    job = parsing.ParseJob("p", "m:P", None, (), "a.txt")
    with nullcontext() if is_enough else pytest.raises(OverflowError):
        assert isinstance(process._read_answer(job, limits), Document)


@pytest.mark.parametrize("word", ["crash", "loop", "huge", "none", "lies", "html", "box"])
def test_an_image_from_a_hostile_file_is_refused(word: str, site: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.trick"
    reader = DocumentReader(
        PluginHost(Settings(enabled=ENABLED), paths=[str(site)]), limits=ParserLimits(cpu_s=1, wall_s=20)
    )
    path.write_text("fine")
    image = asyncio.run(reader.draw_page(path, page=3, passage="x"))
    assert (image.page, image.width, image.height, image.boxes) == (3, 2, 5, ((0.0, 0.5, 1.0, 1.0),))
    path.write_text(word)
    with pytest.raises(DocParserError, match=r"^a\.trick cannot be read: "):
        asyncio.run(reader.draw_page(path, page=3, passage="x"))


def test_several_files_at_once_are_parsed_by_few_processes(site: Path, tmp_path: Path) -> None:
    reader = DocumentReader(PluginHost(Settings(enabled=ENABLED), paths=[str(site)]))
    paths = [tmp_path / f"{number}.trick" for number in range(12)]
    for path in paths:
        path.write_text(path.name)
    reading = asyncio.run(reader.read_all(paths, at_once=8))
    assert [document.blocks[0].text for document in reading.documents] == [path.name for path in paths]
    assert 1 <= len({document.metadata["pid"] for document in reading.documents}) <= processes_at_once()


@pytest.mark.parametrize(("cores", "processes"), [(1, 1), (2, 2), (4, 4), (64, 32)])
def test_there_is_a_process_for_each_core_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch, cores: int, processes: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)), raising=False)
    assert processes_at_once() == processes


def test_a_process_that_does_not_start_is_ended_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parsing._START_S == 60
    monkeypatch.setattr(parsing, "_START_S", 0.2)
    monkeypatch.setattr(parsing, "_START", "import time; time.sleep(600)")
    with pytest.raises(DocParserError, match=r"exit status (-9|1)$"):
        parsing._Process()


def test_a_parser_that_closes_its_answers_and_goes_on_is_ended(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jackfield_documents.parsing._END_S", 0.2)
    with pytest.raises(
        DocParserError, match=r"^a\.trick cannot be read: its parser closed its output but kept running"
    ):
        read("close")
    assert read("after").blocks


@pytest.mark.parametrize("mebibytes", [0, 4, 10])
def test_limits_grow_by_themselves_for_each_four_mebibytes_and_by_forty_times_the_file(mebibytes: int) -> None:
    times, more = 1 + mebibytes / 4, 40 * mebibytes * 2**20
    assert ParserLimits().for_file(mebibytes * 2**20) == ParserLimits(
        cpu_s=20 * times, wall_s=120 * times, memory_bytes=512 * 2**20 + more, answer_bytes=64 * 2**20 + more
    )


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_memory_ends_at_a_limit(read: Read) -> None:
    with pytest.raises(DocParserError, match=r"^a\.trick cannot be read: parsing requires more than 64 MiB of memory"):
        read("memory", limits=ParserLimits(memory_bytes=64 * MIB))
    assert read("after").blocks


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not limit processor time")
def test_processor_time_ends_at_a_limit(read: Read) -> None:
    with pytest.raises(DocParserError, match=r"^a\.trick cannot be read: .* more than 0 s of CPU time"):
        read("loop", limits=ParserLimits(cpu_s=0.1))  # in whole seconds it is one
    assert read("after").blocks


def test_waiting_ends_at_a_limit(read: Read) -> None:
    with pytest.raises(DocParserError, match=r"^a\.trick cannot be read: parsing took longer than 1 s\."):
        read("sleep", limits=ParserLimits(wall_s=1))
    assert read("after").blocks


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("die", "its parser crashed"),
        ("exit3", "its parser crashed"),
        ("exit0", "exited unexpectedly"),
        ("deep", "Recursion"),
    ],
)
def test_the_end_of_the_process_is_an_error_of_the_file(read: Read, what: str, told: str) -> None:
    with pytest.raises(DocParserError, match=rf"^a\.trick cannot be read: .*{told}"):
        read(what)
    assert read("after").blocks


def test_text_without_end_is_refused(read: Read) -> None:
    with pytest.raises(DocParserError, match=r"a\.trick .*its text is larger than 2 MiB"):
        read("long", limits=ParserLimits(answer_bytes=2 * MIB))
    assert len(read("long").blocks) == 8


FORGED = (
    '{"blocks": [[1, "paragraph", null, 0]]}',
    '{"blocks": [["x", "program", null, 0]]}',
    '{"blocks": [["x", ["paragraph"], null, 0]]}',
    '{"blocks": [["x", "paragraph", "1", 0]]}',
    '{"blocks": [["x"]]}',
    '{"blocks": 1}',
    '{"title": "x"}',
    "[" * 100_000,
    "[1]",
    "7",
    "no JSON",
)


TAKEN_OVER = """
import sys
jobs, answers = sys.stdin.buffer, sys.stdout.buffer
jobs.raw.read(int(sys.argv[1]))
answers.write(bytes(8))
answers.flush()
while length := jobs.read(8):
    jobs.read(int.from_bytes(length, "big"))
    data = jobs.read(int.from_bytes(jobs.read(8), "big"))
    answers.write(len(data).to_bytes(8, "big") + data)
    answers.flush()
"""


def test_what_a_file_has_taken_over_cannot_answer_what_it_likes(read: Read) -> None:
    with pytest.raises(DocParserError, match=r"a\.trick cannot be read: the parser returned invalid output"):
        read(f"forge {FORGED[0]}")
    assert read("after").blocks


@pytest.fixture
def taken_over(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Processes that import no parser, and answer what a file says."""
    monkeypatch.setattr(parsing, "_START", TAKEN_OVER)
    monkeypatch.setattr(parsing, "_pools", {})
    yield
    for pool in parsing._pools.values():
        pool._end()


@pytest.mark.usefixtures("taken_over")
@pytest.mark.parametrize("answer", FORGED)
def test_no_answer_but_a_document_is_believed(read: Read, answer: str) -> None:
    assert read('{"title": "true", "metadata": {}}').title == "true"
    with pytest.raises(DocParserError, match=r"a\.trick cannot be read: the parser returned invalid output"):
        pytest.fail(f"it is believed: {answer[:50]} gives {read(answer)}")


def test_what_a_parser_prints_does_not_matter(read: Read) -> None:
    assert read("print").blocks[0].text == "print"


def test_half_characters_arrive(read: Read) -> None:
    document = read("halves")
    assert (document.blocks[0].text, document.title) == ("a \ud800 b", "\udfff")


def test_a_parser_sees_its_own_secrets_and_no_others(
    read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))  # a process that has begun has the environment and the path of then
    monkeypatch.setenv("TRICKY_API_KEY", "mine")
    monkeypatch.setenv("OTHER_API_KEY", "another's")
    monkeypatch.setenv("TRICKY_PLACE", "here")
    assert read("x").metadata["seen"] == ["mine", None, "here"]


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("ACME_API_KEY", True), ("acme_token", True), ("MY_SECRET", True), ("PGPASSWORD", True), ("CREDENTIALS", True),
        ("BASIC_AUTH", True), ("PATH", False), ("LANG", False), ("HOME", False),
    ],
)  # fmt: skip
def test_variables_whose_names_look_secret_are_not_handed_on(name: str, is_secret: bool) -> None:
    assert bool(parsing._LOOKS_SECRET.search(name)) is is_secret


def test_a_stop_kills_the_processes_that_parse_and_lets_no_other_begin() -> None:
    killed: list[str] = []

    class Process:
        def __init__(self, name: str) -> None:
            self.kill = lambda: killed.append(name)

    signal = parsing.StopSignal()
    done, busy, later = map(Process, ("done", "busy", "later"))
    with signal.covers(done):  # type: ignore[arg-type]
        pass
    with signal.covers(busy):  # type: ignore[arg-type]
        signal.set()
        with pytest.raises(DocParserError, match="reading was cancelled"), signal.covers(later):  # type: ignore[arg-type]
            pass
    signal.set()
    assert killed == ["busy"]


def test_settings_that_cannot_travel_are_an_error_with_a_way_out(read: Read) -> None:
    assert read("x", parser_cfg={"tricky": {"folder": Path("/tmp")}}).metadata["cfg"] == {"folder": "/tmp"}
    with pytest.raises(DocParserError, match="Its settings must be JSON-serializable"):
        read("x", parser_cfg={"tricky": {"made": object()}})


# --- where it runs, and how it ends ---


@pytest.mark.skipif(sys.platform == "win32", reason="processes are looked for by a signal")
@pytest.mark.parametrize("way", ["read", "read_bytes", "draw_page", "pictures", "read_all"])
def test_a_reading_that_is_cancelled_ends_its_process(way: str, site: Path, tmp_path: Path) -> None:
    place, path = tmp_path / "pid", tmp_path / "a.trick"
    path.write_text(f"wait {place}")

    async def cancel() -> None:
        reader = DocumentReader(PluginHost(Settings(enabled=ENABLED), paths=[str(site)]))
        readings: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
            "read": lambda: reader.read(path),
            "read_bytes": lambda: reader.read_bytes(path.read_bytes(), name="a.trick"),
            "draw_page": lambda: reader.draw_page(path, page=1),
            "pictures": lambda: reader.pictures(path, most=1),
            "read_all": lambda: reader.read_all([path]),
        }
        reading = asyncio.create_task(readings[way]())
        while not place.exists() and not reading.done():
            await asyncio.sleep(0.01)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    asyncio.run(cancel())
    _wait_for_the_end_of(int(place.read_text()))


def _script(text: str, site: Path, folder: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """What a script without any guard prints; its files are in `folder`."""
    (folder / "a.trick").write_text("hello")
    (folder / "program.py").write_text(textwrap.dedent(text))
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTHONWARNINGS": "error::ResourceWarning"}
    return subprocess.run(
        [sys.executable, "-X", "dev", "program.py"],
        cwd=folder, env=environment, capture_output=True, text=True, check=True, timeout=120, **options,
    )  # fmt: skip


def test_a_script_without_a_guard_runs_once_and_leaves_nothing_behind(site: Path, tmp_path: Path) -> None:
    script = """
        import jackfield, sys
        print("begun")
        from jackfield_documents import DocumentReader
        from jackfield import sync
        shown = sync.run(DocumentReader().read("a.trick")).metadata
        print(shown["pid"])
        assert shown["main"] is None, shown
    """
    done = _script(script, site, tmp_path)
    begun, pid = done.stdout.split()
    assert begun == "begun"
    # What asyncio's debug mode says of a slow machine is no fault; all else is: tracebacks, warnings of resources.
    assert [line for line in done.stderr.splitlines() if not _SLOW_STEP.fullmatch(line)] == []
    _wait_for_the_end_of(int(pid))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_starts_its_own_and_leaves_its_parents_alone(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = """
        import asyncio, os, sys
        from jackfield_documents import DocumentReader
        def pid():
            return asyncio.run(DocumentReader().read("a.trick")).metadata["pid"]
        mine = pid()
        child = os.fork()
        if child == 0:
            assert pid() != mine
            sys.exit(7)  # with what is done at the end of a process
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert pid() == mine
        print("done")
    """
    (tmp_path / "a.trick").write_text("hello")
    monkeypatch.chdir(tmp_path)
    assert output_of(textwrap.dedent(script), env={**os.environ, "PYTHONPATH": str(site)}) == "done"


@pytest.mark.skipif(sys.platform == "win32", reason="it is ended by a signal")
@pytest.mark.parametrize("busy", [False, True])
def test_when_the_host_is_killed_its_processes_end(site: Path, tmp_path: Path, busy: bool) -> None:
    (tmp_path / "a.trick").write_text("hello")
    (tmp_path / "b.trick").write_text("loop" if busy else "idle")
    script = """
        import asyncio, sys
        from jackfield_documents import DocumentReader
        reader = DocumentReader()
        print(asyncio.run(reader.read("a.trick")).metadata["pid"], flush=True)
        asyncio.run(reader.read("b.trick"))
        sys.stdin.read()
    """
    host = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(site)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert host.stdin
    assert host.stdout
    try:
        pid = int(host.stdout.readline())
    finally:
        host.send_signal(signal.SIGKILL)
        host.wait()
        host.stdin.close()
        host.stdout.close()
    _wait_for_the_end_of(pid)


def _wait_for_the_end_of(pid: int) -> None:
    for _ in range(600):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        if (
            Path(f"/proc/{pid}/stat").exists()
            and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        ):
            return  # it has ended, and whoever became its parent has not looked yet
        time.sleep(0.05)
    pytest.fail(f"process {pid} is still there")
