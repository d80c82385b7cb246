"""Files and texts that are too large, wrong, or made to do harm."""

from __future__ import annotations

import io
import zipfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield.events import ModelEvent, ModelFinished, TextDelta
from jackfield.request import ChatRequest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


async def echo(request: ChatRequest) -> AsyncIterator[ModelEvent]:
    yield TextDelta(f"You sent {sum(len(str(item.value)) for item in request.messages[-1].items)} characters.")
    yield ModelFinished("stop")


def make_bomb() -> bytes:
    """Return a Word document whose text has 400 MB."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("[Content_Types].xml", "<Types/>")
        with packed.open("word/document.xml", "w", force_zip64=True) as text:
            for _ in range(400):
                text.write(b"<w:p/>" * ((1 << 20) // 6))
    return archive.getvalue()


def test_a_file_of_ten_gigabytes_is_refused_without_reading_it(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any], tmp_path: Path
) -> None:
    huge = tmp_path / "huge.bin"
    with huge.open("wb") as file:
        file.truncate(10 << 30)  # a hole: it takes no room on the disk
    person = tab(serve(pilot(echo)))
    person.page.evaluate("window.readings = 0; FileReader.prototype.readAsDataURL = () => { readings += 1; }; 0")
    person.page.set_input_files("#pick", str(huge))
    person.wait_for("text=huge.bin is too large: the files of a question may total 14 MB.")
    assert person.page.evaluate("readings") == 0
    assert person.texts("#files li") == []


def test_files_that_are_too_large_together_are_refused_before_they_are_sent(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any], tmp_path: Path
) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("x" * 7_500_000)
    person = tab(serve(pilot(echo)))
    person.page.set_input_files("#pick", [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")])
    person.wait_for("text=b.txt is too large")
    assert [text.split("\n")[0].removesuffix("×") for text in person.texts("#files li")] == ["a.txt"]
    person.ask("read it")
    person.wait_until_answered()
    person.wait_for(".answer, .error")


def test_the_largest_files_that_the_page_takes_are_taken_by_the_server(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "large.png").write_bytes(b"\x89PNG" + bytes(13_900_000))
    person = tab(serve(pilot(echo)))
    person.page.set_input_files("#pick", str(tmp_path / "large.png"))
    person.wait_for("#files li")
    person.ask("x" * 500_000)
    person.wait_for(".question img")
    person.wait_until_answered()


def test_a_bomb_fails_alone_and_the_next_question_is_answered(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any], tmp_path: Path
) -> None:
    bomb = tmp_path / "bomb.docx"
    bomb.write_bytes(make_bomb())
    assert bomb.stat().st_size < 2_000_000
    person = tab(serve(pilot(echo)))
    person.page.set_input_files("#pick", str(bomb))
    person.wait_for("#files li")
    person.ask("read it")
    person.wait_for(".error, .answer, #status:not(:empty)")
    person.wait_until_answered()
    person.page.click("#new")
    person.ask("hello")
    person.wait_for("text=You sent 5 characters.")


@pytest.mark.parametrize(
    ("name", "content", "shown"),
    [
        ("fake.png", b"<script>document.title = 'hacked'</script>", ".question img"),
        ("page.html", b"<script>document.title = 'hacked'</script>", ".question .chip"),
        ("drawing.svg", b"<svg xmlns='http://www.w3.org/2000/svg' onload='document.title=1'/>", ".question .chip"),
        ("empty.txt", b"", ".question .chip"),
        ("exe\u202etxt.exe", b"MZ", ".question .chip"),
        ("broken.pdf", b"%PDF-1.7 nothing", ".question .chip"),
    ],
)
def test_wrong_files_do_nothing_on_the_page(
    name: str,
    content: bytes,
    shown: str,
    serve: Callable[..., str],
    tab: Callable[..., Any],
    pilot: Callable[..., Any],
    tmp_path: Path,
) -> None:
    (tmp_path / name).write_bytes(content)
    person = tab(serve(pilot(echo)))
    person.page.set_input_files("#pick", str(tmp_path / name))
    person.wait_for("#files li")
    assert "\u202e" not in person.page.inner_text("#files")
    person.ask("look")
    person.wait_for(shown)
    person.wait_until_answered()
    person.wait_for(".error, .answer")
    assert "\u202e" not in person.page.inner_text("#log")
    assert person.page.title() == "Jackfield"


def test_a_file_that_has_gone_is_named(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "gone.txt").write_text("x")
    person = tab(serve(pilot(echo)))
    person.page.evaluate("FileReader.prototype.readAsDataURL = function () { setTimeout(() => this.onerror()); }; 0")
    person.page.set_input_files("#pick", str(tmp_path / "gone.txt"))
    person.wait_for("text=gone.txt cannot be read.")


def test_a_huge_question_is_answered_and_shown_in_part(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    person = tab(serve(pilot(echo)))
    write_words(person, 60_000)
    person.wait_for("text=You sent 299999 characters.")
    person.wait_until_answered()
    assert len(person.page.text_content(".question .plain")) < 21_000
    person.press("Show all 299,999 characters")
    assert len(person.page.text_content(".question .plain")) == 299_999


def test_a_question_that_the_server_refuses_stays_in_its_field(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    person = tab(serve(pilot(echo), max_body_bytes=1 << 20), refused=True)
    write_words(person, 240_000)
    person.wait_for("text=the request body is larger than 1048576 bytes: send a smaller request")
    assert person.page.evaluate("document.getElementById('question').value.length") == 1_200_000
    person.page.reload()  # a draft of this length is not kept, and does not break the page
    person.ask("hello")
    person.wait_for("text=You sent 5 characters.")


def write_words(person: Any, words: int) -> None:
    """Paste a text into the field, and send it."""
    person.page.evaluate(f"document.getElementById('question').value = 'word '.repeat({words}); 0")
    person.page.dispatch_event("#question", "input")
    person.page.press("#question", "Enter")


def test_a_huge_answer_without_a_line_break_is_shown_whole(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    async def write(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        for number in range(2_000):
            yield TextDelta(f"word{number} " * 60)
        yield ModelFinished("stop")

    person = tab(serve(pilot(write)))
    person.ask("go")
    person.wait_for("text=word1999")
    person.wait_until_answered()
    assert person.page.evaluate("document.querySelector('.answer').textContent.match(/word/g).length") == 120_000
