"""The proofs in `.dist-info` of a distribution: its RECORD, its hashes, and the folder of an editable one."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.plugins._identity import _editable_folder, _has_hash, _metadata_in, _name_of, _parse_record


@pytest.mark.parametrize(
    ("url", "editable", "found"),
    [
        ("file:///home/a%20b", True, "/home/a b"),
        ("file://localhost/home/x", True, "/home/x"),
        ("file:///home/x", False, ""),
        ("file:///home/x", 1, ""),
        ("file:///home/x", "true", ""),
        ("https:///home/x", True, ""),
        ("/home/x", True, ""),
        ("file:///", True, ""),
        ("file://", True, ""),
        ("file://[", True, ""),
        (None, True, ""),
        (7, True, ""),
        (["file:///home/x"], True, ""),
        ("file:///home/%00x", True, ""),
    ],
)
def test_only_a_link_to_a_folder_of_this_machine_is_editable(
    tmp_path: Path, url: Any, editable: Any, found: str
) -> None:
    (tmp_path / "direct_url.json").write_text(json.dumps({"url": url, "dir_info": {"editable": editable}}))
    folder = _editable_folder(str(tmp_path))
    assert folder == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        '"editable"',
        '{"editable"',
        '["editable"]',
        '{"dir_info": ["editable"], "url": "file:///x"}',
        '{"dir_info": "editable", "url": "file:///x"}',
        '{"dir_info": {"editable": true}}',
        '{"url": "file:///x", "a": "editable"}',
        '{"editable": ' + "[" * 100_000,
    ],
)
def test_a_link_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    assert _editable_folder(str(tmp_path)) == ""
    (tmp_path / "direct_url.json").write_text(text)
    assert _editable_folder(str(tmp_path)) == ""


PATHS = st.text(st.sampled_from("ab/.\"', é-"), min_size=1, max_size=8)


@given(st.dictionaries(PATHS, st.sampled_from(["", "sha256=abc", "sha512=x-y_z"])))
def test_a_record_is_read_as_csv_writes_it(hashes: dict[str, str]) -> None:
    file = io.StringIO()
    for path, digest in hashes.items():
        csv.writer(file, lineterminator="\n").writerow([path, digest, 7 if digest else ""])
    assert _parse_record(file.getvalue().encode()) == hashes


@pytest.mark.parametrize("algorithm", ["sha256", "sha384", "sha512"])
def test_a_hash_counts_with_and_without_its_padding(algorithm: str) -> None:
    for content in (b"", b"a", b"~" * 99):
        digest = base64.urlsafe_b64encode(hashlib.new(algorithm, content).digest()).decode()
        assert _has_hash(content, f"{algorithm}={digest}")
        assert _has_hash(content, f"{algorithm}={digest.rstrip('=')}")
        assert not _has_hash(content + b"x", f"{algorithm}={digest}")
        for part in ("", digest[:1], digest.rstrip("=")[:-1], f"{digest.rstrip('=')}A"):
            assert not _has_hash(content, f"{algorithm}={part}")
        assert not _has_hash(None, f"{algorithm}={digest}")


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "", "SHA256", "shake_128", "x"])
def test_a_weak_or_unknown_hash_proves_nothing(algorithm: str) -> None:
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"a").digest()).decode()
    if algorithm in ("md5", "sha1"):
        digest = base64.urlsafe_b64encode(hashlib.new(algorithm, b"a").digest()).decode()
    assert not _has_hash(b"a", f"{algorithm}={digest}")
    assert not _has_hash(b"a", "")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_metadata_of_others_in_a_record_are_found_in_every_line(end: str) -> None:
    lines = [
        "own-1.0.dist-info/METADATA,,",
        "own.py,,",
        "a-1.dist-info/METADATA,,",
        '"b ""x""-1.dist-info/RECORD",,',
        "../c-1.dist-info/entry_points.txt,,",
        "not_own-1.0.dist-info/METADATA,,",
    ]
    raw = end.join(["first.py,,", *lines, ""]).encode()
    found = [name for name in _metadata_in(raw, own=b"own-1.0.dist-info") if name != "own-1.0.dist-info"]
    assert found == ["a-1.dist-info", 'b ""x""-1.dist-info', "../c-1.dist-info", "not_own-1.0.dist-info"]


@pytest.mark.parametrize(
    ("metadata", "name"), [("Acme_Tools-1.0.dist-info", "acme-tools"), ("a.b-2.dist-info", "a-b"), ("x", "x")]
)
def test_a_distribution_has_its_normal_name(metadata: str, name: str) -> None:
    assert _name_of(metadata) == name
