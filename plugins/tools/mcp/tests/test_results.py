"""What a server answers reaches a conversation as what its bytes show it to be."""

from __future__ import annotations

import base64
import io
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from jackfield.errors import ToolServiceError
from jackfield_mcp import results

FLAC = b"fLaC" + bytes(100)


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def png() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (2, 2)).save(file, "PNG")
    return file.getvalue()


def shown(content: bytes, media_type: str | None) -> Any:
    """The content of a resource that came as bytes."""
    blob = SimpleNamespace(uri="a://b", mime_type=media_type, blob=encoded(content))
    return results.of_resource(SimpleNamespace(contents=[blob]), "s").content


def called(kind: str, content: bytes, media_type: str) -> Any:
    """The content of a call's result."""
    block = SimpleNamespace(type=kind, data=encoded(content), mime_type=media_type)
    result = SimpleNamespace(content=[block], structured_content=None, is_error=False)
    return results.of_call(result, "s").content


@pytest.mark.parametrize(
    ("content", "media_type", "text"),
    [
        ("Grüße".encode(), "text/plain", "Grüße"),
        ("Grüße".encode("latin-1"), "text/plain; charset=ISO-8859-1", "Grüße"),
        ("Grüße".encode("utf-16"), 'text/csv;charset="utf-16"', "Grüße"),
        (b'{"a": 1}', "application/json", '{"a": 1}'),
        (b"<a/>", "application/atom+xml", "<a/>"),
        (b"a", "text/html; charset=punycode", "a"),
        ("Grüße".encode("latin-1"), "TEXT/Plain ; CHARSET=ISO-8859-1", "Grüße"),
        (b"{}", "application/ld+json", "{}"),
        (b"a: 1", "application/openapi+yaml", "a: 1"),
    ],
)
def test_text_that_came_as_bytes_is_shown(content: bytes, media_type: str, text: str) -> None:
    assert shown(content, media_type) == f"[a://b]\n{text}"


def test_text_that_came_as_bytes_is_cut() -> None:
    assert shown(b"x" * 200_000, "text/plain") == f"[a://b]\n{'x' * 200_000}"
    assert shown(b"x" * 200_005, "text/plain") == f"[a://b]\n{'x' * 200_000}\n[5 more characters]"


@pytest.mark.parametrize("media_type", ["application/zip", None, "text/plain"])
def test_other_bytes_are_named_with_type_and_size(media_type: str | None) -> None:
    assert shown(b"\xff\xfe\xff", media_type) == f"[a://b: {media_type or 'bytes'}, 3 bytes, not shown]"


@pytest.mark.parametrize("label", ["image/png", "image/svg+xml", "image/png;x=,"])
def test_an_image_has_the_type_of_its_bytes(label: str) -> None:
    uri = f"data:image/png;base64,{encoded(png())}"
    assert [item.image for item in called("image", png(), label)] == [uri]
    assert [item.image for item in shown(png(), "image/jpeg")] == [uri]


@pytest.mark.parametrize(
    "content", [b"<html>", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"%PDF-1.7", b"", png()[:20]]
)
def test_what_is_no_image_or_sound_enters_no_conversation_as_one(content: bytes) -> None:
    for kind in ("image", "audio"):
        text = called(kind, content, f"{kind}/png")
        assert isinstance(text, str)
        assert text.startswith(f"[{kind} labelled '{kind}/png' omitted: ")
        assert isinstance(shown(content, f"{kind}/png"), str)


def test_an_image_that_claims_a_huge_size_is_left_out() -> None:
    bomb = bytearray(png())
    bomb[16:24] = (60_000).to_bytes(4, "big") * 2
    assert "60000 x 60000 pixels" in called("image", bytes(bomb), "image/png")


def test_sound_has_the_type_of_its_bytes() -> None:
    assert [item.audio for item in called("audio", FLAC, "audio/wav")] == [f"data:audio/flac;base64,{encoded(FLAC)}"]


# --- blocks and messages ---


def block(kind: str, **of: Any) -> Any:
    return SimpleNamespace(type=kind, **of)


def result_of(*blocks: Any, structured: Any = None, is_error: bool = False) -> Any:
    return SimpleNamespace(content=list(blocks), structured_content=structured, is_error=is_error)


LINK = {"name": "a", "title": None, "uri": "a://b", "description": None}


@pytest.mark.parametrize(
    ("blocks", "content"),
    [
        ([block("text", text="a"), block("text", text="b")], "a\n\nb"),
        ([block("resource_link", **LINK)], "[a: a://b]"),
        ([block("resource_link", **{**LINK, "title": "A", "description": "of b"})], "[A: a://b] of b"),
        ([block("resource", resource=SimpleNamespace(uri="a://b", text="c"))], "[a://b]\nc"),
        ([block("resource", resource=SimpleNamespace(uri="a://b", text=""))], "[a://b]\n"),
        ([block("hologram")], "[content of type 'hologram']"),
        ([], "(empty)"),
        ([block("text", text="")], "(empty)"),
    ],
)
def test_each_kind_of_block_is_shown(blocks: list[Any], content: str) -> None:
    result = results.of_call(result_of(*blocks), "s")
    assert (result.content, result.metadata) == (content, {"server": "s"})


def test_a_structured_result_is_shown_unless_there_is_another_and_is_always_kept() -> None:
    alone = results.of_call(result_of(structured={"a": 1}), "s")
    beside = results.of_call(result_of(block("text", text="one"), structured={"a": 1}), "s")
    assert (alone.content, beside.content) == ('{"a": 1}', "one")
    assert alone.metadata == beside.metadata == {"server": "s", "structured_content": {"a": 1}}
    empty = results.of_call(result_of(structured={}), "s")
    assert (empty.content, empty.metadata["structured_content"]) == ("{}", {})


@pytest.mark.parametrize(
    ("failed", "text"),
    [
        (result_of(block("text", text="a"), block("text", text="b"), is_error=True), "a\n\nb"),
        (result_of(structured={"why": "x"}, is_error=True), '{"why": "x"}'),
        (result_of(block("text", text="x" * 10_001), is_error=True), "x" * 10_000),
    ],
    ids=["texts", "structured", "long"],
)
def test_a_failure_has_the_words_of_the_server(failed: Any, text: str) -> None:
    with pytest.raises(ToolServiceError) as caught:
        results.of_call(failed, "s")
    assert (str(caught.value), caught.value.code) == (text, "is_error")


def test_the_messages_of_a_prompt_come_after_their_roles() -> None:
    image = block("image", data=encoded(png()), mime_type="image/png")
    messages = [
        SimpleNamespace(role="user", content=block("text", text="?")),
        SimpleNamespace(role="assistant", content=block("text", text="!")),
    ]
    result = results.of_prompt(SimpleNamespace(messages=messages), "s")
    assert (result.content, result.metadata) == ("user: ?\n\nassistant: !", {"server": "s"})
    shown = results.of_prompt(SimpleNamespace(messages=[SimpleNamespace(role="user", content=image)]), "s").content
    assert isinstance(shown, list)
    assert [item.text or "" for item in shown] == ["user:", ""]
    assert str(shown[1].image).startswith("data:image/png")


def test_bytes_that_are_no_base64_are_named() -> None:
    blob = SimpleNamespace(uri="a://b", mime_type="application/zip", blob="!!")
    result = results.of_resource(SimpleNamespace(contents=[blob]), "s")
    assert result.content == "[a://b: application/zip, not shown: invalid base64]"
    assert result.metadata == {"server": "s"}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (encoded(b"x" * 9), "expected audio, got an unknown format (9 bytes)"),
        ("!!", "the data is not valid base64"),
    ],
)
def test_a_sound_that_is_none_is_left_out_with_the_reason(data: str, reason: str) -> None:
    sound = block("audio", data=data, mime_type="audio/wav")
    assert results.of_call(result_of(sound), "s").content == f"[audio labelled 'audio/wav' omitted: {reason}]"
