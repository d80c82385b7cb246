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
from jackfield_testkit.command_line import IMPORTED_BY_COMMANDS, CommandLine, bare_environment
from jackfield_testkit.forks import shared_forks
from jackfield_testkit.site import FakeSite

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


def test_a_name_that_has_left_the_core_says_what_to_install(core_python: str) -> None:
    command = [core_python, "-c", "from jackfield import RAGConfig"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert asked.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: jackfield.RAGConfig has moved to jackfield_documents.RAGConfig: "
        "pip install jackfield-documents"
    )


def test_help_and_a_star_take_the_names_that_are_there(core_python: str) -> None:
    program = "from jackfield import *; import jackfield, pydoc; pydoc.render_doc(jackfield); FnCallAgent, create_agent"
    asked = subprocess.run([core_python, "-c", program], capture_output=True, text=True, check=False)
    assert asked.stderr.splitlines()[-1] == "NameError: name 'create_agent' is not defined"


WITHOUT_LIBRARIES = """
import json
from jackfield import FnCallAgent
from jackfield.errors import ConfigError
from jackfield.jsontext import loads_lenient
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import cut_middle, cut_text

def count():
    'Count.'
    yield "one"

whole = json.dumps(list(range(1000)))
assert cut_text(whole, 200) == cut_middle(whole, 200), "JSON is cut as any text"
assert loads_lenient('{"a": 1}') == {"a": 1}
for attempt in (
    lambda: loads_lenient("{'a': 1}"),
    lambda: FnCallAgent(llm=ScriptedModel([]), store="sqlite"),
):
    try:
        print("no error:", attempt())
    except (ValueError, ConfigError) as error:
        print(error)
result = FnCallAgent([count], ScriptedModel([calls(("count", {})), answer("Done.")])).ask("Count.")
print(result.history[-2].content)
print(result.text)
"""


def test_what_needs_a_library_says_so_and_all_else_works(core_python: str) -> None:
    done = subprocess.run([core_python, "-c", WITHOUT_LIBRARIES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    slip, store, generator, text = done.stdout.splitlines()
    assert slip.startswith("not JSON: Expecting property name")
    assert store == "`store` needs jackfield-records: pip install jackfield-records"
    assert "pip install jackfield-agent-parts" in generator
    assert text == "Done."


@pytest.mark.parametrize("name", ["create_agent", "AgentConfig"])
def test_agents_by_name_need_a_library_and_say_so(core_python: str, name: str) -> None:
    command = [core_python, "-c", f"from jackfield import {name}"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert asked.stderr.splitlines()[-1] == (
        f"ModuleNotFoundError: jackfield.{name} needs jackfield-agent-parts: pip install jackfield-agent-parts"
    )


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("--version",), "jackfield 0."),
        (("--help",), "what is installed, and whether it may load"),
        ((), "what is installed, and whether it may load"),
        (("plugins",), "parrot"),
        (("plugins", "list"), "parrot"),
        (("plugins", "list", "--kind=tool"), "No plugins of the kind 'tool' are installed"),
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
    assert "of another package has the same name: jackfield evil/trust" in done.stderr
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
