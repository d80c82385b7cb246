"""Write the reference from the code: the API from signatures and docstrings, the commands from their parsers.

A distribution's page is its README, so that text is stored only once in the repository.

python scripts/reference.py [FOLDER]    write to FOLDER, by default docs/reference/, which is not committed

The API is read from the source by griffe without importing it, so every Python version writes the same pages.
"""

from __future__ import annotations

import argparse
import inspect
import json
import logging
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import fields
from pathlib import Path
from typing import Any

import griffe
import third_parties
from shown_texts import raised_in, sources

from jackfield import AgentConfig, config, errors
from jackfield.cli.main import _parser
from jackfield.defaults import TERMINAL_COMMANDS
from jackfield.hookspecs import HOOKS
from jackfield.plugins import ComponentSpec
from jackfield.settings import Settings
from jackfield_documents import RAGConfig
from jackfield_manage.cli import parsers as managing
from jackfield_terminal.options import parsers as asking

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs/reference"
SOURCES = {
    "jackfield": ROOT / "core/src",
    "jackfield_testkit": ROOT / "plugins/testing/testkit/src",
    "jackfield_agent_files": ROOT / "plugins/libraries/agent-files/src",
    "jackfield_backends": ROOT / "plugins/libraries/backends/src",
    "jackfield_documents": ROOT / "plugins/libraries/documents/src",
    "jackfield_confine": ROOT / "plugins/libraries/confine/src",
    "jackfield_records": ROOT / "plugins/libraries/records/src",
    "jackfield_serving": ROOT / "plugins/libraries/serving/src",
    "jackfield_knowledge": ROOT / "plugins/libraries/knowledge/src",
    "jackfield_counting": ROOT / "plugins/libraries/counting/src",
    "jackfield_local_state": ROOT / "plugins/libraries/local-state/src",
}
CODE_WIDTH = 84
"""The number of characters in a line of code that fits between both navigation bars at 1280 pixels."""
HEADER = "<!-- Written by scripts/reference.py from the code. -->\n\n"

# The public modules, each with its own page, in navigation order.
MODULES = (
    "jackfield.agents",
    "jackfield_agent_files.files",
    "jackfield.tools",
    "jackfield.models",
    "jackfield_counting.requests",
    "jackfield_backends.history",
    "jackfield_documents",
    "jackfield_knowledge",
    "jackfield.processors",
    "jackfield.retrieval",
    "jackfield_confine.probing",
    "jackfield.sandboxes",
    "jackfield.runs",
    "jackfield.servers",
    "jackfield.stores",
    "jackfield.messages",
    "jackfield.events",
    "jackfield.request",
    "jackfield.streams",
    "jackfield.work",
    "jackfield.sync",
    "jackfield.jsontext",
    "jackfield.tokenizers",
    "jackfield_local_state.ledger",
    "jackfield_local_state.ownfile",
    "jackfield.plugins",
    "jackfield.testing",
    "jackfield_testkit.server",
    "jackfield_testkit.replies",
    "jackfield_testkit.embeddings",
    "jackfield_testkit.dashscope",
    "jackfield_testkit.responses",
    "jackfield_testkit.cassette",
    "jackfield_testkit.network",
    "jackfield_testkit.fixtures",
)
SUITES = (
    "PluginSuite",
    "LLMBackendSuite",
    "ChatModelSuite",
    "ToolSuite",
    "ToolsetSuite",
    "SearcherSuite",
    "ParserSuite",
    "TokenizerSuite",
    "EmbedderSuite",
    "LocalEmbedderSuite",
    "ProcessorSuite",
    "CallFormatSuite",
    "AgentSuite",
    "SandboxSuite",
    "CodeSandboxSuite",
    "AnswerSuite",
    "ObserverSuite",
    "StoreSuite",
    "ServerSuite",
    "StdioServerSuite",
    "CommandSuite",
)
# The folders in plugins/, in the order of the package list.
DISTRIBUTIONS = {
    "llms": "Models",
    "agents": "Agents",
    "tools": "Tools",
    "parsers": "Parsers of documents",
    "searchers": "Searchers",
    "embedders": "Embedders",
    "processors": "Processors around models",
    "tokenizers": "Tokenizers",
    "sandboxes": "Sandboxes",
    "observers": "Observers",
    "stores": "Stores of runs",
    "servers": "Servers",
    "commands": "Commands",
    "testing": "For tests",
    "libraries": "Libraries for authors of plugins",
}
CONFIGS = (
    AgentConfig,
    config.LLMConfig,
    config.GenerateConfig,
    config.Limits,
    RAGConfig,
)
VARIABLES = {
    "JACKFIELD_PLUGINS": "Only these packages may load, separated by commas; empty: none. Like `allow`.",
    "JACKFIELD_PLUGINS_BLOCK": "These never load: packages, `kind.name` or `package/name`. Added to `block`.",
    "JACKFIELD_PLUGINS_ENABLED": "Processors and observers that are active in every run. Added to `enabled`.",
    "JACKFIELD_SAFE": "1: no plugin loads. Like `safe`.",
    "JACKFIELD_PLUGINS_STRICT": "1: any problem with a plugin is an error. Like `strict`.",
    "JACKFIELD_PLUGINS_TRACE": "1: print every load on standard error, with its duration.",
    "JACKFIELD_MODEL": "The model of `jackfield run` and `chat` if `--model` is not given: `backend:model`.",
    "JACKFIELD_RECORD": "0: `jackfield run` and `chat` record nothing. Like `record` in the user's `config.toml`.",
    "JACKFIELD_LOG": "info or debug, perhaps followed by ,json: log the steps of runs. Needs `jackfield-log`.",
    "JACKFIELD_WORKSPACE": "The folder in which tools write files; by default `workspace` in the working directory.",
}


def pages() -> dict[Path, str]:
    """Return every page by its path below docs/reference/."""
    packages = _loaded(SOURCES)
    found = {
        Path("commands.md"): _commands_page(),
        Path("settings.md"): _settings_page(packages["jackfield"]),
        Path("configuration.md"): _configuration_page(packages),
        Path("descriptors.md"): _descriptors_page(packages["jackfield"]),
        Path("third-parties.md"): third_parties.page(),
        Path("errors.md"): _errors_page(packages["jackfield"]),
        Path("suites.md"): _suites_page(packages["jackfield_testkit"]),
    }
    for name in MODULES:
        package, _, rest = name.partition(".")
        found[Path("api", f"{name}.md")] = _module_page(packages[package][rest] if rest else packages[package])
    found |= _distribution_pages()
    return {path: f"{HEADER}{text.rstrip()}\n" for path, text in found.items()}


def _loaded(sources: Mapping[str, Path]) -> dict[str, griffe.Module]:
    """Load the packages together, because some names in the core are defined in other packages."""
    logging.getLogger("griffe").setLevel(logging.ERROR)
    loader = griffe.GriffeLoader(search_paths=[*sources.values()], docstring_parser="google")
    loaded = {name: loader.load(name) for name in sources}
    loader.resolve_aliases()
    return {name: module for name, module in loaded.items() if isinstance(module, griffe.Module)}


# --- the API ---


def _module_page(module: griffe.Module) -> str:
    parts = [f"# `{module.path}`\n\n{_docstring(module)}"]
    for name, member in _public(module):
        parts.append(_member(name, member, level=2))
    return "\n\n".join(parts)


def _public(module: griffe.Module) -> Iterator[tuple[str, Any]]:
    """Yield a module's public names: those in `__all__`, or else those it defines, in source order.

    Names imported from another package are documented there instead.
    """
    exported = [name for name in module.exports or () if isinstance(name, str)]
    names = exported or [
        name for name, member in module.members.items() if not name.startswith("_") and not member.is_alias
    ]
    for name in names:
        member = module[name]
        if member.is_alias and member.target_path.partition(".")[0] != module.package.name:
            continue
        if member.is_module and name in member.members:
            member = member[name]  # a function with the same name as its module; griffe returns the module
        if not member.is_module:
            yield name, member.final_target if member.is_alias else member


def _member(name: str, member: Any, *, level: int) -> str:
    heading = f"{'#' * level} `{name}`"
    if member.is_function:
        return _joined(heading, _code(_signature(member)), _docstring(member))
    if member.is_class:
        return _class(name, member, heading, level)
    value = str(member.value)
    return _joined(heading, _code(f"{name} = {value}") if len(value) < 400 else "", _docstring(member))


def _class(name: str, member: griffe.Class, heading: str, level: int) -> str:
    bases = [str(base) for base in member.bases]
    told = f"Extends {', '.join(f'`{base}`' for base in bases)}." if bases else ""
    is_config = any(base in ("Config", "BaseModel", "Protocol", "TypedDict") for base in bases)
    prefix = f"class {name}"
    signature = _code(prefix if is_config else prefix + _parameters(member.parameters, beside=len(prefix)))
    parts = [heading, signature, told, _docstring(member)]
    for short, method in member.members.items():
        if short.startswith("_") or method.is_alias or not (method.is_function or _is_property(method)):
            continue
        text = _docstring(method)
        if text:
            shown = f"{'#' * (level + 1)} `{name}.{short}`"
            code = "" if _is_property(method) else _code(_signature(method))
            returns = getattr(method, "annotation", None) if _is_property(method) else None
            parts.append(_joined(shown, code, f"A property: `{returns}`." if returns else "", text))
    return _joined(*parts)


def _is_property(member: Any) -> bool:
    return "property" in member.labels or "cached_property" in member.labels


def _signature(function: Any) -> str:
    prefix = "async def " if "async" in function.labels else "def "
    returns = f" -> {function.returns}" if function.returns is not None else ""
    start = f"{prefix}{function.name}"
    return f"{start}{_parameters(function.parameters, beside=len(start) + len(returns))}{returns}"


def _parameters(parameters: Iterable[griffe.Parameter], *, beside: int) -> str:
    """Format parameters as in the source, on one line if they fit next to the `beside` other characters."""
    texts: list[str] = []
    star = slash = False
    for parameter in parameters:
        if parameter.name in ("self", "cls"):
            continue
        kind = parameter.kind.value if parameter.kind else ""
        if kind == "keyword-only" and not star:
            texts.append("*")
            star = True
        star = star or kind == "variadic positional"
        if slash and kind != "positional-only":
            texts.append("/")
        slash = kind == "positional-only"
        prefix = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
        told = f": {parameter.annotation}" if parameter.annotation is not None else ""
        default = "" if parameter.default is None or prefix else f" = {parameter.default}"
        texts.append(f"{prefix}{parameter.name}{told}{default}")
    if slash:
        texts.append("/")
    line = f"({', '.join(texts)})"
    return line if len(line) + beside <= CODE_WIDTH else "(\n" + "".join(f"    {text},\n" for text in texts) + ")"


def _docstring(thing: Any) -> str:
    if thing.docstring is None:
        return ""
    return _joined(*(_section(section) for section in thing.docstring.parsed))


def _section(section: Any) -> str:
    match section.kind.value:
        case "text":
            return _plain(section.value)
        case "parameters" | "other parameters" | "attributes":
            title = "Attributes" if section.kind.value == "attributes" else "Arguments"
            return _list(title, ((one.name, one.description) for one in section.value))
        case "raises":
            return _list("Raises", ((str(one.annotation), one.description) for one in section.value))
        case "returns" | "yields":
            return _joined("**Returns**", *(_plain(one.description) for one in section.value))
        case "admonition":
            return f"*{section.title}:* {_plain(section.value.description)}"
    raise SystemExit(f"a docstring has a section {section.kind.value!r}, which scripts/reference.py cannot write")


def _list(title: str, entries: Iterable[tuple[str, str]]) -> str:
    lines = [f"- {', '.join(f'`{part}`' for part in name.split(', '))}: {_indented(text)}" for name, text in entries]
    return f"**{title}**\n\n" + "\n".join(lines)


def _indented(text: str) -> str:
    return _plain(text).replace("\n", "\n  ")


def _plain(text: str) -> str:
    """Escape text for Markdown, and mark code blocks that cannot run on their own so that they are not tested."""
    parts = re.split(r"(```.*?```|`[^`\n]+`)", text, flags=re.DOTALL)
    return "".join(
        part.replace("```python", "```py") if index % 2 else part.replace("<", "&lt;")
        for index, part in enumerate(parts)
    )


def _code(text: str) -> str:
    # `py`, not `python`, because a test runs blocks of the latter as examples.
    return f"```py\n{text}\n```"


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


# --- commands ---


def _commands_page() -> str:
    parser = _parser(("plugins",))
    intro = (
        'What `pip install "jackfield[cli]"` brings: the core, `jackfield-terminal` and `jackfield-manage`. Plugins '
        "add commands of their own: `jackfield plugins list` shows them, and `jackfield NAME --help` explains one. "
        "Exit codes: 0 success, 1 failure, 2 wrong usage, 130 interrupted."
    )
    others = [
        part
        for name, its in {**asking(), **managing()}.items()
        for part in _command(its, f"jackfield {name}", (its.description or "").rstrip("."))
    ]
    return _joined("# Commands", intro, *_command(parser, "jackfield", ""), *others)


def _command(parser: argparse.ArgumentParser, name: str, help_: str) -> Iterator[str]:
    """Yield the lines for a command and its subcommands."""
    no_argument = (argparse._SubParsersAction, argparse._HelpAction)
    own = [action for action in parser._actions if not isinstance(action, no_argument)]
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    yield f"## `{name}`"
    yield f"{help_[:1].upper()}{help_[1:]}." if help_ else ""
    usage = parser.usage or " ".join([name, *map(_usage, own), *(str(action.metavar) for action in below)])
    yield f'```text title="usage"\n{usage}\n```'
    rows = [(_spelled(action), _cell(action)) for action in own]
    yield _table(("argument", "meaning"), rows) if rows else ""
    for action in below:
        told = {choice.dest: choice.help or "" for choice in action._choices_actions}
        for short, sub in action.choices.items():
            if short in TERMINAL_COMMANDS:
                continue  # only listed there
            yield from _command(sub, f"{name} {short}", told.get(short, ""))


def _usage(action: argparse.Action) -> str:
    if not action.option_strings:
        shown = str(action.metavar or action.dest.upper())
        return {"*": f"[{shown} ...]", "+": f"{shown} [{shown} ...]", "?": f"[{shown}]"}.get(str(action.nargs), shown)
    return f"[{action.option_strings[-1]}{_value(action)}]"


def _spelled(action: argparse.Action) -> str:
    return f"`{', '.join(action.option_strings) or action.metavar or action.dest.upper()}{_value(action)}`"


def _value(action: argparse.Action) -> str:
    if not action.option_strings or action.nargs == 0:
        return ""
    choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else ""
    return f" {action.metavar or choices or action.dest.upper()}"


def _cell(action: argparse.Action) -> str:
    return (action.help or "") if action.dest != "version" else "Print the version"


# --- settings and configuration ---


def _settings_page(core: griffe.Module) -> str:
    sources = (ROOT / "core/src", ROOT / "plugins/commands/terminal/src")
    used = {name for source in sources for path in source.rglob("*.py") for name in _variables_in(path)}
    if used != set(VARIABLES):
        raise SystemExit(f"scripts/reference.py describes other variables than are used: {used ^ set(VARIABLES)}")
    module = core["settings"]
    attributes = next(part.value for part in module["Settings"].docstring.parsed if part.kind.value == "attributes")
    told = {one.name: one.description for one in attributes}
    keys = [(f"`{_key(name)}`", _plain(told[name]).replace("\n", " ")) for name in _setting_names()]
    return _joined(
        "# Settings",
        _docstring(module),
        "## Keys",
        "In `[tool.jackfield]` of a project's `pyproject.toml`, and at the top of the user's `config.toml`, which may "
        "also have a table `[secrets]`: environment variable → value.",
        _table(("key", "meaning"), keys),
        "## Environment variables",
        _table(("variable", "meaning"), [(f"`{name}`", text) for name, text in VARIABLES.items()]),
        "API keys of providers have their own variables: `jackfield plugins info NAME` lists them.",
    )


def _variables_in(path: Path) -> list[str]:
    return re.findall(r"\bJACKFIELD_[A-Z_]*[A-Z]\b", path.read_text(encoding="utf-8"))


def _setting_names() -> list[str]:
    # `trace` is not a key in files, because it applies to a single run. Fields excluded from comparison only say where
    # the others come from.
    return [field.name for field in fields(Settings) if field.compare and field.name != "trace"]


def _key(name: str) -> str:
    return "settings" if name == "options" else name


def _configuration_page(packages: Mapping[str, griffe.Module]) -> str:
    parts = [
        "# Configuration",
        "Settings of an agent's file and of dicts in code. An unknown setting is an error that names the nearest one.",
    ]
    for model in CONFIGS:
        package, _, module = model.__module__.partition(".")
        attributes = packages[package][module][model.__name__]
        rows = [
            (f"`{name}`", f"`{attributes[name].annotation}`", *_field(field))
            for name, field in model.model_fields.items()
        ]
        parts += [
            f"## `{model.__name__}`",
            _plain((model.__doc__ or "").strip()),
            _table(("key", "type", "default", "meaning"), rows),
        ]
    return _joined(*parts)


def _field(field: Any) -> tuple[str, str]:
    if field.is_required():
        return "required", field.description or ""
    default = field.get_default(call_default_factory=True)
    if isinstance(default, config.Config):
        shown = f"see `{type(default).__name__}`"
    else:
        shown = "" if default in (None, (), {}, "") else f"`{json.dumps(default, default=str)}`"
    return shown, field.description or ""


# --- descriptors, errors, suites ---


def _descriptors_page(core: griffe.Module) -> str:
    module = core["descriptors"]
    rows = [
        (
            f"`{hook.kind}`",
            "stable" if hook.is_stable else "provisional",
            f"[`@hook.{name}`](#{name})",
            f"[`{hook.spec_class.__name__}`](api/jackfield.plugins.md#{hook.spec_class.__name__.lower()})",
            f"`{hook.base.replace(':', '.')}`" if hook.base else "a function",
        )
        for name, hook in HOOKS.items()
    ]
    hooks = [_joined(f"## `{name}`", _docstring(core["hookspecs"][name]), _example(name)) for name in HOOKS]
    offered: list[type[ComponentSpec]] = [ComponentSpec, *(hook.spec_class for hook in HOOKS.values())]
    own = [
        _joined(f"## `{spec.__name__}`", _plain(_first_line(spec)), _fields_table(module, spec))
        for spec in offered
        if spec is ComponentSpec or len(fields(spec)) > len(fields(ComponentSpec))
    ]
    return _joined(
        "# Kinds, hooks and descriptors",
        _docstring(module),
        "The group of entry points is `jackfield.v1`, an entry's name `<kind>.<name>`, and its value the light module.",
        _table(("kind", "state", "hook", "descriptor", "target, or its base class"), rows),
        *hooks,
        "A descriptor that is not listed below has only the fields of `ComponentSpec`. All fields are keywords.",
        *own,
    )


def _example(hook: str) -> str:
    """Return what a plugin writes for a hook: the body of the hook itself, below the decorator."""
    source = inspect.getsource(HOOKS[hook].specification)
    signature = source[source.index("def ") :].partition("\n")[0]
    body = source.rpartition('"""\n')[2].rstrip()
    return _code(f"@hook.{hook}\n{signature}\n{body}")


def _first_line(spec: type) -> str:
    return (spec.__doc__ or "").strip().partition("\n")[0]


def _fields_table(module: griffe.Module, spec: type[ComponentSpec]) -> str:
    described = module[spec.__name__]
    told = {
        one.name: one.description
        for section in described.docstring.parsed
        if section.kind.value == "attributes"
        for one in section.value
    }
    inherited = {field.name for field in fields(ComponentSpec)} if spec is not ComponentSpec else set()
    rows = []
    for parameter in described.parameters:
        if parameter.name != "self" and parameter.name not in inherited:
            default = "required" if parameter.default is None else f"`{parameter.default}`"
            if "lambda" in default:
                default = "an object without properties"
            text = _plain(told.get(parameter.name, "")).replace("\n", " ")
            rows.append((f"`{parameter.name}`", f"`{parameter.annotation}`", default, text))
    return _table(("field", "type", "default", "meaning"), rows)


def _errors_page(core: griffe.Module) -> str:
    module = core["errors"]
    raised = _raised({name for name, member in _public(module) if member.is_class})
    parts = [
        "# Errors",
        _docstring(module).replace("```\n", "```text\n", 1),
        "Below each class are the messages with which our packages raise it, so that a search for the text of an error "
        "ends here. A name in braces stands for a value. A message may be part of a longer one: the `ValueError` of a "
        "setting, for instance, is shown in a `ConfigError` that names the setting.",
    ]
    for name, member in _public(module):
        if member.is_class:
            parts += [_member(name, member, level=2), _messages(raised.pop(name, {}))]
    missing = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    if missing - {name for name, _ in _public(module)}:
        raise SystemExit("errors.py has an error that the page would leave out")
    parts.append("The classes below are Python's own, or defined by a package.")
    for name, messages in sorted(raised.items()):
        parts += [f"## `{name}`", _messages(messages)]
    return _joined(*parts)


def _raised(ours: Set[str]) -> dict[str, dict[tuple[str, str], None]]:
    """Return the distinct messages in all packages, with the package, by error class."""
    found: dict[str, dict[tuple[str, str], None]] = {}
    modules = sources()
    own = {name for path in modules for name in re.findall(r"^class ([A-Z]\w*Error)\(", path.read_text("utf-8"), re.M)}
    for path in modules:
        for one in raised_in(path, ours | own | {"ValueError", "TypeError"}):
            found.setdefault(one.error, {})[one.text, one.package] = None
    return found


def _messages(messages: Iterable[tuple[str, str]]) -> str:
    rows = [(_span(text), f"`{package}`") for text, package in sorted(messages, key=lambda one: (one[1], one[0]))]
    return _table(("message", "package"), rows) if rows else ""


def _span(text: str) -> str:
    """Format a text as inline code, even if it contains backquotes."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence} {text} {fence}" if len(fence) > 1 else f"`{text}`"


def _suites_page(testkit: griffe.Module) -> str:
    parts = [
        "# Contract suites",
        "Subclass these suites in the tests of a plugin: pytest runs the inherited tests. Every name is a sentence "
        "that must stay true. [Contract tests](../authors/contract-tests.md) explains levels and expected failures.",
    ]
    for name in SUITES:
        suite = testkit["suites"][name].final_target
        parts += [f"## `{name}`", _docstring(suite)]
        tests = list(dict.fromkeys(_tests_of(suite)))
        parts.append(f"{len(tests)} tests:")
        parts.append("\n".join(f"- {_sentence(test)}" for test in tests))
    return _joined(*parts)


def _tests_of(suite: griffe.Class) -> Iterator[str]:
    for base in suite.resolved_bases:
        if isinstance(base, griffe.Class):
            yield from _tests_of(base)
    yield from (name for name in suite.members if name.startswith("test_"))


def _sentence(test: str) -> str:
    words = test.removeprefix("test_").replace("_", " ")
    return f"{words[:1].upper()}{words[1:]}."


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *([_escaped(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")


# --- distributions ---


def _distribution_pages() -> dict[Path, str]:
    """Return a page with the README of every distribution except the core, and a list of them."""
    found: dict[Path, str] = {}
    listed = [
        "# All packages",
        "Install a package by its name: `pip install NAME`. Its page describes its features, settings and limitations.",
    ]
    for folder, heading in DISTRIBUTIONS.items():
        rows = []
        for project in sorted((ROOT / "plugins" / folder).glob("*/pyproject.toml")):
            said = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
            found[Path("plugins", f"{said['name']}.md")] = project.with_name("README.md").read_text(encoding="utf-8")
            rows.append((f"[{said['name']}]({said['name']}.md)", said["description"]))
        if rows:
            listed += [f"## {heading}", _table(("package", "description"), rows)]
    left_out = {path.parent.name for path in ROOT.glob("plugins/*/*")} - set(DISTRIBUTIONS)
    if left_out:
        raise SystemExit(f"scripts/reference.py has no heading for the distributions in {sorted(left_out)}")
    return found | {Path("plugins", "index.md"): _joined(*listed)}


# --- writing ---


def main(arguments: Sequence[str]) -> int:
    """Write every page, and remove pages that no longer exist."""
    folder = Path(arguments[0]) if arguments else REFERENCE
    wanted = pages()
    for old in {path.relative_to(folder) for path in folder.rglob("*.md")} - set(wanted):
        (folder / old).unlink()
    for path, text in wanted.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
