"""The core without the commands that ask agents or manage an installation: it works, and says what has them."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

import jackfield
from jackfield.plugins import known_components
from jackfield_testkit.forks import shared_forks
from tests.support.command_line import IMPORTED_BY_COMMANDS, CommandLine, bare_environment
from tests.support.site import FakeSite

INSTALL = "pip install jackfield-manage"
PARROT = """
from jackfield.plugins import LLMSpec, hook
@hook.llms
def llms(): return [LLMSpec(name="parrot", target="acme_model:Parrot")]
"""
MODEL = """
from jackfield.events import ModelFinished, TextDelta
from jackfield.models import BaseChatModel

class Parrot(BaseChatModel):
    backend = "parrot"
    async def stream(self, request):
        yield TextDelta(request.messages[-1].get_text_content())
        yield ModelFinished("stop")
"""


@pytest.fixture(scope="session")
def core_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    return bare_environment(tmp_path_factory.mktemp("core"), ["jackfield"])


@pytest.fixture
def alone(core_python: str, tmp_path: Path, site: FakeSite) -> CommandLine:
    folder = tmp_path / "project"
    folder.mkdir()
    return CommandLine(core_python, folder, site.folder, shared_forks(IMPORTED_BY_COMMANDS, core_python))


@pytest.fixture
def parrot(site: FakeSite) -> str:
    site.add("acme", {"llm.parrot": "acme_light"}, modules={"acme_light": PARROT, "acme_model": MODEL})
    return "acme"


PROMISED = """
from jackfield import *
import jackfield, pydoc
from jackfield.errors import ConfigError
from jackfield.jsontext import loads_lenient
from jackfield.testing import ScriptedModel, answer, calls

def count():
    'Count.'
    yield "one"
    return "two"

pydoc.render_doc(jackfield)
assert loads_lenient("{'a': 1}") == {"a": 1}
assert call_tool(count) == "two"
assert ScriptedModel([answer("7")]).parse("How many?", int).value == 7
assert list(ScriptedModel([answer("Hello.")]).chat([{"role": "user", "content": "Hi."}]))[-1][0]["content"] == "Hello."
helper = create_agent("basic", llm=ScriptedModel([answer("Low.")]), name="helper", description="Knows tides.")
script = [calls(("count", {})), calls(("helper", {"message": "Tide?"})), answer("Done.")]
print(FnCallAgent([count, helper.as_tool()], ScriptedModel(script)).ask("Count.").text)
print(FnCallAgent(llm=ScriptedModel([calls(("transfer_to_helper", {}))]), name="a", handoffs=[helper]).name)
try:
    FnCallAgent(llm=ScriptedModel([]), store="sqlite")
except (ConfigError, LookupError) as error:
    print(error)
"""


def test_the_core_alone_does_all_that_its_api_promises(core_python: str) -> None:
    done = subprocess.run([core_python, "-c", PROMISED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text, name, store = done.stdout.splitlines()
    assert (text, name) == ("Done.", "a")
    assert "pip install jackfield-" in store


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("--version",), "jackfield 0."),
        (("--help",), "installed plugins and whether they may load"),
        ((), "installed plugins and whether they may load"),
        (("plugins",), "parrot"),
        (("plugins", "list"), "parrot"),
        (("plugins", "list", "--kind=tool"), "No plugins of kind 'tool' are installed"),
        (("plugins", "--help"), INSTALL),
        (("plugins", "doctor", "-h"), INSTALL),
        (("plugins", "list", "--help"), "--kind KIND"),
    ],
)
def test_what_the_core_does_itself_needs_no_other(
    alone: CommandLine, parrot: str, arguments: tuple[str, ...], shown: str
) -> None:
    done = alone(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert shown in done.stdout


def test_the_list_is_json_for_programs(alone: CommandLine, parrot: str) -> None:
    (row,) = json.loads(alone("plugins", "list", "--json", "--kind", "llm").stdout)["plugins"]
    assert (row["name"], row["distribution"], row["state"]) == ("parrot", "acme", "ready")


MANAGING = [
    *(["plugins", *words] for words in (["doctor"], ["info", "x"], ["list", "--long"], ["nonsense"], ["--json"])),
    *([name.partition(".")[2], "x"] for name, known in known_components().items() if known.distribution in INSTALL),
]


@pytest.mark.parametrize("arguments", MANAGING, ids=" ".join)
@pytest.mark.parametrize("safe", ["", "1"])
def test_a_command_of_the_manager_says_in_a_line_where_it_is(
    alone: CommandLine, arguments: list[str], safe: str
) -> None:
    done = alone(*arguments, JACKFIELD_SAFE=safe)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert f"jackfield {arguments[0]}" in done.stderr
    assert INSTALL in done.stderr


def test_no_other_package_is_run_for_the_manager(alone: CommandLine, site: FakeSite) -> None:
    source = """
from jackfield.plugins import CommandSpec, hook
@hook.commands
def commands(): return [CommandSpec(name="trust", target="evil:main", summary="Runs.")]
def main(arguments): print("evil ran")
"""
    site.add("evil", {"command.trust": "evil", "command.plugins": "evil"}, modules={"evil": source})
    done = alone("trust")
    assert (done.returncode, done.stdout) == (1, "")
    assert INSTALL in done.stderr
    assert "with the same name: jackfield evil/trust" in done.stderr
    assert alone("plugins", "doctor").stdout == ""
    assert alone("evil/trust").stdout == "evil ran\n"


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({"JACKFIELD_PLUGINS_BLOCK": "acme"}, "is blocked ('acme' in JACKFIELD_PLUGINS_BLOCK)"),
        ({"JACKFIELD_PLUGINS": "other"}, "is not in the list of allowed packages (JACKFIELD_PLUGINS)"),
        ({"JACKFIELD_SAFE": "1"}, "in safe mode"),
    ],
)
def test_rules_hold_and_are_explained(alone: CommandLine, parrot: str, rule: dict[str, str], told: str) -> None:
    assert told in alone("plugins", "list", **rule).stdout


@pytest.mark.parametrize("words", [["run", "-m", "parrot:m", "Hello"], ["run", "--help"], ["chat"]], ids=" ".join)
def test_a_command_that_asks_an_agent_says_in_a_line_where_it_is(
    alone: CommandLine, parrot: str, words: list[str]
) -> None:
    done = alone(*words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert f"jackfield {words[0]}" in done.stderr
    assert "pip install jackfield-terminal" in done.stderr


def test_a_safe_mode_says_why_there_is_no_command_of_a_plugin(alone: CommandLine, parrot: str) -> None:
    done = alone("run", "-m", "parrot:m", "Hello", JACKFIELD_SAFE="1")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)


def test_what_the_core_advises_to_type_leads_somewhere_without_the_manager(alone: CommandLine) -> None:
    """Every `jackfield …` in a text of the core is a command of the core, or of the manager, which is named then."""
    folder = Path(jackfield.__file__).parent
    advised = {
        match[1].strip()
        for path in folder.rglob("*.py")
        for match in re.finditer(r"jackfield ((?:plugins|trust|requirements|pipeline)\b(?: [a-z]+)?)", path.read_text())
    }
    assert {"plugins disable", "plugins search", "trust"} <= advised
    for typed in advised:
        done = alone(*shlex.split(typed))
        assert done.returncode == 0 or INSTALL in done.stderr, (typed, done.stderr)
