"""Files are sent as what their bytes are; what is something else than it should be is not sent at all."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from jackfield.errors import UnsupportedInputError
from jackfield.media import address_of, embed_files, is_local, media_type_of, read_media
from jackfield.messages import ContentItem

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
WAV = b"RIFF\x24\0\0\0WAVEfmt "


@pytest.mark.parametrize("address", ["http://h/a.png", "HTTPS://h/a", "data:image/png;base64,AA=="])
def test_addresses_stay_as_they_are(address: str) -> None:
    assert address_of(address, "image") == address


@pytest.mark.parametrize("form", ["{path}", "file://{path}"])
def test_a_file_becomes_a_data_uri_with_the_type_its_bytes_show(tmp_path: Path, form: str) -> None:
    path = tmp_path / "a picture.jpg"
    path.write_bytes(PNG)
    address = form.format(path=str(path).replace(" ", "%20") if form.startswith("file") else path)
    assert is_local(ContentItem(image=address))
    assert address_of(address, "image") == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "of an unknown type"),
        (b"root:x:0:0:root:/root:/bin/bash\n", "of an unknown type"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "of an unknown type"),
        (b"%PDF-1.7\n\0", "of an unknown type"),
        (b"\x30\x82\0\xffa key", "of an unknown type"),
        (WAV, "is audio/wav"),
    ],
)
def test_a_file_that_is_no_image_is_refused_by_its_last_name_only(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "secrets.png"
    path.write_bytes(content)
    with pytest.raises(UnsupportedInputError, match=told) as caught:
        read_media(path, "image")
    assert "'secrets.png'" in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize("name", ["gone.png", "a\0b.png", "."])
def test_a_path_that_cannot_be_read_says_why(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnsupportedInputError, match="cannot read"):
        read_media(tmp_path / name, "image")


def test_a_file_that_is_too_large_is_not_sent(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(PNG * 10)
    for send in (read_media, lambda file, kind, **limits: address_of(str(file), kind, **limits)):
        with pytest.raises(UnsupportedInputError, match="larger than 100 bytes"):
            send(path, "image", max_bytes=100)
        assert send(path, "image", max_bytes=len(PNG) * 10)
    assert read_media(path, "image", max_bytes=160).media_type == "image/png"


def test_a_data_uri_of_another_kind_is_refused() -> None:
    with pytest.raises(UnsupportedInputError, match="expected an image"):
        address_of("data:audio/wav;base64,AA==", "image")


def test_sound_of_an_unknown_format_goes_by_its_name_unless_it_is_a_text_or_a_document(tmp_path: Path) -> None:
    sound = tmp_path / "a.mp3"
    sound.write_bytes(b"\xff\xe3\x18\xc4\0\0")
    assert read_media(sound, "audio").media_type == "audio/mpeg"
    for content in (b"dear diary", b"SQLite format 3\0", b"PK\x03\x04\0"):
        sound.write_bytes(content)
        with pytest.raises(UnsupportedInputError):
            read_media(sound, "audio")


def test_types_by_their_first_bytes() -> None:
    assert media_type_of(WAV) == "audio/wav"
    assert media_type_of(b"\0\0\0\x18ftypM4A ") == "audio/mp4"
    assert media_type_of(b"\0\0\0\x18ftypisom") == "video/mp4"
    assert media_type_of(b"RIFF\0\0\0\0WEBP") == "image/webp"
    assert media_type_of(b"hello") == ""


@pytest.mark.parametrize("prefix", ["data:", "DATA:", "Data:"])
def test_a_data_uri_of_another_kind_is_refused_however_it_is_spelled(prefix: str) -> None:
    with pytest.raises(UnsupportedInputError, match="expected an image"):
        address_of(f"{prefix}text/plain;base64,AA==", "image")


def test_files_that_a_tool_made_are_inside_of_its_result_and_what_cannot_be_read_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    path, gone = str(tmp_path / "a.png"), str(tmp_path / "gone.png")
    inside = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    content = [
        ContentItem(text="Here."),
        ContentItem(image=path),
        ContentItem(image="https://h/a.png"),
        ContentItem(video=[path, "https://h/b.png"]),
        ContentItem(image=gone),
        ContentItem(video=[path, gone]),
    ]
    first, image, remote, frames, *notes = embed_files(content)
    assert (first.text, image.image, remote.image) == ("Here.", inside, "https://h/a.png")
    assert frames.video == [inside, "https://h/b.png"]
    assert ["was omitted" in (note.text or "") for note in notes] == [True, True]
    assert str(tmp_path) not in repr([first, image, remote, frames, *notes]), "a model reads it"
