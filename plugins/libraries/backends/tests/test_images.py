"""Only bytes that are an image of a bearable size pass, whatever their label says."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable, Iterator
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


def extended(width: int, height: int) -> bytes:
    sides = ((side - 1).to_bytes(3, "little") for side in (width, height))
    return b"RIFF\x24\0\0\0WEBPVP8X" + bytes(8) + b"".join(sides)


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
    with pytest.raises(UnsupportedInputError, match="3 x 2 pixels, but the limit is 5"):
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
    assert "expected a PNG, JPEG, GIF or WebP image, got" in problem_of(content)


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
        b"RIFF\x24\0\0\0WEBPVP8X" + bytes(13),
        b"RIFF\x24\0\0\0WEBPEXIF" + bytes(40),
    ],
)
def test_a_signature_alone_is_no_image(content: bytes) -> None:
    assert "its dimensions cannot be read" in problem_of(content)


@pytest.mark.parametrize("content", [png(60_000, 60_000), jpeg(60_000, 60_000), gif(60_000, 60_000)])
def test_a_few_bytes_that_claim_billions_of_pixels_are_refused(content: bytes) -> None:
    assert "60000 x 60000 pixels, but the limit is 50,000,000" in problem_of(content)


@pytest.mark.parametrize("content", [png(0, 2), png(2, 0), jpeg(3, 0), gif(0, 2), png(1, 2**31), png(2**32 - 1, 1)])
def test_an_impossible_size_is_refused(content: bytes) -> None:
    assert "impossible dimensions" in problem_of(content)


@pytest.mark.parametrize("make", [png, jpeg, gif, extended])
def test_the_largest_side_is_that_of_jpeg(make: Callable[[int, int], bytes]) -> None:
    assert check_image(make(65_535, 1)).content == make(65_535, 1)
    assert check_image(make(1, 65_535)).content == make(1, 65_535)


@pytest.mark.parametrize("content", [make(*size) for make in (png, extended) for size in [(65_536, 1), (1, 65_537)]])
def test_a_side_that_no_jpeg_has_is_refused(content: bytes) -> None:
    assert "declares impossible dimensions" in problem_of(content)


def test_width_times_height_is_at_most_50_million() -> None:
    assert check_image(png(10_000, 5_000))
    assert "10001 x 5000 pixels, but the limit is 50,000,000: send a smaller one" in problem_of(png(10_001, 5_000))
    assert check_image(png(3, 2), max_pixels=6)


def wide(kind: str) -> bytes:
    head = b"RIFF\x24\0\0\0WEBP"
    match kind:
        case "VP8X":
            return head + b"VP8X" + bytes(8) + (2999).to_bytes(3, "little") + (1999).to_bytes(3, "little")
        case "VP8L":
            return head + b"VP8L" + bytes(4) + b"\x2f" + (2999 | 1999 << 14 | 1 << 28).to_bytes(4, "little")
    return head + b"VP8 " + bytes(7) + b"\x9d\x01\x2a" + struct.pack("<HH", 3000 | 1 << 14, 2000 | 3 << 14)


@pytest.mark.parametrize("kind", ["VP8X", "VP8L", "VP8 "])
def test_the_size_of_a_large_webp_is_read_in_each_of_its_forms(kind: str) -> None:
    with pytest.raises(UnsupportedInputError, match="3000 x 2000 pixels, but the limit is 5"):
        check_image(wide(kind), max_pixels=5)


@pytest.mark.parametrize("marker", [0xC0, 0xC1, 0xC3, 0xC5, 0xCB, 0xCD, 0xCF])
def test_every_frame_of_a_jpeg_has_its_size(marker: int) -> None:
    with pytest.raises(UnsupportedInputError, match="3 x 2 pixels"):
        check_image(jpeg().replace(b"\xff\xc2", bytes([0xFF, marker])), max_pixels=5)


@pytest.mark.parametrize("marker", [0xC4, 0xC8, 0xCC, 0xDB, 0xE1])
def test_a_table_of_a_jpeg_is_no_frame(marker: int) -> None:
    table = bytes([0xFF, marker]) + b"\x00\x0b\x08" + struct.pack(">HH", 9, 9) + bytes(4)
    content = jpeg().replace(b"\xff\xff\xc2", table + b"\xff\x01\xff\xd0\xff\xd7\xff\xff\xc2")
    with pytest.raises(UnsupportedInputError, match="3 x 2 pixels"):
        check_image(content, max_pixels=5)


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


def test_a_text_of_the_longest_size_is_decoded_with_line_breaks_of_any_kind() -> None:
    content = png() + bytes(3000)
    for text in (base64.b64encode(content).decode(), base64.encodebytes(content).decode()):
        assert decode_image(text, max_bytes=len(content)).content == content
        with pytest.raises(UnsupportedInputError, match="larger than 3,0"):
            decode_image(text, max_bytes=len(content) - 1)
    with pytest.raises(UnsupportedInputError, match="3 x 2 pixels"):
        decode_image(base64.b64encode(png()).decode(), max_pixels=5)


@pytest.mark.parametrize(("length", "problem"), [(4101, "not valid base64"), (4102, "larger than 3,000 bytes")])
def test_a_text_that_is_too_long_even_with_line_breaks_is_not_decoded(length: int, problem: str) -> None:
    with pytest.raises(UnsupportedInputError, match=problem):
        decode_image("!" * length, max_bytes=3000)


@pytest.mark.parametrize(("length", "is_image"), [(2, True), (1, False), (0, False)])
def test_a_segment_of_a_jpeg_is_at_least_as_long_as_its_length(length: int, is_image: bool) -> None:
    content = jpeg().replace(b"\xff\xff\xc2", b"\xff\xe1" + struct.pack(">H", length) + b"\xff\xff\xc2")
    if is_image:
        assert check_image(content).content == content
    else:
        assert "its dimensions cannot be read" in problem_of(content)


@pytest.mark.parametrize("most", [1, 50, len(png()) - 1])
def test_a_long_text_is_refused(most: int) -> None:
    with pytest.raises(UnsupportedInputError, match=f"larger than {most} bytes"):
        decode_image(base64.b64encode(png()).decode(), max_bytes=most)


def test_an_image_whose_header_is_of_another_length_or_format_is_refused() -> None:
    whole = png()
    assert "its dimensions cannot be read" in problem_of(whole[:8] + chunk(b"IHDR", whole[16:29] + b"\0") + whole[33:])
    lossless = base64.b64decode(WEBP["lossless"])
    assert "its dimensions cannot be read" in problem_of(lossless[:20] + b"\x2e" + lossless[21:])
