"""Settings: who wins, what is refused, and that a deny always stays one."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError
from jackfield.plugins import Row
from jackfield.plugins._policy import why_not
from jackfield.settings import Settings, load_settings, normalise
from jackfield.suggestions import suggest

SECRET = "sk-" + "SECRET"


class Files:
    """A project and a user, with what their files say."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.project.mkdir()
        self.user = folder / "config.toml"

    def load(self, project: str = "", user: str = "", **environ: str) -> Settings:
        (self.project / "pyproject.toml").write_text(f"[project]\nname = 'x'\n[tool.jackfield]\n{project}\n")
        self.user.write_text(user)
        return load_settings(environ, project_dir=self.project, user_file=self.user)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


# --- who wins ---


def test_nothing_said_allows_everything_and_enables_nothing(files: Files) -> None:
    assert files.load() == Settings()


def test_no_files_are_as_good_as_empty_ones(tmp_path: Path) -> None:
    assert load_settings({}, project_dir=tmp_path, user_file=tmp_path / "none.toml") == Settings()


def test_the_environment_wins_over_the_user_and_a_project_only_takes_away(files: Files) -> None:
    user, project = 'allow = ["user", "both"]', 'allow = ["project", "Both"]'
    assert files.load(user=user).allow == {"user", "both"}
    assert files.load(project=project).allow == {"project", "both"}
    assert files.load(user=user, project=project).allow == {"both"}
    assert files.load(user=user, project=project, JACKFIELD_PLUGINS="env, Other_One").allow == {"env", "other-one"}


def test_a_preference_of_the_environments_choices_wins_name_by_name(files: Files) -> None:
    files.user.with_name("choices.toml").write_text('prefer = {"tool.x" = "chosen"}')
    settings = files.load(user='prefer = {"tool.x" = "user", "tool.y" = "user"}')
    assert settings.prefer == {"tool.x": "chosen", "tool.y": "user"}


def test_strictness_of_the_user_is_the_environments_to_take_back_and_not_the_projects(files: Files) -> None:
    assert files.load(user="strict = true", project="strict = false").strict
    assert not files.load(user="strict = true", JACKFIELD_PLUGINS_STRICT="0").strict
    assert files.load(project="strict = true", JACKFIELD_PLUGINS_STRICT="0").strict


def test_recording_is_the_users_to_switch_off_and_not_the_projects(files: Files) -> None:
    assert [files.load(user=text).record for text in ("", "record = false", "record = true")] == [True, False, True]
    assert not files.load(JACKFIELD_RECORD="off").record
    assert files.load(user="record = false", JACKFIELD_RECORD="1").record
    assert not files.load(user="record = false", JACKFIELD_RECORD="").record
    assert files.load(user="record = {keep_days = 9}", JACKFIELD_RECORD="1").record == {"keep_days": 9}
    assert files.load(user="record = {keep_days = 9}", JACKFIELD_RECORD="0").record is False
    with pytest.raises(ConfigError, match="'record' must be true, false or a table"):
        files.load(user="record = 5")
    with pytest.raises(ConfigError, match="unknown setting 'record'"):
        files.load(project="record = false")


def test_an_empty_list_in_the_environment_allows_none(files: Files) -> None:
    assert files.load(JACKFIELD_PLUGINS="").allow == frozenset()
    assert files.load(JACKFIELD_PLUGINS=" , ").allow == frozenset()


def test_what_anybody_blocks_is_blocked(files: Files) -> None:
    settings = files.load(
        project='block = ["By_Project"]', user='block = ["by.user", "tool.x"]', JACKFIELD_PLUGINS_BLOCK="By-Env/name"
    )
    assert {"by-project", "tool.x", "by-env/name"} <= settings.block


def test_safe_mode_cannot_be_left_by_another_layer(files: Files) -> None:
    assert files.load(user="safe = true", project="safe = false", JACKFIELD_SAFE="0").safe


def test_the_nearest_project_above_is_the_one(files: Files) -> None:
    (files.project / ".git").mkdir()
    below = files.project / "src/deep"
    below.mkdir(parents=True)
    files.load(project="strict = true")
    assert load_settings({}, project_dir=below, user_file=files.user).strict


# --- deny wins ---


def _row(distribution: str, kind: str = "tool", name: str = "x") -> Row:
    return Row(kind, name, "module", normalise(distribution), "1.0", 1, "/nowhere")


@pytest.mark.parametrize("spelling", ["acme.tools", "Acme-Tools", "acme__tools", "ACME.TOOLS"])
def test_a_distribution_is_blocked_however_it_is_spelt(files: Files, spelling: str) -> None:
    assert "blocked" in why_not(_row("acme.tools"), files.load(JACKFIELD_PLUGINS_BLOCK=spelling))


@pytest.mark.parametrize("entry", ["acme", "tool.x", "acme/x"])
def test_a_block_wins_over_an_allowance_and_a_preference(entry: str) -> None:
    settings = Settings(allow=frozenset({"acme"}), block=frozenset({entry}), prefer={"tool.x": "acme"})
    assert "blocked" in why_not(_row("acme"), settings)
    assert why_not(_row("acme"), Settings(allow=frozenset({"acme"}), prefer={"tool.x": "acme"})) == ""


@given(
    st.frozensets(st.sampled_from(["acme", "tool.x", "acme/x", "other"])),
    st.none() | st.frozensets(st.sampled_from(["acme", "other"])),
    st.booleans(),
)
def test_only_what_is_allowed_and_not_blocked_may_load(
    block: frozenset[str], allow: frozenset[str] | None, safe: bool
) -> None:
    may_load = not safe and not block & {"acme", "tool.x", "acme/x"} and (allow is None or "acme" in allow)
    assert (why_not(_row("acme"), Settings(allow=allow, block=block, safe=safe)) == "") == may_load


def test_what_is_made_for_another_core_does_not_load_whatever_is_allowed() -> None:
    assert "API v2" in why_not(Row("tool", "x", "m", "acme", "1", 2, ""), Settings(allow=frozenset({"acme"})))
    assert "kind 'gadget'" in why_not(_row("acme", kind="gadget"), Settings(allow=frozenset({"acme"})))


# --- flags ---


@pytest.mark.parametrize(("text", "value"), [("1", True), ("YES", True), (" on ", True), ("0", False), ("", False)])
def test_a_switch_is_on_or_off(files: Files, text: str, value: bool) -> None:
    settings = files.load(JACKFIELD_SAFE=text, JACKFIELD_PLUGINS_STRICT=text, JACKFIELD_PLUGINS_TRACE=text)
    assert (settings.safe, settings.strict, settings.trace) == (value, value, value)


@pytest.mark.parametrize("variable", ["JACKFIELD_SAFE", "JACKFIELD_PLUGINS_STRICT", "JACKFIELD_PLUGINS_TRACE"])
def test_a_switch_that_is_neither_is_an_error_that_names_the_variable(files: Files, variable: str) -> None:
    with pytest.raises(ConfigError, match=f"{variable} is a switch"):
        files.load(**{variable: "maybe"})


# --- what is refused ---


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('blok = ["x"]', "unknown setting 'blok'; did you mean 'block'"),
        ('block = "x"', "'block' must be a list of names"),
        ("allow = [1]", "'allow' must be a list of names"),
        ("safe = 1", "'safe' must be true or false"),
        ('prefer = ["x"]', "'prefer' must be a table of texts"),
    ],
)
def test_a_wrong_key_is_an_error_that_names_file_and_key(files: Files, text: str, told: str) -> None:
    for settings in ({"project": text}, {"user": text}):
        with pytest.raises(ConfigError) as caught:
            files.load(**settings)
        assert told in str(caught.value)
        assert ("pyproject.toml" if "project" in settings else "config.toml") in str(caught.value)


def test_a_file_that_is_not_toml_is_named(files: Files) -> None:
    with pytest.raises(ConfigError, match=r"config\.toml is not TOML"):
        files.load(user="allow = [")
    with pytest.raises(ConfigError, match=r"pyproject\.toml is not TOML"):
        files.load(project="allow = [")


@pytest.mark.parametrize("text", ["tool = 3", "[tool]\njackfield = 3"])
def test_a_project_whose_table_is_none_is_a_config_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"# jackfield\n{text}\n")
    with pytest.raises(ConfigError, match="must be a table"):
        load_settings({}, project_dir=tmp_path, user_file=tmp_path / "none.toml")


@pytest.mark.parametrize(
    "text", ["this is no TOML", 'this is no TOML\ndependencies = ["jackfield-openai>=0.1"]\n[tool.uv.sources]\n']
)
def test_a_project_that_says_nothing_about_us_is_not_even_parsed(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert load_settings({}, project_dir=tmp_path, user_file=tmp_path / "none.toml") == Settings()


@pytest.mark.parametrize(
    "text",
    [
        "[tool.jackfield]\nsafe = true",
        "[ tool . 'jackfield' ]\nsafe = true",
        '["tool"]\n"jackfield".safe = true',
        "tool = {jackfield = {safe = true}}",
        "tool.jackfield.safe = true",
        '"t\\u006fol".jackfield.safe = true',
    ],
)
def test_a_projects_table_counts_however_its_name_is_written(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"{text}\n")
    assert load_settings({}, project_dir=tmp_path, user_file=tmp_path / "none.toml").safe


# --- secrets ---


def test_secrets_in_a_project_are_refused_and_not_repeated(files: Files) -> None:
    with pytest.raises(ConfigError, match="others can read a project") as caught:
        files.load(project=f'secrets = {{KEY = "{SECRET}"}}')
    assert SECRET not in str(caught.value)


def test_a_secret_of_the_users_file_is_found_and_the_environment_wins(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ACME_KEY", raising=False)
    settings = files.load(user=f'[secrets]\nACME_KEY = "{SECRET}"')
    assert settings.secret("ACME_KEY") == SECRET
    assert settings.secret("OTHER_KEY") is None
    monkeypatch.setenv("ACME_KEY", "from the environment")
    assert settings.secret("ACME_KEY") == "from the environment"


def test_no_secret_is_shown_or_pickled(files: Files) -> None:
    settings = files.load(user=f'[secrets]\nACME_KEY = "{SECRET}"')
    assert SECRET not in repr(settings) + str(settings)
    assert SECRET.encode() not in pickle.dumps(settings)


@pytest.mark.parametrize("text", [f"[secrets]\nA = {{b = '{SECRET}'}}", f"[secretz]\nA = '{SECRET}'", f"A = {SECRET}"])
def test_no_secret_is_in_an_error(files: Files, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        files.load(user=text)
    assert SECRET not in str(caught.value)


def test_a_misspelt_table_of_secrets_is_told_its_name(files: Files) -> None:
    with pytest.raises(ConfigError, match="did you mean 'secrets'"):
        files.load(user='[secret]\nA = "x"')


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda settings: pickle.loads(pickle.dumps(settings))])
def test_a_copy_allows_no_more_than_the_original(again: Any) -> None:
    settings = Settings(allow=frozenset({"a"}), block=frozenset({"b"}), safe=True, strict=True, prefer={"tool.x": "a"})
    assert again(settings) == settings


# --- names ---


@given(st.text(alphabet="aB-_.", min_size=1, max_size=9))
def test_normalising_twice_is_normalising_once(name: str) -> None:
    assert normalise(normalise(name)) == normalise(name)


def test_suggest_names_what_is_near_else_what_there_is() -> None:
    assert suggest("serch", ["search", "browse"]) == "; did you mean 'search'?"
    assert suggest("zzz", ["b", "a"]) == "; known: a, b"
    assert suggest("zzz", []) == "; known: nothing"
