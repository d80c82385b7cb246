"""The descriptors with which a plugin describes its components: light, frozen values that import nothing heavy.

`target` names the class as `module:Class`; it is imported when the first one is made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

Texts = str | Mapping[str, str]
"""A text, or a text for each language: `{"en": …, "zh": …}`."""


RequiredBy = Mapping[str, str | list[str] | Mapping[str, list[str]]]
"""What each setting requires: see `ComponentSpec.required_by`."""


def in_language(texts: Texts, lang: str) -> str:
    """The text in a language, else in English, else the first one."""
    if isinstance(texts, str):
        return texts
    return texts.get(lang) or texts.get("en") or next(iter(texts.values()), "")


def required_by(table: RequiredBy, settings: Mapping[str, object]) -> list[str]:
    """The components that settings ask for; [] if they ask for none. See `ComponentSpec.required_by`."""
    for setting, required in table.items():
        value = settings.get(setting)
        if value is None:
            continue
        if isinstance(required, str):
            return [f"{required}.{name}" for name in _names_in(value)]
        found = required.get(str(value)) if isinstance(required, Mapping) else required
        return found if isinstance(found, list) else []
    return []


def _names_in(value: object) -> list[str]:
    """The names in a setting that has several components, each as its name or as a dict of that and its settings."""
    entries = value if isinstance(value, list | tuple) else ()
    names = [entry.get("name") if isinstance(entry, Mapping) else entry for entry in entries]
    return [name for name in names if isinstance(name, str)]


if TYPE_CHECKING:
    _Lenient = type
else:

    class _Lenient(type):
        """Lets a plugin that was written for a newer core load in this one: what this one does not know is `extra`.

        Type checkers do not see it, so that a slip of the pen is still an error for who writes a plugin.
        """

        def __call__(cls, **values):
            unknown = {key: values.pop(key) for key in list(values) if key not in cls.__dataclass_fields__}
            return super().__call__(**values, **({"extra": unknown} if unknown else {}))


@dataclass(frozen=True, kw_only=True)
class ComponentSpec(metaclass=_Lenient):
    """The fields that all descriptors share.

    Attributes:
        name: As in the entry point, without the kind.
        target: The class, as `module:Class`.
        summary: One line for people.
        config: The class of its settings, as `module:Class`; '' if it has none of its own.
        secrets: The environment variables from which it reads API keys.
        effects: Its effects, of `network`, `files`, `processes`; for people, and for policy.
        network: The hosts it talks to, if they are known.
        requires: The components it asks the core for by name, as `kind.name`, in addition to those its user names.
        required_by: The components that its settings ask for. The first of these settings that is given decides: a
            text is the kind of the components that the setting names, a table has the components that each of its
            values stands for, and a list those that are asked for whatever the value is. They must be there when the
            component is looked up. Those under '', the last, are asked for if none is given, and may be missing until
            they are needed.
        check: A function without arguments that says whether this machine has what it needs, as `module:function`; it
            returns a list of texts, one for each thing that is wrong, empty if all is well. `doctor --deep` calls it.
        extra: Fields that only a newer core knows. Do not fill it in: unknown keywords end up here.
    """

    name: str
    target: str
    summary: str = ""
    config: str = ""
    secrets: tuple[str, ...] = ()
    effects: frozenset[str] = frozenset()
    network: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    required_by: RequiredBy = field(default_factory=dict)
    check: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class LLMSpec(ComponentSpec):
    """A backend: a subclass of `jackfield.BaseChatModel`.

    Attributes:
        models: The models it offers, if that is a closed set.
        keys: Settings that only this backend has: a configuration with one of them and no backend means this one.
        names: What the names of its models look like (`qwen*`): a model's name without a backend means this one. If
            several fit, the longest wins. Both only count for the packages that the core knows, so that a plugin cannot
            draw calls to itself.
    """

    models: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def _first_sentence(text: str) -> str:
    """The first sentence of a text, as far as it fits a line."""
    first = re.split(r"(?<=[.!?。！？])\s", text.strip(), maxsplit=1)[0]
    return first if len(first) <= 300 else first[:299] + "…"


@dataclass(frozen=True, kw_only=True)
class ToolSpec(ComponentSpec):
    """A tool: a subclass of `jackfield.BaseTool`, or a function with `@tool`. The descriptor has all that a model
    needs to choose it.

    For everything that is safety-relevant, the strictest of the descriptor, the class and the settings applies.

    What its own fields mean stands at the attributes of the same names of `jackfield.BaseTool`.
    """

    description: Texts
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}, "required": []})
    needs_approval: bool = False
    read_only: bool = False
    concurrent: bool = True
    timeout_s: float | None = None
    file_access: bool = False
    idempotent: bool = False
    resumable: bool = False
    cacheable: bool = False
    raw_argument: str = ""

    @classmethod
    def of(
        cls,
        target: object,
        *,
        secrets: tuple[str, ...] = (),
        network: tuple[str, ...] = (),
        requires: tuple[str, ...] = (),
        check: str = "",
    ) -> ToolSpec:
        """The descriptor of a function with `@tool`: its name, texts, schema and flags.

        It imports the function with all it needs. That is fine for plugins registered in code and for local files; for
        a light module, `python -m jackfield_testkit.tool_specs PACKAGE` writes the descriptor instead.

        Args:
            target: The result of `@tool`, or where it is, as `module:name`.
            secrets, network, requires, check: As in `ComponentSpec`; the function does not have them.

        Raises:
            TypeError: The target is not a tool.
        """
        tool = target
        if isinstance(target, str):
            module, _, name = target.partition(":")
            tool = getattr(import_module(module), name)
        function = getattr(tool, "function_called", None)
        if function is None:
            raise TypeError(f"{target!r:.200} is not a function with @tool")
        # A function with `@tool` knows itself by the names that its descriptor has.
        known = {one.name: getattr(tool, one.name) for one in fields(cls) if hasattr(tool, one.name)}
        return cls(
            **known,
            target=target if isinstance(target, str) else f"{function.__module__}:{function.__qualname__}",
            summary=_first_sentence(in_language(known["description"], "en")),
            secrets=secrets,
            network=network,
            requires=requires,
            check=check,
        )


@dataclass(frozen=True, kw_only=True)
class ToolsetSpec(ComponentSpec):
    """A set of tools, of the kind `tool`, too: a subclass of `jackfield.tools.Toolset`, or tools of the same package.

    Attributes:
        tools: The names of tools of the package that the set stands for; then `target` and `config` stay empty, and
            settings of the set go to each tool.
        keys: Settings that only this set has: an entry without `name` that has one of them means this set. It only
            counts for the packages that the core knows.
    """

    target: str = ""
    tools: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


# Kinds that add no field are plain subclasses: each `@dataclass` costs a millisecond of everybody's start.


class SearcherSpec(ComponentSpec):
    """A searcher: `jackfield.retrieval._searching.Searcher`."""


@dataclass(frozen=True, kw_only=True)
class ParserSpec(ComponentSpec):
    """A parser: `jackfield.retrieval._documents.Parser`. It is chosen by these fields, before it is imported.

    Attributes:
        extensions: Lower case, without the dot.
        media_types: As in HTTP: `application/pdf`.
        magic: The first bytes of files of this type.
        in_process_bytes: Files up to this size are parsed without a separate process, which saves its start. Only
            for parsers whose work and memory are a few times the length of a file, whatever its content.
    """

    extensions: tuple[str, ...] = ()
    media_types: tuple[str, ...] = ()
    magic: tuple[bytes, ...] = ()
    in_process_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class ProcessorSpec(ComponentSpec):
    """A processor: `jackfield.processors.Processor`.

    Attributes:
        phase: The place in the chain: `input`, `context`, `format`, `transport` or `output`.
        after, before: Names of processors of the same phase that are outside of it, or inside.
    """

    phase: str = "context"
    after: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


class PreprocessorSpec(ProcessorSpec):
    """A processor that only changes the request: `target` is a function, `ChatRequest` → `ChatRequest`."""


@dataclass(frozen=True, kw_only=True)
class PostprocessorSpec(ProcessorSpec):
    """A processor that only changes the answer: `target` makes a `StreamTransform` for a `ChatRequest`.

    Attributes:
        phase: As for any processor; `output` by default.
    """

    phase: str = "output"


class CallFormatSpec(ComponentSpec):
    """A call format: `jackfield.processors.CallFormat`, tool calls as text."""


class AgentSpec(ComponentSpec):
    """An agent kind: a subclass of `jackfield.Agent`."""


class CommandSpec(ComponentSpec):
    """A command of the CLI: `target` is a function that takes the arguments (`list[str]`) and returns the exit code."""


class TokenizerSpec(ComponentSpec):
    """A tokenizer."""


class EmbedderSpec(ComponentSpec):
    """An embedder."""


@dataclass(frozen=True, kw_only=True)
class SandboxSpec(ComponentSpec):
    """A sandbox: `jackfield.sandboxes._contract.Sandbox`.

    Attributes:
        runs_programs: It is a `ProgramSandbox`.
        runs_code: It is a `CodeSandbox`.
    """

    runs_programs: bool = True
    runs_code: bool = False


class ObserverSpec(ComponentSpec):
    """An observer of run events; it is only active if enabled by name."""


class StoreSpec(ComponentSpec):
    """A store of the records of runs: `jackfield.stores.Store`."""
