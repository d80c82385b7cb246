"""The core's own command line: its one command, the version, the list of commands, and names that are none."""

from __future__ import annotations

import argparse
import errno
import gc
import os
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jackfield import cli
from jackfield.cli import _plugins, main
from jackfield.cli._terminal import guard_output
from jackfield.errors import BrokenPluginError, ConfigError, PluginBlockedError
from jackfield.plugins import Row
from jackfield.version import __version__
from tests.support.command_line import Tty
from tests.support.site import FakeSite


@pytest.mark.parametrize(
    ("words", "is_own"),
    [
        (["plugins"], True),
        (["plugins", "list"], True),
        (["plugins", "list", "--kind", "llm", "--json"], True),
        (["plugins", "list", "--kind=llm"], True),
        (["plugins", "--json"], False),
        (["plugins", "list", "--help"], False),
        (["plugins", "search"], False),
        (["run"], False),
    ],
)
def test_the_core_has_one_command_of_its_own(words: list[str], is_own: bool) -> None:
    assert main._is_own(words) is is_own


def test_the_collector_is_as_before_after_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert gc.isenabled()
    seen: list[bool] = []

    def handler(_: argparse.Namespace) -> int:
        seen.append(gc.isenabled())
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jackfield.cli._plugins.list_plugins", handler)
        assert main.main(["plugins"]) == 0
        gc.disable()
        assert main.main(["plugins"]) == 0
        assert not gc.isenabled()
        gc.enable()
        main.main(["plugins"])
    assert seen == [False] * 3
    assert gc.isenabled()
    capsys.readouterr()


def test_version_and_the_lists_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"jackfield {__version__}\n")
    assert main.main([]) == 0
    assert capsys.readouterr().out.startswith("usage: jackfield ")


@pytest.mark.parametrize(
    ("word", "rest"),
    [
        ("plugin", "; did you mean 'jackfield plugins'?"),
        ("doctor", "; did you mean 'jackfield plugins doctor'?"),
        ("bisekt", "; did you mean 'jackfield plugins bisect' or 'jackfield index set' or 'jackfield keys set'?"),
        (
            "list",
            "; did you mean 'jackfield index list' or 'jackfield keys list' or 'jackfield models list' or 'jackfield "
            "plugins list' or 'jackfield runs list'?",
        ),
        ("default", "; did you mean 'jackfield models default'?"),
        ("remove", "; did you mean 'jackfield index remove' or 'jackfield keys remove'?"),
        ("reports", "; did you mean 'jackfield reports-all'?"),
        ("index", ". To install it, run: pip install jackfield-index"),
        ("qqqq", "; known: chat, plugins, reports-all, run"),
    ],
)
def test_an_unknown_command_is_answered_with_the_whole_commands_that_it_may_mean(word: str, rest: str) -> None:
    assert main._absence(word, ["reports-all"]) == f"unknown command {word!r}{rest}"


@pytest.mark.parametrize("installed", [[], ["reports-all"]])
@pytest.mark.parametrize("command", ["run", "chat"])
def test_the_commands_of_the_terminal_are_told_their_package(command: str, installed: list[str]) -> None:
    assert main._absence(command, installed).endswith("To install it, run: pip install jackfield-terminal")


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("words", [[], ["list"], ["search"]])
def test_without_the_manager_the_help_of_the_list_is_still_there(
    site: FakeSite, capsys: pytest.CaptureFixture[str], words: list[str], flag: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main._run_without_manager("plugins", [*words, flag], site.host())
    assert ended.value.code == 0
    assert "usage: jackfield plugins" in capsys.readouterr().out


def test_commands_are_listed_without_sources(site: FakeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    site.add("acme", {"command.own": "acme_light", "command.*": "acme_light", "tool.x": "acme_light"})
    monkeypatch.setattr("jackfield.plugins._host.default_host", site.host)
    assert main._other_commands() == [("own", "of another package")]


PRINTING = """
from jackfield.plugins import CommandSpec, hook

@hook.commands
def commands():
    return [CommandSpec(name={name!r}, target="{module}:run")]

def run(arguments):
    if arguments:
        raise OSError(int(arguments[0]), "no")
    print("\\x1b[1m")
"""


def add_command(site: FakeSite, distribution: str, name: str) -> None:
    module = f"{distribution.replace('-', '_')}_light"
    source = PRINTING.format(name=name, module=module)
    site.add(distribution, {f"command.{name}": module}, modules={module: source})


@pytest.mark.parametrize(
    ("distribution", "shown"),
    [("acme", "\x1b[1m\n"), ("jackfield-manage", "\\x1b[1m\n")],
    ids=["a plugin", "the manager"],
)
def test_a_plugin_may_draw_on_the_terminal_and_the_manager_may_not(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch, distribution: str, shown: str
) -> None:
    add_command(site, distribution, "own")
    host, out = site.host(), Tty()
    monkeypatch.setattr("sys.stdout", out)
    with guard_output():
        assert main._call(host.find("command", f"{distribution}/own"), [], host) == 0
    assert out.getvalue() == shown


def test_the_error_of_a_command_is_its_own_where_it_is_traced_or_the_disk_is_full(site: FakeSite) -> None:
    add_command(site, "acme", "own")
    row = site.host().find("command", "own")
    for code in (errno.ENOSPC, errno.EDQUOT):
        with pytest.raises(OSError, match="no"):
            main._call(row, [str(code)], site.host())
    with pytest.raises(OSError, match="no"):
        main._call(row, [str(errno.EPERM)], site.host(trace=True))
    with pytest.raises(BrokenPluginError, match=r"own: the plugin failed .PermissionError"):
        main._call(row, [str(errno.EPERM)], site.host())
    with pytest.raises(BrokenPipeError):
        main._call(row, [str(errno.EPIPE)], site.host())


def test_a_command_of_the_manager_runs_only_if_the_manager_is_proven_to_be_ours(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_command(site, "jackfield-manage", "trust")
    add_command(site, "acme", "trust")
    monkeypatch.setattr("jackfield.plugins._host.default_host", site.host)
    assert main._run_plugin_command("trust", []) == 0
    with pytest.raises(OSError, match="no"):
        main._run_plugin_command("trust", [str(errno.ENOSPC)])
    light = site.folder / "jackfield_manage_light.py"
    light.write_text(light.read_text() + "\n")
    with pytest.raises(PluginBlockedError, match="so it is not trusted to manage this installation"):
        main._run_plugin_command("trust", [])
    site.remove("jackfield-manage")
    with pytest.raises(
        ConfigError, match="Another package provides a command with the same name: jackfield acme/trust"
    ):
        main._run_plugin_command("trust", [])


def test_a_command_of_the_manager_names_others_of_its_name_only_if_there_are_any(site: FakeSite) -> None:
    text = "'jackfield trust' is not part of the core: commands that manage an installation are provided by "
    text += "jackfield-manage. To install it, run: pip install jackfield-manage"
    for offered, others in (
        ("other", ""),
        ("trust", ". Another package provides a command with the same name: jackfield trust-inc/trust"),
    ):
        site.add(f"{offered}-inc", {f"command.{offered}": "acme_light"})
        with pytest.raises(ConfigError) as caught:
            main._run_without_manager("trust", ["x"], site.host())
        assert str(caught.value) == text + others


def test_a_command_that_is_not_there_is_answered_with_those_that_are(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add("acme", {"command.own": "acme_light"})
    monkeypatch.setattr("jackfield.plugins._host.default_host", site.host)
    with pytest.raises(ConfigError, match=r"unknown command 'qqqq'; known: chat, own, plugins, run$"):
        main._run_plugin_command("qqqq", [])


@pytest.mark.skipif(os.name != "posix", reason="a folder in use cannot be deleted")
@pytest.mark.parametrize("failing", ["pathlib.Path.cwd()", "open('notes.md')"])
def test_a_command_that_fails_because_its_folder_was_deleted_says_so(
    site: FakeSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    module = f"""
import pathlib
from jackfield.plugins import CommandSpec, hook

@hook.commands
def commands():
    return [CommandSpec(name="own", target="acme_light:run")]

def run(arguments):
    {failing}
    open("notes.md")
"""
    site.add("acme", {"command.own": "acme_light"}, modules={"acme_light": module})
    host = site.host()
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    with pytest.raises(BrokenPluginError, match=r"the plugin failed .FileNotFoundError"):
        main._call(host.find("command", "own"), [], host)
    folder.rmdir()
    with pytest.raises(
        ConfigError, match=r"^the working directory was deleted: change to another directory and try again$"
    ):
        main._call(host.find("command", "own"), [], host)


@pytest.mark.parametrize(("code", "exit_code"), [(None, 0), (0, 0), (3, 3), ("text", 0)])
def test_the_exit_code_of_a_command_is_a_number(site: FakeSite, code: object, exit_code: int) -> None:
    module = f"""
from jackfield.plugins import CommandSpec, hook

@hook.commands
def commands():
    return [CommandSpec(name="own", target="acme_light:run")]

def run(arguments):
    return {code!r}
"""
    site.add("acme", {"command.own": "acme_light"}, modules={"acme_light": module})
    host = site.host()
    assert main._call(host.find("command", "own"), [], host) == exit_code


@pytest.mark.parametrize(
    ("is_terminal", "why_not", "doubt", "runs"),
    [(True, "", "", True), (False, "", "", False), (True, "is blocked", "", False), (True, "", "has no RECORD", False)],
)
def test_news_come_only_on_a_terminal_and_from_a_manager_that_is_proven_to_be_ours(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, why_not: str, doubt: str, runs: bool
) -> None:
    row, ran = Row("command", "news", "m", "jackfield-manage", "1", 1, "here"), list[object]()
    host: Any = SimpleNamespace(
        catalog=SimpleNamespace(named=lambda *_: [Row("command", "news", "m", "acme", "1", 1, "here"), row]),
        policy=SimpleNamespace(why_not=lambda _: why_not, unproven=lambda _: doubt),
        load_row=lambda one: lambda arguments: ran.append((one, arguments)),
    )
    monkeypatch.setattr("sys.stderr", SimpleNamespace(isatty=lambda: is_terminal, write=print, flush=lambda: None))
    main._show_news(host)
    assert ran == ([(row, [])] if runs else [])


@pytest.mark.parametrize("is_strict", [True, False])
def test_broken_news_end_a_command_only_if_the_settings_are_strict(
    monkeypatch: pytest.MonkeyPatch, is_strict: bool
) -> None:
    def fail(_: object) -> Any:
        raise BrokenPluginError("news are broken")

    row, told = Row("command", "news", "m", "jackfield-manage", "1", 1, "here"), list[str]()
    host: Any = SimpleNamespace(
        catalog=SimpleNamespace(named=lambda *_: [row]),
        policy=SimpleNamespace(why_not=lambda _: "", unproven=lambda _: ""),
        settings=SimpleNamespace(strict=is_strict),
        load_row=fail,
    )
    monkeypatch.setattr("sys.stderr", SimpleNamespace(isatty=lambda: True, write=told.append, flush=lambda: None))
    with pytest.raises(BrokenPluginError) if is_strict else nullcontext():
        main._show_news(host)
    assert told == ([] if is_strict else ["jackfield: news are broken\n"])


@pytest.mark.parametrize(
    ("component", "kind", "is_hinted"),
    [("tool.a", None, True), ("tool.a", "tool", False), ("llm.a", None, False), ("llm.a", "llm", False)],
)
def test_a_list_says_how_to_get_a_model_only_if_none_is_installed(
    site: FakeSite, capsys: pytest.CaptureFixture[str], component: str, kind: str | None, is_hinted: bool
) -> None:
    site.add("acme", {component: "acme_light"})
    host = site.host()
    _plugins.print_rows(host, [facts for _, facts in _plugins.row_facts(host, kind)], kind, as_json=False)
    assert ("install a backend first" in capsys.readouterr().out) is is_hinted


def test_processors_are_listed_as_enabled_or_not(site: FakeSite) -> None:
    site.add("acme", {"processor.a": "acme_light", "processor.b": "acme_light", "tool.c": "acme_light"})
    states = _plugins.states(site.host(enabled=("processor.a",)))
    assert {row.name: state for row, state in states.items()} == {"a": "enabled", "b": "not enabled", "c": "ready"}


def test_what_acts_by_default_is_listed_so_unless_its_name_is_enabled(site: FakeSite) -> None:
    site.add("jackfield-truncation", {"processor.truncation": "cut_light"}, modules={"cut_light": ""})
    site.add("acme", {"processor.truncation": "acme_light"}, modules={"acme_light": ""})

    def states(*enabled: str) -> dict[str, str]:
        return {row.distribution: state for row, state in _plugins.states(site.host(enabled=enabled)).items()}

    assert states() == {"jackfield-truncation": "acts by default", "acme": "not enabled"}
    enabled = states("processor.acme/truncation")
    assert enabled == {"jackfield-truncation": "not enabled", "acme": "enabled"}


def test_summaries_are_written_as_argparse_writes_help() -> None:
    assert main._help_line("Ask 5 % of all. Or not.") == "ask 5 %% of all. Or not"
    assert main._help_line("") == ""


def test_its_names_are_found_when_they_are_asked_for() -> None:
    assert dir(cli) == cli.__all__
    assert all(getattr(cli, name) is not None for name in cli.__all__)
    with pytest.raises(AttributeError, match=r"module 'jackfield\.cli' has no attribute 'nothing'"):
        cli.nothing  # noqa: B018 - it fails
