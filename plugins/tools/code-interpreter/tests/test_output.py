"""Messages become blocks, bounded, clean, and never confused with each other."""

from __future__ import annotations

import asyncio
import base64
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield_code_interpreter.kernel import FloodError, _Course
from jackfield_code_interpreter.output import FINISHED, Output, clean_text, fenced

PNG = (  # of one pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)


def padded_png(size_bytes: int) -> str:
    """A PNG with a comment of a size."""
    head, rest = (content := base64.b64decode(PNG))[:33], content[33:]
    comment = size_bytes.to_bytes(4, "big") + b"tEXt" + b"x" * size_bytes + b"\0\0\0\0"
    return base64.b64encode(head + comment + rest).decode()


printable = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)
streams = st.tuples(st.sampled_from(["stdout", "stderr"]), printable)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


def stream(output: Output, text: str, name: str = "stdout") -> None:
    output.add("stream", {"name": name, "text": text})


def test_each_kind_has_a_block_and_blank_lines_between() -> None:
    output = Output()
    stream(output, "one\n")
    stream(output, "two\n")
    stream(output, "careful\n", name="stderr")
    output.add("execute_result", {"data": {"text/plain": "42"}})
    output.add("display_data", {"data": {"text/plain": "<Table>"}})
    output.add("error", {"traceback": ["\x1b[31mZeroDivisionError\x1b[0m", "at line 1"]})
    assert output.content() == (
        "stdout:\n\n```\none\ntwo\n```\n\n"
        "stderr:\n\n```\ncareful\n```\n\n"
        "execute_result:\n\n```\n42\n```\n\n"
        "display_data:\n\n```\n<Table>\n```\n\n"
        "error:\n\n```\nZeroDivisionError\nat line 1\n```"
    )


@pytest.mark.parametrize("kind", ["execute_result", "display_data"])
def test_values_shown_one_after_another_have_a_block_each(kind: str) -> None:
    output = Output()
    for text in ("<Table>", "<Chart>"):
        output.add(kind, {"data": {"text/plain": text}})
    assert output.content() == f"{kind}:\n\n```\n<Table>\n```\n\n{kind}:\n\n```\n<Chart>\n```"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ({"ename": "ValueError", "evalue": "x"}, "ValueError: x"),
        ({"ename": "ValueError", "evalue": "x", "traceback": []}, "ValueError: x"),
        ({"ename": "ValueError", "evalue": "x", "traceback": "text"}, "ValueError: x"),
        ({"ename": "ValueError", "evalue": "x", "traceback": ["one\n", "two", 3]}, "one\ntwo"),
        ({}, ":"),
    ],
)
def test_an_error_is_its_traceback_or_its_name_and_text(error: dict[str, object], text: str) -> None:
    output = Output()
    output.add("error", error)
    assert output.text().split() == f"error: ``` {text} ```".split()


def test_code_that_says_nothing_has_finished() -> None:
    output = Output()
    output.add("status", {"execution_state": "busy"})
    stream(output, "\n")
    assert output.content() == FINISHED == "Finished execution."


def test_a_note_stands_after_the_blocks() -> None:
    output = Output()
    stream(output, "half")
    assert output.content("Timeout: no.") == "stdout:\n\n```\nhalf\n```\n\nTimeout: no."
    assert Output().content("Timeout: no.") == "Timeout: no."


def test_an_image_follows_the_text() -> None:
    output = Output()
    output.add("display_data", {"data": {"image/png": PNG + "\n", "text/plain": "<Figure>"}})
    text, image = output.content()
    assert text.text == "display_data:\n\n```\n<Figure>\n```"
    assert image.image == f"data:image/png;base64,{PNG}"


def test_images_beyond_the_limit_are_left_out_and_the_text_says_so() -> None:
    output = Output(max_images=2)
    for _ in range(5):
        output.add("display_data", {"data": {"image/png": PNG}})
    content: Any = output.content()
    assert [item.type for item in content] == ["text", "image", "image"]
    assert content[0].text.count("image omitted") == 3


def test_all_images_together_have_a_limit() -> None:
    output = Output(max_images=100)
    large = padded_png(5_000_000)
    for _ in range(10):
        output.add("display_data", {"data": {"image/png": large}})
    assert sum(map(len, output.images)) < 25_000_000
    assert output.text().count("too large in total") == 10 - len(output.images)


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", "expected a "),
        (b"<html></html>", "expected a "),
        (b"root:x:0:0:root:/root:/bin/bash", "expected a "),
        (b"%PDF-1.7", "expected a "),
        (b"\x89PNG\r\n\x1a\n", "the image/png image is corrupted"),
    ],
)
def test_what_is_no_image_does_not_enter_the_conversation_as_one(shown: bytes, reason: str) -> None:
    output = Output()
    output.add("display_data", {"data": {"image/png": base64.b64encode(shown).decode(), "text/plain": "<A>"}})
    assert output.images == []
    assert f"<A>\n[image omitted: {reason}" in output.text()


def test_an_image_is_of_the_type_of_its_bytes_and_not_of_its_label() -> None:
    output = Output()
    output.add("display_data", {"data": {"image/jpeg": PNG}})
    assert output.images == [f"data:image/png;base64,{PNG}"]


def test_an_image_that_claims_billions_of_pixels_is_left_out() -> None:
    content = bytearray(base64.b64decode(PNG))
    content[16:24] = (60_000).to_bytes(4, "big") * 2
    output = Output()
    output.add("display_data", {"data": {"image/png": base64.b64encode(content).decode()}})
    assert output.images == []
    assert "the limit is 50,000,000: send a smaller one" in output.text()


@pytest.mark.parametrize("kinds", [("display_data",), ("stdout", "stderr")], ids=["displays", "streams in turn"])
def test_a_result_of_very_many_parts_is_not_much_longer_than_its_text_may_be(kinds: tuple[str, ...]) -> None:
    output = Output(max_chars=1000)
    for number in range(20_000):
        kind = kinds[number % len(kinds)]
        if kind == "display_data":
            output.add(kind, {"data": {"text/plain": f"{number}", "image/png": PNG}})
        else:
            stream(output, f"{number}", kind)
    text = output.text()
    assert len(text) < 10_000
    assert "0\n" in text
    assert "19999" in text
    assert "characters omitted" in text
    assert len(output.images) <= 8


def test_a_line_that_was_overwritten_shows_its_last_state() -> None:
    assert clean_text("  1%\r 50%\r100%\ndone\r\n") == "100%\ndone\n"


def test_half_a_surrogate_pair_becomes_text_that_can_be_sent() -> None:
    assert clean_text("a\ud800b").encode("utf-8") == b"a?b"


@given(st.text())
def test_a_fence_is_longer_than_any_inside(text: str) -> None:
    fence, _, rest = fenced(text).partition("\n")
    assert fence == "`" * len(fence)
    assert fence not in text
    assert rest == f"{text}\n{fence}"


@given(st.lists(streams, max_size=30))
def test_short_output_is_whole_and_in_order(said: list[tuple[str, str]]) -> None:
    output = Output(max_chars=10_000)
    for name, text in said:
        stream(output, text, name)
    bare = output.text().replace("stdout:\n\n```\n", "").replace("stderr:\n\n```\n", "").replace("\n```\n\n", "")
    if said and not any("`" in text for _, text in said):
        assert bare.removesuffix("\n```") == "".join(text for _, text in said)


@given(st.lists(streams, min_size=1, max_size=60), st.integers(min_value=1, max_value=200))
def test_long_output_keeps_both_ends_and_says_how_much_is_missing(said: list[tuple[str, str]], limit: int) -> None:
    output = Output(max_chars=limit * 2)
    for _, text in said:
        stream(output, text.replace("`", "'"))
    whole = "".join(text.replace("`", "'") for _, text in said)
    left_out = len(whole) - limit * 2
    shown = output.text().removeprefix("stdout:\n\n```\n").removesuffix("\n```")
    if left_out <= 0:
        assert shown == whole
    else:
        assert shown == f"{whole[:limit]}\n[… {left_out} characters omitted …]\n{whole[-limit:]}"


@given(st.lists(streams, max_size=200))
def test_what_is_kept_does_not_grow_with_what_is_said(said: list[tuple[str, str]]) -> None:
    output = Output(max_chars=50)
    for name, text in said:
        stream(output, text * 20, name)
    kept = sum(len(piece.text) for piece in (*output._head, *output._tail))
    assert kept <= 50
    assert output.received_chars == sum(len(text) * 20 for _, text in said)


@given(st.sampled_from(["stream", "execute_result", "display_data", "error", "what"]), st.dictionaries(
    st.sampled_from(["name", "text", "data", "traceback", "ename", "evalue"]), anything))  # fmt: skip
def test_forged_messages_break_nothing(message_type: str, content: dict[str, Any]) -> None:
    output = Output()
    output.add(message_type, content)
    assert isinstance(output.text(), str)


def test_others_have_their_turn_after_each_sixteenth_message() -> None:
    async def count() -> list[int]:
        course, turns = _Course("r", {"r"}), list[int]()

        async def note_turns() -> None:
            while True:
                await asyncio.sleep(0)
                turns.append(course.received)

        other = asyncio.ensure_future(note_turns())
        for _ in range(40):
            await course.count([b""], None)
        other.cancel()
        return turns

    assert asyncio.run(count()) == [32]  # its first turn only begins its wait


def test_messages_are_a_flood_once_they_are_more_than_the_limit_whatever_they_contain() -> None:
    async def count(parts: list[bytes], most_bytes: int) -> int:
        course = _Course("r", {"r"})
        with suppress(FloodError):
            while True:
                await course.count(parts, most_bytes)
        return course.received

    assert asyncio.run(count([], 3 * 1024)) == 4
    assert asyncio.run(count([b"x" * 500, b"x" * 524], 6 * 1024)) == 4
