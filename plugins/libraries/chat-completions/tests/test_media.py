"""Media are addresses or the files themselves, and what cannot be sent is refused with the reason."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from jackfield.errors import UnsupportedInputError
from jackfield.media import is_local
from jackfield.messages import ContentItem
from jackfield_chat_completions.media import file_part, media_part

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
    uri = data_uri("audio/mpeg", b"ID3")
    assert media_part(ContentItem(audio=uri))["input_audio"] == {"data": uri.partition(",")[2], "format": "mp3"}
    given = {"data": "UklG", "format": "mp3"}
    assert media_part(ContentItem(audio=given))["input_audio"] == given


@pytest.mark.parametrize(
    ("media_type", "named"),
    [
        ("audio/mpeg", "mp3"),
        ("audio/mp4", "m4a"),
        ("audio/x-wav", "wav"),
        ("audio/wave", "wav"),
        ("audio/ogg", "ogg"),
        ("AUDIO/FLAC", "flac"),
        ("audio/wav;rate=8000", "wav"),
    ],
)
def test_the_format_of_sound_has_the_name_that_servers_know(media_type: str, named: str) -> None:
    part = media_part(ContentItem(audio=data_uri(media_type, b"abc")))
    assert part["input_audio"] == {"data": "YWJj", "format": named}


def test_a_pdf_has_the_name_of_its_file_or_the_stated_one(tmp_path: Path) -> None:
    pdf = b"%PDF-1.7"
    (tmp_path / "my report.pdf").write_bytes(pdf)
    uri = data_uri("application/pdf", pdf)

    def name_of(address: str) -> object:
        part = file_part(address)
        assert part is not None
        assert part["type"] == "file"
        file = part["file"]
        assert isinstance(file, dict)
        assert str(file["file_data"]).endswith(uri.partition(",")[2])
        return file["filename"]

    assert name_of(str(tmp_path / "my report.pdf")) == "my report.pdf"
    assert name_of(uri) == "file.pdf"
    assert name_of(uri.replace("data:", "DATA:")) == "file.pdf"
    assert name_of(uri.replace(";base64", ";name=a.pdf;base64")) == "a.pdf"
    assert file_part("https://h/a.pdf") is None
    (tmp_path / "a.txt").write_bytes(b"text")
    assert file_part(str(tmp_path / "a.txt")) is None


def test_sound_is_a_data_uri_where_the_server_wants_one(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(WAV)
    part = media_part(ContentItem(audio=str(path)), sound_as_uri=True)
    assert part["input_audio"] == {"data": data_uri("", WAV), "format": "wav"}
    address = {"type": "input_audio", "input_audio": {"data": "http://h/a.mp3"}}
    assert media_part(ContentItem(audio="http://h/a.mp3")) == address


def test_a_video_is_an_address_or_its_frames(tmp_path: Path) -> None:
    frame = tmp_path / "0.png"
    frame.write_bytes(PNG)
    assert media_part(ContentItem(video="http://h/v.mp4")) == {
        "type": "video_url",
        "video_url": {"url": "http://h/v.mp4"},
    }
    uri = data_uri("video/mp4", b"abc")
    assert media_part(ContentItem(video=uri)) == {"type": "video_url", "video_url": {"url": uri}}
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
    with pytest.raises(UnsupportedInputError, match="cannot read the image"):
        media_part(ContentItem(image=str(tmp_path)))


def test_a_data_uri_of_another_kind_is_refused() -> None:
    with pytest.raises(UnsupportedInputError, match="data:image/"):
        media_part(ContentItem(image="data:text/plain;base64,aGk="))
