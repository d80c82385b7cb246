"""Files are sent as what their bytes are; what is something else than it should be is not sent at all."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from jackfield.errors import UnsupportedInputError
from jackfield.messages import ContentItem, Message
from jackfield.models import address_of, is_local, media_type_of, notes_of, path_of, read_media
from jackfield.models._media import without_foreign_paths

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
WAV = b"RIFF\x24\0\0\0WAVEfmt "


@pytest.mark.parametrize("address", ["http://h/a.png", "HTTPS://h/a", "data:image/png;base64,AA=="])
def test_addresses_stay_as_they_are(address: str) -> None:
    assert address_of(address, "image") == address
    assert not is_local(ContentItem(image=address))


@pytest.mark.parametrize("form", ["{path}", "file://{path}"])
def test_a_file_becomes_a_data_uri_with_the_type_its_bytes_show(tmp_path: Path, form: str) -> None:
    path = tmp_path / "a picture.jpg"
    path.write_bytes(PNG)
    address = form.format(path=str(path).replace(" ", "%20") if form.startswith("file") else path)
    assert is_local(ContentItem(image=address))
    assert address_of(address, "image") == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"


def test_what_is_local_depends_on_the_schemes_a_server_knows() -> None:
    item = ContentItem(video=["http://h/1.png", "oss://bucket/2.png"])
    assert is_local(item)
    assert not is_local(item, remote=("http", "https", "oss"))
    assert path_of("file://frame.png") == Path("frame.png")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "of an unknown type"),
        (b"root:x:0:0:root:/root:/bin/bash\n", "of an unknown type"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "of an unknown type"),
        (b"%PDF-1.7\n\0", "of an unknown type"),
        (WAV, "is audio/wav, but should be an image"),
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
    with pytest.raises(UnsupportedInputError, match="cannot be read"):
        read_media(tmp_path / name, "image")


def test_a_file_that_is_too_large_is_not_sent(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(PNG * 10)
    with pytest.raises(UnsupportedInputError, match="larger than 100 bytes"):
        read_media(path, "image", max_bytes=100)
    assert read_media(path, "image", max_bytes=160).media_type == "image/png"


def test_a_data_uri_of_another_kind_is_refused() -> None:
    with pytest.raises(UnsupportedInputError, match="is not an image"):
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


def test_notes_name_files_by_their_last_part_and_show_no_content() -> None:
    items = [
        ContentItem(text="t"),
        ContentItem(file="/private/b.pdf"),
        ContentItem(image="data:image/png;base64,AAAA"),
        ContentItem(video=["1.png", "2.png"]),
        ContentItem(audio={"data": "AAAA", "format": "wav"}),
    ]
    assert notes_of(items) == ["[file: b.pdf]", "[image: data]", "[video: 2 frames]", "[audio: data]"]


ELSEWHERE = ("data:image/png;base64,AAAA", "DATA:image/png;base64,AAAA", "https://x.test/a.png", "oss://bucket/a.png")
HERE = (
    "/home/me/a.png",
    "a.png",
    "file:///home/me/a.png",
    "FILE:a.png",
    "file://a.png",
    "C:\\a.png",
    "//host/a.png",
    "~/a.png",
)


@pytest.mark.parametrize("role", ["assistant", "function"])
@pytest.mark.parametrize("address", HERE)
@pytest.mark.parametrize("kind", ["image", "audio", "video", "file", "frames"])
def test_a_file_that_a_model_or_a_result_names_is_a_note(role: str, address: str, kind: str) -> None:
    item = (
        ContentItem(video=[ELSEWHERE[0], address]) if kind == "frames" else ContentItem.model_validate({kind: address})
    )
    message = Message(role, [ContentItem(text="see"), item], name="t", reasoning_content=[item])
    (changed,) = without_foreign_paths((message,))
    assert not changed.is_multimodal()
    assert changed.items[0].text == "see"
    assert isinstance(changed.reasoning_content, list)
    assert changed.reasoning_content[0].text is not None
    assert "home" not in changed.get_text_content()


def test_what_the_user_gave_and_what_is_no_file_stays_as_it_is() -> None:
    history = (
        *(Message(role, [ContentItem(image=address)]) for role in ("system", "user") for address in HERE),
        *(Message("assistant", [ContentItem(image=address)]) for address in ELSEWHERE),
        Message("function", [ContentItem(audio={"data": "AAAA", "format": "wav"})], name="t"),
        Message("assistant", "plain"),
    )
    assert without_foreign_paths(history) is history
