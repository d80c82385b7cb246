"""`jackfield trust` and `jackfield requirements`, on files as users have them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jackfield_manage.cli.requirements import main as requirements
from jackfield_manage.cli.trust import main as trust
from tests.support.command_line import Tty

Run = Callable[..., str]


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("JACKFIELD_")]:
        monkeypatch.delenv(name)
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    folder = tmp_path / "my project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `jackfield trust`; returns what is printed."""

    def run(*words: str | Path, code: int = 0) -> str:
        assert trust([str(word) for word in words]) == code
        return capsys.readouterr().out

    return run


def write_project(folder: Path, text: str) -> Path:
    file = folder / "pyproject.toml"
    file.write_text(f"[tool.jackfield]\n{text}\n")
    return file


ASKS = 'prefer = {"tool.a" = "acme"}'


def test_a_project_is_named_by_its_folder_its_file_or_a_folder_in_it(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_project(folder, ASKS)
    inner = folder / "inner"
    inner.mkdir()
    (folder / ".git").mkdir()
    for words in ([], [folder], [file], [inner]):
        assert run(*words, "--show", code=1).startswith(f"{file} [tool.jackfield]\nRequests:\n  prefer: tool.a ")
        run(*words, "--yes")
        assert run("--list") == f"{file}\n"
        assert run(*words, "--revoke") == f"{file} can only restrict plugins from now on.\n"
        assert run(*words, "--revoke", code=1) == f"You have not agreed to {file}.\n"
        assert run("--list") == "You have not agreed to any project.\n"


def test_a_project_that_only_forbids_needs_no_agreement(folder: Path, run: Run) -> None:
    file = write_project(folder, 'block = ["b"]')
    assert run() == (
        f'{file} [tool.jackfield]\nRestrictions (in effect without your consent):\n  block: ["b"]\n'
        "Nothing here needs your consent.\n"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_project_of_another_user_has_no_effect_without_agreement(folder: Path, run: Run) -> None:
    file = write_project(folder, 'block = ["b"]')
    os.chown(file, 12345, 12345)
    shown = f'{file} [tool.jackfield] belongs to another user\nRestrictions:\n  block: ["b"]\n'
    assert run("--show", code=1) == f"{shown}Not in effect.\n"
    run("--yes")
    assert run("--show").startswith(f"{shown}You have agreed to this, so it is in effect.")


def test_a_project_that_has_effect_does_not_seem_to_replace_itself(folder: Path, run: Run) -> None:
    write_project(folder, ASKS)
    before = run("--show", code=1)
    run("--yes")
    shown = run("--show")
    assert "  prefer: tool.a refers to the one from acme\n" in before
    assert shown.splitlines()[:-1] == before.splitlines()[:-1]


@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1), ("", 1), (None, 1)])
def test_only_yes_at_a_terminal_allows_an_agent_file(
    typed: str | None, code: int, folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder / "my agent.yaml"
    file.write_text("llm: {model: m, base_url: https://models.example}\n")
    with open(os.devnull) as nobody:  # noqa: PTH123 - a name, not a path
        monkeypatch.setattr("sys.stdin", nobody if typed is None else Tty(typed))
        answered = run(file, code=code)
    assert ("Not in effect." in answered) is (code == 1 and typed is not None)
    assert ("This is allowed until this file, or a file that it refers to, changes." in answered) is (code == 0)
    shown = run(file, "--show", code=code)
    assert (f"To withdraw your consent, run: jackfield trust '{file}' --revoke" in shown) is (code == 0)


# --- requirements ---


@pytest.mark.parametrize(
    ("name", "text", "code", "line", "error"),
    [
        ("a.yaml", "llm: openai:m\n", 0, "jackfield-openai  # llm.openai", ""),
        ("a.toml", 'llm = "openai:m"\n', 0, "jackfield-openai  # llm.openai", ""),
        (
            "a.yaml", "llm: {model: m, base_url: https://models.example}\n", 0,
            "jackfield-openai  # llm.openai", "",
        ),
        ("a.yaml", "function_list: [none_has_it]\n", 1, "jackfield", "jackfield: tool.none_has_it: "),
        (
            "a.py", "from jackfield import Agent\nAgent(tools(), llm='openai:m')\n", 0,
            "jackfield-openai  # llm.openai",
            "function_list is computed at run time, so the packages it needs are not listed\n",
        ),
    ],
    ids=["yaml", "toml", "effects", "unknown", "python"],
)  # fmt: skip
def test_requirements_are_printed_and_what_is_wrong_with_them(
    name: str, text: str, code: int, line: str, error: str, folder: Path, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (folder / name).write_text(text)
    assert requirements([name]) == code
    printed = capsys.readouterr()
    assert line in printed.out.splitlines()
    assert (error in printed.err) if error else printed.err == ""
