"""Restoring a lock: what is read of an installation, what is planned, and what `sync` does in a real environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import ConfigError
from jackfield.settings import Settings, load_settings
from jackfield_manage.choices import Choices, load_choices, write_choices
from jackfield_manage.installing.installers import Environment, Sources
from jackfield_manage.installing.lock import Lock, LockedPlugin, Policy, freeze
from jackfield_manage.installing.sync import InstalledPlugin, Plan, State, carry_out, plan, read_state, sync
from jackfield_manage.record import content_hash
from tests.support.site import FakeSite

CONTENT = "sha256:" + "0123456789abcdef" * 4
EDITABLE = '{"dir_info": {"editable": true}, "url": "file:///srv/acme"}'


def state(core: InstalledPlugin | None = None, **plugins: InstalledPlugin) -> State:
    versions = {name: plugin.version for name, plugin in plugins.items()}
    return State(core or InstalledPlugin("0.1.0"), plugins, versions, Policy(), {})


def lock_of(*plugins: LockedPlugin, **more: Any) -> Lock:
    return Lock("0.1.0", "", sys.platform, plugins, **more)


# --- the state ---


def test_the_state_is_read_from_metadata_and_files(site: FakeSite) -> None:
    site.add("jackfield", {"tool.core": "nowhere"}, version="9.01")
    site.add("lib", version="1.00")
    site.add("odd", {"tool.o": "nowhere"}, version="latest")
    locations = {
        name: site.add(name, {f"tool.{name}": "nowhere"}, version="1.00", modules={name: "A = 1"})
        for name in ("whole", "edited", "unrecorded", "editable")
    }
    (site.folder / "edited.py").write_text("A = 2")
    (locations["unrecorded"] / "RECORD").unlink()
    (locations["editable"] / "direct_url.json").write_text(EDITABLE)
    found = read_state(Settings(enabled=("tool.x",)), [str(site.folder)])
    assert found.core == InstalledPlugin("9.1", content_hash(str(site.metadata("jackfield"))))
    assert found.plugins == {
        "editable": InstalledPlugin("1.0", editable=True),
        "edited": InstalledPlugin("1.0", content_hash(str(locations["edited"])), edited=("edited.py",)),
        "odd": InstalledPlugin("latest", content_hash(str(site.metadata("odd")))),
        "unrecorded": InstalledPlugin("1.0"),
        "whole": InstalledPlugin("1.0", content_hash(str(locations["whole"]))),
    }
    assert found.versions == {**dict.fromkeys([*locations, "lib"], "1.0"), "odd": "latest"}
    assert found.policy == Policy(enabled=("tool.x",))


def test_packages_are_found_even_if_their_folder_keeps_its_time(site: FakeSite) -> None:
    site.add("acme", {"tool.a": "nowhere"})
    before = site.folder.stat().st_mtime_ns
    os.utime(site.folder, ns=(before, before))
    assert list(read_state(Settings(), [str(site.folder)]).versions) == ["acme"]
    site.add("other", {"tool.b": "nowhere"})
    os.utime(site.folder, ns=(before, before))
    found = read_state(Settings(), [str(site.folder)])
    assert sorted(found.versions) == sorted(found.plugins) == ["acme", "other"]


# --- the plan ---


@pytest.mark.parametrize(
    ("lock", "here"),
    [
        (lock_of(LockedPlugin("acme", "1.0")), state(acme=InstalledPlugin("1.0", CONTENT, edited=("a.py",)))),
        (lock_of(), state(InstalledPlugin("0.1.0", CONTENT, editable=True))),
        (lock_of(requirements={"acme": "1.0"}), state(acme=InstalledPlugin("1.0"))),
        (lock_of(LockedPlugin("acme", "1.0", editable=True)), state(acme=InstalledPlugin("1.0", editable=True))),
    ],
    ids=["unknown content", "an editable core", "a requirement with plugins", "editable"],
)
def test_such_an_installation_matches(lock: Lock, here: State) -> None:
    assert plan(lock, here, exact=True) == Plan()


def test_an_exact_plan_keeps_nothing_and_any_other_removes_nothing() -> None:
    here = state(b=InstalledPlugin("1.0"), a=InstalledPlugin("1.0"))
    assert plan(lock_of(), here, exact=True) == Plan(remove=("a", "b"))
    assert plan(lock_of(), here) == Plan(keep=("a", "b"))


@pytest.mark.parametrize(
    ("here", "says"),
    [
        (state(), "acme is not installed, but"),
        (state(acme=InstalledPlugin("1.0")), "acme is 1.0, but"),
        (state(acme=InstalledPlugin("1.0", editable=True)), "acme is 1.0 (editable), but"),
    ],
    ids=["missing", "release", "editable"],
)
def test_an_editable_folder_of_the_lock_is_installed_by_hand(here: State, says: str) -> None:
    changes = plan(lock_of(LockedPlugin("acme", "2.0", editable=True)), here)
    assert not changes.needs_installer
    assert changes.by_hand["acme"] == (
        f"{says} the lock has an editable installation of 2.0: install your own copy with pip install -e FOLDER"
    )


@pytest.mark.parametrize(
    ("changes", "needs_installer", "is_empty"),
    [
        (Plan(install={"a": "1"}), True, False),
        (Plan(change={"a": ("1", "2")}), True, False),
        (Plan(reinstall={"a": "1"}), True, False),
        (Plan(missing={"a": "1"}), True, False),
        (Plan(remove=("a",)), True, False),
        (Plan(settings=("a",)), False, False),
        (Plan(by_hand={"a": "b"}), False, False),
        (Plan(keep=("a",)), False, True),
        (Plan(), False, True),
    ],
)
def test_a_plan_says_if_there_is_something_to_do(changes: Plan, needs_installer: bool, is_empty: bool) -> None:
    assert (changes.needs_installer, changes.is_empty) == (needs_installer, is_empty)


# --- the environment of a tool ---


@pytest.mark.parametrize(
    ("changes", "command"),
    [
        (Plan(install={"acme": "2.0"}), "pipx inject tool acme==2.0"),
        (Plan(install={"acme": "2.0"}, remove=("gone",)), "pipx inject tool acme==2.0 && pipx uninject tool gone"),
        (Plan(change={"jackfield": ("1", "0.1.0")}), "pipx inject tool acme==2.0 jackfield==0.1.0"),
        (Plan(change={"lib": ("1", "3.0")}, missing={"new": "4.0"}), "pipx inject tool acme==2.0 lib==3.0 new==4.0"),
    ],
)
def test_a_lock_is_not_restored_in_the_environment_of_a_tool(changes: Plan, command: str, tmp_path: Path) -> None:
    prefix = tmp_path / "tool"
    prefix.mkdir()
    (prefix / "pipx_metadata.json").touch()
    env = Environment(sys.executable, prefix, tmp_path, tmp_path, "")
    with pytest.raises(ConfigError) as caught:
        carry_out(changes, lock_of(LockedPlugin("acme", "2.0")), environment=env, run=lambda _: pytest.fail("it ran"))
    assert str(caught.value).endswith(f"which would undo the change. Instead, run: {command}")


# --- sync, in the environment of this process ---


@pytest.fixture
def here(site: FakeSite, uv: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lock:
    """The lock of this environment, in which tests install into a folder of their own."""
    for name in [name for name in os.environ if name.startswith("JACKFIELD_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return freeze(load_settings()).lock


class Installer:
    """Runs in place of the installer: records its commands, and changes the site."""

    def __init__(self, change: Callable[[], object]) -> None:
        self.change = change
        self.commands: list[list[str]] = []

    def __call__(self, command: Sequence[str]) -> int:
        self.commands.append(list(command))
        self.change()
        return 0


def test_an_environment_that_matches_is_read_once(here: Lock) -> None:
    loaded: list[Settings] = []

    def load() -> Settings:
        loaded.append(load_settings())
        return loaded[-1]

    told: list[str] = []
    assert sync(here, load, exact=True, run=lambda _: pytest.fail("it ran"), tell=told.append) == []
    assert (len(loaded), told) == (1, [])


def test_a_plugin_that_the_lock_lacks_is_removed_only_if_that_is_asked_for(here: Lock, site: FakeSite) -> None:
    site.add("acme", {"tool.x": "nowhere"})
    told: list[str] = []
    nothing, removal = Installer(list), Installer(lambda: site.remove("acme"))
    assert sync(here, load_settings, run=removal, tell=told.append) == []
    assert told == ["keep       acme, which is not in the lock (--exact removes it)"]
    told.clear()
    remaining = ["acme is installed but not in the lock"]
    assert sync(here, load_settings, exact=True, dry_run=True, run=removal, tell=told.append) == remaining
    assert told == ["remove     acme"]
    assert removal.commands == []
    assert sync(here, load_settings, exact=True, run=nothing, tell=list) == remaining
    assert sync(here, load_settings, exact=True, run=removal, tell=list) == []
    assert [command[-2:] for command in nothing.commands + removal.commands] == [["--", "acme"]] * 2


def test_the_installer_gets_the_sources_and_the_result_is_read_again(here: Lock, site: FakeSite) -> None:
    lock = replace(here, plugins=(*here.plugins, LockedPlugin("acme", "1.0")))
    run = Installer(lambda: site.add("acme", {"tool.x": "nowhere"}))
    assert sync(lock, load_settings, sources=Sources(no_index=True), run=run, tell=list) == []
    (command,) = run.commands
    assert "--no-index" in command
    assert command[-1] == "acme==1.0"


def test_rules_are_restored_and_settings_stay(here: Lock) -> None:
    write_choices(Choices(block=("b",), settings={"parser.acme/x": {"a": 1}}))
    lock = replace(here, policy=replace(here.policy, block=("c",), order=("d",)))
    told: list[str] = []
    assert sync(lock, load_settings, run=lambda _: pytest.fail("it ran"), tell=told.append) == []
    assert load_choices() == Choices(block=("c",), order=("d",), settings={"parser.acme/x": {"a": 1}})
    assert [line.partition(" is ")[0] for line in told] == ["set        block", "set        order"]


@pytest.mark.parametrize(
    "rules",
    [
        {"allow": ("jackfield-echo",)},
        {"allow": ()},
        {"block": ("b",)},
        {"enabled": ("processor.acme/x",)},
        {"order": ("processor.acme/x",)},
        {"prefer": {"tool.x": "acme"}},
    ],
    ids=str,
)
def test_a_rule_that_the_lock_lacks_is_lifted(here: Lock, rules: dict[str, Any]) -> None:
    write_choices(Choices(**rules))
    assert sync(here, load_settings, run=lambda _: pytest.fail("it ran"), tell=list) == []
    assert load_choices() == Choices()


@pytest.mark.parametrize(
    ("supported", "version", "fits"),
    [
        (">=3.11", "3.15.0rc1", True),
        (">=3.11", "3.15.0a2+local", True),
        (">=3.15", "3.15.0rc1", False),
        ("<3.15,>=3.11", "3.14.9", True),
        ("!=3.12.1", "3.12.1", False),
        ("", "3.15.0b1", True),
    ],
)
def test_a_prerelease_of_python_is_a_version_like_any_other(
    supported: str, version: str, fits: bool, here: Lock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.python_version", lambda: version)
    lock = replace(here, requires_python=supported)
    expected = nullcontext() if fits else pytest.raises(ConfigError, match="the lock requires Python")
    with expected:
        assert sync(lock, load_settings, run=lambda _: pytest.fail("it ran"), tell=list) == []


def test_a_lock_for_another_python_changes_nothing_even_if_rules_differ(here: Lock) -> None:
    lock = replace(here, requires_python="<3", policy=Policy(block=("c",)))
    with pytest.raises(ConfigError, match="the lock requires Python <3, but this is 3"):
        sync(lock, load_settings, run=lambda _: pytest.fail("it ran"), tell=list)
    assert load_choices() == Choices()
