"""Questions about newcomers and files, as they are answered at a terminal."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jackfield.errors import ConfigError
from jackfield.projects import LocalFile, Project
from jackfield.settings import Settings
from jackfield_manage.choices import load_choices
from jackfield_manage.cli import news as cli_news
from jackfield_manage.cli.news import _fit_line, greet, remember
from jackfield_manage.cli.trust import main as trust
from jackfield_manage.judging.news import Memory, Seen
from jackfield_manage.judging.trust import agree, agreements, describe_request, describe_restrictions, revoke
from tests.support.command_line import Tty


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path / "state" / "seen.json", "here")


def greeted(monkeypatch: pytest.MonkeyPatch, host: Any, memory: Memory, typed: str) -> tuple[bool, str]:
    """Greet at a terminal at which somebody types; gives what `greet` returned, and what was shown."""
    shown = Tty()
    with monkeypatch.context() as patch:
        patch.setattr(cli_news, "sys", SimpleNamespace(stdin=Tty(typed), stderr=shown))
        return greet(host, memory), shown.getvalue()


# --- newcomers ---


@pytest.mark.parametrize(
    ("typed", "refused"),
    [("y\n", []), ("\n", []), ("YES\n", []), ("n\n", ["acme"]), ("x\n\n", []), ("d\nn\n", ["acme"])],
    ids=["yes", "enter", "YES", "no", "unclear", "details"],
)
def test_one_newcomer_is_asked_about_once(
    typed: str, refused: list[str], site: Any, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add_tools("acme", "x")
    changed, shown = greeted(monkeypatch, site.host(), memory, typed)
    assert changed is bool(refused)
    assert list(load_choices().block) == refused
    assert "newly installed: acme 1.0" in shown
    assert "Allow it to be loaded by name? [Y]es, [n]o, [d]etails: " in shown
    assert ("tool.x: runs when called by the model" in shown) is ("d" in typed)
    if refused:
        assert f"jackfield: blocked acme in {load_file()}\nTo undo this, run: jackfield plugins enable acme\n" in shown
    assert memory.seen()["acme"].asked
    assert greeted(monkeypatch, site.host(), memory, "")[1] == ""


def load_file() -> Path:
    from jackfield.settings import choices_path

    return choices_path()


@pytest.mark.parametrize(
    ("typed", "refused"),
    [
        ("y\n", []),
        ("n\n", ["acme", "other"]),
        ("c\ny\nn\n", ["other"]),
        ("c\nn\ny\n", ["acme"]),
        ("c\n\n\n", []),
    ],
)
def test_several_newcomers_are_asked_about_together_or_one_by_one(
    typed: str, refused: list[str], site: Any, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add_tools("acme", "x")
    site.add_tools("other", "y")
    _, shown = greeted(monkeypatch, site.host(), memory, typed)
    assert "newly installed (2): acme 1.0, other 1.0" in shown
    assert "offers tool.x, tool.y" in shown
    assert "Allow them to be loaded by name? [Y]es, [n]o, [c]hoose, [d]etails: " in shown
    assert list(load_choices().block) == refused
    assert ("Allow acme to be loaded by name? [Y/n] " in shown) is typed.startswith("c")


def test_the_end_of_the_input_decides_nothing(site: Any, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    site.add_tools("acme", "x")
    with pytest.raises(KeyboardInterrupt):
        greeted(monkeypatch, site.host(), memory, "")
    assert (load_choices().block, memory.path.exists()) == ((), False)


def test_what_is_gone_is_told_once(site: Any, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    site.add_tools("acme", "x")
    greeted(monkeypatch, site.host(), memory, "y\n")
    site.remove("acme")
    _, shown = greeted(monkeypatch, site.host(), memory, "")
    assert shown == ("jackfield: acme is no longer installed. To reinstall it, run: pip install acme\n")
    assert greeted(monkeypatch, site.host(), memory, "")[1] == ""


def test_what_changed_is_told_apart_from_what_is_new(
    site: Any, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add_tools("acme", "x")
    greeted(monkeypatch, site.host(), memory, "y\n")
    site.remove("acme")
    site.add_tools("acme", "x", version="2.0")
    site.add_tools("other", "y")
    _, shown = greeted(monkeypatch, site.host(), memory, "y\n")
    assert "jackfield: newly installed: other 1.0; changed: acme 2.0\n" in shown


def test_what_was_requested_by_name_is_not_asked_about(
    site: Any, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add_tools("acme", "x")
    site.add_tools("other", "y")
    remember(site.host(), ["acme"], memory)
    assert list(memory.seen()) == ["acme"]
    _, shown = greeted(monkeypatch, site.host(), memory, "y\n")
    assert "newly installed: other 1.0\n" in shown
    assert "acme" not in shown


def test_a_state_that_cannot_be_written_is_told_with_what_follows(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    site.add_tools("acme", "x")
    _, shown = greeted(monkeypatch, site.host(), Memory(tmp_path / "file" / "seen.json", "here"), "y\n")
    assert "seen.json cannot be written (" in shown
    assert shown.endswith("), so these changes will be reported again\n")


@pytest.mark.parametrize(
    ("text", "columns", "line"),
    [
        ("a" * 59, 10, "a" * 59),
        ("a" * 60, 10, "a" * 60),
        ("a" * 61, 10, f"{'a' * 58} …"),
        (f"{'a' * 50}, {'b' * 20}", 10, f"{'a' * 50} …"),
        ("a" * 99, 100, "a" * 99),
        ("a" * 100, 100, f"{'a' * 97} …"),
        ("a\x1b", 80, "a\\x1b"),
    ],
    ids=["59", "60", "61", "words", "99", "100", "escaped"],
)
def test_a_line_has_60_columns_at_least_and_ends_after_a_word(
    text: str, columns: int, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert _fit_line(text) == line


# --- what is remembered ---


def test_states_of_other_environments_are_kept_and_odd_ones_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "seen.json"
    seen = {"acme": Seen("1.0", "sha256:x", (1, 2), asked=True)}
    Memory(path, "here").keep(seen)
    Memory(path, "there").keep({})
    assert Memory(path, "here").seen() == seen
    assert Memory(path, "there").seen() == {}
    table = json.loads(path.read_text())
    table["here"]["odd"] = {"version": 1}
    table["others"] = 3
    path.write_text(json.dumps(table))
    assert Memory(path, "here").seen() == seen
    for text in ("", "[]", "{", "[" * 9999):
        path.write_text(text)
        assert Memory(path, "here").seen() == {}


def test_a_distribution_is_its_content_or_where_that_is_unknown_its_metadata() -> None:
    assert Seen("1", "x", (1, 2), asked=True).identity == Seen("2", "x", (3, 4), asked=False).identity
    assert Seen("1", "", (1, 2), asked=True).identity != Seen("1", "", (1, 3), asked=True).identity


# --- projects ---

OWN = Settings(
    enabled=("observer.a/b",),
    order=("x", "y"),
    prefer={"tool.a": "mine"},
    options={"processor.acme/p": {"n": 1}, "store.acme-db/x": {"path": "mine"}},
)


@pytest.mark.parametrize(
    ("table", "lines"),
    [
        (
            {"enabled": ["processor.acme/p"]},
            ["enabled: processor.acme/p acts in every run here: it sees and may change all questions and answers"],
        ),
        (
            {"enabled": ["observer.a/b"]},
            ["enabled: observer.a/b acts in every run here, as it does already: it sees every event of every run"],
        ),
        (
            {"enabled": ["processor.acme/default"]},
            [
                "enabled: processor.acme/default acts in every run here, as it already does by default: it sees and "
                "may change all questions and answers"
            ],
        ),
        ({"enabled": ["parser.acme/p"]}, ["enabled: parser.acme/p may be selected here without being named"]),
        ({"prefer": {"tool.b": "acme"}}, ["prefer: tool.b refers to the one from acme"]),
        (
            {"prefer": {"tool.a": "acme"}},
            ["prefer: tool.a refers to the one from acme, instead of the one from mine"],
        ),
        ({"order": ["b", "a"]}, ["order: processors run in this order: b, a, instead of your own: x, y"]),
        (
            {"settings": {"processor.acme/p": {"é": 2}}},
            ['settings: processor.acme/p gets {"é": 2}, instead of your own: {"n": 1}'],
        ),
        ({"settings": {"processor.acme/q": {}}}, ["settings: processor.acme/q gets {}"]),
        (
            {"settings": {"store.Acme_Db/x": {"path": "x"}}},
            ['settings: store.Acme_Db/x gets {"path": "x"}, instead of your own: {"path": "mine"}'],
        ),
        ({"block": ["acme"]}, []),
    ],
)
def test_what_a_project_asks_for_is_told_with_what_it_replaces(table: dict[str, Any], lines: list[str]) -> None:
    project = Project(Path("/srv/pyproject.toml"), table, "c")
    assert describe_request(project, OWN, ["processor.acme/default"]) == lines


def test_an_order_of_nothing_replaces_nothing() -> None:
    project = Project(Path("/srv/pyproject.toml"), {"order": ["a"]}, "c")
    assert describe_request(project, Settings()) == ["order: processors run in this order: a"]


def test_what_a_project_forbids_is_told_one_rule_in_a_line() -> None:
    project = Project(Path("/srv/pyproject.toml"), {"block": ["é"], "order": ["a"]}, "c")
    assert describe_restrictions(project) == ['block: ["é"]']


def test_local_files_are_told_with_their_content_or_their_fault() -> None:
    files = (
        LocalFile(path="/srv/a.py", name="a", content="abc"),
        LocalFile(path="/srv/b.py", name="b", content="", fault="is gone"),
    )
    project = Project(Path("/srv/pyproject.toml"), {}, "c", local=files)
    first, second = describe_request(project, Settings())
    assert first.startswith("local: the code in /srv/a.py runs here (SHA-256 abc). Read it first;")
    assert second.startswith("local: the code in /srv/b.py runs here, but it is gone. Read it first;")


def test_agreements_are_recorded_listed_and_withdrawn(tmp_path: Path) -> None:
    folder = tmp_path / "trusted"
    for name in ("b", "a"):
        agree(Project(Path(f"/srv/{name}/pyproject.toml"), {}, name), folder)
    assert (folder.stat().st_mode & 0o777) == 0o700
    (folder / "odd.json").write_text("[]")
    (folder / "broken.json").write_text("{")
    assert [(str(one.path), one.content) for one in agreements(folder)] == [
        ("/srv/a/pyproject.toml", "a"),
        ("/srv/b/pyproject.toml", "b"),
    ]
    assert revoke(Path("/srv/a/pyproject.toml"), folder) is True
    assert revoke(Path("/srv/a/pyproject.toml"), folder) is False
    assert len(agreements(folder)) == 1
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        agree(Project(Path("/srv/a/pyproject.toml"), {}, "a"), tmp_path / "file")


# --- jackfield trust ---


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "pyproject.toml").write_text('[tool.jackfield]\nblock = ["b"]\nprefer = {"tool.a" = "acme"}\n')
    return folder


def typing(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> None:
    monkeypatch.setattr("sys.stdin", stream)


def test_a_project_is_shown_agreed_to_and_withdrawn(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(*words: str, code: int = 0) -> str:
        assert trust(words) == code
        return capsys.readouterr().out

    shown = said("--show", code=1)
    assert 'block: ["b"]' in shown
    assert "prefer: tool.a refers to the one from acme" in shown
    assert shown.endswith("Not in effect.\n")
    typing(monkeypatch, Tty("n\n"))
    assert said(code=1).endswith("Agree to this? [y/N] Not in effect.\n")
    typing(monkeypatch, Tty("y\n"))
    assert said().endswith(
        "In effect until the file changes. To withdraw your consent, run: jackfield trust --revoke\n"
    )
    assert said("--show").endswith(
        "You have agreed to this, so it is in effect. To withdraw your consent, run: jackfield trust --revoke\n"
    )
    (project / "pyproject.toml").write_text('[tool.jackfield]\nprefer = {"tool.a" = "other"}\n')
    assert said("--show", code=1).endswith("Not in effect: the file has changed since you agreed.\n")
    said("--yes")
    assert str(project / "pyproject.toml") in said("--list")
    said("--revoke")
    said("--show", code=1)


@pytest.mark.parametrize("words", [["--show"], ["--yes"], ["--list"], ["--revoke"]])
def test_control_characters_of_a_projects_path_never_reach_the_terminal(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "\x1b[31mproject"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "pyproject.toml").write_text('[tool.jackfield]\nprefer = {"tool.a" = "acme"}\n')
    trust(["--yes"])
    trust(words)
    shown = capsys.readouterr()
    assert r"\x1b[31mproject" in shown.out
    assert "\x1b" not in shown.out + shown.err


@pytest.mark.parametrize(
    ("typed", "is_agreed"),
    [("y\n", True), (" YES \n", True), ("\n", False), ("", False), ("n\n", False), ("yesterday\n", False)],
)
def test_only_yes_agrees_to_a_project(
    typed: str, is_agreed: bool, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typing(monkeypatch, Tty(typed))
    assert trust([]) == int(not is_agreed)
    assert trust(["--show"]) == int(not is_agreed)


def test_a_yes_agrees_to_what_was_shown_even_if_the_file_has_changed_meanwhile(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Changing(Tty):
        def readline(self, *arguments: Any) -> Any:
            (project / "pyproject.toml").write_text('[tool.jackfield]\nprefer = {"tool.a" = "other"}\n')
            return super().readline(*arguments)

    typing(monkeypatch, Changing("y\n"))
    trust([])
    assert trust(["--show"]) == 1
    assert capsys.readouterr().out.endswith("Not in effect: the file has changed since you agreed.\n")


def test_without_a_terminal_a_project_needs_a_flag(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    typing(monkeypatch, io.StringIO("y\n"))
    assert trust([]) == 1
    assert (
        capsys.readouterr().err
        == "jackfield: cannot ask for consent without a terminal; to agree to the above, pass --yes\n"
    )
    assert trust(["--show"]) == 1


def test_a_folder_without_settings_has_nothing_to_allow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert trust([str(tmp_path / "empty")]) == 0
    assert "so there is nothing to allow" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="no such file or folder"):
        trust([str(tmp_path / "gone")])


def test_the_advised_command_takes_no_file_for_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("-agent.yaml").write_text("llm: {model: m, base_url: https://models.example}\n")
    assert trust(["./-agent.yaml", "--yes"]) == 0
    capsys.readouterr()
    assert trust(["./-agent.yaml", "--show"]) == 0
    advised = capsys.readouterr().out.rpartition("run: jackfield trust ")[2].split()
    assert trust(advised) == 0
    assert capsys.readouterr().out == "-agent.yaml needs your consent again.\n"


def test_an_agent_file_is_shown_allowed_and_withdrawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "elsewhere" / "agent.yaml"
    file.parent.mkdir()
    file.write_text("llm: {model: m, base_url: https://models.example}\n")

    def said(*words: str, code: int = 0) -> str:
        assert trust([str(file), *words]) == code
        return capsys.readouterr().out

    assert "https://models.example" in said("--show", code=1)
    assert said("--revoke", code=1) == f"You have not allowed {file}.\n"
    assert "This is allowed until this file, or a file that it refers to, changes." in said("--yes")
    assert f"You have allowed this. To withdraw your consent, run: jackfield trust {file} --revoke" in said("--show")
    assert said("--revoke") == f"{file} needs your consent again.\n"
    said("--show", code=1)
    file.write_text("llm: offline\n")
    assert said("--show") == f"Nothing in {file} needs your consent.\n"


def add_ours(site: Any, *names: str) -> None:
    """Install packages of Jackfield with their real tools, which are proven to be theirs."""
    for name in names:
        module = f"ours_{name}"
        site.add(f"jackfield-{name}", {f"tool.{name}": module}, modules={module: "# sound"})


def test_our_own_packages_are_asked_about_in_one_line_without_warnings(
    site: Any, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_ours(site, "storage")
    _, shown = greeted(monkeypatch, site.host(), memory, "y\n")
    assert shown == "New: jackfield-storage 1.0. Allow loading by name? [Y]es, [n]o, [d]etails: "
    add_ours(site, "shell", "skills")
    _, shown = greeted(monkeypatch, site.host(), memory, "y\n")
    assert shown == "2 new Jackfield packages: allow loading by name? [Y]es, [n]o, [c]hoose, [d]etails: "


@pytest.mark.parametrize(
    "reason", ["a stranger", "a change", "a warning", "a blocked part", "a namesake", "something gone"]
)
def test_packages_are_told_in_full_if_one_needs_attention(
    reason: str, site: Any, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_ours(site, "storage")
    settings: dict[str, Any] = {}
    if reason == "a stranger":
        site.add("acme", {"tool.x": "acme"}, modules={"acme": "# sound"})
    elif reason == "a change":
        greeted(monkeypatch, site.host(), memory, "y\n")
        site.remove("jackfield-storage")
        site.add("jackfield-storage", {"tool.storage": "ours_storage"}, modules={"ours_storage": "# new"})
    elif reason == "a warning":
        (site.folder / "ours_storage.py").write_text("# edited")
    elif reason == "a blocked part":
        site.remove("jackfield-storage")
        entries = {"tool.storage": "ours_storage", "tool.other": "other"}
        site.add("jackfield-storage", entries, modules={"ours_storage": "# sound", "other": "# sound"})
        (site.folder / "other.py").write_text("# edited")
        settings = {"block": frozenset({"tool.other"})}
    elif reason == "a namesake":
        site.remove("jackfield-storage")
        entries = {"tool.storage": "ours_storage", "tool.shell": "ours_storage"}
        site.add("jackfield-storage", entries, modules={"ours_storage": "# sound"})
    else:
        memory.keep({"acme": Seen("1.0", "", (1, 2), asked=True)})
    _, shown = greeted(monkeypatch, site.host(**settings), memory, "y\n")
    assert shown.startswith("jackfield: ")
    warning = "  Warning: jackfield-storage has a file that was changed after installation: ours_storage.py\n"
    assert (warning in shown) is (reason == "a warning")
    assert ("acme is no longer installed" in shown) is (reason == "something gone")


def test_an_answer_about_some_is_remembered_beside_a_refusal(
    site: Any, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add_tools("acme", "x")
    site.add_tools("other", "y")
    refused, shown = greeted(monkeypatch, site.host(), memory, "c\ny\nn\n")
    assert refused
    assert "acme 1.0: tool.x; other effects are unknown until loaded\n" in shown
    assert greeted(monkeypatch, site.host(block=frozenset({"other"})), memory, "") == (False, "")


def test_nothing_is_written_if_no_package_of_that_name_is_new(site: Any, memory: Memory) -> None:
    site.add_tools("acme", "x")
    remember(site.host(), ["other"], memory)
    assert not memory.path.exists()
    remember(site.host(block=frozenset({"acme"})), ["acme"], memory)
    assert not memory.path.exists()


def test_control_characters_of_a_package_never_reach_the_terminal(
    site: Any, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add("acme", {"tool.x": "acme"}, modules={"acme": r"ToolSpec(name='x', effects={'\x1b[31m'})"})
    shown = greeted(monkeypatch, site.host(), memory, "d\ny\n")[1]
    assert "\x1b" not in shown
    assert shown.count(r"\x1b[31m") == 2


def test_what_was_only_told_is_new_when_it_can_be_asked_about(
    site: Any, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add_tools("acme", "x")
    greeted(monkeypatch, site.host(), memory, "y\n")
    memory.keep({name: replace(seen, asked=False) for name, seen in memory.seen().items()})
    shown = greeted(monkeypatch, site.host(), memory, "y\n")[1]
    assert shown.startswith("jackfield: newly installed: acme 1.0\n")
    assert memory.seen()["acme"].asked
