"""All hooks: what each one provides and when it is called. The function bodies are examples and never run.

Plugin authors import this module as `hook` and decorate a plain function without arguments:

```python
from jackfield.plugins import ToolSpec, hook

@hook.tools
def tools() -> list[ToolSpec]:
    return [ToolSpec(name="clock", target="jackfield_clock.tool:Clock", description="Tell the time.")]
```

A hook returns lightweight values and does no other work. When one of a plugin's components is looked up, the hook is
called once for that plugin. Deltas, results and other run data never pass through a hook. Each component in the list
needs an entry point `kind.name`. An entry point `kind.*` covers everything that the hook returns.

This file determines the kinds, their stability, their descriptors and the base classes of their targets. To add a kind,
add a function here, a descriptor, and a package with the contract.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackfield._hooks import Hook, provisional, stable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackfield.descriptors import (
        AgentSpec,
        CallFormatSpec,
        CommandSpec,
        EmbedderSpec,
        LLMSpec,
        ObserverSpec,
        ParserSpec,
        PostprocessorSpec,
        PreprocessorSpec,
        ProcessorSpec,
        SandboxSpec,
        SearcherSpec,
        ServerSpec,
        StoreSpec,
        TokenizerSpec,
        ToolsetSpec,
        ToolSpec,
    )


@stable("jackfield.models:BaseChatModel")
def llms() -> list[LLMSpec]:
    """Offer backends, which connect to models. Called when a model that uses one of the backends is created."""
    return [LLMSpec(name="acme", target="jackfield_acme.backend:AcmeChat", secrets=("ACME_API_KEY",))]


@stable("jackfield.tools:BaseTool")
def tools() -> list[ToolSpec]:
    """Offer tools, which models can call. Called when an agent uses one of the tools."""
    return [ToolSpec(name="clock", target="jackfield_clock.tool:Clock", description="Tell the time.")]


@provisional("jackfield.tools:Toolset", kind="tool")
def toolsets() -> list[ToolsetSpec]:
    """Offer toolsets, each under one name.

    The entry points are `tool.NAME`, as for tools. Called in the same cases as `tools`.
    """
    return [ToolsetSpec(name="files", tools=("read_file", "write_file"))]


@stable("jackfield.retrieval:Searcher")
def searchers() -> list[SearcherSpec]:
    """Offer document searchers. Called when a retrieval configuration names one of the searchers."""
    return [SearcherSpec(name="vector", target="jackfield_vector.searcher:VectorSearcher")]


@stable("jackfield.processors:Processor")
def processors() -> list[ProcessorSpec]:
    """Offer processors, which wrap each model call. Called when one of the processors is named or enabled."""
    return [ProcessorSpec(name="cache", target="jackfield_cache.processor:Cache", phase="context")]


@stable("", kind="processor")
def preprocessors() -> list[PreprocessorSpec]:
    """Offer processors that only change the request. The target is a function that takes and returns a `ChatRequest`.

    Called in the same cases as `processors`. The entry points are `processor.NAME`, as for processors.
    """
    return [PreprocessorSpec(name="polite", target="jackfield_polite.ask:say_please", phase="input")]


@stable("", kind="processor")
def postprocessors() -> list[PostprocessorSpec]:
    """Offer processors that only change the answer. The target takes a `ChatRequest` and returns a `StreamTransform`.

    Called in the same cases as `processors`. The entry points are `processor.NAME`, as for processors.
    """
    return [PostprocessorSpec(name="dashes", target="jackfield_dashes.transform:Dashes")]


@stable("jackfield.agents:Agent")
def agents() -> list[AgentSpec]:
    """Offer agent kinds. Called when `create_agent` or an agent file names one of the kinds."""
    return [AgentSpec(name="librarian", target="jackfield_librarian.agent:Librarian")]


@provisional("jackfield.retrieval:Parser")
def parsers() -> list[ParserSpec]:
    """Offer document parsers. Called when one of the parsers may be able to read a document."""
    return [ParserSpec(name="csv", target="jackfield_csv.parser:CSVParser", extensions=("csv",))]


@provisional("jackfield.processors:CallFormat")
def call_formats() -> list[CallFormatSpec]:
    """Offer formats for writing tool calls as text. Called when a model without native tool calls is given tools."""
    return [CallFormatSpec(name="brackets", target="jackfield_brackets.call_format:Brackets")]


@provisional("jackfield.tokenizers:Tokenizer")
def tokenizers() -> list[TokenizerSpec]:
    """Offer tokenizers. Called when a processor's settings name one of the tokenizers."""
    return [TokenizerSpec(name="acme", target="jackfield_acme.tokenizer:AcmeTokenizer")]


@provisional("jackfield.retrieval:Embedder")
def embedders() -> list[EmbedderSpec]:
    """Offer embedders, which convert texts to vectors. Called when a searcher's settings name one of the embedders."""
    return [EmbedderSpec(name="acme", target="jackfield_acme.embedder:AcmeEmbedder")]


@provisional("jackfield.sandboxes:Sandbox", kind="sandbox")
def sandboxes() -> list[SandboxSpec]:
    """Offer sandboxes, which run code. Called when a tool's settings name one of the sandboxes or `auto`."""
    return [SandboxSpec(name="acme", target="jackfield_acme.sandbox:AcmeSandbox")]


@provisional("jackfield.runs:Observer")
def observers() -> list[ObserverSpec]:
    """Offer observers, which receive the events of each run. Called when one of the observers is enabled."""
    return [ObserverSpec(name="journal", target="jackfield_journal.observer:Journal")]


@provisional("jackfield.stores:Store")
def stores() -> list[StoreSpec]:
    """Offer stores for run records. Called when an agent or a command names one of the stores."""
    return [StoreSpec(name="ledger", target="jackfield_ledger.store:Ledger", effects=frozenset({"files"}))]


@provisional("jackfield.servers:Server")
def servers() -> list[ServerSpec]:
    """Offer faces, which expose agents to clients over a protocol. Called when `jackfield serve` names a face."""
    return [ServerSpec(name="acme", target="jackfield_acme.server:AcmeServer")]


@provisional("")
def commands() -> list[CommandSpec]:
    """Offer `jackfield` commands: functions that take `list[str]` and return an exit code.

    Called when a command runs.
    """
    return [CommandSpec(name="serve", target="jackfield_serve.command:main")]


HOOKS: Mapping[str, Hook[Any]] = {one.name: one for one in list(globals().values()) if isinstance(one, Hook)}
"""Every hook, by name."""


def hooks_of(kind: str) -> list[Hook[Any]]:
    """Return the hooks that offer components of a kind: the kind's own hook, then the hooks for its simpler forms."""
    return [one for one in HOOKS.values() if one.kind == kind]


KINDS: Mapping[str, Hook[Any]] = {one.kind: hooks_of(one.kind)[0] for one in HOOKS.values()}
"""Every kind, with its hook."""


def unknown_hook(name: str) -> str:
    """Return the error message for an unknown hook."""
    from jackfield.suggestions import close_names

    close = close_names(name, list(HOOKS))
    hint = f": did you mean {' or '.join(map(repr, close))}?" if close else "; a newer core may define it"
    return f"unknown hook {name!r}{hint}"


if not TYPE_CHECKING:  # type checkers report misspelt hooks on their own

    def __getattr__(name):
        # Imports look up `__path__`, and need no suggestions.
        raise AttributeError(name if name.startswith("__") else unknown_hook(name), name=name)
