"""Settings: who wins, what is refused, and that a deny always stays one."""

from __future__ import annotations

import copy
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError
from jackfield.plugins import Row
from jackfield.plugins._policy import why_not
from jackfield.secrets import Secrets
from jackfield.settings import (
    Settings,
    choices_path,
    config_path,
    enabled_form,
    keys_path,
    load_settings,
    models_path,
    normalise,
    read_choices,
    trust_path,
)
from jackfield.suggestions import suggest
from jackfield_manage.judging.trust import agree

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
    (tmp_path / "file").write_text("")
    assert load_settings({}, project_dir=tmp_path, user_file=tmp_path / "file" / "none.toml") == Settings()


def test_the_environment_wins_over_the_user_and_a_project_only_takes_away(files: Files) -> None:
    user, project = 'allow = ["user", "both"]', 'allow = ["project", "Both"]'
    assert files.load(user=user).allow == {"user", "both"}
    assert files.load(project=project).allow == {"project", "both"}
    assert files.load(user=user, project=project).allow == {"both"}
    assert files.load(project="allow = []").allow == frozenset()
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
    assert files.load(user="record = {keep_days = 9}", JACKFIELD_RECORD="").record == {"keep_days": 9}
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


@pytest.mark.parametrize("spelling", ["tool.acme-tools/x", "tool.Acme.Tools/x"])
def test_one_component_is_blocked_by_its_kind_and_its_distribution(files: Files, spelling: str) -> None:
    settings = files.load(user=f'block = ["{spelling}"]')
    assert "blocked" in why_not(_row("acme-tools"), settings)
    for other in (_row("acme-tools", kind="llm"), _row("acme-tools", name="y"), _row("other")):
        assert why_not(other, settings) == ""


@pytest.mark.parametrize("entry", ["acme", "tool.x", "acme/x", "tool.acme/x"])
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
    for api in (0, 2):
        row = Row("tool", "x", "m", "acme", "1", api, "")
        assert f"API v{api}" in why_not(row, Settings(allow=frozenset({"acme"})))
    assert "kind 'gadget'" in why_not(_row("acme", kind="gadget"), Settings(allow=frozenset({"acme"})))


# --- flags ---


@pytest.mark.parametrize(("text", "value"), [("1", True), ("YES", True), (" on ", True), ("0", False), ("", False)])
def test_a_switch_is_on_or_off(files: Files, text: str, value: bool) -> None:
    settings = files.load(JACKFIELD_SAFE=text, JACKFIELD_PLUGINS_STRICT=text, JACKFIELD_PLUGINS_TRACE=text)
    assert (settings.safe, settings.strict, settings.trace) == (value, value, value)


@pytest.mark.parametrize("variable", ["JACKFIELD_SAFE", "JACKFIELD_PLUGINS_STRICT", "JACKFIELD_PLUGINS_TRACE"])
def test_a_switch_that_is_neither_is_an_error_that_names_the_variable(files: Files, variable: str) -> None:
    with pytest.raises(ConfigError, match=f"{variable} must be 1 or 0"):
        files.load(**{variable: "maybe"})


# --- what is refused ---


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('blok = ["x"]', "unknown setting 'blok'; did you mean 'block'"),
        ('block = "x"', "'block' must be a list of names"),
        ("allow = [1]", "'allow' must be a list of names"),
        ("safe = 1", "'safe' must be true or false"),
        ('prefer = ["x"]', "'prefer' must be a table of strings"),
    ],
)
def test_a_wrong_key_is_an_error_that_names_file_and_key(files: Files, text: str, told: str) -> None:
    for settings in ({"project": text}, {"user": text}):
        with pytest.raises(ConfigError) as caught:
            files.load(**settings)
        assert told in str(caught.value)
        assert ("pyproject.toml" if "project" in settings else "config.toml") in str(caught.value)


def test_a_file_that_is_not_toml_is_named(files: Files) -> None:
    with pytest.raises(ConfigError, match=r"config\.toml is not valid TOML"):
        files.load(user="allow = [")
    with pytest.raises(ConfigError, match=r"pyproject\.toml is not valid TOML"):
        files.load(project="allow = [")


@pytest.mark.parametrize("name", ["config.toml", "choices.toml"])
@pytest.mark.parametrize("damage", ["folder", "loop", "unreadable"])
@pytest.mark.skipif(os.name != "posix", reason="needs links and modes")
def test_a_file_of_rules_that_cannot_be_read_is_an_error(tmp_path: Path, name: str, damage: str) -> None:
    """Its rules may forbid what would load without them."""
    file = tmp_path / name
    if damage == "folder":
        file.mkdir()
    elif damage == "loop":
        file.symlink_to(file)
    elif os.geteuid() == 0:
        pytest.skip("root reads every file")
    else:
        file.write_text('block = ["acme"]')
        file.chmod(0)
    with pytest.raises(ConfigError, match=rf"{name} cannot be read: "):
        load_settings({}, user_file=tmp_path / "config.toml", with_project=False)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root enters every folder")
def test_a_folder_of_settings_that_cannot_be_entered_holds_none(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    try:
        assert load_settings({}, user_file=closed / "config.toml", with_project=False) == Settings()
    finally:
        closed.chmod(0o700)


def test_a_byte_order_mark_is_not_part_of_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b'\xef\xbb\xbfblock = ["acme"]\r\n')
    assert load_settings({}, user_file=file, with_project=False).block == {"acme"}
    file.write_bytes(b'block = ["caf\xe9"]')
    with pytest.raises(ConfigError, match=r"config\.toml is not UTF-8 text \(byte 13\): save it as UTF-8"):
        load_settings({}, user_file=file, with_project=False)


def test_a_key_outside_of_the_table_of_secrets_is_told_its_place(files: Files) -> None:
    with pytest.raises(ConfigError, match=r"unknown setting 'OPENAI_API_KEY'; put keys under \[secrets\]$"):
        files.load(user='OPENAI_API_KEY = "sk-x"')


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
    with pytest.raises(ConfigError, match="project files can be read by others") as caught:
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
    monkeypatch.setenv("ACME_KEY", "")
    assert settings.secret("ACME_KEY") == SECRET, "an empty variable is no key"


def test_a_secret_that_was_read_is_hidden_by_every_writer(files: Files) -> None:
    value = "Zq83bXw4Rk2LpV7TnSettings"
    settings, writer = files.load(user=f'[secrets]\nACME_WORD = "{value}"'), Secrets()
    assert writer.hide(f"<{value}>") == f"<{value}>"
    assert settings.secret("ACME_WORD") == value
    assert writer.hide(f"<{value}>") == "<[secret:ACME_WORD]>"


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
    assert normalise(f" {name}\n") == normalise(name)


def test_suggest_names_what_is_near_else_what_there_is() -> None:
    assert suggest("serch", ["search", "browse"]) == "; did you mean 'search'?"
    assert suggest("zzz", ["b", "a"]) == "; known: a, b"
    assert suggest("zzz", []) == "; known: nothing"


# --- layers ---


def test_the_stronger_layer_wins_and_lists_are_joined_with_the_strongest_first(files: Files) -> None:
    files.user.with_name("choices.toml").write_text(
        """enabled = ["processor.b", "processor.c"]
        order = ["b"]
        [settings."processor.b"]
        size = 2
        """
    )
    settings = files.load(
        user="""enabled = ["processor.c", "processor.d"]
        order = ["a", "c"]
        [settings."processor.b"]
        size = 1
        [settings."server.Acme_Web/page"]
        port = 3
        """,
        project='enabled = ["processor.z"]\norder = ["z"]',
        JACKFIELD_PLUGINS_ENABLED="processor.a, processor.b",
    )
    assert settings.enabled == ("processor.a", "processor.b", "processor.c", "processor.d")
    assert settings.order == ("b",)
    assert settings.options == {"processor.b": {"size": 2}, "server.acme-web/page": {"port": 3}}
    assert settings.origins["enabled:processor.a"] == "JACKFIELD_PLUGINS_ENABLED"
    assert settings.origins["enabled:processor.b"] == "JACKFIELD_PLUGINS_ENABLED"
    assert settings.origins["enabled:processor.c"] == str(files.user.with_name("choices.toml"))
    assert settings.origins["enabled:processor.d"] == str(files.user)
    assert "enabled:processor.z" not in settings.origins


def test_each_rule_has_its_origin(files: Files) -> None:
    user = 'allow = ["a"]\nblock = ["b"]\nsafe = true\nprefer = {"tool.x" = "a"}'
    origins = files.load(user=user).origins
    assert {rule: Path(origin).name for rule, origin in origins.items()} == dict.fromkeys(
        ("allow", "block:b", "safe", "prefer:tool.x"), "config.toml"
    )
    environ = {"JACKFIELD_PLUGINS": "", "JACKFIELD_PLUGINS_BLOCK": "b", "JACKFIELD_SAFE": "1"}
    assert files.load(user=user, **environ).origins == {
        "allow": "JACKFIELD_PLUGINS", "block:b": "JACKFIELD_PLUGINS_BLOCK", "safe": "JACKFIELD_SAFE",
        "prefer:tool.x": str(files.user),
    }  # fmt: skip
    assert "safe" not in files.load(JACKFIELD_SAFE="0").origins
    project = files.load(user='allow = ["a"]', project='allow = ["a"]\nblock = ["c"]')
    path = str(files.project / "pyproject.toml")
    assert project.origins == {"allow": f"{files.user} and {path}", "block:c": path}
    assert project.unnarrowed is not None
    assert (project.unnarrowed.block, project.unnarrowed.allow) == (frozenset(), {"a"})
    assert project.unnarrowed.project is project.project is not None
    assert files.load(project="").unnarrowed is None


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("info", {"level": "info", "format": "text"}),
        (" Debug , JSON", {"level": "debug", "format": "json"}),
        ("info,text", {"level": "info", "format": "text"}),
        ("", None),
        ("off", None),
        ("0", None),
    ],
)
def test_the_log_is_switched_on_by_a_level(files: Files, text: str, options: dict[str, str] | None) -> None:
    settings = files.load(JACKFIELD_LOG=text, JACKFIELD_PLUGINS_ENABLED="processor.a")
    on = options is not None
    assert settings.enabled == (("processor.a", "observer.jackfield-log/log") if on else ("processor.a",))
    assert settings.options == ({"observer.jackfield-log/log": options} if on else {})
    assert settings.origins.get("enabled:observer.jackfield-log/log") == ("JACKFIELD_LOG" if on else None)


@pytest.mark.parametrize("text", ["warning", "info,xml", ",json", "off,json", "info,json,text"])
def test_a_log_of_another_level_or_form_is_refused(files: Files, text: str) -> None:
    with pytest.raises(
        ConfigError, match="JACKFIELD_LOG must be info or debug, optionally followed by ,json for JSON lines, got"
    ):
        files.load(JACKFIELD_LOG=text)


# --- forms ---


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("processor.x", "processor.x"),
        (" observer.Acme_Log/x ", "observer.acme-log/x"),
        ("parser.acme/x", "parser.acme/x"),
        ("sandbox.acme/x", "sandbox.acme/x"),
        ("tool.acme/*", "tool.acme/*"),
        ("parser.acme/*", "parser.acme/*"),
        ("processor.", None),
        ("processor.*", None),
        ("processor.acme/*", None),
        ("parser.x", None),
        ("parser.acme/", None),
        ("tool.acme/x", None),
        ("tool.*", None),
        ("a b.acme/*", None),
        ("processor", None),
        ("", None),
    ],
)
def test_only_what_acts_or_is_picked_or_asked_can_be_enabled(name: str, form: str | None) -> None:
    if form is not None:
        assert enabled_form(name) == form
        return
    with pytest.raises(ConfigError) as caught:
        enabled_form(name)
    assert str(caught.value) == (
        f"{name!r} cannot be enabled: use processor.NAME, observer.NAME, parser.PACKAGE/NAME or "
        f"sandbox.PACKAGE/NAME; plugins of other kinds must be named in code"
    )


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("server.page", "server.page"),
        ("store.Acme_Db/x", "store.acme-db/x"),
        ("embedder.openai", "embedder.openai"),
        ("processor.x", "processor.x"),
        ("server.*", None),
        ("server.", None),
        ("tool.x", None),
        # They can be enabled, and still take no settings from files.
        ("tool.acme/*", None),
        ("sandbox.acme/x", None),
        ("parser.acme/x", "parser.acme/x"),
    ],
)
def test_a_table_of_settings_is_for_what_files_may_configure(files: Files, name: str, form: str | None) -> None:
    if form is None:
        with pytest.raises(ConfigError) as caught:
            files.load(user=f'[settings."{name}"]\na = 1')
        assert str(caught.value) == (
            f"{name!r} cannot be configured in a settings file: use processor.NAME, observer.NAME, server.NAME, "
            f"store.NAME, embedder.NAME or parser.NAME; configure other kinds in code or in an agent file"
        )
    else:
        assert files.load(user=f'[settings."{name}"]\na = 1').options == {form: {"a": 1}}


def test_settings_of_a_component_are_found_by_its_address_first() -> None:
    settings = Settings(options={"server.page": {"a": 1}, "server.acme/page": {}, "store.x": {"b": 2}})
    assert settings.options_of("server", "acme/page") == {}
    assert settings.options_of("server", "other/page") == {"a": 1}
    assert settings.options_of("store", "x") == {"b": 2}
    assert settings.options_of("store", "page") == {}


# --- layers of a user and an approved project ---


def test_an_approved_project_wins_over_the_choices_and_its_files_come_first(files: Files) -> None:
    files.user.with_name("choices.toml").write_text(
        """local = ["chosen.py"]
        order = ["of-choices"]
        enabled = ["processor.of-choices"]
        prefer = {"tool.x" = "of-choices"}
        [settings."processor.b"]
        a = 1
        """
    )
    user = 'local = ["mine.py", "chosen.py"]'
    project = """local = ["its.py"]
        order = ["of-project"]
        enabled = ["processor.of-project"]
        prefer = {"tool.x" = "of-project"}
        [tool.jackfield.settings."processor.b"]
        a = 2
        """
    before = files.load(user=user, project=project)
    assert [file.name for file in before.local] == ["chosen@user", "mine@user"]
    assert (before.order, before.prefer, before.options) == (
        ("of-choices",), {"tool.x": "of-choices"}, {"processor.b": {"a": 1}},
    )  # fmt: skip
    assert before.project is not None
    agree(before.project, trust_folder := files.user.with_name("trusted"))
    assert trust_folder.is_dir()
    after = files.load(user=user, project=project)
    assert [file.name for file in after.local] == ["its@project", "chosen@user", "mine@user"]
    assert after.enabled == ("processor.of-project", "processor.of-choices")
    assert (after.order, after.prefer, after.options) == (
        ("of-project",), {"tool.x": "of-project"}, {"processor.b": {"a": 2}},
    )  # fmt: skip


@pytest.mark.parametrize("text", ["record = true", '[secrets]\nA_KEY = "a"'])
def test_commands_choose_neither_recording_nor_secrets(files: Files, text: str) -> None:
    files.user.with_name("choices.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"choices\.toml"):
        files.load()


# --- secrets of components ---


def test_a_component_sees_only_the_secrets_that_it_names(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("C_KEY", "from the environment")
    whole = files.load(user='[secrets]\nA_KEY = "a-secret"\nB_KEY = "b-secret"\nEMPTY = ""')
    assert whole.named_secrets() == {"A_KEY": "a-secret", "B_KEY": "b-secret"}
    part = whole.with_secrets(["A_KEY", "EMPTY"])
    for settings in (part, copy.copy(part), copy.deepcopy(part)):
        assert [settings.secret(name) for name in ("A_KEY", "B_KEY", "C_KEY")] == ["a-secret", None, None]
        assert settings.named_secrets() == {"A_KEY": "a-secret"}
    assert whole.secret("B_KEY") == "b-secret"
    assert whole.with_secrets(["C_KEY"]).secret("C_KEY") == "from the environment"
    again = pickle.loads(pickle.dumps(part))
    assert again.secret("C_KEY") is None


def test_an_unpickled_part_has_its_own_secrets_of_the_new_process_and_no_others(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = files.load(user='[secrets]\nA_KEY = "here"').with_secrets(["A_KEY"])
    folder = files.user.parent / "elsewhere" / "jackfield"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('[secrets]\nA_KEY = "there"\nB_KEY = "b-secret"')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder.parent))
    monkeypatch.delenv("A_KEY", raising=False)
    again = pickle.loads(pickle.dumps(part))
    assert again.named_secrets() == {"A_KEY": "there"}
    assert again.secret("A_KEY") == "there"


def test_keys_that_a_command_has_stored_are_the_weakest(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("A_KEY", raising=False)
    settings = files.load(user='[secrets]\nA_KEY = "a-secret"')
    assert settings.secret("B_KEY") is None
    keys = files.user.with_name("keys.json")
    keys.write_text('{"A_KEY": "weaker", "B_KEY": "stored", "EMPTY": ""}')
    keys.chmod(0o600)
    assert (settings.secret("A_KEY"), settings.secret("B_KEY")) == ("a-secret", "stored")
    assert settings.named_secrets() == {"A_KEY": "a-secret", "B_KEY": "stored"}
    assert settings.with_secrets(["A_KEY"]).named_secrets() == {"A_KEY": "a-secret"}
    assert settings.with_secrets(["A_KEY"]).secret("B_KEY") is None
    assert settings.with_secrets(["B_KEY"]).secret("B_KEY") == "stored"
    assert settings.with_secrets(["B_KEY"]).named_secrets() == {"B_KEY": "stored"}
    monkeypatch.setenv("B_KEY", "from the environment")
    assert settings.secret("B_KEY") == "from the environment"


# --- files ---


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"XDG_CONFIG_HOME": "/srv/conf", "HOME": "/srv/home"}, "/srv/conf/jackfield"),
        ({"HOME": "/srv/home"}, "/srv/home/.config/jackfield"),
        ({"XDG_CONFIG_HOME": "", "HOME": "/srv/home"}, "/srv/home/.config/jackfield"),
    ],
    ids=["XDG", "home", "empty"],
)
def test_the_files_of_a_user_are_in_one_folder(environ: dict[str, str], folder: str) -> None:
    paths = [find(environ) for find in (config_path, choices_path, keys_path, models_path)]
    names = ["config.toml", "choices.toml", "keys.json", "models.txt"]
    assert paths == [Path(folder) / name for name in names]
    assert trust_path(environ).parent == Path(folder)


def test_an_environment_without_anything_is_not_that_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/srv/conf")
    assert config_path() == Path("/srv/conf/jackfield/config.toml")
    assert config_path({}) == Path.home() / ".config/jackfield/config.toml"


def test_a_file_that_cannot_be_read_as_a_table_says_why(files: Files) -> None:
    with pytest.raises(ConfigError, match=r"config\.toml is nested too deeply"):
        files.load(user=f"a = {'[' * 10_000}")
    files.user.write_bytes(b"a = '\xff'")
    with pytest.raises(ConfigError, match=r"config\.toml is not UTF-8 text \(byte 5\)"):
        load_settings({}, user_file=files.user, with_project=False)
    assert read_choices(files.user.with_name("none.toml")) == {}


def test_a_working_directory_that_has_gone_has_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert load_settings({}, user_file=tmp_path / "none.toml").project is None


def test_a_projects_file_that_may_not_be_read_has_no_settings(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> tuple[bytes, bool]:
        raise PermissionError(path)

    assert files.load(project="strict = true").strict
    monkeypatch.setattr("jackfield.settings.read_file", refuse)
    assert not files.load(project="strict = true").strict


def test_the_projects_file_is_left_alone_if_nobody_wants_it(files: Files) -> None:
    files.load(project="safe = true")
    settings = load_settings({}, project_dir=files.project, user_file=files.user, with_project=False)
    assert (settings.safe, settings.project) == (False, None)
