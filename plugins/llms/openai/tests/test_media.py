"""Media are addresses or the files themselves, and what cannot be sent is refused with the reason."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from jackfield.errors import UnsupportedInputError
from jackfield.messages import ContentItem
from jackfield_openai.media import is_local, media_part, media_type_of

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
WAV = b"RIFF\x24\0\0\0WAVEfmt "


def data_uri(media_type: str, content: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


@pytest.mark.parametrize("address", ["http://h/a.png", "HTTPS://h/a", data_uri("image/png", PNG)])
def test_addresses_are_sent_as_they_are(address: str) -> None:
    item = ContentItem(image=address)
    assert not is_local(item)
    assert media_part(item) == {"type": "image_url", "image_url": {"url": address}}


@pytest.mark.parametrize("form", ["{path}", "file://{path}"])
def test_a_local_image_is_sent_with_the_type_its_bytes_show(tmp_path: Path, form: str) -> None:
    path = tmp_path / "a picture.jpg"
    path.write_bytes(PNG)
    item = ContentItem(image=form.format(path=path).replace(" ", "%20" if form.startswith("file") else " "))
    assert is_local(item)
    assert media_part(item)["image_url"]["url"] == data_uri("image/png", PNG)


def test_audio_has_its_format(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(WAV)
    assert media_part(ContentItem(audio=str(path)))["input_audio"] == {
        "data": base64.b64encode(WAV).decode(),
        "format": "wav",
    }
    given = {"data": "UklG", "format": "mp3"}
    assert media_part(ContentItem(audio=given))["input_audio"] == given


def test_a_video_is_an_address_or_its_frames(tmp_path: Path) -> None:
    frame = tmp_path / "0.png"
    frame.write_bytes(PNG)
    assert media_part(ContentItem(video="http://h/v.mp4")) == {
        "type": "video_url",
        "video_url": {"url": "http://h/v.mp4"},
    }
    item = ContentItem(video=["http://h/1.png", str(frame)])
    assert is_local(item)
    assert media_part(item) == {"type": "video", "video": ["http://h/1.png", data_uri("image/png", PNG)]}


def test_a_missing_file_is_named_without_its_folder(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedInputError, match=r"'gone\.png'") as caught:
        media_part(ContentItem(image=str(tmp_path / "gone.png")))
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"root:x:0:0", b"%PDF-1.7", WAV])
def test_a_file_that_is_no_image_is_not_sent(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "secrets.png"
    path.write_bytes(content)
    with pytest.raises(UnsupportedInputError, match=r"'secrets\.png'"):
        media_part(ContentItem(image=str(path)))


def test_a_folder_is_no_image(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedInputError, match="cannot be read"):
        media_part(ContentItem(image=str(tmp_path)))


def test_a_data_uri_of_another_kind_is_refused() -> None:
    with pytest.raises(UnsupportedInputError, match="data:image/"):
        media_part(ContentItem(image="data:text/plain;base64,aGk="))


@pytest.mark.parametrize(
    ("head", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"\0\0\0\x18ftypmp42", "video/mp4"),
        (b"ID3\x04", "audio/mpeg"),
        (b"RIFF", ""),
        (b"", ""),
    ],
)
def test_types_are_known_by_their_first_bytes(head: bytes, media_type: str) -> None:
    assert media_type_of(head) == media_type
