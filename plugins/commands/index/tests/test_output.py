"""The output for builds, hits and progress."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from jackfield.retrieval import Chunk, Hit
from jackfield_index import progress
from jackfield_index.output import describe_failures, describe_hit, hit_facts
from jackfield_index.progress import ProgressLine
from jackfield_knowledge import Built, Progress


def hit(text: str = "Water.", **more: object) -> Hit:
    source = str(Path.cwd() / "docs/a.md")
    chunk = Chunk(id="1", source=source, text=text, index=0, tokens=1, **more)  # type: ignore[arg-type]
    return Hit(chunk=chunk, score=0.5, ranks={"keyword_search": 2, "vector_search": 1})


def test_a_hit_is_its_place_its_ranks_and_an_excerpt_in_one_line() -> None:
    first, second = describe_hit(3, hit("High \n water\tcomes.", page=4))
    assert first == f"3. {Path('docs/a.md')}, page 4  (keyword_search 2, vector_search 1)"
    assert second == "   High water comes."


@pytest.mark.parametrize(("length", "is_cut"), [(199, False), (200, False), (201, True)])
def test_an_excerpt_has_at_most_200_characters(length: int, is_cut: bool) -> None:
    _, excerpt = describe_hit(1, hit("x" * length))
    assert excerpt == f"   {'x' * min(200, length)}{'…' if is_cut else ''}"


def test_the_headings_above_a_hit_are_shown_outermost_first() -> None:
    seas = hit(headings=("Seas", "Tides\x1b"))
    first, _ = describe_hit(1, seas)
    assert first == f"1. {Path('docs/a.md')}, Seas > Tides\\x1b  (keyword_search 2, vector_search 1)"
    assert hit_facts(seas)["headings"] == ["Seas", "Tides\x1b"]


@pytest.mark.parametrize("page", [1, 2])
def test_any_page_of_a_hit_is_shown(page: int) -> None:
    first, _ = describe_hit(1, hit(page=page))
    assert f", page {page}  (" in first


def test_a_hit_outside_the_working_directory_has_its_whole_location() -> None:
    for location in ("/srv/a.md", "https://acme.example//a.html?b=../c", f"{Path.cwd()}-other/a.md"):
        chunk = Chunk(id="1", source=location, text="Water.", index=0, tokens=1)
        first, _ = describe_hit(1, Hit(chunk=chunk, score=0.5, ranks={"keyword_search": 1}))
        assert first == f"1. {location}  (keyword_search 1)"


def test_a_hit_inside_an_archive_names_the_part() -> None:
    assert hit_facts(hit(part="inner/b.txt"))["part"] == "inner/b.txt"
    assert "part" not in hit_facts(hit())
    first, _ = describe_hit(1, hit(part="inner/b.txt"))
    assert "inner/b.txt" in first


def test_facts_of_a_hit_are_json() -> None:
    facts = hit_facts(hit(page=4))
    assert facts == {
        "location": str(Path.cwd() / "docs/a.md"),
        "page": 4,
        "headings": [],
        "score": 0.5,
        "ranks": {"keyword_search": 2, "vector_search": 1},
        "text": "Water.",
    }


def test_a_reason_gives_a_terminal_no_orders() -> None:
    paths = {"/srv/a.pdf": "it is \x1b[2J broken"}
    failed = Built(read=0, unchanged=0, removed=0, outdated=0, failed=paths, skipped=(), missing=())
    assert list(describe_failures(failed, [])) == ["/srv/a.pdf: it is \\x1b[2J broken"]


def built(failed: int, missing: tuple[str, ...] = ()) -> Built:
    paths = {str(Path.cwd() / f"{number}.pdf"): "it is broken" for number in range(failed)}
    return Built(read=0, unchanged=0, removed=0, outdated=0, failed=paths, skipped=(), missing=missing)


@pytest.mark.parametrize(("failed", "lines", "more"), [(10, 10, ""), (11, 11, "and 1 more file could not be read")])
def test_ten_files_that_cannot_be_read_are_named(failed: int, lines: int, more: str) -> None:
    said = list(describe_failures(built(failed), ["vector_search: no key"]))
    assert said[0] == "0.pdf: it is broken"
    assert said[-1] == "vector_search: no key. The finished part is kept: build again to continue"
    assert len(said) == lines + 1
    if more:
        assert said[-2] == more


def test_a_name_without_files_is_named_after_the_files_that_failed() -> None:
    (_, first, second, _) = describe_failures(
        built(1, (str(Path.cwd() / "docs"), "/srv/*.md\x1b")), ["keyword_search: no"]
    )
    assert first == "docs no longer exists or matches nothing, so none of its documents are in the index"
    assert second.startswith("/srv/*.md\\x1b no longer exists")


# --- progress ---


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """The terminal on which the process writes; it has 60 columns."""
    stream = Terminal()
    # Between two phases of a test, pytest sets the stream itself.
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
    monkeypatch.setenv("COLUMNS", "60")
    return stream


def reading(done: int, total: int, location: str = "/srv/docs/a.md") -> Progress:
    return Progress(done, total, location, is_new=True)


def test_the_line_has_a_bar_the_numbers_and_a_name(terminal: Terminal) -> None:
    ProgressLine()(reading(1, 4))
    assert terminal.getvalue() == f"\r\x1b[K[{'#' * 6}{'.' * 18}] 1 of 4 files  a.md"


def test_chunks_are_counted_like_files(terminal: Terminal) -> None:
    ProgressLine().count("keyword_search", 3, 8)
    assert terminal.getvalue() == f"\r\x1b[K[{'#' * 9}{'.' * 15}] 3 of 8 chunks  keyword_search"


def test_a_name_gives_a_terminal_no_orders(terminal: Terminal) -> None:
    ProgressLine()(reading(1, 4, "/srv/docs/\x1b[2J.md"))
    assert terminal.getvalue().endswith("1 of 4 files  \\x1b[2J.md")


def test_a_line_without_a_total_has_an_empty_bar(terminal: Terminal) -> None:
    ProgressLine().count("keyword_search", 0, 0)
    assert f"[{'.' * 24}] 0 of 0 chunks  keyword_search" in terminal.getvalue()


def test_a_long_line_leaves_the_last_column_free(terminal: Terminal) -> None:
    ProgressLine()(reading(1, 4, f"/srv/{'x' * 100}.md"))
    assert len(terminal.getvalue().removeprefix("\r\x1b[K")) == 59


def test_updates_come_no_faster_than_they_can_be_read(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    line = ProgressLine()
    for now[0] in (100.0, 100.05, 100.1, 100.15, 100.21):
        line(reading(int(now[0] * 100) - 10_000, 99))
    assert [text.split("] ")[1].split()[0] for text in terminal.getvalue().split("\r\x1b[K")[1:]] == ["0", "10", "21"]


def test_the_line_is_cleared_even_after_an_error(terminal: Terminal) -> None:
    def interrupt() -> None:
        with ProgressLine() as line:
            line(reading(1, 4))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert terminal.getvalue().endswith("a.md\r\x1b[K")


@pytest.mark.parametrize("stream", [io.StringIO(), None], ids=["a file", "none"])
def test_nothing_is_shown_where_there_is_no_terminal(
    stream: io.StringIO | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    with ProgressLine() as line:
        line(reading(1, 4))
        line.say("text")
    assert stream is None or stream.getvalue() == ""
