"""Media files: their addresses, names, types and sizes, and the note in the place of one that is left out."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import MissingFileError, UnsupportedInputError
from jackfield.media import (
    address_of,
    media_type_of,
    notes_of,
    path_of,
    pdf_of,
    read_file,
    read_media,
    split_data_uri,
    stated_name,
    write_data_uri,
)
from jackfield.messages import ContentItem

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
PDF = b"%PDF-1.7\n"


@pytest.mark.parametrize("length", [10, 255, 256, 20_000])
def test_a_long_name_in_a_data_uri_keeps_its_end(length: int) -> None:
    name = "文" * (length - 4) + ".pdf"
    uri = write_data_uri("application/pdf", "aGk=", name)
    assert split_data_uri(uri) == ("application/pdf", "aGk=", name[-255:])


def test_a_data_uri_has_a_type_a_content_and_perhaps_a_name() -> None:
    uri = write_data_uri("image/png", "aaaa", "ä b/c.png")
    assert uri == "data:image/png;name=%C3%A4%20b%2Fc.png;base64,aaaa"
    assert split_data_uri(uri) == ("image/png", "aaaa", "c.png")
    assert write_data_uri("image/png", "aaaa") == "data:image/png;base64,aaaa"
    assert split_data_uri("DATA:image/png;base64,aaaa") == ("image/png", "aaaa", "")
    assert split_data_uri("data:text/plain,hello") is None
    assert split_data_uri("https://h/a;base64,b") is None


@pytest.mark.parametrize(
    ("parameter", "name"),
    [("name=a.md", "a.md"), ("charset=x;NAME=a.md", "a.md"), ("name=..", ""), ("name=.", ""), ("name=a%0Ab", ""),
     ("name=%5Cx%5Ca.md", "a.md"), ("", ""), ("names=a", "")],
)  # fmt: skip
def test_a_stated_name_leads_nowhere(parameter: str, name: str) -> None:
    assert stated_name(f"data:text/plain;{parameter};base64,YQ==,name=b") == name


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("/srv/a", "/srv/a"), ("a b", "a b"), ("file:///srv/a%20b", "/srv/a b"), ("file://a.png", "a.png"),
        ("http://[", "http://["), ("https://h/a", None), ("DATA:,a", None), (5, None), ("s3://b/a", "s3://b/a"),
    ],
)  # fmt: skip
def test_an_address_is_a_file_unless_it_is_elsewhere(address: Any, path: str | None) -> None:
    assert path_of(address) == (None if path is None else Path(path))
    if address == "s3://b/a":
        assert path_of(address, remote=("s3",)) is None


@pytest.mark.parametrize(
    ("head", "media_type"),
    [
        (PNG, "image/png"), (b"RIFF\0\0\0\0WEBP", "image/webp"), (b"RIFF\0\0\0\0WAVE", "audio/wav"),
        (b"RIFF\0\0\0\0XXXX", ""), (b"\0\0\0\0ftypavif", "image/avif"), (b"\0\0\0\0ftypM4A ", "audio/mp4"),
        (b"\0\0\0\0ftypisom", "video/mp4"), (b"GIF89a", "image/gif"), (b"OggS", "audio/ogg"), (b"hello", ""), (b"", ""),
    ],
)  # fmt: skip
def test_a_type_is_what_the_first_bytes_show(head: bytes, media_type: str) -> None:
    assert media_type_of(head) == media_type


def test_a_file_of_the_largest_size_is_read_and_a_larger_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    media = read_media(tmp_path / "a.png", "image", max_bytes=16)
    assert (media.media_type, media.content) == ("image/png", PNG)
    assert media.data_uri == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    assert address_of(str(tmp_path / "a.png"), "image") == media.data_uri
    with pytest.raises(UnsupportedInputError) as caught:
        read_media(tmp_path / "a.png", "image", max_bytes=15)
    assert str(caught.value) == "the image 'a.png' is larger than 15 bytes: reduce its size, or pass its URL"
    assert read_file(tmp_path / "a.png", max_bytes=16) == PNG
    with pytest.raises(UnsupportedInputError) as caught:
        read_media(tmp_path / "a.png", "audio")
    assert str(caught.value) == "expected sound, but the file 'a.png' is image/png: convert or remove the file"
    (tmp_path / "b.mp3").write_text("hello")
    with pytest.raises(UnsupportedInputError, match=r"expected sound, but the file 'b\.mp3' is of an unknown type"):
        read_media(tmp_path / "b.mp3", "audio")
    (tmp_path / "c.mp3").write_bytes(b"\0\1\2")
    assert read_media(tmp_path / "c.mp3", "audio").media_type == "audio/mpeg"
    with pytest.raises(UnsupportedInputError):
        read_media(tmp_path / "c.mp3", "image")


def test_a_file_that_is_not_there_says_why(tmp_path: Path) -> None:
    for path, reason in (
        (tmp_path / "gone.png", "cannot read the image 'gone.png': No such file or directory; pass a URL or the path"),
        (Path("a\0b"), "cannot read the image 'a\\x00b': ValueError; pass a URL or the path"),
        (tmp_path, "folders can only be read by agent kind 'assistant'; pass a URL or"),
    ):
        with pytest.raises(MissingFileError) as caught:
            read_media(path, "image")
        assert reason in str(caught.value)


def test_a_pdf_is_one_by_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(PDF)
    (tmp_path / "b.pdf").write_bytes(b"no")
    made = pdf_of(str(tmp_path / "a.txt"))
    assert made is not None
    assert (made.media_type, made.content) == ("application/pdf", PDF)
    assert pdf_of(str(tmp_path / "b.pdf")) is None
    assert pdf_of("https://h/a.pdf") is None
    assert pdf_of(made.data_uri) == made
    assert pdf_of(made.data_uri.replace("data:application/pdf", "DATA:Application/PDF")) == made
    assert pdf_of("data:image/png;base64,aaaa") is None
    assert pdf_of("data:application/pdf,aaaa") is None


def test_a_note_names_the_kind_and_the_last_part() -> None:
    items = [
        ContentItem(text="a"), ContentItem(image="/srv/a.png"), ContentItem(video=["a", "b"]),
        ContentItem(audio={"data": "x", "format": "wav"}), ContentItem(file="data:text/plain;name=a.md,x"),
        ContentItem(image="data:image/png;base64,aaaa"),
    ]  # fmt: skip
    assert notes_of(items) == [
        "[image: a.png]", "[video: 2 frames]", "[audio: data]", "[file: a.md]", "[image: data]",
    ]  # fmt: skip


@pytest.mark.parametrize("address", ["https://h/a", "data:image/png;base64,aaaa", "DATA:IMAGE/png,a"])
def test_an_address_elsewhere_stays(address: str) -> None:
    assert address_of(address, "image") == address
    if address[:4].lower() == "data":
        with pytest.raises(
            UnsupportedInputError, match=r"expected sound, got a data: URI starting with .*: use data:audio/…;base64,…"
        ):
            address_of(address, "audio")
