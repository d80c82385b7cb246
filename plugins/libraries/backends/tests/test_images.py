"""Only bytes that are an image of a bearable size pass, whatever their label says."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import UnsupportedInputError
from jackfield_backends.images import check_image, decode_image


def chunk(kind: bytes, content: bytes = b"") -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(width: int = 3, height: int = 2) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    data = zlib.compress(b"\0\0\0\0" * 2)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND")


def jpeg(width: int = 3, height: int = 2) -> bytes:
    start = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
    return start + b"\xff\xff\xc2\x00\x0b\x08" + struct.pack(">HH", height, width) + b"\x01\x01\x11\x00\xff\xd9"


def gif(width: int = 3, height: int = 2) -> bytes:
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0, 0, 0) + b";"


# Of 3 x 2 pixels each, made with Pillow.
WEBP = {
    "lossy": "UklGRjwAAABXRUJQVlA4IDAAAADQAQCdASoDAAIAAUAmJaACdLoB+AADsAD+8ut//NgVzXPv9//S4P0uD9Lg/9KQAAA=",
    "lossless": "UklGRhwAAABXRUJQVlA4TA8AAAAvAkAAAAcQ/Y/+ByKi/wEA",
    "extended": "UklGRkYAAABXRUJQVlA4WAoAAAAQAAAAAgAAAQAAQUxQSAcAAAAAZGRkZGRkAFZQOCAYAAAAMAEAnQEq"
    "AwACAAFAJiWkAANwAP79IFAA",
}


def sizes() -> Iterator[bytes]:
    yield from (png(), jpeg(), gif())
    yield from (base64.b64decode(text) for text in WEBP.values())


def problem_of(content: bytes) -> str:
    with pytest.raises(UnsupportedInputError) as caught:
        check_image(content)
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "media_type"),
    [(png(), "image/png"), (jpeg(), "image/jpeg"), (gif(), "image/gif")]
    + [(base64.b64decode(text), "image/webp") for text in WEBP.values()],
    ids=["png", "jpeg", "gif", *WEBP],
)
def test_an_image_passes_with_the_type_of_its_bytes_and_its_size_is_known(content: bytes, media_type: str) -> None:
    assert check_image(content, max_pixels=6) == (media_type, content)
    with pytest.raises(UnsupportedInputError, match="3 x 2 pixels, more than 5"):
        check_image(content, max_pixels=5)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html><script>alert(1)</script></html>",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"root:x:0:0:root:/root:/bin/bash\n",
        b"%PDF-1.7\n",
        b"BM" + bytes(60),
        b"RIFF\x24\0\0\0WAVEfmt ",
    ],
)
def test_anything_but_a_png_jpeg_gif_or_webp_is_refused(content: bytes) -> None:
    assert "not a PNG, JPEG, GIF or WebP image" in problem_of(content)


@pytest.mark.parametrize(
    "content",
    [
        b"\x89PNG\r\n\x1a\n",
        b"\x89PNG\r\n\x1a\n<svg onload='alert(1)'/>" + bytes(40),
        png().replace(b"IDAT", b"tEXt"),
        png()[:-12],
        png()[:-1],
        b"\xff\xd8\xff<html></html>",
        b"\xff\xd8\xff\xe0\x00\x01" + bytes(40),
        b"\xff\xd8" + b"\xff\xd0" * 20_000,
        b"GIF89a\x03",
        b"RIFF\x24\0\0\0WEBPVP8 " + bytes(40),
        b"RIFF\x24\0\0\0WEBPVP8L" + bytes(40),
        b"RIFF\x24\0\0\0WEBPVP8X" + bytes(10),
        b"RIFF\x24\0\0\0WEBPEXIF" + bytes(40),
    ],
)
def test_a_signature_alone_is_no_image(content: bytes) -> None:
    assert "its size cannot be read" in problem_of(content)


@pytest.mark.parametrize("content", [png(60_000, 60_000), jpeg(60_000, 60_000), gif(60_000, 60_000)])
def test_a_few_bytes_that_claim_billions_of_pixels_are_refused(content: bytes) -> None:
    assert "60000 x 60000 pixels, more than 50,000,000" in problem_of(content)


@pytest.mark.parametrize("content", [png(0, 2), png(2, 0), jpeg(3, 0), gif(0, 2), png(1, 2**31), png(2**32 - 1, 1)])
def test_an_impossible_size_is_refused(content: bytes) -> None:
    assert "impossible size" in problem_of(content)


@given(st.sampled_from(list(sizes())), st.data())
def test_damaged_bytes_are_an_image_or_an_error_and_never_a_crash(content: bytes, data: st.DataObject) -> None:
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with suppress(UnsupportedInputError):
        check_image(bytes(damaged[: data.draw(st.integers(0, len(damaged)))]))


def test_base64_may_have_line_breaks() -> None:
    text = base64.encodebytes(png()).decode()
    assert decode_image(text).content == png()
    assert decode_image(text, max_bytes=len(png())).content == png()


@pytest.mark.parametrize("text", ["!", "AAA", "é" * 4, "data:image/png;base64,AAAA"])
def test_what_is_not_base64_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedInputError, match="not valid base64"):
        decode_image(text)


@pytest.mark.parametrize("most", [1, 50, len(png()) - 1])
def test_a_long_text_is_refused(most: int) -> None:
    with pytest.raises(UnsupportedInputError, match=f"larger than {most} bytes"):
        decode_image(base64.b64encode(png()).decode(), max_bytes=most)
