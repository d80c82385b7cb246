"""A stranger's project file takes away at most; what it would do besides waits for a yes to exactly that."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from jackfield import FnCallAgent, projects
from jackfield._localfiles import LocalFile
from jackfield.errors import AmbiguousPluginError, ConfigError, JackfieldError, PluginBlockedError
from jackfield.plugins import PluginHost
from jackfield.projects import content_of, find_file
from jackfield.settings import Settings, load_project, load_settings
from jackfield.testing import ScriptedModel, answer
from jackfield_manage.judging.bisect import command_fails
from jackfield_manage.judging.trust import agree, agreements, describe_request, revoke

SHOUT = """
from jackfield.config import Config
from jackfield.events import TextDelta
from jackfield.plugins import ObserverSpec, ProcessorSpec, hook
from jackfield.processors import Postprocessor

@hook.processors
def processors():
    return [ProcessorSpec(name="{name}", target="{module}:Shout", config="{module}:ShoutConfig")]

class ShoutConfig(Config):
    mark: str = "!"

class Transform:
    def __init__(self, mark):
        self.mark = mark
    def feed(self, event):
        yield TextDelta(event.text + self.mark) if isinstance(event, TextDelta) else event

class Shout(Postprocessor):
    name = "{name}"
    def __init__(self, mark="{mark}"):
        self.mark = mark
    def start(self, request):
        return Transform(self.mark)
"""


class Place:
    """A project, a user, and the plugins `ours/guard` and `theirs/judge` (and `theirs/guard`)."""

    def __init__(self, folder: Path, site: Any) -> None:
        self.project = folder / "project"
        self.project.mkdir()
        self.user = folder / "user" / "config.toml"
        self.user.parent.mkdir()
        self.site = site
        for distribution, name, mark in (("ours", "guard", "+"), ("theirs", "judge", "-"), ("others", "guard", "?")):
            module = f"{distribution}_{name}"
            source = SHOUT.format(name=name, module=module, mark=mark)
            site.add(distribution, {f"processor.{name}": module}, modules={module: source})

    @property
    def trusted(self) -> Path:
        return self.user.parent / "trusted"

    def write(self, text: str, folder: Path | None = None) -> Path:
        path = (folder or self.project) / "pyproject.toml"
        path.write_text(f"[tool.jackfield]\n{text}\n")
        return path

    def load(self, *, folder: Path | None = None, **environ: str) -> Settings:
        return load_settings(environ, project_dir=folder or self.project, user_file=self.user)

    def agree(self) -> None:
        project = load_project(self.project, trusted=self.trusted)
        assert project is not None
        agree(project, self.trusted)

    def ask(self, **environ: str) -> str:
        host = PluginHost(self.load(**environ), paths=[str(self.site.folder)])
        model = ScriptedModel([answer("a")], host=host)
        return str(FnCallAgent([], model, host=host).run_nonstream([{"role": "user", "content": "q"}])[-1]["content"])


@pytest.fixture
def place(tmp_path: Path, site: Any) -> Place:
    return Place(tmp_path, site)


# --- what it would do ---


@pytest.mark.parametrize(
    "text",
    [
        'enabled = ["processor.judge"]',
        'enabled = ["processor.theirs/judge"]\n[tool.jackfield.settings."processor.theirs/judge"]\nmark = "sent"',
        '[tool.jackfield.settings."processor.guard"]\nmark = ""',
        '[tool.jackfield.settings."processor.ours/guard"]\nmark = ""',
        'prefer = {"processor.guard" = "others"}',
        'order = ["retry", "guard"]',
        'block = ["others"]\nprefer = {"processor.guard" = "others"}\nallow = ["ours"]',
    ],
)
def test_what_a_project_would_switch_on_set_prefer_or_order_changes_no_run(place: Place, text: str) -> None:
    place.user.write_text('enabled = ["processor.ours/guard"]')
    before = place.load()
    place.write(text)
    after = place.load()
    assert place.ask() == "a+"
    for rule in ("enabled", "options", "prefer", "order"):
        assert getattr(after, rule) == getattr(before, rule)
    assert after.project is not None
    assert after.project.remark


# --- what it takes away ---

names = st.sampled_from(["ours", "theirs", "others", "processor.guard", "ours/guard", "processor.judge"])
distributions = st.sampled_from(["ours", "theirs", "others"])
tables = st.fixed_dictionaries(
    {},
    optional={
        "allow": st.lists(distributions, max_size=2),
        "block": st.lists(names, max_size=2),
        "safe": st.booleans(),
        "strict": st.booleans(),
        "enabled": st.lists(
            st.sampled_from(["processor.judge", "processor.guard", "processor.others/guard"]), max_size=1
        ),
        "prefer": st.dictionaries(st.just("processor.guard"), distributions, max_size=1),
    },
)


def as_toml(table: dict[str, Any]) -> str:
    def value(given: Any) -> str:
        if isinstance(given, dict):
            return "{" + ", ".join(f'"{key}" = "{one}"' for key, one in given.items()) + "}"
        return str(given).lower() if isinstance(given, bool) else str(given).replace("'", '"')

    return "\n".join(f"{key} = {value(given)}" for key, given in table.items())


@given(project=tables, user=tables, environ=st.fixed_dictionaries({}, optional={"JACKFIELD_PLUGINS": distributions}))
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_project_says_the_user_answers_as_before_or_is_told_why_not(
    place: Place, project: dict[str, Any], user: dict[str, Any], environ: dict[str, str]
) -> None:
    place.user.write_text(as_toml(user))

    def outcome() -> Any:
        try:
            host = PluginHost(place.load(**environ), paths=[str(place.site.folder)])
            return [row.address for row in host.enabled("processor")], {row.address for row in host.policy.rows()}
        except JackfieldError as error:
            return error

    place.write("")
    alone = outcome()
    place.write(as_toml(project))
    within = outcome()
    if isinstance(alone, JackfieldError):
        assert isinstance(within, JackfieldError)
    elif not isinstance(within, JackfieldError):
        assert within[0] == alone[0]
        assert within[1] <= alone[1]


@pytest.mark.parametrize(
    "text",
    ['block = ["ours"]', 'block = ["processor.guard"]', 'block = ["ours/guard"]', 'allow = ["theirs"]', "safe = true"],
)
@pytest.mark.parametrize("name", ["processor.guard", "processor.ours/guard"])
def test_what_the_user_has_enabled_acts_or_nothing_does(place: Place, text: str, name: str) -> None:
    place.site.remove("others")
    place.user.write_text(f'enabled = ["{name}"]')
    assert place.ask() == "a+"
    path = place.write(text)
    with pytest.raises(PluginBlockedError) as caught:
        place.ask()
    assert str(path) in str(caught.value)
    assert str(place.user) in str(caught.value)
    assert "--block processor.guard" in str(caught.value)
    assert place.ask(JACKFIELD_PLUGINS_BLOCK="processor.guard") == "a"


def test_a_project_does_not_choose_between_two_by_blocking_one(place: Place) -> None:
    place.write('block = ["ours"]')
    with pytest.raises(AmbiguousPluginError):
        PluginHost(place.load(), paths=[str(place.site.folder)]).find("processor", "guard")
    place.user.write_text('prefer = {"processor.guard" = "ours"}')
    with pytest.raises(PluginBlockedError, match="pyproject"):
        PluginHost(place.load(), paths=[str(place.site.folder)]).find("processor", "guard")


def test_a_search_for_a_culprit_may_leave_out_what_is_enabled(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JACKFIELD_PLUGINS_BLOCK", raising=False)
    place.user.write_text('enabled = ["processor.ours/guard"]')
    seen = tmp_path / "seen"
    command = ["sh", "-c", f'echo "$JACKFIELD_PLUGINS|$JACKFIELD_PLUGINS_BLOCK" > {seen}']
    fails = command_fails(command, keep=["kept"], plugins=["kept", "ours", "theirs"], tell=lambda _: None)
    assert not fails(("theirs",))
    allow, _, block = seen.read_text().strip().partition("|")
    assert (allow, block) == ("kept,theirs", "ours")
    assert place.ask(JACKFIELD_PLUGINS=allow, JACKFIELD_PLUGINS_BLOCK=block) == "a"


# --- which file ---


def test_without_a_repository_only_the_folder_itself_is_the_project(place: Place) -> None:
    place.write('block = ["ours"]')
    below = place.project / "below"
    below.mkdir()
    assert find_file(below) is None
    assert place.load(folder=below).block == frozenset()
    assert "ours" in place.load().block


@pytest.mark.parametrize("kind", ["a folder", "a file", "a link that leads nowhere"])
def test_the_search_ends_at_the_root_of_the_repository(place: Place, kind: str) -> None:
    place.write("strict = true")
    repository = place.project / "repository"
    deep = repository / "a/b"
    deep.mkdir(parents=True)
    match kind:
        case "a folder":
            (repository / ".git").mkdir()
        case "a file":
            (repository / ".git").write_text("gitdir: elsewhere")
        case _:
            (repository / ".git").symlink_to("nowhere")
    assert find_file(deep) is None
    assert find_file(repository) is None
    place.write("safe = true", repository)
    assert find_file(deep) == repository / "pyproject.toml"


def test_a_link_to_a_folder_is_the_folder_it_leads_to(place: Place, tmp_path: Path) -> None:
    (place.project / ".git").mkdir()
    place.write("safe = true")
    (place.project / "src").mkdir()
    link = tmp_path / "elsewhere"
    link.symlink_to(place.project / "src")
    assert find_file(link) == place.project / "pyproject.toml"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("what", ["file", "link"])
def test_nothing_counts_of_a_file_that_belongs_to_another_user(place: Place, tmp_path: Path, what: str) -> None:
    path = place.write('safe = true\nblock = ["ours"]\nenabled = ["processor.judge"]')
    if what == "link":
        path.rename(tmp_path / "mine.toml")
        path.symlink_to(tmp_path / "mine.toml")
    os.chown(path, 12345, -1, follow_symlinks=False)
    settings = place.load()
    assert (settings.safe, settings.block, settings.enabled) == (False, frozenset(), ())
    assert settings.project is not None
    assert "belongs to another user" in settings.project.remark
    assert settings.project.ignored == ("safe", "block", "enabled")
    place.agree()
    settings = place.load()
    assert (settings.safe, settings.enabled) == (True, ("processor.judge",))
    place.write("safe = true\nblock = []")
    settings = place.load()
    assert (settings.safe, settings.enabled) == (False, ()), "the owner can change the file after the agreement"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="the administrator's files are root's")
def test_a_file_of_the_administrator_counts_for_everybody(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write("safe = true")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert place.load().safe


@pytest.mark.parametrize(
    "raw", [b"[tool.jackfield]\n#" + b"x" * (5 << 20), b"[tool.jackfield]\norder = " + b"[" * 100_000]
)
def test_a_file_that_is_too_large_or_too_deep_is_an_error_that_names_it(place: Place, raw: bytes) -> None:
    (place.project / "pyproject.toml").write_bytes(raw)
    with pytest.raises(ConfigError, match=r"pyproject\.toml"):
        place.load()


def test_a_file_of_4_mib_is_read(place: Place) -> None:
    path, text = place.project / "pyproject.toml", b"[tool.jackfield]\nsafe = true\n#"
    path.write_bytes(text.ljust(4 << 20, b"x"))
    assert place.load().safe
    path.write_bytes(text.ljust((4 << 20) + 1, b"x"))
    with pytest.raises(ConfigError, match="exceeds the 4 MiB limit"):
        place.load()


def test_a_folder_in_the_place_of_the_file_does_not_end_the_search(place: Place) -> None:
    (place.project / ".git").mkdir()
    place.write("safe = true")
    (place.project / "sub/pyproject.toml").mkdir(parents=True)
    assert find_file(place.project / "sub") == place.project / "pyproject.toml"


def test_a_folder_that_has_gone_has_no_project(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place.project)
    place.project.rmdir()
    assert load_settings({}, user_file=place.user) == Settings()


# --- the yes ---

ASKS = 'enabled = ["processor.judge"]\nprefer = {"processor.guard" = "others"}\norder = ["retry", "judge"]\n'
ASKS += '[tool.jackfield.settings."processor.judge"]\nmark = "~"'


def test_after_a_yes_it_counts_and_before_it_not(place: Place) -> None:
    place.write(ASKS)
    assert place.ask() == "a"
    place.agree()
    assert place.ask() == "a~"
    settings = place.load()
    assert settings.order == ("retry", "judge")
    assert settings.prefer == {"processor.guard": "others"}
    assert settings.origins["enabled:processor.judge"] == str(place.project / "pyproject.toml")
    assert settings.project is not None
    assert settings.project.remark == ""


@pytest.mark.parametrize(
    "after",
    [
        ASKS.replace("~", "sent away"),
        ASKS + "\nmore = 1",
        ASKS.replace("judge", "guard"),
        'enabled = ["processor.judge"]',
    ],
)
def test_any_change_takes_the_yes_back_and_says_so(place: Place, after: str) -> None:
    place.write(ASKS)
    place.agree()
    place.write(after)
    settings = place.load()
    assert settings.enabled == ()
    assert settings.options == {}
    assert settings.project is not None
    assert "changed after you trusted" in settings.project.remark


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("2026-01-02", "'2026-01-02'"),
        ("1", "'1'"),
        ("1", "1.0"),
        ("true", "1"),
        ("[]", "{}"),
        ("nan", "'nan'"),
    ],
)
def test_an_agreement_is_to_values_of_the_same_type(place: Place, before: str, after: str) -> None:
    settings = '[tool.jackfield.settings."processor.judge"]\nmark = {}'
    place.write(settings.format(before))
    place.agree()
    assert place.load().options
    place.write(settings.format(after))
    assert place.load().options == {}


def test_an_agreement_is_to_the_content_of_the_local_files(place: Place) -> None:
    (place.project / "its.py").write_text("x = 1")
    place.write('local = ["its.py"]')
    place.agree()
    assert [file.name for file in place.load().local] == ["its@project"]
    (place.project / "its.py").write_text("x = 2")
    settings = place.load()
    assert settings.local == ()
    assert settings.project is not None
    assert settings.project.answer == "changed"


def test_what_else_stands_in_the_file_may_change(place: Place) -> None:
    path = place.write(ASKS)
    place.agree()
    path.write_text(f"# another comment\n[project]\nname = 'x'\nversion = '2'\n{path.read_text()}")
    assert place.load().enabled == ("processor.judge",)


def test_the_order_of_keys_is_no_change_and_another_file_is_one() -> None:
    table = {"enabled": ["a"], "settings": {"x": {"one": 1, "two": 2}}}
    turned = {"settings": {"x": {"two": 2, "one": 1}}, "enabled": ["a"]}
    assert content_of(table) == content_of(turned)
    files = [
        LocalFile("a@project", "/srv/a.py", "hash"),
        LocalFile("a@project", "/srv/b.py", "hash"),
        LocalFile("a@project", "/srv/a.py", "other"),
        LocalFile("a@project", "/srv/a.py", "hash", "has a fault"),
    ]
    hashes = {content_of(table, [file]) for file in files} | {content_of(table, files), content_of(table, files[::-1])}
    assert len(hashes) == 6
    assert content_of(table) not in hashes


def test_a_yes_is_for_one_place(place: Place, tmp_path: Path) -> None:
    path = place.write(ASKS)
    place.agree()
    other = tmp_path / "other"
    other.mkdir()
    place.write(ASKS, other)
    assert place.load(folder=other).enabled == ()
    (other / "pyproject.toml").unlink()
    (other / "pyproject.toml").symlink_to(path)
    assert place.load(folder=other).enabled == ()


def test_a_yes_is_kept_for_the_users_eyes_and_taken_back(place: Place) -> None:
    path = place.write(ASKS)
    place.agree()
    (kept,) = agreements(place.trusted)
    assert kept.path == path
    assert stat.S_IMODE(kept.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.trusted.stat().st_mode) == 0o700
    assert revoke(path, place.trusted)
    assert not revoke(path, place.trusted)
    assert place.load().enabled == ()


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"path": 5}', "[" * 10_000, "\0", '{"content": "x"}'])
def test_an_answer_that_was_spoilt_is_no_yes(place: Place, content: str) -> None:
    place.write(ASKS)
    place.agree()
    (kept,) = agreements(place.trusted)
    kept.file.write_text(content)
    assert place.load().enabled == ()
    assert agreements(place.trusted) == []


def test_a_trusted_project_still_only_takes_away_from_what_is_allowed(place: Place) -> None:
    place.user.write_text('allow = ["ours"]\nenabled = ["processor.ours/guard"]')
    place.write('allow = ["theirs", "ours"]\nenabled = ["processor.judge"]')
    place.agree()
    assert place.load().allow == {"ours"}
    with pytest.raises(PluginBlockedError, match=r"config\.toml"):
        place.ask()
    place.write('block = ["ours"]')
    place.agree()
    with pytest.raises(PluginBlockedError, match=r"pyproject\.toml"):
        place.ask()


def test_everything_it_asks_for_is_shown_whole_with_what_it_replaces(place: Place) -> None:
    long = "x" * 5000
    place.user.write_text(
        'order = ["own"]\nprefer = {"processor.guard" = "ours"}\n[settings."processor.judge"]\nmark = "!"'
    )
    place.write(ASKS.replace("~", long))
    project = load_project(place.project, trusted=place.trusted)
    assert project is not None
    told = "\n".join(describe_request(project, load_settings({}, user_file=place.user, with_project=False)))
    named = ("the one from others", "the one from ours", "own")
    for part in ("processor.judge acts in every run", long, '{"mark": "!"}', *named):
        assert part in told


# --- where it is told ---


def test_a_program_is_told_once_in_its_log(
    place: Place, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projects, "_logged", set())
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place.user.parent))
    monkeypatch.chdir(place.project)
    place.write(ASKS)
    with caplog.at_level(logging.WARNING, "jackfield"):
        for _ in range(3):
            PluginHost()
    (record,) = caplog.records
    assert "ignored enabled, settings, prefer, order in" in record.getMessage()
    assert "jackfield trust" in record.getMessage()
    place.write(ASKS.replace("judge", "guard"))
    with caplog.at_level(logging.WARNING, "jackfield"):
        PluginHost()
    assert len(caplog.records) == 2, "another content is news"


def test_a_path_that_would_command_a_terminal_is_shown_harmlessly(place: Place) -> None:
    place.project = place.project / "a\x1b[31m\nb"
    place.project.mkdir()
    place.write(ASKS)
    project = place.load().project
    assert project is not None
    assert project.remark.isprintable()


@pytest.fixture
def asking(command_line: Any, site: Any) -> Any:
    """The command line in a project that asks for something."""
    site.add("theirs", {"processor.judge": "theirs_judge"}, modules={
        "theirs_judge": SHOUT.format(name="judge", module="theirs_judge", mark="-")
    })  # fmt: skip
    (command_line.folder / "pyproject.toml").write_text(f"[tool.jackfield]\n{ASKS}\n")
    return command_line


def test_every_command_that_looks_at_plugins_says_in_one_line_what_does_not_count(asking: Any) -> None:
    for words in (["plugins", "list"], ["plugins", "doctor"], ["run", "-m", "none:m", "q"]):
        done = asking(*words)
        lines = [line for line in done.stderr.splitlines() if "ignored" in line]
        assert len(lines) == 1, (words, done.stderr)
        assert lines[0].startswith("jackfield: ignored enabled, settings, prefer, order in ")
    assert "ignored" in asking("plugins", "doctor").stdout
    assert "ignored" in asking("plugins", "why", "judge").stdout


def test_trust_shows_asks_and_is_revoked(asking: Any, open_terminal: Callable[..., Any]) -> None:
    done = asking("trust")
    assert done.returncode == 1
    assert "--yes" in done.stderr
    assert "processor.judge acts in every run here" in done.stdout
    assert asking("trust", "--show").returncode == 1

    terminal = open_terminal(["trust"], asking.folder, asking.env)
    terminal.wait_for('settings: processor.judge gets {"mark": "~"}')
    terminal.wait_for("[y/N] ")
    terminal.type("\n")
    terminal.wait_for("Not in effect")
    assert terminal.end() == 1

    terminal = open_terminal(["trust"], asking.folder, asking.env)
    terminal.wait_for("[y/N] ")
    terminal.type("y\n")
    terminal.wait_for("In effect until the file changes")
    assert terminal.end() == 0
    assert asking("trust", "--show").returncode == 0
    assert asking("trust", "--list").stdout.strip().endswith("pyproject.toml")
    done = asking("plugins", "list", "--json")
    assert '"enabled"' in done.stdout
    assert "ignored" not in done.stderr
    assert asking("trust", "--revoke").returncode == 0
    assert "ignored" in asking("plugins", "list").stderr


@pytest.mark.parametrize("name", ["truncation", "jackfield-truncation/truncation"])
def test_trust_says_what_acts_by_default_already(command_line: Any, site: Any, name: str) -> None:
    light = SHOUT.format(name="truncation", module="truncation_light", mark="-")
    asked = f'[tool.jackfield]\nenabled = ["processor.{name}", "processor.judge"]\n'
    (command_line.folder / "pyproject.toml").write_text(asked)
    assert "by default" not in command_line("trust").stdout
    site.add("jackfield-truncation", {"processor.truncation": "truncation_light"}, modules={"truncation_light": light})
    told = command_line("trust").stdout
    assert f"processor.{name} acts in every run here, as it already does by default: it sees" in told
    assert "processor.judge acts in every run here: it sees" in told


def test_a_script_agrees_with_a_flag_and_only_to_what_was_there(asking: Any) -> None:
    assert asking("trust", "--yes").returncode == 0
    assert asking("trust", "--show").returncode == 0
    file = asking.folder / "pyproject.toml"
    file.write_text(file.read_text().replace("~", "elsewhere"))
    assert asking("trust", "--show").returncode == 1
    assert "changed after you trusted" in asking("plugins", "list").stderr


def test_a_project_that_only_narrows_needs_no_yes(asking: Any) -> None:
    (asking.folder / "pyproject.toml").write_text('[tool.jackfield]\nblock = ["theirs"]\n')
    done = asking("trust")
    assert (done.returncode, done.stderr) == (0, "")
    assert 'block: ["theirs"]' in done.stdout
    assert asking("plugins", "list").stderr == ""


def test_the_doctor_runs_nothing_of_the_folder_it_is_called_in(asking: Any) -> None:
    for name in ("json.py", "jackfield.py", "tempfile.py", "dataclasses.py"):
        (asking.folder / name).write_text(f"open({str(asking.folder / 'ran')!r}, 'w')\n")
    done = asking.as_script("plugins", "doctor", "--json")
    assert done.returncode in (0, 1), done.stderr
    assert not (asking.folder / "ran").exists()


@pytest.mark.parametrize("key", ["safe", "strict"])
@pytest.mark.parametrize("user", ["true", "false"])
@pytest.mark.parametrize("project", ["true", "false"])
def test_a_project_can_only_add_to_what_the_user_is_strict_about(
    place: Place, key: str, user: str, project: str
) -> None:
    place.user.write_text(f"{key} = {user}")
    place.write(f"{key} = {project}")
    assert getattr(place.load(), key) == ("true" in (user, project))
