"""A record of an agreement holds for its own file and content only; a record that cannot be read is no agreement."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jackfield.projects import answer_for, trust_file

RECORDS: dict[str, tuple[bytes, str]] = {
    "its own": (b'{"path": "/srv/a.toml", "content": "abc"}', "yes"),
    "of other content": (b'{"path": "/srv/a.toml", "content": "abd"}', "changed"),
    "without content": (b'{"path": "/srv/a.toml"}', "changed"),
    "of another file": (b'{"path": "/srv/b.toml", "content": "abc"}', "no"),
    "without a file": (b'{"content": "abc"}', "no"),
    "of no object": (b'["/srv/a.toml", "abc"]', "no"),
    "cut off": (b'{"path": "/srv/a.toml", "content": "abc"', "no"),
    "no text": (b"\xff\xfe", "no"),
    "too deep": (b"[" * 100_000, "no"),
    "empty": (b"", "no"),
}


@pytest.mark.parametrize("name", list(RECORDS))
def test_only_a_record_of_this_file_and_content_is_an_agreement(name: str, tmp_path: Path) -> None:
    record, expected = RECORDS[name]
    path = Path("/srv/a.toml")
    assert answer_for(tmp_path, path, "abc") == "no"
    trust_file(tmp_path, path).write_bytes(record)
    assert answer_for(tmp_path, path, "abc") == expected
    assert answer_for(tmp_path, Path("/srv/b.toml"), "abc") == "no"


def test_each_file_has_its_own_record(tmp_path: Path) -> None:
    for name in ("a", "b"):
        path = Path(f"/srv/{name}.toml")
        trust_file(tmp_path, path).write_text(json.dumps({"path": str(path), "content": name}))
    assert [answer_for(tmp_path, Path(f"/srv/{name}.toml"), name) for name in ("a", "b")] == ["yes", "yes"]
    trust_file(tmp_path, Path("/srv/c.toml")).mkdir()
    assert answer_for(tmp_path, Path("/srv/c.toml"), "c") == "no"  # it cannot be read
