"""Files of this machine, as they are sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from jackfield.errors import UnsupportedInputError
from jackfield.messages import ContentItem
from jackfield_dashscope.media import MAX_FILE_BYTES, media_part

HEADS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff\xe0",
    "image/webp": b"RIFF\0\0\0\0WEBPVP8 ",
    "audio/wav": b"RIFF\0\0\0\0WAVEfmt ",
    "audio/mpeg": b"ID3\x04",
    "audio/mp4": b"\0\0\0\x20ftypM4A ",
    "video/mp4": b"\0\0\0\x20ftypisom",
}


@pytest.mark.parametrize("media_type", HEADS)
def test_a_file_is_what_it_begins_like_whatever_its_name(tmp_path: Path, media_type: str) -> None:
    path = tmp_path / "name.txt"
    path.write_bytes(HEADS[media_type])
    kind = media_type.partition("/")[0]
    assert media_part(ContentItem(**{kind: str(path)}))[kind].startswith(f"data:{media_type};base64,")


def test_where_the_content_says_nothing_the_name_counts(tmp_path: Path) -> None:
    path = tmp_path / "sound.aac"
    path.write_bytes(b"\xff\xf1\x50\x80\x00\x1f\xfc")
    assert media_part(ContentItem(audio=str(path)))["audio"].startswith("data:audio/")


def test_a_file_url_is_a_path(tmp_path: Path) -> None:
    path = tmp_path / "with space.png"
    path.write_bytes(HEADS["image/png"])
    assert media_part(ContentItem(image=path.as_uri())) == media_part(ContentItem(image=str(path)))


def test_a_file_url_without_its_third_slash_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.png").write_bytes(HEADS["image/png"])
    monkeypatch.chdir(tmp_path)
    assert media_part(ContentItem(image="file://a.png")) == media_part(ContentItem(image="a.png"))


@pytest.mark.parametrize("value", ["//[x", "file://[::", "\0", "x:y:z", "file:"])
def test_what_is_neither_path_nor_address_is_refused(value: str) -> None:
    with pytest.raises(UnsupportedInputError):
        media_part(ContentItem(image=value))


@pytest.mark.parametrize("address", ["http://h/a", "https://h/a", "oss://b/a", "data:image/png;base64,AA"])
def test_an_address_is_sent_as_it_is(address: str) -> None:
    assert media_part(ContentItem(image=address)) == {"image": address}


def test_the_frames_of_a_video_are_images(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(HEADS["image/jpeg"])
    item = ContentItem(video=["http://h/1.jpg", str(path)])
    first, second = media_part(item)["video"]
    assert first == "http://h/1.jpg"
    assert second.startswith("data:image/jpeg;base64,")


def test_what_is_missing_wrong_or_too_large_is_told_without_its_folder(tmp_path: Path) -> None:
    wrong = tmp_path / "a.png"
    wrong.write_bytes(HEADS["audio/wav"])
    large = tmp_path / "large.png"
    large.write_bytes(HEADS["image/png"] + bytes(MAX_FILE_BYTES))
    for path, told in ((tmp_path / "none.png", "No such file"), (wrong, "audio/wav"), (large, "7,500,000")):
        with pytest.raises(UnsupportedInputError, match=told) as caught:
            media_part(ContentItem(image=str(path)))
        assert path.name in str(caught.value)
        assert str(tmp_path) not in str(caught.value)


def test_audio_without_data_is_refused() -> None:
    with pytest.raises(UnsupportedInputError, match="data"):
        media_part(ContentItem(audio={"format": "wav"}))


@pytest.mark.parametrize(
    ("audio", "address"),
    [
        ({"data": "UklG", "format": "mp3"}, "data:audio/mp3;base64,UklG"),
        ({"data": "UklG"}, "data:audio/wav;base64,UklG"),
        ({"data": "data:audio/ogg;base64,T2dn"}, "data:audio/ogg;base64,T2dn"),
        ({"data": "https://h/a"}, "https://h/a"),
        ({"url": "oss://b/a"}, "oss://b/a"),
    ],
)
def test_audio_in_the_form_of_openai_is_data_unless_it_is_an_address(audio: dict[str, str], address: str) -> None:
    assert media_part(ContentItem(audio=audio)) == {"audio": address}


def test_a_file_may_have_as_many_bytes_as_ten_million_in_base64(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(HEADS["image/png"].ljust(7_500_000, b"x"))
    assert len(media_part(ContentItem(image=str(path)))["image"]) == 10_000_000 + len("data:image/png;base64,")
