"""`jackfield completion SHELL`: print a script that completes commands, options, agent kinds and models.

The script contains all names except those of models, so completion does not start Python. Model names are read from the
file written by `jackfield models list` (`jackfield.settings.models_path`).
"""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from string import Template

from jackfield.cli import Parser
from jackfield.cli.main import main as run_jackfield
from jackfield.plugins import PluginHost, Row, default_host, known_components
from jackfield.settings import models_path

_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
_ACTION = re.compile(r"^ {4}([a-z][a-z0-9-]*)(?: |$)", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_AFTER_MODEL = ("-m", "--model")
_AFTER_AGENT = ("--agent",)


@dataclass(frozen=True, slots=True)
class Completions:
    """The words to complete for one command.

    Attributes:
        options: The command's long options.
        actions: The command's actions, such as `list`, each with its options.
    """

    options: tuple[str, ...] = ()
    actions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def main(arguments: Sequence[str]) -> int:
    """Run `jackfield completion SHELL` and return its exit code."""
    parser = Parser(
        prog="jackfield completion",
        description="Print the completion script for a shell. Generate the script again after installing plugins.",
        epilog="Save the script and load it when the shell starts:\n"
        "  jackfield completion bash > ~/.jackfield.bash\n"
        "  echo 'source ~/.jackfield.bash' >> ~/.bashrc",
    )
    parser.add_argument("shell", choices=tuple(_SCRIPTS), metavar="SHELL", help=", ".join(_SCRIPTS))
    shell = parser.parse_args(arguments).shell
    host = default_host()
    from jackfield.agents import CORE_KINDS  # imports the models

    agents = [name for name in (*CORE_KINDS, *host.names("agent")) if _NAME.fullmatch(name)]
    print(_SCRIPTS[shell](find_completions(host), agents), end="")
    return 0


def find_completions(host: PluginHost) -> dict[str, Completions]:
    """Return the words to complete for every installed command, by name; '' is `jackfield` itself.

    The words are taken from help texts. A command that is not proven to be ours is not run, so only its name is known.
    """
    commands = {"": Completions(_options_in(_help_of()))}
    for name in sorted({"plugins", *host.names("command")}):
        if not _NAME.fullmatch(name):
            continue
        if not all(_is_ours(row, host) for row in host.policy.rows("command") if row.name == name):
            commands[name] = Completions()
            continue
        text = _help_of(name)
        actions = {action: _options_in(_help_of(name, action)) for action in _ACTION.findall(text)}
        commands[name] = Completions(_options_in(text), actions)
    return commands


def _is_ours(row: Row, host: PluginHost) -> bool:
    known = known_components().get(f"command.{row.name}")
    is_known = known is not None and known.distribution == row.distribution
    return is_known and not (host.policy.unproven(row) or host.policy.why_not(row))


def _help_of(*words: str) -> str:
    text = io.StringIO()
    try:
        with redirect_stdout(text):
            run_jackfield([*words, "--help"])
    except SystemExit:
        pass
    return text.getvalue()


def _options_in(text: str) -> tuple[str, ...]:
    return tuple(sorted({"--help", *_OPTION.findall(text)}))


def _cases(commands: Mapping[str, Completions]) -> list[tuple[str, str]]:
    """Return the words that may follow a command or an action, by `COMMAND` or `COMMAND/ACTION`."""
    cases: list[tuple[str, str]] = []
    for name, command in commands.items():
        first = [other for other in commands if other] if not name else list(command.actions)
        cases.append((name, " ".join([*first, *command.options])))
        cases += [(f"{name}/{action}", " ".join(options)) for action, options in command.actions.items()]
    return cases


def _script(template: str, commands: Mapping[str, Completions], agents: Sequence[str]) -> str:
    cases = [f"        {shlex.quote(key)}) candidates={shlex.quote(words)} ;;" for key, words in _cases(commands)]
    names = [f"{name}/{action}" for name, command in commands.items() for action in command.actions]
    return Template(template).substitute(
        cases="\n".join(cases),
        commands=" ".join(name for name in commands if name),
        actions=" ".join(names),
        agents=shlex.quote(" ".join(agents)),
        models=shlex.quote(str(models_path())),
        after_model="|".join(_AFTER_MODEL),
        after_agent="|".join(_AFTER_AGENT),
    )


# Shared by bash and zsh: computes `candidates` from the words before the current one, in `typed`.
_WORDS = r"""
    local word command= action= previous= candidates= skip=
    for word in "$${typed[@]}"; do
        if [[ -n $$skip ]]; then
            skip=
        elif [[ -z $$command && ( $$word == --plugins || $$word == --block ) ]]; then
            skip=1
        elif [[ $$word == -* ]]; then
            :
        elif [[ -z $$command ]]; then
            command="$$word"
        elif [[ -z $$action && " $actions " == *" $$command/$$word "* ]]; then
            action="$$word"
        fi
        previous="$$word"
    done
    case "$$previous" in
        $after_model) candidates="$$(cat $models 2>/dev/null)" ;;
        $after_agent) candidates=$agents ;;
        *) case "$$command$${action:+/$$action}" in
$cases
        esac ;;
    esac
"""

# bash splits words at colons, which model names contain, so the script splits the line itself and removes everything up
# to the last colon from its answers.
_BASH = (
    r"""# bash completion for jackfield, generated by `jackfield completion bash`.
_jackfield() {
    local line="$${COMP_LINE:0:COMP_POINT}" typed
    read -ra typed <<< "$$line"
    [[ $$line == *[[:space:]] ]] && typed+=("")
    local current="$${typed[-1]}"
    typed=("$${typed[@]:1:$${#typed[@]}-2}")
"""
    + _WORDS.lstrip("\n")
    + r"""    COMPREPLY=( $$(compgen -W "$$candidates" -- "$$current") )
    if [[ $$current == *:* ]]; then
        local prefix="$${current%"$${current##*:}"}"
        COMPREPLY=( "$${COMPREPLY[@]#"$$prefix"}" )
    fi
}
complete -o bashdefault -o default -F _jackfield jackfield
"""
)

_ZSH = (
    r"""#compdef jackfield
# zsh completion for jackfield, generated by `jackfield completion zsh`.
_jackfield() {
    local -a typed
    typed=("$${(@)words[2,CURRENT-1]}")
"""
    + _WORDS.lstrip("\n")
    + r"""    compadd -- $${=candidates} || _files
}
if [[ $$funcstack[1] == _jackfield ]]; then _jackfield "$$@"; else compdef _jackfield jackfield; fi
"""
)


def _bash_script(commands: Mapping[str, Completions], agents: Sequence[str]) -> str:
    return _script(_BASH, commands, agents)


def _zsh_script(commands: Mapping[str, Completions], agents: Sequence[str]) -> str:
    return _script(_ZSH, commands, agents)


def _fish_script(commands: Mapping[str, Completions], agents: Sequence[str]) -> str:
    lines = ["# fish completion for jackfield, generated by `jackfield completion fish`."]
    lines += [_fish_line("__fish_use_subcommand", f"-f -a {name}") for name in commands if name]
    lines += [_fish_line("__fish_use_subcommand", f"-l {option[2:]}") for option in commands[""].options]
    for name, command in commands.items():
        if not name:
            continue
        inside = f"__fish_seen_subcommand_from {name}"
        lines += [_fish_line(inside, f"-f -a {action}") for action in command.actions]
        lines += [_fish_line(inside, _fish_option(option, agents)) for option in command.options]
        for action, options in command.actions.items():
            after = f"{inside}; and __fish_seen_subcommand_from {action}"
            lines += [_fish_line(after, _fish_option(option, agents)) for option in options]
    return "\n".join(lines) + "\n"


def _fish_line(condition: str, rest: str) -> str:
    return f"complete -c jackfield -n '{condition}' {rest}"


def _fish_option(option: str, agents: Sequence[str]) -> str:
    if option in _AFTER_MODEL:
        return f"-s m -l model -x -a {_quote_for_fish(f'(cat {_quote_for_fish(str(models_path()))} 2>/dev/null)')}"
    if option in _AFTER_AGENT:
        return f"-l agent -x -a {_quote_for_fish(' '.join(agents))}"
    return f"-l {option[2:]}"


def _quote_for_fish(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


_SCRIPTS = {"bash": _bash_script, "zsh": _zsh_script, "fish": _fish_script}
