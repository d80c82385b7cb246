"""What a server answers reaches a conversation as what its bytes show it to be."""

from __future__ import annotations

import base64
import io
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

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
    ],
)
def test_text_that_came_as_bytes_is_shown(content: bytes, media_type: str, text: str) -> None:
    assert shown(content, media_type) == f"[a://b]\n{text}"


def test_text_that_came_as_bytes_is_cut() -> None:
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
        assert text.startswith(f"[{kind} that was left out, labelled '{kind}/png': ")
        assert isinstance(shown(content, f"{kind}/png"), str)


def test_an_image_that_claims_a_huge_size_is_left_out() -> None:
    bomb = bytearray(png())
    bomb[16:24] = (60_000).to_bytes(4, "big") * 2
    assert "60000 x 60000 pixels" in called("image", bytes(bomb), "image/png")


def test_sound_has_the_type_of_its_bytes() -> None:
    assert [item.audio for item in called("audio", FLAC, "audio/wav")] == [f"data:audio/flac;base64,{encoded(FLAC)}"]
