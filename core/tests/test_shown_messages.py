"""Messages and their media as they are shown: sizes, names, and the last part of a location."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from jackfield.messages import ContentItem, Message, basename_of, name_in_file, want_dicts

ON_POSIX = pytest.mark.skipif(sys.platform == "win32", reason="a backslash separates names on Windows")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("data:image/png;base64," + "a" * 9978, "data:image/png;base64… (10 thousand characters)"),
        ("data:image/png;base64," + "a" * 9977, "data:image/png;base64… (9999 characters)"),
        ("data:" + "x" * 100 + "," + "a" * 2000, "data:" + "x" * 55 + "… (2106 characters)"),
        ("data:,a", "data:,a"),
        ("https://h/" + "a" * 5000, "https://h/" + "a" * 5000),
    ],
    ids=["10,000", "9,999", "long type", "short", "address"],
)
def test_a_medium_is_shown_by_its_size(value: str, shown: str) -> None:
    message = Message("user", [ContentItem(image=value)])
    assert str(message) == str({"role": "user", "content": [{"image": shown}]})
    assert repr(ContentItem(image=value)) == f"ContentItem(image={shown!r})"


def test_the_data_of_sound_is_shown_by_its_size() -> None:
    sound = ContentItem(audio={"data": "a" * 2000, "format": "wav"})
    assert str(sound) == str({"audio": {"data": "… (2000 characters)", "format": "wav"}})


def test_a_message_of_a_failed_call_says_so() -> None:
    failed = Message("function", "x", name="f", extra={"error": "ValueError", "function_id": 7})
    assert (failed.error, failed.function_id) == ("ValueError", "7")
    assert (Message("user", "x").error, Message("user", "x").function_id) == ("", None)
    assert ("extra" in failed, "origin" in failed, "nothing" in failed) == (True, False, False)
    assert (failed.get("name"), failed.get("origin", 5)) == ("f", 5)
    assert (failed["name"], failed.items) == ("f", [ContentItem(text="x")])
    assert Message("user", "").items == []
    assert failed.model_dump(exclude_none=False)["origin"] is None
    assert '"origin":null' in failed.model_dump_json(exclude_none=False)
    assert "origin" not in failed.model_dump_json()


@pytest.mark.parametrize(
    ("location", "name", "extension"),
    [
        ("/srv/a.PDF", "a.PDF", "pdf"),
        ("https://h/x/a%20b.tar.gz?k=1#f", "a b.tar.gz", "gz"),
        ("https://user:key@h/", "h", ""),
        ("file:///srv/a.md", "a.md", "md"),
        (r"C:\data\a.txt", "a.txt", "txt"),
        (r"\\server\share\a.txt", "a.txt", "txt"),
        pytest.param(r"/srv/new\nline.md", r"new\nline.md", "md", marks=ON_POSIX),
        pytest.param(r"latin\udcff.md", r"latin\udcff.md", "md", marks=ON_POSIX),
        ("http://[", "[", ""),
        ("/srv/folder/", "folder", ""),
        ("a?b.md", "a?b.md", "md"),
    ],
)
def test_a_location_is_shown_by_its_last_part(location: str, name: str, extension: str) -> None:
    assert basename_of(location) == name
    assert ContentItem(file=location).get_file_extension() == extension
    assert ContentItem(text=location).get_file_extension() == ""


def test_a_file_in_a_file_is_shown_with_both_names() -> None:
    assert (name_in_file("a.zip", "b.pdf"), name_in_file("a.zip", "")) == ("a.zip › b.pdf", "a.zip")
    assert ContentItem(file="data:text/markdown,a.md").get_file_extension() == ""


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ("q", False), ({"role": "user"}, True), (Message("user", "q"), False), ([], False), ([{}], True), (({},), True),
        ([{}, Message("user", "q")], False), (5, False), (iter(()), True),
    ],
)  # fmt: skip
def test_dicts_come_back_for_dicts_alone(values: Any, wanted: bool) -> None:
    assert want_dicts(values) is wanted
