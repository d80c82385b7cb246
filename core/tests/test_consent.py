"""One gate decides about the effects of a file, by its content and its place."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield import consent
from jackfield.consent import (
    Contacts,
    Effect,
    Loosens,
    MakesCall,
    ReachesOutside,
    Request,
    RunsCode,
    SendsVariable,
    StartsProcess,
    UsesPackage,
    content_hash,
    is_agreed,
    record_consent,
    require_consent,
    unique,
)
from jackfield.errors import ConsentNeededError

EFFECTS: list[Effect] = [
    StartsProcess("sh -c id"),
    SendsVariable("OPENAI_API_KEY", "https://example.org"),
    Contacts("https://example.org"),
    ReachesOutside("files", "~/.ssh"),
    Loosens("approval", "never"),
    RunsCode("scorer.py"),
    UsesPackage("sandbox.acme", "acme"),
    MakesCall("shell", "{}"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "user" / "trusted"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "project" / "agent.yaml"
    path.parent.mkdir()
    path.write_text("x")
    return path


@pytest.mark.parametrize("effect", EFFECTS, ids=lambda effect: type(effect).__name__)
def test_every_effect_needs_consent_and_the_error_has_a_line_for_it(file: Path, folder: Path, effect: Effect) -> None:
    with pytest.raises(ConsentNeededError) as caught:
        require_consent(Request(file, (effect,), "c"), folder=folder)
    assert f"  - {effect}" in str(caught.value).splitlines()
    assert f"jackfield trust {file}" in str(caught.value)
    assert "--trust" in str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).effects == (str(effect),)


def test_a_file_without_effects_needs_nothing(file: Path, folder: Path) -> None:
    require_consent(Request(file, (), "c"), folder=folder)
    assert not folder.exists()


def test_consent_is_bound_to_the_content_and_the_place(file: Path, folder: Path) -> None:
    request = Request(file, (EFFECTS[0],), "content")
    assert not is_agreed(request, folder=folder)
    record_consent(request, folder=folder)
    require_consent(request, folder=folder)
    assert not is_agreed(Request(file, (EFFECTS[0],), "changed"), folder=folder)
    assert not is_agreed(Request(file.with_name("other.yaml"), (EFFECTS[0],), "content"), folder=folder)
    (file.parent / "link.yaml").symlink_to(file)
    assert not is_agreed(Request(file.parent / "link.yaml", (EFFECTS[0],), "content"), folder=folder)


def test_consent_to_a_file_holds_however_its_folder_is_written(
    file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_consent(Request(file, (EFFECTS[0],), "content"), folder=folder)
    monkeypatch.chdir(file.parent)
    link = file.parent.parent / "link"
    link.symlink_to(file.parent)
    for path in (Path(file.name), file.parent / ".." / file.parent.name / file.name, link / file.name):
        assert is_agreed(Request(path, (EFFECTS[0],), "content"), folder=folder)


def test_a_configuration_behind_a_link_is_the_users_own_as_well(folder: Path) -> None:
    own = folder.parent / "mine.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("x")
    own.chmod(0o600)
    link = folder.parent.parent / "link"
    link.symlink_to(folder.parent)
    assert is_agreed(Request(link / "mine.yaml", (EFFECTS[0],), "c"), folder=link / "trusted")


def test_effects_are_listed_once_and_in_the_order_of_the_file() -> None:
    assert unique([*EFFECTS[::-1], *EFFECTS]) == (*EFFECTS[::-1],)


def test_the_flag_lets_a_file_pass_once_and_records_nothing(file: Path, folder: Path) -> None:
    request = Request(file, (EFFECTS[0],), "content")
    require_consent(request, trust=True, folder=folder)
    assert not is_agreed(request, folder=folder)


def test_a_file_of_the_users_own_configuration_needs_no_consent(file: Path, folder: Path) -> None:
    own = folder.parent / "agents" / "mine.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("x")
    own.chmod(0o600)
    assert is_agreed(Request(own, (EFFECTS[0],), "c"), folder=folder)
    own.chmod(0o666)
    assert not is_agreed(Request(own, (EFFECTS[0],), "c"), folder=folder), "others may write it"
    link = own.with_name("link.yaml")
    link.symlink_to(file)
    assert not is_agreed(Request(link, (EFFECTS[0],), "c"), folder=folder), "it leads elsewhere"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_in_the_users_configuration_needs_consent(folder: Path) -> None:
    own = folder.parent / "mine.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("x")
    own.chmod(0o600)
    os.chown(own, 12345, 12345)
    assert not is_agreed(Request(own, (EFFECTS[0],), "c"), folder=folder)


@given(st.text())
def test_no_text_of_a_file_commands_a_terminal_or_forges_a_line(text: str) -> None:
    lines = Request(Path("a"), (StartsProcess(text),)).lines
    assert len(lines) == 1
    assert lines[0].isprintable()


def test_nothing_that_is_shown_is_shortened() -> None:
    command = "sh" + " " * 5_000 + "-c evil"
    assert Request(Path("a"), (StartsProcess(command),)).lines[0].endswith("-c evil")


def test_no_byte_moves_from_one_file_to_another_unnoticed() -> None:
    assert content_hash({"a": b"xy", "b": b""}) != content_hash({"a": b"x", "b": b"y"})
    assert content_hash({"a": b"x"}) != content_hash({"b": b"x"})
    assert content_hash({"a": b"x", "b": b"y"}) == content_hash({"b": b"y", "a": b"x"})


ASKING = """
import sys
from pathlib import Path
from jackfield.cli import with_consent
from jackfield.consent import Request, StartsProcess, require_consent
times = []
def work():
    times.append(1)
    require_consent(Request(Path("agent.yaml"), (StartsProcess("id"), StartsProcess("evil\\x1b[2K")), "content"))
    return "done"
print(with_consent(work), len(times))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo terminals")
@pytest.mark.parametrize(
    ("answer", "is_allowed"), [("y", True), ("yes", True), ("", False), ("n", False), ("ja", False)]
)
def test_a_terminal_asks_once_for_all_effects_and_remembers_a_yes(
    tmp_path: Path, answer: str, is_allowed: bool
) -> None:
    for attempt in range(2):
        shown, code = at_a_terminal(tmp_path, f"{answer}\n")
        assert ("done" in shown, code == 0) == (is_allowed, is_allowed)
        asked = shown.count("Allow this")
        assert asked == (0 if is_allowed and attempt else 1)
        if asked:
            assert "starts a program: id\r\n" in shown
            assert "\x1b[2K" not in shown


def test_without_a_terminal_nothing_is_asked(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASKING],
        input="y\n",
        cwd=tmp_path,
        env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode
    assert "Allow this" not in done.stdout + done.stderr
    assert "ConsentNeededError" in done.stderr


def at_a_terminal(folder: Path, typed: str) -> tuple[str, int]:
    """Run the script at a pseudo terminal; give what it shows, and its exit code."""
    import pty

    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", ASKING],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        cwd=folder,
        env={**os.environ, "XDG_CONFIG_HOME": str(folder)},
    )
    os.close(follower)
    os.write(leader, typed.encode())
    shown = b""
    while True:
        try:
            read = os.read(leader, 65536)
        except OSError:  # the other side is closed
            break
        if not read:
            break
        shown += read
    os.close(leader)
    return shown.decode(), process.wait(timeout=60)


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o620, 0o602, 0o666])
def test_only_a_file_that_others_cannot_write_is_the_users_own(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "agent.toml"
    file.write_text("x", encoding="utf-8")
    file.chmod(mode)
    assert consent._is_own(file, tmp_path) == (not mode & 0o022)


def test_no_file_behind_a_link_is_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    file = tmp_path / "folder" / "agent.toml"
    file.write_text("x", encoding="utf-8")
    file.chmod(0o600)
    (tmp_path / "link.toml").symlink_to(file)
    (tmp_path / "other").symlink_to(tmp_path / "folder")
    assert consent._is_own(file, tmp_path)
    assert not consent._is_own(tmp_path / "link.toml", tmp_path)
    assert not consent._is_own(tmp_path / "other" / "agent.toml", tmp_path)
    assert not consent._is_own(file, tmp_path / "folder" / "elsewhere")


def test_a_record_of_consent_is_in_the_folder_alone_and_replaces_an_older_one(tmp_path: Path) -> None:
    import json

    from jackfield.consent import Request, RunsCode, is_agreed, record_consent

    folder, file = tmp_path / "own" / "trusted", tmp_path / "project" / "agent.yaml"
    file.parent.mkdir()
    file.write_text("x")
    for content in ("one", "two"):
        request = Request(file, (RunsCode("a.py"),), content)
        assert not is_agreed(request, folder=folder)
        record = record_consent(request, folder=folder)
        assert is_agreed(request, folder=folder)
        assert list(folder.iterdir()) == [record]
        assert json.loads(record.read_text()) == {"path": str(file), "content": content}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert is_agreed(Request(file, (), "three"), folder=folder)


@pytest.mark.parametrize("by_command", [True, False])
def test_the_error_of_missing_consent_says_how_it_is_given(tmp_path: Path, by_command: bool) -> None:
    from jackfield.consent import Request, RunsCode, require_consent
    from jackfield.errors import ConsentNeededError

    request = Request(tmp_path / "agent.yaml", (RunsCode("a\x1bb.py"),), "one", by_command=by_command)
    with pytest.raises(ConsentNeededError) as caught:
        require_consent(request, folder=tmp_path / "trusted")
    assert "runs code with your full permissions: a\\x1bb.py" in str(caught.value)
    assert ("jackfield trust" in str(caught.value)) is by_command
    require_consent(request, trust=True, folder=tmp_path / "trusted")
    assert not (tmp_path / "trusted").exists()


def test_a_file_whose_name_starts_with_a_dash_is_no_option_of_the_advised_command() -> None:
    assert "jackfield trust ./-agent.yaml, or" in str(ConsentNeededError("-agent.yaml", ["runs code"]))


@pytest.mark.parametrize("by_command", [True, False])
def test_missing_consent_lists_the_effects_and_the_ways_to_give_it(by_command: bool) -> None:
    error = ConsentNeededError("/srv/my agent.yaml", ["runs code", "starts ls"], by_command=by_command)
    way = "run: jackfield trust '/srv/my agent.yaml', or " if by_command else ""
    assert str(error) == (
        "/srv/my agent.yaml needs your consent, because it\n  - runs code\n  - starts ls\n"
        f"To allow this, {way}pass --trust (in code: trust=True)"
    )
    again = pickle.loads(pickle.dumps(error))
    assert (again.effects, again.path, again.by_command) == (
        ("runs code", "starts ls"),
        "/srv/my agent.yaml",
        by_command,
    )
