"""What RECORD says of an installed distribution: nothing outside is touched, and what installers add does not count.

That uv and pip give one hash is held by the test of the lock, which installs with both.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import PluginError
from jackfield_manage.record import ChangedFile, changed_files, content_hash, files_below, is_editable

EMPTY = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"


@pytest.fixture
def distribution(tmp_path: Path) -> Callable[..., str]:
    """Lays out a distribution with a RECORD; gives the folder of its metadata."""

    def lay(record: str | bytes, folder: str = "site") -> str:
        location = tmp_path / folder / "mine-1.0.dist-info"
        location.mkdir(parents=True, exist_ok=True)
        (location / "METADATA").write_text("Name: mine\nVersion: 1.0\n")
        (location / "RECORD").write_bytes(record if isinstance(record, bytes) else record.encode())
        return str(location)

    return lay


@given(order=st.permutations(["a.py", "b/c.py", '"with, comma.py"', "mine-1.0.dist-info/METADATA"]), ends=st.booleans())
def test_the_order_of_lines_and_their_ends_do_not_count(
    order: list[str], ends: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    location = tmp_path_factory.mktemp("x") / "mine-1.0.dist-info"
    location.mkdir()
    newline = "\r\n" if ends else "\n"
    (location / "RECORD").write_bytes("".join(f"{path},{EMPTY},0{newline}" for path in order).encode())
    # Another value would make every lock that people have keep wrong.
    assert content_hash(str(location)) == "sha256:d0590224ad3822ed38638533626d6d742117f5c76e8069748fe3ad61ee054501"


def test_what_installers_write_does_not_count(distribution: Callable[..., str]) -> None:
    own = ["RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "uv_build.json"]
    more = [f"mine-1.0.dist-info/{name}" for name in own]
    more += ["mine-1.0.dist-info/provenance_url.json", "..\\..\\Scripts\\mine.exe", "a/../../outside.py"]
    more += ["../../../bin/mine", "/usr/bin/mine", "C:/Scripts/mine.exe", "__pycache__/mine.cpython-311.pyc"]
    plain = f"mine.py,{EMPTY},0\n"
    extended = plain + "".join(f"{path},{EMPTY},0\n" for path in more) + "\nwithout_a_hash.py,,\nalone.py\n"
    assert content_hash(distribution(plain)) == content_hash(distribution(extended, "other"))


@pytest.mark.parametrize("path", ["mine/RECORD", "mine/INSTALLER", "other.py", "mine-1.0.dist-info/licenses/RECORD"])
def test_a_file_of_the_wheel_counts_whatever_its_name_is(distribution: Callable[..., str], path: str) -> None:
    plain = f"mine.py,{EMPTY},0\n"
    assert content_hash(distribution(plain)) != content_hash(distribution(f"{plain}{path},{EMPTY},0\n", "other"))


def test_a_record_of_16_mib_is_read_and_a_larger_one_is_not(distribution: Callable[..., str]) -> None:
    line = b"x" * 65_533 + b",,\n"
    whole = line * (16 << 4) + b"y,,\n"
    with pytest.raises(PluginError, match="lists no files with hashes"):
        content_hash(distribution(whole.ljust(16 << 20, b"\n")[: 16 << 20]))
    with pytest.raises(PluginError, match="is larger than 16 MiB"):
        content_hash(distribution(whole))


def test_edited_and_missing_files_are_named(distribution: Callable[..., str], tmp_path: Path) -> None:
    location = distribution(f'mine.py,{EMPTY},0\n"a, b.py",{EMPTY},0\ngone.py,{EMPTY},0\nfree.py,,\n')
    (tmp_path / "site/mine.py").write_text("# edited\n")
    (tmp_path / "site/a, b.py").touch()
    assert changed_files(location) == [ChangedFile("gone.py", "missing"), ChangedFile("mine.py", "changed")]


def test_a_path_that_leaves_the_folder_is_never_followed(distribution: Callable[..., str], tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("secret")
    os.mkfifo(tmp_path / "pipe")  # reading it would not end
    lines = [
        f"../outside.txt,{EMPTY},0",
        f"{outside},{EMPTY},0",
        f"x/../../outside.txt,{EMPTY},0",
        f"../pipe,{EMPTY},0",
        f",{EMPTY},0",
        f"a\0b,{EMPTY},0",
    ]
    assert changed_files(distribution("\n".join(lines))) == []


@pytest.mark.parametrize("algorithm", ["sha256", "sha384", "sha512"])
def test_a_file_that_has_its_hash_is_unchanged(
    algorithm: str, distribution: Callable[..., str], tmp_path: Path
) -> None:
    digest = base64.urlsafe_b64encode(hashlib.new(algorithm, b"A = 1").digest()).decode().rstrip("=")
    location = distribution(f"mine.py,{algorithm}={digest},5\n")
    (tmp_path / "site/mine.py").write_text("A = 1")
    assert changed_files(location) == []
    (tmp_path / "site/mine.py").write_text("A = 2")
    assert changed_files(location) == [ChangedFile("mine.py", "changed")]


def test_files_below_a_folder_are_those_that_a_distribution_put_there(distribution: Callable[..., str]) -> None:
    paths = ["core/b.py", "core/a.py", "core.py", "mine/core/c.py", "../core/d.py", "core/e.pyc"]
    location = distribution("".join(f"{path},{EMPTY},0\n" for path in paths))
    assert files_below(location, "core/") == ["core/a.py", "core/b.py"]
    assert files_below(location, "absent/") == []
    assert files_below(distribution('"core/a.py'), "core/") == [], "a broken table lists nothing"
    assert files_below("/srv/none-1.0.dist-info", "core/") == []


def test_a_pipe_in_place_of_a_file_is_missing(distribution: Callable[..., str], tmp_path: Path) -> None:
    location = distribution(f"mine.py,{EMPTY},0\n")
    os.mkfifo(tmp_path / "site/mine.py")
    assert changed_files(location) == [ChangedFile("mine.py", "missing")]


@pytest.mark.parametrize(
    "claimed",
    ["md5=1B2M2Y8AsgTpgAmY7PhCfg", "sha256=!!!", "sha256=", "nonsense", "shake_128=AA", "sha256=A", "sha256=é"],
)
def test_a_hash_that_cannot_be_trusted_is_a_change(
    claimed: str, distribution: Callable[..., str], tmp_path: Path
) -> None:
    location = distribution(f"mine.py,{claimed},0\n")
    (tmp_path / "site/mine.py").touch()
    assert changed_files(location) == [ChangedFile("mine.py", "changed")]


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (b"\xff\xfe,x,1\n", "RECORD is not a valid list of files"),
        (b'"never closed,x\n', "RECORD is not a valid list of files"),
        (b"", "no files with hashes"),
    ],
)
def test_a_broken_record_is_one_clear_error(record: bytes, told: str, distribution: Callable[..., str]) -> None:
    with pytest.raises(PluginError, match=told):
        content_hash(distribution(record))


def test_no_record_names_who_leaves_it_out(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match=r"mine-1\.0\.dist-info has no RECORD \(conda"):
        content_hash(str(tmp_path / "mine-1.0.dist-info"))


@given(raw=st.binary(max_size=200))
def test_any_record_gives_a_hash_or_a_plugin_error(raw: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    location = tmp_path_factory.mktemp("x") / "mine-1.0.dist-info"
    location.mkdir()
    (location / "RECORD").write_bytes(raw)
    for look in (content_hash, changed_files):
        with suppress(PluginError):
            look(str(location))


@pytest.mark.parametrize(
    "direct", ['{"dir_info": {"editable": true}}', '{"dir_info": {}}', "[]", "{", "", '{"dir_info": 1}']
)
def test_only_a_note_that_says_editable_is_one(direct: str, distribution: Callable[..., str]) -> None:
    location = distribution("")
    (Path(location) / "direct_url.json").write_text(direct)
    assert is_editable(location) is ("true" in direct)


@pytest.mark.parametrize("metadata", [None, b"", b"\xff\xfe", b"Summary: it has no name\n"])
def test_a_distribution_whose_metadata_cannot_be_read_is_not_editable(
    metadata: bytes | None, distribution: Callable[..., str]
) -> None:
    file = Path(distribution("")) / "METADATA"
    file.unlink()
    if metadata is not None:
        file.write_bytes(metadata)
    assert is_editable(str(file.parent)) is False
