"""The manager itself: rules do not stop it, nobody else is taken for it, and it is not removed by the way."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield.defaults import MANAGER
from jackfield.errors import PluginError
from jackfield.plugins import scan
from jackfield_manage.installing.lock import Lock
from jackfield_manage.installing.packages import installed_plugin
from jackfield_manage.installing.sync import InstalledPlugin, State, plan
from jackfield_manage.judging.news import news

EVERY_COMMAND = [
    ["plugins", "list", "--long"], ["plugins", "info", "acme"], ["plugins", "search", "pdf"], ["plugins", "doctor"],
    ["plugins", "disable", "acme"], ["plugins", "enable", "acme"], ["plugins", "install", "--dry-run", "openai"],
    ["plugins", "uninstall", "--dry-run", "acme"], ["plugins", "freeze", "-o", "-"], ["plugins", "why", "acme"],
    ["requirements", "agent.yaml"], ["trust"], ["news"],
]  # fmt: skip
RULES = {
    "safe mode": {"JACKFIELD_SAFE": "1"},
    "a list without it": {"JACKFIELD_PLUGINS": "other"},
    "an empty list": {"JACKFIELD_PLUGINS": ""},
    "a block of a neighbour": {"JACKFIELD_PLUGINS_BLOCK": "acme"},
}
FORGED = """
from jackfield.plugins import CommandSpec, hook
@hook.commands
def commands():
    return [CommandSpec(name, target="jackfield_manage:main") for name in ("plugins", "trust", "news")]
def main(arguments): print("it ran")
"""


@pytest.fixture(autouse=True)
def _acme(request: pytest.FixtureRequest) -> None:
    if "command_line" in request.fixturenames:
        site, folder = request.getfixturevalue("site"), request.getfixturevalue("command_line").folder
        site.add_tools("acme", "x")
        (folder / "agent.yaml").write_text("llm: openai:m\n")


@pytest.mark.parametrize("arguments", EVERY_COMMAND, ids=" ".join)
def test_all_of_its_commands_work_where_nothing_else_may_load(command_line: Any, uv: str, arguments: list[str]) -> None:
    path = os.pathsep.join([str(Path(uv).parent), os.environ["PATH"]])
    done = command_line(*arguments, JACKFIELD_SAFE="1", JACKFIELD_PLUGINS="", PATH=path)
    assert "Traceback" not in done.stderr
    # `enable` says by its code that a stronger rule still holds.
    assert done.returncode == (1 if arguments[:2] == ["plugins", "enable"] else 0), done.stderr


@pytest.mark.parametrize("rule", RULES)
def test_rules_about_others_do_not_stop_it(command_line: Any, rule: str) -> None:
    done = command_line("plugins", "doctor", "acme", **RULES[rule])
    assert (done.returncode, done.stderr) == (0, "")
    assert "blocked" in done.stdout
    assert done.stdout.endswith("1 package, none with a fault\n")


def test_the_list_and_why_say_that_it_may_load_where_it_does(command_line: Any) -> None:
    rows = [line for line in command_line("plugins", "list", JACKFIELD_SAFE="1").stdout.splitlines() if MANAGER in line]
    assert rows
    assert all(line.endswith("ready") for line in rows)
    assert "command.trust may load." in command_line("plugins", "why", MANAGER, JACKFIELD_PLUGINS="").stdout


@pytest.mark.parametrize("arguments", [["plugins", "doctor"], ["plugins", "--help"], ["trust"], ["requirements", "a"]])
@pytest.mark.parametrize("safe", ["", "1"])
def test_a_rule_that_names_it_stops_it_and_is_named(command_line: Any, arguments: list[str], safe: str) -> None:
    command_line.config.mkdir(parents=True)
    own = command_line.config / "config.toml"
    own.write_text(f'block = ["{MANAGER}"]\n')
    done = command_line(*arguments, JACKFIELD_SAFE=safe)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert f"is blocked ('{MANAGER}' in {own})" in done.stderr
    listed = command_line("plugins", "list", JACKFIELD_SAFE=safe)
    assert f"is blocked ('{MANAGER}' in {own})" in listed.stdout


def test_a_project_may_block_it(command_line: Any) -> None:
    (command_line.folder / "pyproject.toml").write_text(f'[tool.jackfield]\nblock = ["{MANAGER}"]\n')
    assert "is blocked" in command_line("plugins", "doctor").stderr


@pytest.mark.parametrize("rule", [{}, *RULES.values()])
def test_a_forged_one_is_not_taken_for_it(command_line: Any, site: Any, rule: dict[str, str]) -> None:
    # Before it on the path, so that it hides the real one.
    site.add(MANAGER, {f"command.{name}": "jackfield_manage" for name in ("plugins", "trust", "news")},
             modules={"jackfield_manage": FORGED})  # fmt: skip
    (site.folder / "jackfield_manage.py").write_text(FORGED + "# not what its RECORD says\n")
    for arguments in (["plugins", "doctor"], ["trust"]):
        done = command_line(*arguments, **rule)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert f"pip install --force-reinstall {MANAGER}" in done.stderr


def test_a_forged_one_does_not_tell_the_news(command_line: Any, site: Any, open_terminal: Callable[..., Any]) -> None:
    site.add(MANAGER, {"command.news": "jackfield_manage"}, modules={"jackfield_manage": FORGED})
    (site.folder / "jackfield_manage.py").write_text(FORGED + "# not what its RECORD says\n")
    terminal = open_terminal(["plugins", "list"], command_line.folder, command_line.env)
    assert terminal.end() == 0
    assert "kind" in terminal.seen
    assert "it ran" not in terminal.seen


def test_a_broken_one_costs_its_own_commands_only(
    command_line: Any, site: Any, open_terminal: Callable[..., Any]
) -> None:
    entries = {f"command.{name}": "jackfield_manage" for name in ("plugins", "news")}
    site.add(MANAGER, entries, modules={"jackfield_manage": "import not_there"})
    done = command_line("plugins", "doctor")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "not_there" in done.stderr
    terminal = open_terminal(["plugins", "list"], command_line.folder, command_line.env)
    assert terminal.end() == 0
    assert "needs the package 'not_there'" in terminal.seen
    assert "acme" in terminal.seen


def test_another_that_offers_commands_of_the_same_names_is_no_obstacle(command_line: Any, site: Any) -> None:
    site.add("evil", {"command.plugins": "evil", "command.trust": "evil"}, modules={"evil": "raise SystemExit(9)"})
    assert command_line("trust").returncode == 0
    assert "ambiguous" in command_line("plugins", "doctor", "evil").stdout


def test_it_is_not_removed_by_the_way(site: Any) -> None:
    site.add(MANAGER, {"command.trust": "jackfield_manage"})
    catalog = scan([str(site.folder)])
    assert installed_plugin(MANAGER, catalog) == MANAGER
    with pytest.raises(PluginError, match=f"jackfield plugins uninstall {MANAGER}"):
        installed_plugin("trust", catalog)
    with pytest.raises(PluginError, match=f"jackfield plugins uninstall {MANAGER}"):
        installed_plugin("command.trust", catalog)


def test_whoever_removes_it_by_its_name_is_told_what_goes_with_it(command_line: Any, uv: str) -> None:
    path = os.pathsep.join([str(Path(uv).parent), os.environ["PATH"]])
    done = command_line("plugins", "uninstall", "--dry-run", MANAGER, PATH=path)
    assert done.returncode == 0
    assert f"to get them back, run: pip install {MANAGER}" in done.stderr
    assert MANAGER in done.stdout


def test_restoring_a_lock_that_lacks_it_exactly_leaves_it() -> None:
    lock = Lock("0.1.0", "", sys.platform)
    here = {name: InstalledPlugin("1.0") for name in (MANAGER, "acme")}
    state = State(InstalledPlugin(lock.core), here, dict.fromkeys(here, "1.0"), lock.policy, {})
    assert plan(lock, state, exact=True).remove == ("acme",)
    assert plan(lock, state).keep == ("acme",)


def test_no_command_disables_what_would_have_to_enable_it(command_line: Any) -> None:
    done = command_line("plugins", "disable", MANAGER)
    assert done.returncode == 1
    assert f'block = ["{MANAGER}"]' in done.stderr
    assert command_line("plugins", "why", MANAGER).returncode == 0


def test_it_does_not_ask_about_itself(site: Any) -> None:
    site.add(MANAGER, {"command.news": "jackfield_manage"})
    site.add_tools("acme", "x")
    assert [one.distribution for one in news(site.host(), {}).newcomers] == ["acme"]
