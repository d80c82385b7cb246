"""The command line, as a person runs it: in a process of its own, with plugins on the path."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from jackfield.cli import Parser
from tests.support.site import FakeSite

Install = Callable[..., None]

SCRIPTED_BACKEND = """
from jackfield.models import BaseChatModel

class Echo(BaseChatModel):
    backend = "echo"
"""
BACKEND_HOOK = """
from jackfield.plugins import LLMSpec, ToolSpec, hook

@hook.llms
def llms():
    return [LLMSpec(name="echo", target="echo_plugin.backend:Echo", summary="says it again", secrets=("ECHO_KEY",))]

@hook.tools
def tools():
    return [ToolSpec(name="clock", target="echo_plugin.clock:Clock", description="Tells the time.")]
"""
CLOCK = """
from jackfield.tools import BaseTool

class Clock(BaseTool):
    def call(self, params, *, context=None):
        return "noon"
"""


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """Put a distribution on the path: `install("name", {"llm.x": "module"}, **{"package/file.py": source})`."""

    def put(
        name: str, entry_points: Mapping[str, str], files: Mapping[str, str], *, group: str = "jackfield.v1"
    ) -> None:
        site = FakeSite(tmp_path)
        modules = {file.removesuffix(".py").replace("/", "."): source for file, source in files.items()}
        site.add(name, entry_points, group=group, modules=modules)

    return put


@pytest.fixture
def echo(install: Install) -> None:
    files = {
        "echo_plugin/__init__.py": "",
        "echo_plugin/plugin.py": BACKEND_HOOK,
        "echo_plugin/backend.py": SCRIPTED_BACKEND,
        "echo_plugin/clock.py": CLOCK,
    }
    install("acme-echo", {"llm.echo": "echo_plugin.plugin", "tool.clock": "echo_plugin.plugin"}, files)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("JACKFIELD")}
    return {
        **kept,
        "PYTHONPATH": str(tmp_path),
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "none"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }


@pytest.fixture
def jackfield(
    bare_python: str, tmp_path: Path, environment: dict[str, str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [bare_python, "-m", "jackfield", *arguments],
            cwd=tmp_path,
            env={**environment, **more},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


Jackfield = Callable[..., subprocess.CompletedProcess[str]]


def only(text: str, name: str) -> list[str]:
    return [line for line in text.splitlines() if name in line]


def test_a_wrong_option_says_where_help_is(jackfield: Jackfield) -> None:
    done = jackfield("plugins", "lost")
    assert done.returncode == 2
    assert "Try: jackfield plugins --help" in done.stderr


@pytest.mark.usefixtures("echo")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [(("plugins", "info", "ecko"), "did you mean"), (("plubins",), "did you mean 'jackfield plugins'?")],
)
def test_a_mistake_is_one_clear_line(jackfield: Jackfield, arguments: tuple[str, ...], told: str) -> None:
    done = jackfield(*arguments)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert told in done.stderr


def test_a_list_imports_nothing_that_it_does_not_need(environment: dict[str, str]) -> None:
    """Most of the time of a list goes into imports."""
    program = """
import gc, sys
from jackfield.cli.main import main
assert main(["plugins", "list"]) == 0
heavy = {"jackfield.descriptors", "jackfield.events", "pluggy", "pydantic", "msgspec", "importlib.metadata"}
print(*sorted(heavy & set(sys.modules)), gc.isenabled(), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "True", "it left the collector off, or imported what it does not need"


@pytest.mark.usefixtures("echo")
def test_a_list_of_one_kind(jackfield: Jackfield) -> None:
    assert "acme-echo" in jackfield("plugins", "list", "--kind", "llm").stdout
    assert "acme-echo" not in jackfield("plugins", "list", "--kind", "agent").stdout
    assert jackfield("plugins", "list", "--kind", "tol").returncode == 2


def test_version_and_help_work_whatever_is_installed(jackfield: Jackfield, install: Install) -> None:
    install("acme-bad", {"llm.bad": "bad_plugin"}, {"bad_plugin.py": "raise SystemExit('no')"})
    assert jackfield("--version").stdout.startswith("jackfield ")
    assert "COMMAND" in jackfield("--help").stdout


@pytest.mark.usefixtures("echo")
def test_list_names_all_and_loads_none(jackfield: Jackfield, install: Install, tmp_path: Path) -> None:
    trap = f"open({str(tmp_path / 'loaded')!r}, 'w')"
    install("acme-trap", {"tool.trap": "trap_plugin"}, {"trap_plugin.py": trap})
    done = jackfield("plugins", "list")
    assert only(done.stdout, "trap")[0].split()[:5] == ["tool", "trap", "acme-trap", "1.0", "ready"]
    assert not (tmp_path / "loaded").exists()
    assert {row["name"] for row in json.loads(jackfield("plugins", "list", "--json").stdout)["plugins"]} >= {
        "echo",
        "trap",
    }
    assert "says it again" in jackfield("plugins", "list", "--long").stdout


@pytest.mark.usefixtures("echo")
def test_a_blocked_plugin_is_listed_as_such_and_never_loaded(jackfield: Jackfield) -> None:
    done = jackfield("plugins", "list", JACKFIELD_PLUGINS_BLOCK="acme-echo")
    assert "is blocked" in only(done.stdout, "acme-echo")[0]


@pytest.mark.usefixtures("echo")
def test_info_says_what_a_plugin_is_and_whether_its_key_is_set_but_never_the_key(jackfield: Jackfield) -> None:
    said = jackfield("plugins", "info", "acme-echo", ECHO_KEY="sk-SECRET").stdout
    assert "echo_plugin.backend:Echo" in said
    assert "ECHO_KEY (set)" in said
    assert "sk-SECRET" not in said


def test_doctor_examines_each_plugin_apart_and_says_what_to_do(
    jackfield: Jackfield, install: Install, echo: None
) -> None:
    install("acme-raises", {"tool.a": "raises_plugin"}, {"raises_plugin.py": "import nothing_of_that_name"})
    install("acme-exits", {"tool.b": "exits_plugin"}, {"exits_plugin.py": "import os; os._exit(7)"})
    install("acme-crashes", {"tool.c": "crash_plugin"}, {"crash_plugin.py": "import ctypes; ctypes.string_at(0)"})
    install("acme-prints", {"llm.p": "prints_plugin"}, {"prints_plugin.py": BACKEND_HOOK})
    install("acme-old", {"tool.d": "old_plugin"}, {"old_plugin.py": "raise RuntimeError"}, group="jackfield.v0")
    install("acme-clash", {"tool.clock": "clash_plugin"}, {"clash_plugin.py": BACKEND_HOOK})
    done = jackfield("plugins", "doctor", "--json")
    found = {row["distribution"]: row for row in json.loads(done.stdout)}
    assert done.returncode == 1
    assert found["acme-raises"]["status"] == "broken"
    assert "nothing_of_that_name" in found["acme-raises"]["why"]
    assert "code 7" in found["acme-exits"]["why"]
    assert "by signal 11" in found["acme-crashes"]["why"]
    assert "does not provide llm.p" in " ".join((found["acme-prints"]["why"], *found["acme-prints"]["more"]))
    assert found["acme-old"]["status"] == "incompatible"
    assert found["acme-clash"]["status"] == found["acme-echo"]["status"] == "ambiguous"
    assert all(row["fix"] for row in found.values() if row["status"] != "ok")


@pytest.mark.usefixtures("echo")
def test_doctor_is_content_with_a_healthy_house(jackfield: Jackfield) -> None:
    done = jackfield("plugins", "doctor")
    assert done.returncode == 0
    assert only(done.stdout, "acme-echo")[0].split()[:3] == ["acme-echo", "1.0", "ok"]
    assert "not set: ECHO_KEY" in done.stdout


def test_a_plugin_adds_a_command(jackfield: Jackfield, install: Install) -> None:
    hook = """
from jackfield.plugins import CommandSpec, hook

@hook.commands
def commands():
    return [CommandSpec(name="greet", target="greet_plugin:greet")]

def greet(arguments):
    print("hello", *arguments)
    return 3
"""
    install("acme-greet", {"command.greet": "greet_plugin"}, {"greet_plugin.py": hook})
    done = jackfield("greet", "you", "--loud")
    assert (done.returncode, done.stdout) == (3, "hello you --loud\n")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--sesion=a"], "; did you mean --session?\n"),
        (["list", "--jsn"], "; did you mean --json?\n"),
        (["--sesion=a", "--contineu"], "; did you mean --session and --continue?\n"),
        (["--xyzzy"], "unrecognized arguments: --xyzzy\n"),
        (["list", "two"], "unrecognized arguments: two\n"),
    ],
)
def test_a_misspelt_option_is_answered_with_the_nearest_one(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = Parser(prog="jackfield acme")
    parser.add_argument("--session")
    parser.add_argument("--continue", action="store_true")
    parser.add_subparsers(parser_class=Parser).add_parser("list").add_argument("--json", action="store_true")
    with pytest.raises(SystemExit):
        parser.parse_args(words)
    assert hint in capsys.readouterr().err
