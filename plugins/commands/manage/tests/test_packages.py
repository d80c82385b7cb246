"""Installing and uninstalling: what is handed to the installer, where it is refused, and that it really works."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError, PluginError
from jackfield.plugins import scan
from jackfield_manage.installing.installers import (
    Environment,
    Installer,
    Sources,
    find_installer,
    name_in,
    run_visibly,
    tool_command,
)
from jackfield_manage.installing.packages import install, installed_plugin, requirement_of, uninstall
from tests.support.site import FakeSite


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """A Python in an environment, without any installer."""
    python = tmp_path / "env/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    stdlib = tmp_path / "stdlib"
    stdlib.mkdir()
    return Environment(str(python), tmp_path / "env", tmp_path / "base", stdlib, str(tmp_path / "path"))


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., Path]:
    """Makes a program that ends with a code."""

    def make(folder: Path, name: str, code: int = 0) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / name
        path.write_text(f"#!/bin/sh\nexit {code}\n")
        path.chmod(0o755)
        return path

    return make


# --- names ---


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("openai", "jackfield-openai"),
        ("OpenAI", "jackfield-openai"),
        ("llm.openai", "jackfield-openai"),
        ("oai", "jackfield-openai"),
        ("jackfield_openai", "jackfield-openai"),
        ("openai>=0.2", "jackfield-openai>=0.2"),
        ("keyword_search", "jackfield-keyword-search"),
        ("jackfield-acme-search[fast]==1.0", "jackfield-acme-search[fast]==1.0"),
        ("jackfield[rag]", "jackfield[rag]"),
    ],
)
def test_a_name_means_the_known_distribution_that_offers_it(typed: str, meant: str) -> None:
    assert requirement_of(typed) == meant


@pytest.mark.parametrize(
    "typed",
    ["acme-search-plugin[fast]==1.0", "requests", "jackfieldd", "acme @ https://example.invalid/acme.whl", "opnai"],
)
def test_what_is_neither_known_nor_named_as_plugins_are_is_installed_only_on_demand(typed: str) -> None:
    with pytest.raises(ConfigError, match="jackfield plugins install --any"):
        requirement_of(typed)
    assert requirement_of(typed, anything=True).replace(" @", "@").split() == typed.replace(" @", "@").split()


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (
            "opnai",
            "'opnai' is similar to 'openai'. To install 'openai', run: jackfield plugins install jackfield-openai",
        ),
        ("jackfield-opena", "'jackfield-opena' is similar to 'openai'"),
        (
            "anthorpic",
            "'anthorpic' is similar to 'anthropic'. To install 'anthropic', run: jackfield plugins install",
        ),
        (
            "openai_response",
            "is similar to 'openai-responses'. To install 'openai-responses', run: jackfield",
        ),
        ("--index-url=x", "is not a valid plugin: specify a name"),
        ("-r", "is not a valid plugin"),
        ("a b", "is not a valid plugin"),
        ("a; rm -rf", "is not a valid plugin"),
        ("", "is not a valid plugin"),
        ("./nothing.whl", "does not exist"),
        ("..", "neither a wheel nor a folder with a pyproject.toml"),
        ("qwen", "'qwen' is provided by jackfield-call-formats, jackfield-dashscope: specify one of them"),
        pytest.param(f"./{'x' * 5000}", "is not a valid path: ", id="long"),
    ],
)
def test_what_is_no_plugin_is_refused_with_what_to_write(
    typed: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=told):
        requirement_of(typed)


@given(st.text(max_size=20) | st.from_regex(r"-{1,2}[a-z-]+(=| )?[a-z./]*", fullmatch=True))
def test_nothing_typed_becomes_an_option(typed: str) -> None:
    with suppress(ConfigError):
        requirement = requirement_of(typed)
        assert requirement[0].isalnum() or Path(requirement).is_absolute()
        assert "\n" not in requirement


def test_a_wheel_and_a_folder_are_paths_however_they_are_written(
    wheelhouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = wheelhouse.add("acme")
    folder = tmp_path / "-mine"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    assert requirement_of("wheels/acme-1.0-py3-none-any.whl") == str(wheel)
    assert requirement_of("./-mine") == str(folder)
    assert requirement_of("-mine/") == str(folder)


@pytest.mark.parametrize(
    "text", ["acme-search", "Acme_Search", "search", "tool.search", "acme-search/search", "tool.acme-search/search"]
)
def test_what_is_to_go_may_be_named_by_what_it_offers(text: str, site: FakeSite) -> None:
    site.add("acme-search", {"tool.search": "nowhere"})
    site.add("search-sdk")
    assert installed_plugin(text, scan([str(site.folder)])) == "acme-search"


def test_only_plugins_can_be_uninstalled_and_broken_ones_are_some(site: FakeSite) -> None:
    site.add("broken", raw=b"[jackfield.v1]\ntool.x = \xff\n")
    site.add("openai")
    site.add_tools("acme", "search")
    site.add_tools("other", "search")
    catalog = scan([str(site.folder)])
    assert installed_plugin("broken", catalog) == "broken"
    for text, told in (
        ("openai", "no plugin 'openai' is installed"),  # the SDK of that name is not ours to remove
        ("jackfield", "is the core"),
        ("search", "provided by acme and other"),
        ("--yes", "no plugin '--yes'"),
    ):
        with pytest.raises(PluginError, match=told):
            installed_plugin(text, catalog)


@pytest.mark.parametrize("text", ["plugins", "command.plugins", "jackfield-manage/plugins", "Jackfield_Manage"])
def test_the_manager_is_removed_only_by_its_own_name(site: FakeSite, text: str) -> None:
    site.add("jackfield-manage", {"command.plugins": "nowhere"})
    catalog = scan([str(site.folder)])
    if text == "Jackfield_Manage":
        assert installed_plugin(text, catalog) == "jackfield-manage"
        return
    with pytest.raises(PluginError, match="To remove the package anyway, run: jackfield plugins uninstall"):
        installed_plugin(text, catalog)


# --- environments ---


def test_an_installer_that_does_not_work_is_passed_over(
    environment: Environment, program: Callable[..., Path], tmp_path: Path
) -> None:
    program(tmp_path / "env/bin", "uv", code=1)
    with pytest.raises(ConfigError, match="has no pip, and uv was not found"):
        find_installer(environment)
    working = program(tmp_path / "path", "uv")
    installer = find_installer(environment)
    assert (installer.name, installer.install_command[0]) == ("uv", str(working))


@pytest.mark.parametrize("where", ["env/bin", "path"])
def test_the_commands_of_uv_name_the_interpreter(
    where: str, environment: Environment, program: Callable[..., Path], tmp_path: Path
) -> None:
    program(tmp_path / "path", "uv")
    uv = str(program(tmp_path / where, "uv"))  # the one beside the interpreter comes first
    python = f"--python={environment.python}"
    assert find_installer(environment) == Installer(
        "uv", (uv, "pip", "install", python), (uv, "pip", "uninstall", python)
    )


def test_pip_is_used_without_uv_and_a_folder_named_pip_is_ignored(environment: Environment, tmp_path: Path) -> None:
    Path(environment.python).write_text("#!/bin/sh\n")
    (tmp_path / "path").mkdir()
    broken = tmp_path / "path/uv"
    broken.write_bytes(b"\x7fELF")  # cannot be run
    broken.chmod(0o755)
    pip = (environment.python, "-P", "-m", "pip")
    assert find_installer(environment) == Installer(
        "pip", (*pip, "install", "--disable-pip-version-check"), (*pip, "uninstall", "--yes")
    )


def test_a_python_that_does_not_know_its_interpreter_installs_nothing(environment: Environment) -> None:
    with pytest.raises(ConfigError, match=r"the path to the Python interpreter \(sys\.executable\) is unknown"):
        find_installer(replace(environment, python=""))


@pytest.mark.parametrize("name", ["none", "folder"])
def test_a_command_that_cannot_be_run_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match=f"{name} cannot be run: (No such file|Permission denied)"):
        run_visibly([str(tmp_path / name)])
    assert run_visibly([sys.executable, "-c", "raise SystemExit(3)"]) == 3


@pytest.mark.parametrize(
    ("requirement", "name"),
    [
        ("Acme[fast]>=1", "Acme"),
        ("acme @ https://example.invalid/other.whl", "acme"),
        ("/srv/wheels/acme-1.0-py3-none-any.whl", "acme"),
        ("/srv/acme-1.0", ""),
        ("/srv/acme-1.0.tar.gz", ""),
        ("not a requirement", ""),
    ],
)
def test_the_name_in_a_requirement_is_known_before_it_is_installed(requirement: str, name: str) -> None:
    assert name_in(requirement) == name


def test_what_is_handed_over_stands_behind_the_end_of_options(
    environment: Environment, program: Callable[..., Path], tmp_path: Path
) -> None:
    uv = str(program(tmp_path / "path", "uv"))
    ran: list[Sequence[str]] = []
    sources = Sources(("wheels", "~/wheels", "https://example.invalid/x"), no_index=True)

    def run(command: Sequence[str]) -> int:
        ran.append(command)
        return 7

    assert install(["openai"], environment=environment, sources=sources, run=run, tell=list) == 7
    links = [f"--find-links={folder / 'wheels'}" for folder in (Path.cwd(), Path.home())]
    links.append("--find-links=https://example.invalid/x")
    python = f"--python={environment.python}"
    assert ran == [[uv, "pip", "install", python, *links, "--no-index", "--", "jackfield-openai"]]
    told: list[str] = []
    install(["jackfield-openai"], environment=environment, upgrade=True, run=run, tell=told.append)
    assert ran[1:] == [[uv, "pip", "install", python, "--upgrade", "--", "jackfield-openai"]]
    assert told == [], "a name is told only if it stands for another one"


def test_a_dry_run_says_the_command_and_runs_nothing(
    environment: Environment, program: Callable[..., Path], tmp_path: Path, site: FakeSite
) -> None:
    program(tmp_path / "path", "uv")
    site.add_tools("acme", "search")
    told: list[str] = []

    def run(command: Sequence[str]) -> int:
        raise AssertionError(command)

    install(["openai"], environment=environment, dry_run=True, run=run, tell=told.append)
    uninstall(["search"], scan([str(site.folder)]), environment=environment, dry_run=True, run=run, tell=told.append)
    assert told[0] == "openai → jackfield-openai"
    assert told[1].startswith("would run: ")
    assert told[1].endswith(" -- jackfield-openai")
    assert told[2:3] == ["search → acme"]
    assert " pip uninstall " in told[3]
    told.clear()
    uninstall(
        ["search", "acme"], scan([str(site.folder)]), environment=environment, dry_run=True, run=run, tell=told.append
    )
    assert told[-1].endswith(" -- acme"), "it is removed once"


def test_a_python_of_the_operating_system_is_left_alone(environment: Environment) -> None:
    system = replace(environment, base_prefix=environment.prefix)
    (system.stdlib / "EXTERNALLY-MANAGED").touch()
    with pytest.raises(ConfigError, match=r"is managed by the operating system.*python3 -m venv \.venv"):
        find_installer(system)
    # An environment made from such a Python is nobody's but the user's.
    with pytest.raises(ConfigError, match="has no pip"):
        find_installer(replace(system, base_prefix=system.prefix / "other"))


RECEIPT = """
[tool]
requirements = [
    { name = "jackfield", extras = ["rag"], specifier = ">=0.1" },
    { name = "jackfield-openai", specifier = ">=0.1" },
    { name = "mine", editable = "/home/me/my plugin" },
    { name = "theirs", git = "https://example.invalid/theirs?rev=main" },
]
python = "3.12"
"""


def test_the_environment_of_uv_tool_gets_the_exact_command(environment: Environment) -> None:
    (environment.prefix / "uv-receipt.toml").write_text(RECEIPT)
    start = "uv tool install --python 3.12 'jackfield[rag]>=0.1'"
    rest = "--with-editable '/home/me/my plugin' --with 'theirs @ git+https://example.invalid/theirs?rev=main'"
    assert tool_command(environment, add=["acme"]) == f"{start} --with 'jackfield-openai>=0.1' {rest} --with acme"
    assert tool_command(environment, add=["jackfield-openai==2"]) == f"{start} {rest} --with jackfield-openai==2"
    assert tool_command(environment, remove=["jackfield-openai"]) == f"{start} {rest}"
    with pytest.raises(ConfigError, match=r"is managed by a tool installer.*run: uv tool install"):
        install(["acme"], environment=environment, anything=True, tell=list)


@pytest.mark.parametrize(
    ("entry", "word"),
    [
        ('{ name = "acme", extras = ["a", "b"] }', "--with 'acme[a,b]'"),
        ('{ name = "acme", url = "https://example.invalid/a.whl" }', "--with 'acme @ https://example.invalid/a.whl'"),
        ('{ name = "acme", path = "/srv/a.whl" }', "--with /srv/a.whl"),
        ('{ name = "acme", directory = "/srv/acme" }', "--with /srv/acme"),
    ],
)
def test_a_requirement_of_a_receipt_is_kept_as_it_was(entry: str, word: str, environment: Environment) -> None:
    receipt = environment.prefix / "uv-receipt.toml"
    receipt.write_text(f'[tool]\nrequirements = [{{ name = "tool", editable = "/srv/tool" }}, {entry}]\n')
    start = "uv tool install --editable /srv/tool"
    assert tool_command(environment, add=["b"]) == f"{start} {word} --with b"
    assert tool_command(environment, add=["ACME==2"]) == f"{start} --with ACME==2"
    receipt.write_text(receipt.read_text().replace('"acme"', '"Acme_"'))
    assert tool_command(environment, remove=["acme-"]) == start


@pytest.mark.parametrize("receipt", ["", "[tool", "tool = 3", "[tool]\nrequirements = [1, {}]"])
def test_a_receipt_that_says_nothing_still_gives_a_command(receipt: str, environment: Environment) -> None:
    prefix = environment.prefix.rename(environment.prefix.parent / "jackfield")
    (prefix / "uv-receipt.toml").write_text(receipt)
    assert tool_command(replace(environment, prefix=prefix), add=["a"]) == "uv tool install jackfield --with a"


def test_the_environment_of_pipx_gets_its_command(environment: Environment, site: FakeSite) -> None:
    assert tool_command(environment, add=["acme"]) is None
    (environment.prefix / "pipx_metadata.json").touch()
    assert tool_command(environment, add=["acme"]) == f"pipx inject {environment.prefix.name} acme"
    assert tool_command(environment, remove=["acme"]) == f"pipx uninject {environment.prefix.name} acme"
    site.add_tools("acme", "search")
    with pytest.raises(ConfigError, match=f"run: pipx uninject {environment.prefix.name} acme$"):
        uninstall(["search"], scan([str(site.folder)]), environment=environment, tell=list)
    both = f"pipx inject {environment.prefix.name} 'a>1' && pipx uninject {environment.prefix.name} b"
    assert tool_command(environment, add=["a>1"], remove=["b"]) == both


# --- really ---


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_a_plugin_is_installed_and_removed_without_being_loaded(
    installer: str, make_place: Callable[..., Any], wheelhouse: Any
) -> None:
    wheelhouse.add("acme", offers=["tool.search"])
    wheelhouse.add("consumer", offers=["tool.use"], requires=["acme"])
    place = make_place("here", installer=installer)
    said = place.done("install", "--any", *place.offline, "consumer")
    assert said.splitlines()[-2:] == ["tool.search  (acme 1.0)", "tool.use  (consumer 1.0)"]
    ran = place.run("uninstall", "search")
    assert ran.returncode == 0, ran.stderr
    assert "consumer requires acme, which is being removed" in ran.stderr
    assert place.metadata("acme") is None
    broken = place.metadata("consumer")
    (broken / "entry_points.txt").write_bytes(b"[jackfield.v1]\n\xff\n")
    ran = place.run("uninstall", "consumer")
    if installer == "uv":
        assert (ran.returncode, place.metadata("consumer")) == (0, None)
    else:  # pip cannot read it either
        assert ran.returncode == 1
        assert f"which may be why the installer failed: use uv instead of pip, or delete {broken}" in ran.stderr


def test_options_of_the_command_line_reach_the_installer_and_a_dry_run_changes_nothing(
    place: Any, wheelhouse: Any, tmp_path: Path
) -> None:
    for name, requires in (("acme", []), ("user-a", ["acme"]), ("user-b", ["acme"])):
        wheelhouse.add(name, offers=[f"tool.{name}"], requires=requires)
    links = ["--find-links=/srv/one", "--find-links=https://example.invalid/two"]
    (line,) = place.done("install", "--dry-run", "--any", "-U", "--no-index", *links, "acme").splitlines()
    assert line.startswith("would run: ")
    assert line.endswith(f" {' '.join(links)} --no-index --upgrade -- acme")
    place.done("install", "--any", *place.offline, "user-a")
    assert place.done("install", "--any", *place.offline, "user-b") == "tool.user-b  (user-b 1.0)\n"
    place.done("install", "--dry-run", "--any", "acme")  # it came with the others, so the user is still asked about it
    (seen,) = tmp_path.rglob("seen.json")
    assert sorted(json.loads(seen.read_text()).popitem()[1]) == ["user-a", "user-b"]
    for names, consequence in (
        (["acme"], "user-a, user-b require acme"),
        (["acme", "user-a"], "user-b requires acme"),
    ):
        ran = place.run("uninstall", "--dry-run", *names)
        assert (ran.returncode, ran.stderr) == (0, f"jackfield: {consequence}, which is being removed\n")
        assert place.metadata("acme")


@pytest.mark.slow
@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_a_wheel_that_carries_the_metadata_of_another_gets_nothing_by_its_name(
    installer: str, make_place: Callable[..., Any], wheelhouse: Any
) -> None:
    """Both installers put them there."""
    inside = wheelhouse.add("jackfield-redaction", offers=["processor.redaction"])
    with zipfile.ZipFile(inside) as wheel:
        files = {f"evil-1.0.data/purelib/{name}": wheel.read(name).decode() for name in wheel.namelist()}
    inside.unlink()
    outside = wheelhouse.add("evil", more=files)
    place = make_place("here", installer=installer)
    place.done("install", *place.offline, str(outside))
    (row,) = json.loads(place.done("list", "--json", JACKFIELD_PLUGINS="jackfield-redaction"))["plugins"]
    assert row["distribution"] == "jackfield-redaction"
    assert "claimed by evil" in row["state"]
    assert "claimed by evil" in place.done("why", "redaction")


def test_what_was_installed_by_name_is_not_asked_about_and_what_came_with_it_is(
    place: Any, wheelhouse: Any, tmp_path: Path
) -> None:
    wheelhouse.add("acme", offers=["tool.search"])
    wheelhouse.add("jackfield-acme-user", offers=["tool.use"], requires=["acme"])
    folder = wheelhouse.add("other", offers=["tool.other"])
    place.done("install", *place.offline, "jackfield-acme-user", str(folder))
    seen = list(tmp_path.rglob("seen.json"))
    assert len(seen) == 1
    text = seen[0].read_text()
    assert '"jackfield-acme-user"' in text
    assert '"other"' in text
    assert '"acme"' not in text


def test_what_the_installer_says_is_shown_and_ends_with_one_line_of_ours(place: Any) -> None:
    ran = place.run("install", "--any", *place.offline, "not-there-at-all")
    assert ran.returncode == 1
    assert "not-there-at-all" in ran.stderr
    assert ran.stderr.splitlines()[-1] == (
        "jackfield: the installer exited with code 1, so nothing was installed; see its output above"
    )


def test_the_command_for_a_uv_tool_really_changes_it(place: Any, wheelhouse: Any, uv: str, tmp_path: Path) -> None:
    import shlex
    import subprocess

    wheelhouse.add("jackfield", "0.1.0", script=True)
    wheelhouse.add("acme", offers=["tool.search"])
    env = {**place.env, "UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    offline = ["--quiet", *place.offline, "--python", sys.executable]
    subprocess.run([uv, "tool", "install", *offline, "jackfield"], check=True, env=env)
    prefix = tmp_path / "tools/jackfield"
    made = Environment(str(prefix / "bin/python"), prefix, tmp_path, tmp_path, "")
    command = tool_command(made, add=["acme"])
    assert command
    words = shlex.split(command)
    assert words[:3] == ["uv", "tool", "install"]
    subprocess.run([uv, *words[1:], "--quiet", *place.offline], check=True, env=env)
    assert list(prefix.glob("lib/*/site-packages/acme-1.0.dist-info"))
    removing = shlex.split(str(tool_command(made, remove=["acme"])))
    subprocess.run([uv, *removing[1:], "--quiet", *place.offline], check=True, env=env)
    assert not list(prefix.glob("lib/*/site-packages/acme-1.0.dist-info"))
