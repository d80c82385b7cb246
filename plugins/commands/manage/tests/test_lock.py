"""The lock: what it has in it, how it is read, and that an environment made from it is the same."""

from __future__ import annotations

import os
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError
from jackfield.settings import Settings
from jackfield_manage.cli import installing
from jackfield_manage.installing.installers import Environment, Sources
from jackfield_manage.installing.lock import Lock, LockedPlugin, Policy, freeze
from jackfield_manage.installing.lockfile import as_toml, parse_lock, read_lock, write_lock
from jackfield_manage.installing.sync import InstalledPlugin, Plan, State, carry_out, differences, plan, sync
from jackfield_manage.record import changed_files, content_hash
from tests.support.site import FakeSite

CONTENT = "sha256:" + "0123456789abcdef" * 4
NAMES = st.from_regex(r"[a-z][a-z0-9]{0,3}(-[a-z0-9]{1,3})?", fullmatch=True).filter(lambda name: name != "jackfield")
VERSIONS = st.sampled_from(["0.1.0", "1.0", "1.1", "2.0rc1", "3!1.0+local.1"])
CONTENTS = st.sampled_from(["", CONTENT, CONTENT[::-1][:64].join(["sha256:", ""])])
RULES = st.sampled_from(["tool.search", "acme", "acme/search", "processor.redaction", "processor.acme/redaction"])


@st.composite
def plugins(draw: st.DrawFn) -> LockedPlugin:
    editable = draw(st.booleans())
    ids = draw(st.lists(st.sampled_from(["tool.search", "llm.a-b", "parser.x"]), unique=True))
    return LockedPlugin(
        draw(NAMES), draw(VERSIONS), "" if editable else draw(CONTENTS), tuple(sorted(ids)), editable=editable
    )


@st.composite
def locks(draw: st.DrawFn) -> Lock:
    some = draw(st.lists(plugins(), max_size=4, unique_by=lambda plugin: plugin.name))
    requirements = draw(st.dictionaries(NAMES, VERSIONS, max_size=4))
    policy = Policy(
        allow=draw(st.none() | st.lists(NAMES, max_size=2).map(tuple)),
        block=tuple(draw(st.lists(RULES, max_size=2))),
        enabled=tuple(draw(st.lists(RULES, max_size=2))),
        order=tuple(draw(st.lists(NAMES, max_size=2))),
        prefer=draw(st.dictionaries(st.sampled_from(["tool.search", "llm.x"]), NAMES)),
    )
    return Lock(
        core=draw(VERSIONS),
        requires_python=draw(st.sampled_from(["", ">=3.11", ">=3.11,!=3.12.1"])),
        platform=draw(st.sampled_from([sys.platform, "win32", ""])),
        plugins=tuple(sorted(some, key=lambda plugin: plugin.name)),
        requirements={name: has for name, has in requirements.items() if name not in {one.name for one in some}},
        policy=policy,
    )


def frozen(site: FakeSite, **settings: Any) -> Any:
    return freeze(Settings(**settings), [str(site.folder)])


# --- freezing ---


def test_freezing_loads_nothing_and_names_all_that_is_needed(site: FakeSite) -> None:
    site.add_tools("Acme.Search", "search", "find")
    site.add("acme_data", {"parser.x": "nowhere"}, requires=["lib[fast]>=1", "not-here; python_version < '3'"])
    site.add("lib", requires=["deep", "slow; extra == 'slow'", "quick; extra == 'fast'"], version="1.5")
    for name in ("deep", "slow", "quick", "bystander"):
        site.add(name, version="2.0")
    lock = frozen(site).lock
    assert [(one.name, one.ids) for one in lock.plugins] == [
        ("acme-data", ("parser.x",)),
        ("acme-search", ("tool.find", "tool.search")),
    ]
    assert lock.requirements == {"deep": "2.0", "lib": "1.5", "quick": "2.0"}
    assert site.times_imported("Acme.Search") == 0
    assert "nowhere" not in sys.modules


def test_a_lock_tells_nothing_of_the_machine_nor_a_secret(
    site: FakeSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = site.add("acme", {"tool.x": "acme"})
    (metadata / "direct_url.json").write_text('{"url": "file:///home/somebody/acme", "archive_info": {}}')
    monkeypatch.setenv("ACME_KEY", "sk-very-secret")
    found = frozen(site, _secrets={"OTHER_KEY": "sk-also-secret"}, options={"processor.x": {"key": "sk-third"}})
    text = as_toml(found.lock) + "\n".join(found.notes)
    for told in (str(tmp_path), str(site.folder), "somebody", "sk-", "file:"):
        assert told not in text
    assert found.notes == ("acme was not installed from an index, so restoring the lock requires its files",)


def test_what_was_edited_or_cannot_be_told_is_noted(site: FakeSite) -> None:
    site.add("edited", {"tool.a": "edited"}, modules={"edited": "A = 1"})
    (site.folder / "edited.py").write_text("A = 2")
    (site.add("unrecorded", {"tool.b": "b"}) / "RECORD").unlink()
    editable = site.add("editable", {"tool.c": "c"})
    (editable / "direct_url.json").write_text('{"dir_info": {"editable": true}, "url": "file:///home/me"}')
    site.add("lacking", {"tool.d": "d"}, requires=["absent>=2"])
    found = frozen(site)
    by_name = {one.name: one for one in found.lock.plugins}
    assert by_name["editable"].editable
    assert not by_name["editable"].content
    assert not by_name["unrecorded"].content
    assert [note for note in found.notes if "edited" in note] == [
        "edited was edited after it was installed; the lock records the original: edited.py (changed)"
    ]
    notes = ("editable is an editable installation", "record the content of unrecorded", "lacking requires absent>=2")
    for told in notes:
        assert any(told in note for note in found.notes), told


def test_a_broken_neighbour_costs_only_itself(site: FakeSite) -> None:
    site.add("good", {"tool.a": "a"})
    site.add("broken", raw=b"[jackfield.v1]\ntool.b = \xff\n")
    (site.add("headless", {"tool.c": "c"}) / "METADATA").write_bytes(b"\x00\xff" * 9)
    site.add("weird", {"to ol.d": "d", "tool.e": "e"}, version="1.0")
    found = frozen(site)
    assert [one.name for one in found.lock.plugins] == ["good", "headless", "weird"]
    assert parse_lock(as_toml(found.lock), "it") == found.lock
    assert any(note.startswith("broken ") for note in found.notes)


def test_rules_are_frozen_in_the_form_in_which_they_can_be_read_again(site: FakeSite) -> None:
    # Settings keep `tool.search` in two spellings, because it may also be a distribution's name.
    lock = frozen(site, block=frozenset({"tool.search", "tool-search"}), prefer={"tool.x": "My_Dist"}).lock
    assert lock.policy == Policy(block=("tool.search",), prefer={"tool.x": "my-dist"})
    assert parse_lock(as_toml(lock), "it") == lock


def test_a_rule_that_could_not_be_read_again_is_not_written(site: FakeSite, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"policy: 'block' item 1 must be a package, kind\.name or package/name, got 'a b'"
    ):
        write_lock(frozen(site, block=frozenset({"a b"})).lock, tmp_path / "lock")
    assert not (tmp_path / "lock").exists()


def test_notes_of_a_lock_are_printed_beside_it_and_cannot_command_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = SimpleNamespace(lock=Lock("0.1.0", "", "linux"), notes=("one", "two\x1b[2J"))
    monkeypatch.setattr("jackfield_manage.installing.lock.freeze", lambda _: found)
    assert installing.freeze(Namespace(output="-")) == 0
    assert capsys.readouterr() == (as_toml(found.lock), "jackfield: one\njackfield: two\\x1b[2J\n")


# --- the file ---


@given(locks())
def test_what_is_written_is_read_again(lock: Lock) -> None:
    assert parse_lock(as_toml(lock), "it") == lock


@given(locks())
def test_the_file_is_sorted_however_the_lock_was_made(lock: Lock) -> None:
    turned = replace(
        lock,
        plugins=tuple(replace(one, ids=one.ids[::-1]) for one in reversed(lock.plugins)),
        requirements=dict(reversed(lock.requirements.items())),
        policy=replace(lock.policy, prefer=dict(reversed(lock.policy.prefer.items()))),
    )
    assert as_toml(turned) == as_toml(lock)


def test_plugins_are_sorted_however_they_stand_in_the_file() -> None:
    text = HEAD + "".join(f'[[plugin]]\nname = "{name}"\nversion = "1.0"\n' for name in "cab")
    assert [one.name for one in parse_lock(text, "it").plugins] == ["a", "b", "c"]


def test_a_lock_can_be_shared_with_other_users(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_lock(Lock("0.1.0", "", "linux"), tmp_path / "lock")
    finally:
        os.umask(before)
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("path", ["folder", "none/lock", "file/lock"])
def test_a_place_that_cannot_be_written_is_named(path: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match=f"^{re.escape(str(tmp_path / path))} cannot be written: "):
        write_lock(Lock("0.1.0", "", "linux"), tmp_path / path)
    assert {one.name for one in tmp_path.rglob("*")} == {"file", "folder"}


def test_the_file_has_a_fact_a_line() -> None:
    plugin = LockedPlugin("acme", "1.0", CONTENT, ("tool.search",))
    lock = Lock("0.1.0", ">=3.11", "linux", (plugin,), {"lib": "2.0"}, Policy(prefer={"tool.search": "acme"}))
    assert as_toml(lock).splitlines()[1:] == [
        "format = 1",
        'core = "0.1.0"',
        'requires-python = ">=3.11"',
        'platform = "linux"',
        "",
        "[[plugin]]",
        'name = "acme"',
        'version = "1.0"',
        f'content = "{CONTENT}"',
        'offers = ["tool.search"]',
        "",
        "[requirements]",
        'lib = "2.0"',
        "",
        "[policy]",
        "block = []",
        "enabled = []",
        "order = []",
        "",
        "[policy.prefer]",
        '"tool.search" = "acme"',
    ]


HEAD = 'format = 1\ncore = "0.1.0"\nrequires-python = ""\nplatform = "linux"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("format = ]", "not valid TOML.*line 1"),
        pytest.param("format = " + "[" * 100_000, "not valid TOML", id="nested"),
        ("", "expected lock format 1, but 'format' is missing.*plugins freeze"),
        ("format = 2\n", "expected lock format 1, found 2: run pip install --upgrade jackfield"),
        ("format = true\n", "expected lock format 1, found True"),
        (HEAD.replace("core", "kore"), "'kore' is not a valid key; did you mean 'core'"),
        (HEAD.replace('"0.1.0"', "1"), "'core' must be a version, got 1"),
        (HEAD.replace('""', '"three"'), "'requires-python' must be a range of Python versions"),
        (HEAD + "plugin = 3\n", r"'plugin' must be a list of tables, each starting with \[\[plugin\]\]"),
        (HEAD + "plugin = [3]\n", r"'plugin' must be a list of tables, each starting with \[\[plugin\]\]"),
        (
            HEAD + '[[plugin]]\nname = "a"\nversion = "latest"\n',
            r"plugin 1 \('a'\): 'version' must be a version, got 'latest'",
        ),
        (HEAD + '[[plugin]]\nname = "a"\n', r"plugin 1 \('a'\): 'version' is missing"),
        (HEAD + '[[plugin]]\nname = "--index-url=x"\nversion = "1.0"\n', "'name' must be a normalised package name"),
        (HEAD + '[[plugin]]\nname = "a"\nversion = "1.0 --pre"\n', "'version' must be a version"),
        (
            HEAD + '[[plugin]]\nname = "a"\nversion = "1.0"\ncontent = "sha256:12"\n',
            "'content' must be 'sha256:' followed by 64",
        ),
        (HEAD + '[[plugin]]\nname = "a"\nversion = "1.0"\neditable = 1\n', "'editable' must be true or false, got 1"),
        (
            HEAD + '[[plugin]]\nname = "a"\nversion = "1.0"\noffers = ["x"]\n',
            r"'offers' item 1 must be kind.name or kind.\*, got 'x'",
        ),
        (
            HEAD + '[[plugin]]\nname = "a"\nversion = "1.0"\ncontents = "x"\n',
            r"plugin 1 \('a'\): 'contents' is not a valid key; did you mean 'content'",
        ),
        (HEAD + '[[plugin]]\nname = "jackfield"\nversion = "1.0"\n', "'name' must not be the core"),
        (HEAD + 2 * '[[plugin]]\nname = "a"\nversion = "1.0"\n', "plugin 2: 'a' is listed twice"),
        (HEAD + '[requirements]\n"-r x" = "1.0"\n', "requirements: '-r x' is not a normalised package name"),
        (HEAD + '[requirements]\n"a\\n--pre" = "1.0"\n', "is not a normalised package name"),
        (HEAD + '[requirements]\njackfield = "1.0"\n', "'jackfield' must be omitted"),
        (HEAD + '[policy]\nallow = "a"\n', "policy: 'allow' must be a list, got 'a'"),
        (
            HEAD + "[policy]\nblock = [3]\n",
            "policy: 'block' item 1 must be a package, kind.name or package/name, got 3",
        ),
        (HEAD + '[policy.prefer]\n"tool.x y" = "acme"\n', "policy.prefer: 'tool.x y' must have the form kind.name"),
        (HEAD + '[policy.prefer]\n"tool.x" = "A B"\n', "policy.prefer: 'tool.x' must be a normalised package name"),
    ],
)
def test_each_wrong_entry_of_a_lock_is_named(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parse_lock(text, "it")


def test_all_wrong_entries_are_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_lock('format = 1\ncore = "x"\nplatform = 1\nmore = 2\n', "it")
    assert len(str(caught.value).splitlines()) == 5  # the heading, three wrong and one missing


TRICKS = st.sampled_from(["-r", "--index-url", " ", "\n", ";", "@", "file://", "==1", "$(id)", "\0", "../", "é", "a"])


@given(name=st.lists(TRICKS, max_size=4).map("".join) | st.text(max_size=8), place=st.integers(0, 2))
def test_no_name_and_no_version_of_a_lock_can_be_an_option(name: str, place: int) -> None:
    text = as_toml(
        [
            Lock("1.0", "", "", (LockedPlugin(name, "1.0"),)),
            Lock("1.0", "", "", (LockedPlugin("a", name),)),
            Lock(name, "", ""),
        ][place]
    )
    with suppress(ConfigError):
        lock = parse_lock(text, "it")
        for word in (lock.core, *(part for plugin in lock.plugins for part in (plugin.name, plugin.version))):
            assert word.isascii()
            assert word[0].isalnum()
            assert not set(word) & set(" \n\r\t;@$/\\\0")


@pytest.mark.parametrize(
    ("raw", "told"),
    [(b"\xff\xfe", "not valid UTF-8"), (HEAD.encode().ljust((4 << 20) + 1, b"\n"), "larger than 4 MiB")],
)
def test_a_file_that_is_no_lock_is_one_clear_error(raw: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / "lock").write_bytes(raw)
    with pytest.raises(ConfigError, match=told):
        read_lock(tmp_path / "lock")


def test_a_lock_may_have_4_mib(tmp_path: Path) -> None:
    (tmp_path / "lock").write_bytes(HEAD.encode().ljust(4 << 20, b"\n"))
    assert read_lock(tmp_path / "lock") == Lock("0.1.0", "", "linux")


def test_a_lock_that_is_not_there_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="jackfield plugins freeze"):
        read_lock(tmp_path / "lock")


# --- the plan ---


def state_of(lock: Lock) -> State:
    """What is here if everything is as a lock says."""
    here = {one.name: InstalledPlugin(one.version, one.content, editable=one.editable) for one in lock.plugins}
    versions = {**lock.requirements, **{name: one.version for name, one in here.items()}}
    return State(InstalledPlugin(lock.core), here, versions, lock.policy, {})


@given(locks())
def test_nothing_has_to_be_done_where_all_is_as_the_lock_says(lock: Lock) -> None:
    assert plan(lock, state_of(lock), exact=True).is_empty
    assert differences(lock, state_of(lock), exact=True) == []


@given(wanted=locks(), other=locks(), exact=st.booleans())
def test_doing_all_of_a_plan_leaves_no_difference(wanted: Lock, other: Lock, exact: bool) -> None:
    here = state_of(other)
    todo = plan(wanted, here, exact=exact)
    contents = {one.name: one.content for one in wanted.plugins}
    changed = {name: version for name, (_, version) in todo.change.items()}
    done = {**todo.install, **changed, **todo.reinstall}
    plugins = {name: one for name, one in here.plugins.items() if name not in todo.remove}
    plugins |= {name: InstalledPlugin(version, contents[name]) for name, version in done.items() if name in contents}
    versions = {**here.versions, **changed, **todo.missing}
    core = InstalledPlugin(changed.get("jackfield", here.core.version))
    after = State(core, plugins, versions, wanted.policy, {})
    assert differences(wanted, after, exact=exact) == list(todo.by_hand.values())


def test_a_folder_somebody_works_in_is_never_replaced() -> None:
    lock = Lock("0.1.0", "", sys.platform, (LockedPlugin("acme", "2.0", CONTENT),))
    here = replace(state_of(lock), plugins={"acme": InstalledPlugin("1.0", editable=True)})
    todo = plan(lock, here)
    assert not todo.needs_installer
    assert list(todo.by_hand) == ["acme"]
    assert "jackfield plugins uninstall acme" in todo.by_hand["acme"]


@pytest.mark.parametrize("editable", [True, False])
def test_a_folder_is_no_release_even_of_the_same_version(editable: bool) -> None:
    lock = Lock("0.1.0", "", sys.platform, (LockedPlugin("acme", "2.0", editable=editable),))
    here = replace(state_of(lock), plugins={"acme": InstalledPlugin("2.0", editable=not editable)})
    assert list(plan(lock, here).by_hand) == ["acme"]


def test_requirements_of_another_platform_are_not_missing_here() -> None:
    lock = Lock("0.1.0", "", "elsewhere", requirements={"winlib": "1.0", "lib": "2.0"})
    here = replace(state_of(lock), versions={"lib": "1.0"})
    assert plan(lock, here).missing == {}
    assert plan(lock, here).change == {"lib": ("1.0", "2.0")}


def test_a_file_that_was_edited_is_named_beside_its_content() -> None:
    lock = Lock("0.1.0", "", sys.platform, (LockedPlugin("acme", "2.0", CONTENT),))
    edited = tuple(f"{letter}.py" for letter in "abcdef")
    for here, said in (
        (
            InstalledPlugin("2.0", CONTENT, edited=edited),
            "acme 2.0 was edited after it was installed: a.py, b.py, c.py,",
        ),
        (InstalledPlugin("2.0", "sha256:1", edited=edited), "acme 2.0 has the content sha256:1, but the lock has sha"),
        (
            InstalledPlugin("2.0"),
            "acme 2.0 has no RECORD, so its content cannot be compared with that in the lock, sha256:",
        ),
    ):
        (told,) = differences(lock, replace(state_of(lock), plugins={"acme": here}))
        assert told.startswith(said)
        assert "f.py" not in told


def test_a_rule_that_differs_names_the_files_of_the_core_rule_and_of_what_is_too_much() -> None:
    lock = Lock("0.1.0", "", sys.platform, policy=Policy(block=("kept",), prefer={"tool.x": "acme"}))
    extra = {"block:b": "/srv/z", "block:c": "/srv/b", "block:d": "/srv/y", "block:e": "/srv/x", "block:f": "/srv/w"}
    origins = {"block:kept": "/srv/a", "allow": "/srv/c", **extra}
    here = replace(state_of(lock), policy=Policy(allow=("a",), block=("kept", *"bcdef")), origins=origins)
    assert plan(lock, here).settings == (
        "allow is [a] (from /srv/c), but the lock has not set",
        "block is [kept, b, c, d, e, f] (from /srv/b, /srv/w, /srv/x, /srv/y, /srv/z), but the lock has [kept]",
        "prefer is {}, but the lock has {tool.x = acme}",
    )


PINNED = ["acme==2.0", "other==1.0"]


@pytest.fixture
def here(uv: str) -> Environment:
    """An environment that belongs to no tool."""
    free = Path("/srv/nowhere")
    return Environment(sys.executable, free, free, free, str(Path(uv).parent))


@pytest.mark.parametrize(
    ("changes", "commands"),
    [
        (Plan(install={"acme": "2.0"}), [("install", PINNED)]),
        (Plan(missing={"lib": "3.0"}), [("install", PINNED)]),
        (Plan(change={"lib": ("1", "3.0")}), [("install", PINNED)]),
        (Plan(change={"jackfield": ("0.0.1", "0.1.0")}), [("install", [*PINNED, "jackfield==0.1.0"])]),
        (Plan(install={"acme": "2.0"}, by_hand={"other": "…"}), [("install", PINNED[:1])]),
        (Plan(install={"acme": "2.0"}, by_hand={"jackfield": "…"}), [("install", PINNED)]),
        (Plan(reinstall={"acme": "2.0"}), [("reinstall", PINNED[:1])]),
        (
            Plan(install={"acme": "2.0"}, reinstall={"other": "1.0"}, remove=("gone",)),
            [("uninstall", ["gone"]), ("install", PINNED), ("reinstall", PINNED[1:])],
        ),
        (Plan(keep=("gone",), settings=("block is …",)), []),
    ],
    ids=["new", "requirement", "version", "core", "by hand", "core by hand", "content", "all", "none"],
)
def test_a_plan_is_carried_out_by_pinned_commands(
    here: Environment, changes: Plan, commands: list[tuple[str, list[str]]]
) -> None:
    plugins = (
        LockedPlugin("acme", "2.0", CONTENT),
        LockedPlugin("other", "1.0"),
        LockedPlugin("mine", "1", editable=True),
    )
    lock = Lock("0.1.0", "", sys.platform, plugins, {"lib": "3.0"})
    ran: list[tuple[str, list[str]]] = []
    files: list[Path] = []
    pins = {"acme": "2.0", "other": "1.0", "jackfield": "0.1.0", "lib": "3.0"}

    def run(command: Sequence[str]) -> int:
        end = list(command).index("--")
        kind = (
            "reinstall" if "--no-deps" in command else next(one for one in ("install", "uninstall") if one in command)
        )
        assert ("--no-index" in command) == (kind != "uninstall")
        for word in command[:end]:
            if word.startswith("--constraint="):
                files.append(Path(word.partition("=")[2]))
                assert files[-1].read_text().split() == sorted(
                    f"{name}=={version}" for name, version in pins.items() if name not in changes.by_hand
                )
        assert any(word.startswith("--constraint=") for word in command) == (kind == "install")
        ran.append((kind, list(command[end + 1 :])))
        return 0

    carry_out(changes, lock, environment=here, sources=Sources(no_index=True), run=run)
    assert ran == commands
    assert not any(file.exists() for file in files)


def test_an_installer_that_fails_ends_the_rest_and_leaves_no_file(here: Environment) -> None:
    ran: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> int:
        ran.append(command)
        return 3

    changes = Plan(install={"acme": "2.0"}, reinstall={"acme": "2.0"})
    with pytest.raises(ConfigError, match="exited with code 3, so the lock was not restored"):
        carry_out(changes, Lock("0.1.0", "", "", (LockedPlugin("acme", "2.0"),)), environment=here, run=run)
    (command,) = ran
    (file,) = (Path(word.partition("=")[2]) for word in command if word.startswith("--constraint="))
    assert not file.exists()


def test_an_installation_that_matches_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = Lock("0.1.0", f"=={sys.version_info[0]}.*", sys.platform)
    monkeypatch.setattr("jackfield_manage.installing.sync.read_state", lambda _: state_of(lock))
    monkeypatch.setattr("platform.python_version", lambda: f"{sys.version_info[0]}.{sys.version_info[1] + 1}.0rc1")
    told: list[str] = []
    assert sync(lock, Settings, run=lambda _: pytest.fail("nothing has to change"), tell=told.append) == []
    assert told == []


@pytest.mark.parametrize(
    ("here", "done"),
    [
        ({"versions": {}}, ["packages"]),
        ({"policy": Policy(block=("x",))}, ["rules"]),
        ({"versions": {}, "policy": Policy(block=("x",))}, ["packages", "rules"]),
    ],
    ids=["packages", "rules", "both"],
)
def test_only_what_differs_is_changed(monkeypatch: pytest.MonkeyPatch, here: dict[str, Any], done: list[str]) -> None:
    lock = Lock("0.1.0", "", sys.platform, requirements={"lib": "1.0"})
    did: list[str] = []
    place = "jackfield_manage.installing.sync"
    monkeypatch.setattr(f"{place}.read_state", lambda _: state_of(lock) if did else replace(state_of(lock), **here))
    monkeypatch.setattr(f"{place}.carry_out", lambda *_, **__: did.append("packages"))
    monkeypatch.setattr(f"{place}.write_policy", lambda _: did.append("rules"))
    assert len(sync(lock, Settings, dry_run=True, tell=list)) == len(done)
    assert did == []
    assert sync(lock, Settings, tell=list) == []
    assert did == done


# --- really ---


def test_an_environment_made_from_a_lock_has_the_same_lock(make_place: Callable[..., Any], wheelhouse: Any) -> None:
    wheelhouse.add("lib", "1.0")
    wheelhouse.add("lib", "1.1")
    wheelhouse.add("acme-search", offers=["tool.search"], requires=["lib>=1"], script=True)
    wheelhouse.add("other-search", offers=["tool.search"])
    first = make_place("first")
    first.done("install", "--any", *first.offline, "acme-search", "other-search", "lib==1.0")
    config = Path(first.env["XDG_CONFIG_HOME"]) / "jackfield/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('block = ["other/x"]\n[prefer]\n"tool.search" = "acme-search"\n[secrets]\nKEY = "sk-secret"\n')
    lock = first.prefix / "jackfield-plugins.lock"
    assert "2 plugins, 1 requirement" in first.done("freeze", "-o", lock)
    assert "secret" not in lock.read_text()
    records = {}
    for name, installer in (("second", "uv"), ("third", "pip")):
        place = make_place(name, installer=installer)
        shown = place.run("sync", lock, *place.offline, "--dry-run")
        assert shown.returncode == 1
        assert "install    acme-search 1.0" in shown.stdout
        assert place.metadata("acme-search") is None
        assert "this installation matches" in place.done("sync", lock, *place.offline)
        assert place.done("freeze", "-o", "-") == lock.read_text()
        location = place.metadata("acme-search")
        assert (location / "INSTALLER").read_text().strip() == installer
        assert changed_files(str(location)) == []
        records[installer] = (location / "RECORD").read_text()
        if installer == "pip":  # uv marks everything as asked for
            assert (place.metadata("acme-search") / "REQUESTED").exists()
            assert not (place.metadata("lib") / "REQUESTED").exists()
        assert place.done("sync", lock, "--dry-run") == f"this installation matches {lock}\n"
    # They write it differently, and yet the lock's content is the same.
    assert records["uv"] != records["pip"]


def test_sync_brings_back_what_was_changed_and_removes_only_if_asked(place: Any, wheelhouse: Any) -> None:
    for version in ("1.0", "2.0"):
        wheelhouse.add("acme", version, offers=["tool.search"], requires=["lib"])
        wheelhouse.add("lib", version)
    wheelhouse.add("later", offers=["tool.later"])
    place.done("install", "--any", *place.offline, "acme==1.0", "lib==1.0")
    lock = place.prefix / "lock"
    place.done("freeze", "-o", lock)
    place.done("install", "--any", *place.offline, "acme==2.0", "lib==2.0", "later")
    said = place.done("sync", lock, *place.offline)
    assert "change     acme 2.0 → 1.0" in said
    assert "change     lib 2.0 → 1.0" in said
    assert "keep       later" in said
    assert place.metadata("later")
    assert "remove     later" in place.done("sync", lock, "--exact", *place.offline)
    assert place.metadata("later") is None
    assert place.done("freeze", "-o", "-") == lock.read_text()


def test_another_content_under_the_same_version_is_an_error_that_names_both(
    make_place: Callable[..., Any], wheelhouse: Any
) -> None:
    original = wheelhouse.add("acme", offers=["tool.x"], source="A = 1\n").read_bytes()
    first = make_place("first")
    first.done("install", "--any", *first.offline, "acme")
    lock = first.prefix / "lock"
    first.done("freeze", "-o", lock)
    locked = content_hash(str(first.metadata("acme")))
    wheelhouse.add("acme", offers=["tool.x"], source="A = 'something else'\n")
    second = make_place("second")
    ran = second.run("sync", lock, *second.offline)
    delivered = content_hash(str(second.metadata("acme")))
    assert ran.returncode == 1
    assert delivered != locked
    assert delivered in ran.stderr
    assert locked in ran.stderr
    assert not (second.site / "acme.py").read_text().startswith("A = 1")
    # Once the right wheel is there again, the wrong one is replaced.
    (wheelhouse.folder / "acme-1.0-py3-none-any.whl").write_bytes(original)
    assert "reinstall  acme 1.0" in second.done("sync", lock, *second.offline)
    # What somebody edits is brought back, too.
    module = second.site / "acme.py"
    module.unlink()  # a file that uv has linked from its cache would be changed there, too
    module.write_text("A = 2\n")
    assert second.run("sync", lock, "--dry-run").returncode == 1
    assert "reinstall  acme 1.0" in second.done("sync", lock, *second.offline)
    assert module.read_text() == "A = 1\n"


def test_a_rule_that_another_file_holds_is_a_difference_with_its_file(place: Any, wheelhouse: Any) -> None:
    lock = place.prefix / "lock"
    place.done("freeze", "-o", lock)
    (place.prefix / "pyproject.toml").write_text('[tool.jackfield]\nblock = ["acme"]\n')
    ran = place.run("sync", lock)
    assert ran.returncode == 1
    assert f"block is [acme] (from {place.prefix / 'pyproject.toml'}), but the lock has []" in ran.stderr


def test_a_version_that_nobody_offers_is_one_line_below_what_the_installer_said(place: Any) -> None:
    lock = place.prefix / "lock"
    lock.write_text(as_toml(Lock("0.1.0", "", sys.platform, (LockedPlugin("acme", "9.0"),))))
    ran = place.run("sync", lock, *place.offline)
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1] == (
        "jackfield: uv exited with code 1, so the lock was not restored; see its output"
    )


def test_a_lock_for_another_python_changes_nothing(place: Any) -> None:
    lock = place.prefix / "lock"
    lock.write_text(as_toml(Lock("0.1.0", "<3", sys.platform, (LockedPlugin("acme", "9.0"),))))
    ran = place.run("sync", lock, *place.offline)
    assert ran.returncode == 1
    assert "the lock requires Python <3, but this is 3." in ran.stderr


def test_a_plan_names_every_step_and_every_difference() -> None:
    changes = Plan(
        install={"a": "1"},
        change={"b": ("1", "2")},
        reinstall={"c": "3"},
        missing={"d": "4"},
        remove=("e",),
        keep=("f",),
        settings=("block is [], but the lock has [x]",),
        by_hand={"g": "g is an editable installation here"},
    )
    assert changes.lines() == [
        "install    a 1",
        "change     b 1 → 2",
        "reinstall  c 3: its content differs from the lock",
        "install    d 4, a requirement",
        "remove     e",
        "keep       f, which is not in the lock (--exact removes it)",
        "set        block is [], but the lock has [x]",
        "by hand    g is an editable installation here",
    ]
    assert changes.differences() == [
        "a 1 is not installed",
        "d 4 is not installed",
        "b is 1, but the lock has 2",
        "e is installed but not in the lock",
        "block is [], but the lock has [x]",
        "g is an editable installation here",
    ]
