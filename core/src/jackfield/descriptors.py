"""Descriptors: lightweight, frozen values that describe a plugin's components without importing them.

`target` names the class as `module:Class`. The class is imported when the first component is created.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

Texts = str | Mapping[str, str]
"""Text, or a dict of texts by language: `{"en": …, "zh": …}`."""

RequiredBy = Mapping[str, str | list[str] | Mapping[str, list[str]]]
"""The components that each setting requires; see `ComponentSpec.required_by`."""


def in_language(texts: Texts, lang: str) -> str:
    """Return the text in the given language. Fall back to English, then to the first text."""
    if isinstance(texts, str):
        return texts
    return texts.get(lang) or texts.get("en") or next(iter(texts.values()), "")


def required_by(table: RequiredBy, settings: Mapping[str, object]) -> list[str]:
    """Return the components that these settings require. See `ComponentSpec.required_by`."""
    for setting, required in table.items():
        value = settings.get(setting)
        if value is None:
            continue
        if isinstance(required, str):
            return [f"{required}.{name}" for name in _names_in(value)]
        components = required.get(str(value)) if isinstance(required, Mapping) else required
        return components if isinstance(components, list) else []
    return []


def _names_in(value: object) -> list[str]:
    """Return the names in a list of components. Each component is a name, or a dict with `name` and settings."""
    entries = value if isinstance(value, list | tuple) else ()
    names = [entry.get("name") if isinstance(entry, Mapping) else entry for entry in entries]
    return [name for name in names if isinstance(name, str)]


if TYPE_CHECKING:
    _Lenient = type
else:

    class _Lenient(type):
        """Metaclass that collects unknown fields in `extra` so that plugins written for a newer core can load.

        Type checkers do not see the metaclass, so they still report misspelt fields to plugin authors.
        """

        def __call__(cls, **values):
            unknown = {key: values.pop(key) for key in list(values) if key not in cls.__dataclass_fields__}
            return super().__call__(**values, **({"extra": unknown} if unknown else {}))


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ComponentSpec(metaclass=_Lenient):
    """Base class for descriptors, with the fields that all of them share.

    Attributes:
        name: The component's name, as it follows the kind in the entry point.
        target: The component's class, as `module:Class`.
        summary: A one-line summary for people.
        config: The component's settings class, as `module:Class`, or '' if it takes no settings.
        secrets: Environment variables for the component's credential: an API key, a token or a DSN. If several are
            listed, one of them is enough.
        effects: Any of `network`, `files` and `processes`. For information only: an agent's `forbid` uses the tools'
            own effects.
        network: The hosts that the component connects to, if known.
        requires: Other components that this component looks up by name, as `kind.name`.
        required_by: Maps a setting to the components that it requires. Only the first setting in the table that has a
            value counts. The entry for a setting is a kind (the value names components of this kind), a table from
            values to components, or a list of components that any value requires. The required components must be
            installed when this component is looked up. The last entry may have the key '', which applies if no setting
            has a value. The components of that entry may be missing until they are used.
        check: A function without arguments, as `module:function`, that checks this machine and returns a list of
            problems as strings. `doctor --deep` calls it.
        extra: Fields from newer versions of the core, collected from unknown keyword arguments. Do not set `extra`
            yourself.
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

    # Written here for all kinds, because generating them for each would take a third of the time to import this module.

    def __repr__(self) -> str:
        values = (f"{entry.name}={getattr(self, entry.name)!r}" for entry in fields(self))
        return f"{type(self).__name__}({', '.join(values)})"

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if type(other) is type(self) else NotImplemented

    __hash__ = None  # type: ignore[assignment] # tables have no hash


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class LLMSpec(ComponentSpec):
    """A backend: a subclass of `jackfield.BaseChatModel`.

    Attributes:
        models: The backend's models, if the set is fixed.
        keys: Settings that only this backend has. A configuration that contains one of them need not name the backend.
        names: Patterns for the backend's model names, such as `qwen*`. The backend can be omitted for a matching model.
            If several patterns match, the longest wins. `keys` and `names` are only used for packages that the core
            knows, so other plugins cannot use them to attract calls.
    """

    models: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def _first_sentence(text: str) -> str:
    """Return the first sentence of a text, truncated to a maximum length."""
    first = re.split(r"(?<=[.!?。！？])\s", text.strip(), maxsplit=1)[0]
    return first if len(first) <= 300 else first[:299] + "…"


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ToolSpec(ComponentSpec):
    """A tool: a subclass of `jackfield.BaseTool`, or a function decorated with `@tool`.

    Models choose a tool based on its descriptor alone. For safety attributes, the strictest value from the descriptor,
    class and settings applies.

    The fields are documented as attributes of `jackfield.BaseTool`.
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
        """Create a descriptor for a function decorated with `@tool`, using its name, descriptions, schema and flags.

        This method imports the function and all its dependencies, which is fine for local files and for plugins
        registered in code. To keep a plugin module light, generate the descriptor with
        `python -m jackfield_testkit.tool_specs PACKAGE`.

        Args:
            target: The decorated function, or its location as `module:name`.
            secrets, network, requires, check: As in `ComponentSpec`. These values cannot be read from the function.

        Raises:
            TypeError: The target is not a tool.
        """
        tool = target
        if isinstance(target, str):
            module, _, name = target.partition(":")
            tool = getattr(import_module(module), name)
        function = getattr(tool, "function_called", None)
        if function is None:
            raise TypeError(f"{target!r:.200} is not a function decorated with @tool")
        # The attributes of the function have the names of the fields.
        known = {field.name: getattr(tool, field.name) for field in fields(cls) if hasattr(tool, field.name)}
        return cls(
            **known,
            target=target if isinstance(target, str) else f"{function.__module__}:{function.__qualname__}",
            summary=_first_sentence(in_language(known["description"], "en")),
            secrets=secrets,
            network=network,
            requires=requires,
            check=check,
        )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ToolsetSpec(ComponentSpec):
    """A toolset: a subclass of `jackfield.tools.Toolset`, or several tools of the package.

    Toolsets have the kind `tool`.

    Attributes:
        tools: The names of the package's tools that make up the toolset. `target` and `config` are then empty, and each
            tool receives the toolset's settings.
        keys: Settings that only this toolset has. A dict that contains one of them needs no `name`. `keys` are only
            used for packages that the core knows.
    """

    target: str = ""
    tools: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


# Kinds without new fields are plain subclasses, because each `@dataclass` costs a millisecond at start-up.


class SearcherSpec(ComponentSpec):
    """A searcher: `jackfield.retrieval.Searcher`."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ParserSpec(ComponentSpec):
    """A parser: `jackfield.retrieval.Parser`.

    These fields determine which parser reads a file before any parser is imported.

    Attributes:
        extensions: File extensions in lower case, without the dot.
        media_types: Media types as in HTTP, such as `application/pdf`.
        magic: The byte sequences with which files of this type start.
        in_process_bytes: The size up to which files are parsed in the same process, which is faster. Only set this for
            parsers whose time and memory never exceed a small multiple of the file size, regardless of the content.
        has_parts: True if documents may have `parts`, which other parsers read. Documents with parts are parsed again
            if the installed parsers change.
        part_extensions: The extensions of the parts if they are always the same. Documents with parts are then only
            parsed again if the parsers for these extensions change.
        draws_pages: True if the parser can render a file's pages; see `Parser.draw_page`.
        pictures: A parser, specified like `target`, that returns a file's pictures as `parts` so that a model can
            describe them. This parser only runs if descriptions are requested.
        environment: A function, specified like `target`, that takes the settings and returns a string describing the
            installed programs and data that affect parsing. Documents are parsed again if the string changes.
    """

    extensions: tuple[str, ...] = ()
    media_types: tuple[str, ...] = ()
    magic: tuple[bytes, ...] = ()
    in_process_bytes: int = 0
    has_parts: bool = False
    part_extensions: tuple[str, ...] = ()
    draws_pages: bool = False
    pictures: str = ""
    environment: str = ""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ProcessorSpec(ComponentSpec):
    """A processor: `jackfield.processors.Processor`.

    Attributes:
        phase: The processor's position in the chain: `input`, `context`, `format`, `transport` or `output`.
        after, before: Names of processors in the same phase that must wrap this processor (`after`) or be wrapped by it
            (`before`).
    """

    phase: str = "context"
    after: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


class PreprocessorSpec(ProcessorSpec):
    """A processor that only changes the request. `target` is a function that takes and returns a `ChatRequest`."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PostprocessorSpec(ProcessorSpec):
    """A processor that only changes the answer. `target` takes a `ChatRequest` and returns a `StreamTransform`.

    Attributes:
        phase: As for any processor. Defaults to `output`.
    """

    phase: str = "output"


class CallFormatSpec(ComponentSpec):
    """A format for writing tool calls as text: `jackfield.processors.CallFormat`."""


class AgentSpec(ComponentSpec):
    """An agent kind: a subclass of `jackfield.Agent`."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class CommandSpec(ComponentSpec):
    """A CLI command. `target` is a function that takes the arguments (`list[str]`) and returns the exit code.

    Attributes:
        actions: The command's subcommands. For commands in Jackfield's own packages, errors about unknown commands
            suggest them.
    """

    actions: tuple[str, ...] = ()


class TokenizerSpec(ComponentSpec):
    """A tokenizer: `jackfield.tokenizers.Tokenizer`."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class EmbedderSpec(ComponentSpec):
    """An embedder: `jackfield.retrieval.Embedder`.

    Attributes:
        included_model: The model whose weights are included in the package, so it needs neither a download nor a
            service, or '' if there is none. If neither a searcher nor a model is configured, search uses this model in
            addition to keywords.
    """

    included_model: str = ""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SandboxSpec(ComponentSpec):
    """A sandbox: `jackfield.sandboxes.Sandbox`.

    Attributes:
        runs_programs: True if the class is a `ProgramSandbox`.
        runs_code: True if the class is a `CodeSandbox`.
    """

    runs_programs: bool = True
    runs_code: bool = False


class ObserverSpec(ComponentSpec):
    """An observer of run events: `jackfield.runs.Observer`. Observers are only active if they are named or enabled."""


class StoreSpec(ComponentSpec):
    """A store for run records: `jackfield.stores.Store`."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ServerSpec(ComponentSpec):
    """A server (face) that exposes agents to clients over one protocol: `jackfield.servers.Server`.

    Attributes:
        http: True if the class is an `HttpServer`.
        stdio: True if the class is a `StdioServer`.
    """

    http: bool = True
    stdio: bool = False
