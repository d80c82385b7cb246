"""Which addresses mean files, and whose files are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from jackfield.media import is_local, notes_of, path_of, without_foreign_paths
from jackfield.messages import ContentItem, Message


@pytest.mark.parametrize("address", ["http://h/a.png", "HTTPS://h/a", "data:image/png;base64,AA=="])
def test_addresses_elsewhere_are_not_local(address: str) -> None:
    assert not is_local(ContentItem(image=address))


def test_what_is_local_depends_on_the_schemes_a_server_knows() -> None:
    item = ContentItem(video=["http://h/1.png", "oss://bucket/2.png"])
    assert is_local(item)
    assert not is_local(item, remote=("http", "https", "oss"))
    assert path_of("file://frame.png") == Path("frame.png")


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
