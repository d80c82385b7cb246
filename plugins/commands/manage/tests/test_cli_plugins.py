"""The commands about plugins, as a person runs them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield_manage.cli.plugins import _fact_lines

GUARD = """
from jackfield.plugins import LLMSpec, ProcessorSpec, ToolSpec, hook

@hook.processors
def processors():
    return [
        ProcessorSpec(name=name, target=f"acme_guard:{name.title()}", summary="Looks twice.")
        for name in ("guard", "watch")
    ]

@hook.llms
def llms():
    return [LLMSpec(name="parrot", target="acme_guard:Parrot", summary="Says it again.", secrets=("PARROT_KEY",))]
"""
GUARD_TARGETS = """
from jackfield.events import ModelFinished, TextDelta
from jackfield.models import BaseChatModel
from jackfield.request import ModelFacts
from jackfield.processors import Preprocessor

class Guard(Preprocessor):
    name, phase, after = "guard", "input", ("watch",)
    def prepare(self, request):
        return request

class Watch(Preprocessor):
    name, phase = "watch", "input"
    def prepare(self, request):
        return request

class Parrot(BaseChatModel):
    backend = "parrot"
    facts = ModelFacts()
    async def stream(self, request):
        yield TextDelta(request.messages[-1].get_text_content())
        yield ModelFinished("stop")
"""
COMMAND = """
from jackfield.plugins import CommandSpec, hook

@hook.commands
def commands():
    return [CommandSpec(name="greet", target="{module}:greet", summary="Greets.")]

def greet(arguments):
    print("{module} greets", *arguments)
    return 3
"""


@pytest.fixture
def guard(site: Any) -> str:
    """A distribution with a model and two processors, one of which wants to be inside of the other."""
    entries = {"processor.guard": "acme_light", "processor.watch": "acme_light", "llm.parrot": "acme_light"}
    site.add("acme-guard", entries, modules={"acme_light": GUARD, "acme_guard": GUARD_TARGETS})
    return "acme-guard"


def states(command_line: Any, distribution: str, **env: str) -> dict[str, str]:
    rows = json.loads(command_line("plugins", "list", "--json", **env).stdout)["plugins"]
    return {row["name"]: row["state"] for row in rows if row["distribution"] == distribution}


# --- policy on the command line ---


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--block", "acme-guard"), "is blocked"),
        (("--block=llm.parrot",), "is blocked"),
        (("--plugins", "other"), "not in the list of allowed packages"),
        (("--plugins=",), "not in the list of allowed packages"),
        (("--no-plugins",), "safe mode"),
    ],
    ids=" ".join,
)
def test_a_flag_before_the_command_keeps_a_plugin_from_loading(
    command_line: Any, guard: str, flags: tuple[str, ...], told: str
) -> None:
    done = command_line(*flags, "run", "-m", "parrot:m", "Hi")
    assert done.returncode == 1
    assert told in done.stderr
    assert command_line("run", "-m", "parrot:m", "Hi").stdout == "Hi\n"


def test_a_flag_wins_over_the_environment_but_takes_back_no_deny(command_line: Any, guard: str) -> None:
    run = ("run", "-m", "parrot:m", "Hi")
    assert command_line("--plugins", f"{guard},jackfield-terminal", *run, JACKFIELD_PLUGINS="other").stdout == "Hi\n"
    assert "is blocked" in command_line("--block", "other", *run, JACKFIELD_PLUGINS_BLOCK=guard).stderr


@pytest.mark.parametrize("arguments", [("--block",), ("--plugins",)])
def test_a_flag_without_its_value_says_so(command_line: Any, arguments: tuple[str, ...]) -> None:
    assert "needs a value" in command_line(*arguments).stderr


def test_a_misspelt_name_to_block_is_reported_and_in_strict_mode_an_error(command_line: Any, guard: str) -> None:
    run = ("run", "-m", "parrot:m", "Hi")
    text = "--block 'acme-gard' matches no installed plugin; did you mean 'acme-guard'"
    done = command_line("--block", "acme-gard", *run)
    assert (text in done.stderr, done.stdout) == (True, "Hi\n")
    done = command_line("--strict", "--block", "acme-gard", *run)
    assert (text in done.stderr, done.stdout, done.returncode) == (True, "", 1)
    assert "matches no" not in command_line(f"--block={guard},other", "--help").stderr
    assert "matches no" not in command_line(*run, JACKFIELD_PLUGINS_BLOCK="acme-gard").stderr


def test_tracing_tells_what_is_loaded_and_listing_loads_nothing(command_line: Any, guard: str) -> None:
    assert "acme-guard loads acme_light" in command_line("--trace", "run", "-m", "parrot:m", "Hi").stderr
    assert "loads acme" not in command_line("--trace", "plugins", "list", "--long").stderr
    assert "loads" not in command_line("--trace", "plugins", "list").stderr


# --- enable and disable ---


def test_a_processor_is_enabled_and_disabled_by_name(command_line: Any, guard: str) -> None:
    assert states(command_line, guard) == {"guard": "not enabled", "watch": "not enabled", "parrot": "ready"}
    done = command_line("plugins", "enable", "processor.guard")
    assert "processor acme-guard/guard acts in every run" in done.stdout
    assert states(command_line, guard) == {"guard": "enabled", "watch": "not enabled", "parrot": "ready"}
    done = command_line("plugins", "disable", "processor.guard")
    assert "acts only if it is named in code or enabled" in done.stdout
    assert states(command_line, guard)["guard"] == "not enabled"


def test_a_distribution_is_disabled_as_a_whole_and_enabled_again(command_line: Any, guard: str) -> None:
    assert command_line("plugins", "disable", guard).returncode == 0
    assert all("is blocked" in state for state in states(command_line, guard).values())
    assert command_line("plugins", "enable", "Acme_Guard").returncode == 0
    assert states(command_line, guard) == {"guard": "enabled", "watch": "enabled", "parrot": "ready"}


def test_enabling_what_a_stronger_rule_blocks_says_which(command_line: Any, guard: str) -> None:
    done = command_line("plugins", "enable", guard, JACKFIELD_PLUGINS_BLOCK=guard)
    assert done.returncode == 1
    assert "is blocked ('acme-guard' in JACKFIELD_PLUGINS_BLOCK)" in done.stdout


def test_what_was_enabled_can_be_disabled_when_it_has_gone(command_line: Any, guard: str, site: Any) -> None:
    command_line("plugins", "enable", "processor.guard")
    site.remove(guard)
    modules = {"other_light": GUARD.replace("acme_guard", "other_guard"), "other_guard": GUARD_TARGETS}
    site.add("acme-other", {"llm.parrot": "other_light"}, modules=modules)
    failed = command_line("run", "-m", "parrot:m", "Hi")
    assert "'processor.acme-guard/guard' is enabled" in failed.stderr
    assert command_line("plugins", "disable", "processor.acme-guard/guard").returncode == 0
    assert command_line("pipeline", "-m", "parrot:m").stderr == ""


def test_a_users_own_file_is_never_rewritten(command_line: Any, guard: str) -> None:
    command_line.config.mkdir(parents=True)
    own = command_line.config / "config.toml"
    own.write_text('# mine\nblock = ["other"]\n')
    command_line("plugins", "enable", guard)
    assert own.read_text() == '# mine\nblock = ["other"]\n'
    assert (command_line.config / "choices.toml").is_file()


def test_a_name_that_is_nothing_is_told_with_what_is_close(command_line: Any, guard: str) -> None:
    done = command_line("plugins", "enable", "acme-gard")
    assert done.returncode == 1
    assert "did you mean 'acme-guard'?" in done.stderr


# --- pipeline and requirements ---


def test_the_pipeline_shows_each_processor_and_the_reason_of_each_edge(command_line: Any, guard: str) -> None:
    command_line("plugins", "enable", guard)
    done = command_line("pipeline", "-m", "parrot:m")
    lines = [line.split(maxsplit=3) for line in done.stdout.splitlines()[1:4]]
    assert [line[:2] for line in lines] == [["1", "watch"], ["2", "guard"], ["3", "retry"]]
    assert "inside watch (guard declares after='watch')" in done.stdout
    assert "phase transport" in done.stdout
    facts = json.loads(command_line("pipeline", "-m", "parrot:m", "--json").stdout)
    assert [one["name"] for one in facts["pipeline"]] == ["watch", "guard", "retry"]
    assert facts["call_format"] == "native"


def test_the_pipeline_of_an_agents_file_is_that_of_its_model(command_line: Any, guard: str) -> None:
    (command_line.folder / "a.yaml").write_text("llm: {model: m, model_type: parrot, processors: [guard]}\n")
    assert "guard" in command_line("pipeline", "--trust", "a.yaml").stdout
    assert (
        "left out: processor 'acme-guard/watch' is blocked"
        in command_line(
            "--block", "processor.watch", "pipeline", "--trust", "a.yaml", JACKFIELD_PLUGINS_ENABLED="processor.watch"
        ).stdout
    )


def test_a_circle_of_processors_is_named_by_the_pipeline_and_by_the_doctor(command_line: Any, site: Any) -> None:
    source = GUARD_TARGETS.replace(
        'name, phase = "watch", "input"', 'name, phase, after = "watch", "input", ("guard",)'
    )
    entries = {"processor.guard": "acme_light", "processor.watch": "acme_light", "llm.parrot": "acme_light"}
    site.add("acme-guard", entries, modules={"acme_light": GUARD, "acme_guard": source})
    command_line("plugins", "enable", "acme-guard")
    done = command_line("pipeline", "-m", "parrot:m")
    assert done.returncode == 1
    assert "the processor order is circular: " in done.stderr
    found = command_line("plugins", "doctor")
    assert found.returncode == 1
    assert "the processor order is circular" in found.stdout


def test_requirements_are_lines_for_pip_and_what_is_unknown_is_an_error(command_line: Any, guard: str) -> None:
    (command_line.folder / "a.yaml").write_text("llm: parrot:m\nfunction_list: [code_interpreter]\n")
    done = command_line("requirements", "a.yaml")
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["jackfield"], ["acme-guard", "#", "llm.parrot"],
        ["jackfield-code-interpreter", "#", "tool.code_interpreter"],
    ]  # fmt: skip
    pinned = command_line("requirements", "--pin", "a.yaml")
    assert "acme-guard==1.0" in pinned.stdout
    assert "jackfield-code-interpreter is not installed here, so it is not pinned" in pinned.stderr
    assert pinned.returncode == 1
    (command_line.folder / "b.yaml").write_text("function_list: [nobody_has_it]\n")
    done = command_line("requirements", "b.yaml")
    assert done.returncode == 1
    assert "tool.nobody_has_it" in done.stderr


def test_an_agent_may_be_run_from_its_file_with_options_over_it(command_line: Any, guard: str) -> None:
    (command_line.folder / "a.yaml").write_text("llm: parrot:m\nlimits: {turns: 3}\n")
    assert command_line("run", "--trust", "-C", "a.yaml", "Hi").stdout == "Hi\n"
    assert "no llm 'absent'" in command_line("run", "--trust", "-C", "a.yaml", "-m", "absent:m", "Hi").stderr


# --- info and search ---


def test_info_shows_descriptor_settings_and_state_and_survives_a_crash(
    command_line: Any, guard: str, site: Any
) -> None:
    said = command_line("plugins", "info", guard).stdout
    assert "PARROT_KEY (not set)" in said
    assert "state: not enabled" in said
    site.add("acme-crash", {"tool.boom": "boom_light"}, modules={"boom_light": "import os; os.abort()"})
    done = command_line("plugins", "info", "acme-crash")
    assert done.returncode == 0
    assert "state: broken" in done.stdout
    assert "by signal 6" in done.stdout


def test_search_finds_what_is_known_installed_or_not(command_line: Any) -> None:
    for words in (("documents", "agent"), ("AGENT", "Documents")):
        assert "jackfield-assistant" in command_line("plugins", "search", *words).stdout
    assert command_line("plugins", "search", "no-such-thing").returncode == 1
    assert len(json.loads(command_line("plugins", "search", "--json").stdout)) > 10


def test_search_ends_with_the_command_that_installs_what_is_missing(command_line: Any, site: Any) -> None:
    site.add("jackfield-pdf", {"parser.pdf": "nowhere"})
    lines = command_line("plugins", "search", "pdfs").stdout.splitlines()
    assert "To install, run: jackfield plugins install jackfield-ocr" in lines
    shown = command_line("plugins", "search", "parser.pdf").stdout
    assert "installed" in shown
    assert "To install" not in shown


def test_a_schema_is_shown_with_a_line_for_each_property() -> None:
    properties = {
        "a": {"type": "integer", "default": 3, "description": "A."},
        "b": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "c": True,
    }
    assert _fact_lines("settings", {"properties": properties, "required": ["b"]}) == [
        "settings:",
        "  a (integer = 3): A.",
        "  b (string or null, required)",
        "  c (any)",
    ]
    assert _fact_lines("needs", ["a", "b"]) == ["needs: a, b"]
    assert _fact_lines("remarks", {"x": 1}) == ['remarks: {"x": 1}']


def test_info_shows_what_the_authors_say_of_their_contract_tests(command_line: Any, site: Any) -> None:
    site.add("acme", {"tool.x": "acme_pkg.light"}, modules={"acme_pkg.__init__": "", "acme_pkg.light": ""})
    tests = {"test_a": {"outcome": "passed"}, "test_b": {"outcome": "xfailed", "reason": "no seed"}}
    record = {
        "distribution": "acme", "version": "0.9", "kit": "0.1.0", "core": "0.1.0", "outcome": "passed",
        "suites": [{"suite": "ToolSuite", "tests": tests}],
    }  # fmt: skip
    (site.folder / "acme_pkg/conformance.json").write_text(json.dumps(record))
    said = command_line("plugins", "info", "acme").stdout
    assert "passed (1 passed, 1 xfailed), run by its authors with jackfield-testkit 0.1.0" in said
    assert "for version 0.9 instead of this one" in said
    (site.folder / "acme_pkg/conformance.json").write_text("[" * 100_000)
    assert "conformance" not in command_line("plugins", "info", "acme").stdout


# --- commands of plugins ---


def test_a_command_that_two_offer_is_run_by_its_address_and_breaks_no_other(command_line: Any, site: Any) -> None:
    for name in ("one", "two"):
        site.add(name, {"command.greet": f"{name}_cli"}, modules={f"{name}_cli": COMMAND.format(module=f"{name}_cli")})
    done = command_line("greet", "you")
    assert done.returncode == 1
    assert "use 'one/greet' or 'two/greet'" in done.stderr
    done = command_line("two/greet", "you", "--loud")
    assert (done.returncode, done.stdout) == (3, "two_cli greets you --loud\n")
    assert command_line("--help").returncode == 0
    assert command_line("plugins", "list").returncode == 0


def test_a_command_that_fails_is_told_in_a_line_and_with_tracing_in_full(command_line: Any, site: Any) -> None:
    source = COMMAND.format(module="acme_cli").replace("    return 3", "    return 1 / 0")
    site.add("acme", {"command.greet": "acme_cli"}, modules={"acme_cli": source})
    done = command_line("greet")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "greet: the plugin failed (ZeroDivisionError: division by zero)" in done.stderr
    assert "Traceback" in command_line("--trace", "greet").stderr


def test_no_plugin_takes_the_name_of_a_command_of_the_core(command_line: Any, site: Any) -> None:
    site.add("acme", {"command.plugins": "acme_cli"}, modules={"acme_cli": COMMAND.format(module="acme_cli")})
    assert "acme_cli greets" not in command_line("plugins", "list").stdout


def test_a_command_that_may_not_load_says_why(command_line: Any, site: Any) -> None:
    site.add("acme", {"command.greet": "acme_cli"}, modules={"acme_cli": COMMAND.format(module="acme_cli")})
    done = command_line("--plugins", "none-at-all", "greet")
    assert (done.returncode, done.stdout) == (1, "")
    assert "not in the list of allowed packages" in done.stderr


# --- consent ---


def ask(open_terminal: Callable[..., Any], command_line: Any, *arguments: str) -> Any:
    allowed = {"JACKFIELD_PLUGINS": "acme-guard" if arguments[0] == "plugins" else "acme-guard,jackfield-terminal"}
    return open_terminal(list(arguments), command_line.folder, {**command_line.env, **allowed})


def test_the_first_command_asks_once_and_remembers(
    command_line: Any, guard: str, open_terminal: Callable[..., Any]
) -> None:
    terminal = ask(open_terminal, command_line, "plugins", "list")
    terminal.wait_for("jackfield: newly installed: acme-guard 1.0\r\n")
    terminal.wait_for("  reads PARROT_KEY; other effects are unknown until loaded; ")
    terminal.wait_for("Allow it to be loaded by name? [Y]es, [n]o, [d]etails: ")
    assert terminal.seen == "", "it is asked in three lines"
    terminal.type("d\n")
    terminal.wait_for("llm.parrot: receives conversations when used as the model; reads PARROT_KEY")
    terminal.wait_for("[d]etails: ")
    terminal.type("\n")
    terminal.wait_for("parrot")
    assert terminal.end() == 0
    terminal = ask(open_terminal, command_line, "plugins", "list")
    terminal.wait_for("kind")
    assert "newly installed" not in terminal.seen
    assert terminal.end() == 0


@pytest.mark.parametrize(
    "words",
    [
        "plugins",
        "plugins search pdf",
        "plugins info parrot",
        "plugins doctor acme-guard",
        "news",
        "pipeline -m parrot:m",
        "requirements agent.yaml",
    ],
)
def test_every_command_that_shows_what_is_installed_asks_first(
    words: str, command_line: Any, guard: str, open_terminal: Callable[..., Any]
) -> None:
    (command_line.folder / "agent.yaml").write_text("agent: fncall\n")
    env = {**command_line.env, "JACKFIELD_PLUGINS": guard}
    terminal = open_terminal(words.split(), command_line.folder, env)
    terminal.wait_for("Allow it to be loaded by name? [Y]es, [n]o, [d]etails: ")
    assert terminal.before.startswith("jackfield: newly installed: acme-guard 1.0\r\n")
    terminal.type("y\n")
    assert terminal.end() == 0, terminal.seen


def test_all_that_was_installed_together_is_asked_about_once_in_three_lines_and_a_no_says_how_to_change_it(
    command_line: Any, site: Any, open_terminal: Callable[..., Any]
) -> None:
    names = [f"acme-{number:02}" for number in range(12)]
    for name in names:
        site.add_tools(name, f"tool-{name}")
    env = {**command_line.env, "JACKFIELD_PLUGINS": ",".join(names)}
    terminal = open_terminal(["plugins", "list"], command_line.folder, env)
    terminal.wait_for("Allow them to be loaded by name? [Y]es, [n]o, [c]hoose, [d]etails: ")
    first, second = terminal.before.splitlines()
    assert first.startswith("jackfield: newly installed (12): acme-00 1.0, acme-01 1.0, ")
    assert second.startswith("  other effects are unknown until loaded; offers tool.tool-a")
    assert max(map(len, (first, second))) < 100, "each fits into a line of the terminal"
    terminal.type("n\n")
    terminal.wait_for(f"To undo this, run: jackfield plugins enable {' '.join(names)}\r\n")
    assert terminal.end() == 0
    assert command_line("plugins", "enable", *names).returncode == 0


def test_what_is_refused_is_blocked_everywhere_until_it_is_enabled(
    command_line: Any, guard: str, open_terminal: Callable[..., Any]
) -> None:
    terminal = ask(open_terminal, command_line, "run", "-m", "parrot:m", "Hi")
    terminal.wait_for("Allow them to be loaded by name? [Y]es, [n]o, [c]hoose, [d]etails: ")
    terminal.type("what?\n")
    terminal.wait_for("[d]etails: ")
    terminal.type("c\n")
    terminal.wait_for("Allow acme-guard to be loaded by name? [Y/n] ")
    terminal.type("n\n")
    terminal.wait_for("Allow jackfield-terminal to be loaded by name? [Y/n] ")
    terminal.type("y\n")
    terminal.wait_for("blocked acme-guard in ")
    terminal.wait_for("To undo this, run: jackfield plugins enable acme-guard\r\n")
    terminal.wait_for("is blocked")
    assert terminal.end() == 1
    assert "choices.toml" in command_line("run", "-m", "parrot:m", "Hi").stderr
    command_line("plugins", "enable", guard)
    assert command_line("run", "-m", "parrot:m", "Hi").stdout == "Hi\n"


def test_what_has_gone_is_told_and_nothing_is_asked(
    command_line: Any, guard: str, site: Any, open_terminal: Callable[..., Any]
) -> None:
    terminal = ask(open_terminal, command_line, "plugins", "list")
    terminal.wait_for("[d]etails: ")
    terminal.type("y\n")
    assert terminal.end() == 0
    site.remove(guard)
    terminal = ask(open_terminal, command_line, "plugins", "list")
    terminal.wait_for("acme-guard is no longer installed")
    terminal.wait_for("kind")
    assert "May " not in terminal.before
    assert terminal.end() == 0


def test_who_asks_for_help_is_not_asked_anything(
    command_line: Any, guard: str, open_terminal: Callable[..., Any]
) -> None:
    terminal = ask(open_terminal, command_line, "run", "--help")
    terminal.wait_for("usage: jackfield run")
    assert terminal.before == ""
    assert terminal.end() == 0


def test_leaving_without_an_answer_decides_nothing(
    command_line: Any, guard: str, open_terminal: Callable[..., Any]
) -> None:
    terminal = ask(open_terminal, command_line, "plugins", "list")
    terminal.wait_for("[d]etails: ")
    os.kill(terminal.pid, signal.SIGINT)
    assert terminal.end() == 130
    assert not Path(command_line.env["XDG_STATE_HOME"]).exists()
    assert not command_line.config.exists()


def test_where_nobody_sits_nothing_is_told_and_policy_alone_counts(command_line: Any, guard: str) -> None:
    done = command_line("run", "--quiet", "-m", "parrot:m", "Hi")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hi\n", "")
    assert not Path(command_line.env["XDG_STATE_HOME"]).exists()
