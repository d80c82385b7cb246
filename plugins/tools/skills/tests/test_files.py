"""A file of a skill is read through no link, even if one takes its place after the check."""

from __future__ import annotations

from pathlib import Path

import pytest

from jackfield.errors import ConfigError, ToolArgumentError
from jackfield.tools import Workspace
from jackfield_skills import files
from jackfield_skills.files import MAX_BYTES, files_below, read_text
from jackfield_skills.skill import body_of, load_skill
from jackfield_skills.tool import SkillTool


def test_a_file_that_becomes_a_link_after_its_check_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, private = tmp_path / "skill", tmp_path / "private"
    folder.mkdir()
    private.write_text("private")
    (folder / "notes.md").write_text("notes")
    assert read_text(folder, "notes.md") == "notes"
    resolve = Workspace.resolve

    def resolve_and_replace(self: Workspace, name: str) -> Path:
        path = resolve(self, name)
        path.unlink()
        path.symlink_to(private)
        return path

    monkeypatch.setattr(Workspace, "resolve", resolve_and_replace)
    with pytest.raises(ToolArgumentError, match="cannot be read"):
        read_text(folder, "notes.md")


def test_a_file_may_have_just_the_limit(tmp_path: Path) -> None:
    assert MAX_BYTES == 2**20
    (tmp_path / "a").write_bytes(b"x" * MAX_BYTES)
    assert len(read_text(tmp_path, "a")) == MAX_BYTES
    (tmp_path / "a").write_bytes(b"x" * (MAX_BYTES + 1))
    for most_bytes in (None, 10):
        with pytest.raises(ToolArgumentError, match=r"'a' is larger than 1 MiB \(1,048,577 bytes\)"):
            read_text(tmp_path, "a", most_bytes=most_bytes)


@pytest.mark.parametrize(("most_bytes", "text"), [(3, "aé"), (2, "a"), (1, "a"), (6, "aé潮"), (5, "aé"), (4, "aé")])
def test_a_beginning_may_end_within_a_character(tmp_path: Path, most_bytes: int, text: str) -> None:
    (tmp_path / "a").write_text("aé潮汐")
    assert read_text(tmp_path, "a", most_bytes=most_bytes) == text
    (tmp_path / "a").write_text("aé潮汐", encoding="utf-8-sig")
    assert read_text(tmp_path, "a", most_bytes=3 + most_bytes) == text, "a byte order mark is no text"


@pytest.mark.parametrize(("data", "most_bytes"), [(b"a\xc3", None), (b"\xffabcd", 5), (b"a\0", None), (b"a\0b", 3)])
def test_what_is_no_text_is_named_with_its_size(tmp_path: Path, data: bytes, most_bytes: int | None) -> None:
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(ToolArgumentError, match=rf"^'a' is not a text file \({len(data)} bytes\)$"):
        read_text(tmp_path, "a", most_bytes=most_bytes)


def test_files_are_listed_in_order_and_up_to_a_number(tmp_path: Path) -> None:
    for path in ("b/x", "a/y", "a/x", "z", "c"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    (tmp_path / "link").symlink_to(tmp_path.parent)
    every = ["c", "z", "a/x", "a/y", "b/x"]
    found, has_more = files_below(tmp_path, most=5)
    assert (found, has_more) == (every, False)
    assert files_below(tmp_path, most=4) == (every[:4], True)


def test_an_endless_folder_is_not_walked_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_MAX_ENTRIES", 2)
    for path in ("a/1", "a/2", "b/1", "c/1"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    assert files_below(tmp_path, most=100) == ([], False)
    monkeypatch.setattr(files, "_MAX_ENTRIES", 4)
    assert files_below(tmp_path, most=100) == (["a/1", "a/2"], False)


# --- the limits of a skill ---


def written(folder: Path, *, name: str = "it", description: str = "Does it.", more: str = "") -> Path:
    (folder / name).mkdir()
    (folder / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n{more}---\nbody")
    return folder / name


def test_a_name_and_a_description_may_have_just_their_limits(tmp_path: Path) -> None:
    loaded = load_skill(written(tmp_path, name="n" * 64, description="d" * 1024))
    assert (loaded.name, loaded.description) == ("n" * 64, "d" * 1024)
    assert len(loaded.line) <= 1100
    with pytest.raises(ConfigError, match="use 1 to 64 characters from a-z"):
        load_skill(written(tmp_path, name="n" * 65))
    with pytest.raises(ConfigError, match="description must be at most 1,024 characters, got 1,025"):
        load_skill(written(tmp_path, name="long", description="d" * 1025))


@pytest.mark.parametrize("name", ["a--b", "-a", "a-", "A", "a_b", "a.b"])
def test_a_name_is_of_small_letters_digits_and_single_hyphens(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="is not a valid name"):
        load_skill(written(tmp_path, name=name))


@pytest.mark.parametrize("spare", [0, -1])
def test_front_matter_may_have_just_the_limit(tmp_path: Path, spare: int) -> None:
    folder = written(tmp_path)
    head, _, _ = (folder / "SKILL.md").read_text().rpartition("---\nbody")
    padding = "#".ljust(16 * 1024 - len(head) - len("---\n") - 1 - spare, "x") + "\n"
    (folder / "SKILL.md").write_text(f"{head}{padding}---\nbody")
    if spare == 0:
        assert load_skill(folder).name == "it"
    else:
        # Its last line break is not read, which ends the front matter as well as the end of the text.
        assert load_skill(folder).name == "it"
        (folder / "SKILL.md").write_text(f"{head}{padding}#xxx\n---\nbody")
        with pytest.raises(ConfigError, match="within 16 KiB"):
            load_skill(folder)


@pytest.mark.parametrize(
    ("text", "body"),
    [("---\na: 1\n---\n\n x \n", "x"), ("---  \r\na: 1\r\n---\r\nx", "x"), ("---\na: 1\n---", ""),
     ("x\n---\n", "x\n---\n"),
     ("---\na: 1\n----\nx", "---\na: 1\n----\nx")],
)  # fmt: skip
def test_a_body_is_what_follows_the_front_matter(text: str, body: str) -> None:
    assert body_of(text) == body


def test_fifty_files_are_listed_and_one_more_is_announced(tmp_path: Path) -> None:
    folder = written(tmp_path)
    tool = SkillTool({"it": load_skill(folder)})
    assert tool.call({"name": "it"}) == "body"
    for number in range(50):
        (folder / f"{number:02}").touch()
    lines = tool.call({"name": "it"}).splitlines()
    assert lines[2:] == ["[Files of this skill:", *(f"{number:02}" for number in range(50)), "]"]
    (folder / "50").touch()
    assert tool.call({"name": "it"}).splitlines()[-3:] == ["49", "…", "]"]


@pytest.mark.parametrize(("chars", "parts"), [(0, 1), (16_000, 1), (16_001, 2), (32_000, 2), (32_001, 3)])
def test_a_text_has_as_many_parts_as_it_needs(tmp_path: Path, chars: int, parts: int) -> None:
    folder = written(tmp_path)
    (folder / "a").write_text("x" * chars)
    tool = SkillTool({"it": load_skill(folder)})
    found = [tool.call({"name": "it", "file": "a", "part": number + 1}) for number in range(parts)]
    assert sum(part.partition("\n[part")[0].count("x") for part in found) == chars
    with pytest.raises(ToolArgumentError, match=rf"no part {parts + 1}: the text has {parts} parts?$"):
        tool.call({"name": "it", "file": "a", "part": parts + 1})
