"""Texts that a user types or edits: names of packages, and the files of choices and locks."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError, PluginError
from jackfield.plugins import PluginHost
from jackfield_manage.choices import Choices, as_toml, load_choices, replace_file, toml_value, write_choices
from jackfield_manage.distributions import Distribution, read_distribution, requirements_of, requirers
from jackfield_manage.installing.installers import Installer, Sources
from jackfield_manage.installing.lockfile import parse_lock
from jackfield_manage.installing.packages import installed_plugin, names_of, requirement_of
from jackfield_manage.third_parties import Listed

# --- names of packages ---


@pytest.mark.parametrize(
    ("text", "requirement"),
    [
        ("openai", "jackfield-openai"),
        ("llm.openai", "jackfield-openai"),
        ("OpenAI>=0.1", "jackfield-openai>=0.1"),
        ("jackfield_openai[x]==1", "jackfield-openai[x]==1"),
        ("jackfield", "jackfield"),
        ("jackfield-quite-another", "jackfield-quite-another"),
    ],
)
def test_a_name_is_that_of_the_known_package(text: str, requirement: str) -> None:
    assert requirement_of(text) == requirement


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "opnai",
            "'opnai' is similar to 'openai'. To install 'openai', run: jackfield plugins install jackfield-openai. To",
        ),
        ("jackfield-opnai", "is similar to 'openai'"),
        ("requests", "no known plugin is named 'requests', and the name does not start with 'jackfield-'"),
        ("a b", "'a b' is not a valid plugin: specify a name (openai)"),
        (
            "acme @ https://x.test/a.whl",
            "would install whatever code is at that URL. If you trust the source, run: jackfield plugins",
        ),
        ("./none", "'./none' does not exist; plugin names do not contain '/'"),
        ("none.whl", "'none.whl' does not exist"),
        ("--index-url=x", "is not a valid plugin"),
        ("~no-such-user/a", "is not a valid path"),
    ],
)
def test_what_may_be_something_else_is_refused(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        requirement_of(text)
    assert says in str(caught.value)


def test_anything_may_be_installed_if_the_user_insists() -> None:
    assert requirement_of("opnai>1", anything=True) == "opnai>1"
    assert requirement_of("requests", anything=True) == "requests"
    address = "acme @ https://x.test/a.whl"
    assert requirement_of(address, anything=True) == address
    known = "openai @ https://x.test/a.whl"
    assert requirement_of(known, anything=True) == known, "an address is of exactly this package"


def test_paths_are_absolute_and_hold_something_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "old", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "mine/pyproject.toml").touch()
    (tmp_path / "old/setup.py").touch()
    archives = ("a.WHL", "a.zip", "a.tar.gz")
    for name in archives:
        (tmp_path / name).touch()
    (tmp_path / "a.txt").touch()
    assert requirement_of("./mine") == str(tmp_path / "mine")
    assert requirement_of("./old") == str(tmp_path / "old")
    for name in archives:
        assert requirement_of(name) == str(tmp_path / name)
    for name in ("./empty", "./a.txt"):
        with pytest.raises(ConfigError, match=r"is neither a wheel nor a folder with a pyproject\.toml"):
            requirement_of(name)


def test_the_core_and_what_is_not_there_are_not_uninstalled() -> None:
    catalog = PluginHost(paths=[]).catalog
    with pytest.raises(PluginError, match="jackfield is the core, not a plugin"):
        installed_plugin("Jackfield", catalog)
    with pytest.raises(PluginError, match="no plugin 'nothing' is installed"):
        installed_plugin("nothing", catalog)


def test_requirements_and_folders_are_traced_to_what_is_installed(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    installation = {
        "mine": Distribution("mine", "1", "/srv/mine", direct={"url": folder.as_uri()}),
        "other": Distribution("other", "1", "/srv/other"),
        "elsewhere": Distribution("elsewhere", "1", "/srv/elsewhere", direct={"url": "file:///srv/elsewhere"}),
    }
    assert names_of(["Acme>=1", str(folder)], installation) == {"acme", "mine"}
    assert "" not in names_of([""], installation)


# --- commands of installers ---


def test_the_command_of_an_installer_ends_its_options() -> None:
    uv = Installer("uv", ("uv", "pip", "install"), ("uv", "pip", "uninstall"))
    pip = Installer("pip", ("pip", "install"), ("pip", "uninstall", "--yes"))
    assert uv.install(["a>1"]) == ["uv", "pip", "install", "--", "a>1"]
    assert uv.uninstall(["a", "b"]) == ["uv", "pip", "uninstall", "--", "a", "b"]
    sources = Sources(("https://x.test", "/srv/wheels"), no_index=True)
    assert pip.install(["a"], constraints=Path("/srv/c.txt"), reinstall=True, sources=sources, upgrade=True) == [
        "pip", "install", "--find-links=https://x.test", "--find-links=/srv/wheels", "--no-index",
        "--constraint=/srv/c.txt", "--upgrade", "--no-deps", "--force-reinstall", "--no-cache-dir", "--", "a",
    ]  # fmt: skip
    assert uv.install(["a"], reinstall=True) == ["uv", "pip", "install", "--no-deps", "--reinstall", "--", "a"]
    assert Sources(("wheels",)).options() == [f"--find-links={Path.cwd() / 'wheels'}"]


# --- metadata ---


def laid(folder: Path, metadata: str, **files: str) -> Distribution | None:
    location = folder / "acme-1.dist-info"
    location.mkdir(exist_ok=True)
    (location / "METADATA").write_text(metadata)
    for name, text in files.items():
        (location / name.replace("__", ".")).write_text(text)
    return read_distribution(str(location))


def test_metadata_is_read(tmp_path: Path) -> None:
    text = (
        "Name: Acme_X\nVersion: 1\nRequires-Dist: a>1\nRequires-Dist: b; extra == 'More'\nProvides-Extra: More\n"
        "Requires-Python: >=3.11\nLicense: old\nLicense-Expression: MIT\n\nName: not this\n"
    )
    found = laid(tmp_path, text, INSTALLER="pip\n", direct_url__json='{"dir_info": {"editable": true}}')
    assert found is not None
    assert (found.name, found.version, found.requires_python, found.licence) == ("acme-x", "1", ">=3.11", "MIT")
    assert (found.requires, found.extras) == (("a>1", "b; extra == 'More'"), ("more",))
    assert (found.installer, found.requested, found.editable) == ("pip", False, True)
    assert [one.name for one in requirements_of(found)] == ["a"]
    assert [one.name for one in requirements_of(found, "more")] == ["b"]
    again = laid(tmp_path, text, REQUESTED="")
    assert again is not None
    assert again.requested is True
    uv = laid(tmp_path, text, INSTALLER="uv")
    assert uv is not None
    assert uv.requested is None, "uv does not record it"


@pytest.mark.parametrize("text", ["", "Name: acme\n", "Version: 1\n", "\n\nName: acme\nVersion: 1\n"])
def test_metadata_without_a_name_or_a_version_is_none(text: str, tmp_path: Path) -> None:
    assert laid(tmp_path, text) is None


@pytest.mark.parametrize("url", ["{", "[]", "[" * 5000, '{"dir_info": 3}', '{"dir_info": {"editable": 1}}'])
def test_an_origin_that_cannot_be_read_is_none(url: str, tmp_path: Path) -> None:
    found = laid(tmp_path, "Name: acme\nVersion: 1\n", direct_url__json=url)
    assert found is not None
    assert found.editable is False


def test_those_that_require_one_are_named_with_the_extra_for_which_they_do() -> None:
    def of(name: str, *requires: str, extras: tuple[str, ...] = ()) -> Distribution:
        return Distribution(name, "1", f"/srv/{name}", requires, extras)

    distributions = {
        one.name: one
        for one in (
            of("acme", "acme"),
            of("always", "Acme>=1"),
            of("part", "acme; extra == 'x'", extras=("x", "y")),
            of("old", "acme; python_version < '3'"),
            of("either", "acme; extra == 'x' or python_version > '3'", extras=("x",)),
            of("none", "acme-more"),
        )
    }
    assert requirers(["acme", "nothing"], distributions) == {"acme": ["always", "either", "part[x]"]}


# --- files of choices ---


@pytest.mark.parametrize(
    ("name", "text", "error"), [("folder", "x", OSError), ("file", "\ud800", ValueError)], ids=["a folder", "no UTF-8"]
)
def test_a_file_that_cannot_be_replaced_stays_and_nothing_is_left_beside_it(
    tmp_path: Path, name: str, text: str, error: type[Exception]
) -> None:
    (tmp_path / "folder/inside").mkdir(parents=True)
    (tmp_path / "file").write_text("before")
    with pytest.raises(error):
        replace_file(tmp_path / name, text)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "before"


def test_choices_come_back_as_they_were(tmp_path: Path) -> None:
    choices = Choices(
        block=("a", "b"),
        enabled=("observer.a/b",),
        order=("x",),
        prefer={"tool.a": "acme"},
        settings={"tool.a": {"k": "v\x7f\n", "n": 1, "list": [1, "a"], "table": {"a b": True}}},
        allow=(),
    )
    path = write_choices(choices, tmp_path / "very" / "deep" / "choices.toml")
    assert load_choices(path) == choices
    assert path.read_text() == as_toml(choices)
    assert path.read_text().startswith("# Written by `jackfield plugins enable`")
    assert [file.name for file in path.parent.iterdir()] == ["choices.toml"]
    assert load_choices(tmp_path / "none.toml") == Choices()


def test_rules_that_are_empty_are_not_written_except_that_nothing_may_load() -> None:
    assert tomllib.loads(as_toml(Choices())) == {}
    assert tomllib.loads(as_toml(Choices(allow=()))) == {"allow": []}


def test_blocking_keeps_the_order_and_names_each_once() -> None:
    assert Choices(block=("b", "a")).blocking("a", "c").block == ("b", "a", "c")
    assert Choices().with_changes(order=("x",)).order == ("x",)


def test_keys_of_the_users_own_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "choices.toml").write_text("strict = true\nlocal = []\n")
    with pytest.raises(ConfigError, match=r"choices\.toml must not contain .*: use config\.toml in the same folder"):
        load_choices(tmp_path / "choices.toml")


def test_a_file_that_cannot_be_written_stays_as_it_is(tmp_path: Path) -> None:
    target = tmp_path / "file.toml"
    target.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        replace_file(target, "new \ud800")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
    with pytest.raises(ConfigError, match="cannot be written"):
        write_choices(Choices(), target / "inner" / "choices.toml")


VALUES = st.recursive(
    st.one_of(st.text(st.characters(exclude_categories=["Cs"])), st.integers(-(2**60), 2**60), st.booleans()),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_every_value_is_read_back_from_toml(value: Any) -> None:
    assert tomllib.loads(f"key = {toml_value(value)}\n") == {"key": value}


# --- locks ---

LOCK = """
format = 1
core = "0.1.0"
requires-python = ">=3.11"
platform = "linux"

[[plugin]]
name = "acme"
version = "1.0"
offers = ["tool.a"]

[requirements]
numpy = "2.0"

[policy]
block = ["b"]
"""


def test_a_lock_is_read() -> None:
    lock = parse_lock(LOCK, "lock")
    assert (lock.core, lock.platform, lock.requirements) == ("0.1.0", "linux", {"numpy": "2.0"})
    assert [(plugin.name, plugin.version, plugin.ids, plugin.editable) for plugin in lock.plugins] == [
        ("acme", "1.0", ("tool.a",), False)
    ]
    assert (lock.policy.block, lock.policy.allow, lock.policy.prefer) == (("b",), None, {})
    assert parse_lock(LOCK.replace('block = ["b"]', "allow = []"), "lock").policy.allow == ()


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("format = 1", "format = 2", "lock: expected lock format 1, found 2: run pip install"),
        ("format = 1", "format = true", "lock: expected lock format 1, found True"),
        ("format = 1", "", "lock: expected lock format 1, but 'format' is missing"),
        ("format = 1", "format = ", "lock is not valid TOML: "),
        ('core = "0.1.0"', "", "'core' is missing; expected a version"),
        ('core = "0.1.0"', 'core = "1.0-rc1"', "'core' must be a version, got '1.0-rc1'"),
        ('core = "0.1.0"', 'corre = "0.1.0"', "'corre' is not a valid key; did you mean 'core'?"),
        ('">=3.11"', '"3.11"', "'requires-python' must be a range of Python versions"),
        ('platform = "linux"', "platform = 3", "'platform' must be a platform, such as 'linux', got 3"),
        ('name = "acme"', 'name = "Acme"', "plugin 1 ('Acme'): 'name' must be a normalised package name"),
        ('name = "acme"', "", "plugin 1: 'name' is missing"),
        ('name = "acme"', 'name = "jackfield"', "'name' must not be the core, which has its own entry"),
        ('version = "1.0"', "version = 1.0", "plugin 1 ('acme'): 'version' must be a version, got 1.0"),
        ('version = "1.0"', 'version = "1.0"\neditable = 1', "'editable' must be true or false, got 1"),
        (
            'version = "1.0"',
            'version = "1.0"\ncontent = "md5:1"',
            "'content' must be 'sha256:' followed by 64 hexadecimal",
        ),
        (
            'version = "1.0"',
            f'version = "1.0"\neditable = true\ncontent = "sha256:{"0" * 64}"',
            "'content' is not allowed for an editable plugin",
        ),
        ('offers = ["tool.a"]', 'offers = "tool.a"', "'offers' must be a list, got 'tool.a'"),
        ('offers = ["tool.a"]', 'offers = ["tool.a", 3]', "'offers' item 2 must be kind.name or kind.*, got 3"),
        ("[[plugin]]", "[plugin]", "'plugin' must be a list of tables, each starting with [[plugin]]"),
        ("[requirements]", "[[plugin]]\nname = 'acme'\nversion = '2.0'\n[requirements]", "'acme' is listed twice"),
        ('numpy = "2.0"', 'acme = "2.0"', "requirements: 'acme' must be omitted, because it has its own entry"),
        ('numpy = "2.0"', 'NumPy = "2.0"', "requirements: 'NumPy' is not a normalised package name"),
        ('block = ["b"]', "prefer = 3", "policy: 'prefer' must be a table, got 3"),
        ('block = ["b"]', 'prefer = {a = "b"}', "policy.prefer: 'a' must have the form kind.name"),
        ('block = ["b"]', 'prefer = {"tool.a" = "B"}', "policy.prefer: 'tool.a' must be a normalised package name"),
        (
            'block = ["b"]',
            'allow = ["tool.a"]',
            "policy: 'allow' item 1 must be a normalised package name, got 'tool.a'",
        ),
        ('block = ["b"]', "bock = []", "policy: 'bock' is not a valid key; did you mean 'block'?"),
    ],
)
def test_each_wrong_entry_of_a_lock_is_named(old: str, new: str, fault: str) -> None:
    assert old in LOCK
    with pytest.raises(ConfigError) as caught:
        parse_lock(LOCK.replace(old, new), "lock")
    assert fault in str(caught.value)


# --- listed packages ---


@pytest.mark.parametrize(
    ("tested", "counts", "mark"),
    [
        ("", None, "no test record"),
        ("0.9", {"passed": 5}, "tests passed for 0.9 only"),
        ("1.0", {"passed": 5}, "tests passed"),
        ("1.0", {"passed": 5, "xfailed": 2}, "tests passed, 2 known deviations"),
        ("1.0", None, "tests passed"),
    ],
)
def test_a_listed_package_has_the_result_of_its_tests(tested: str, counts: Any, mark: str) -> None:
    entry = {
        "version": "1.0", "summary": "", "repository": "", "licence": "MIT", "components": ["tool.a"],
        "listed": "2026-11-28", "tested": tested, "counts": counts,
    }  # fmt: skip
    assert Listed.of("acme", entry).mark == mark
    assert Listed.of("acme", entry).components == ("tool.a",)
