"""What the zoo offers. It need not be light: it is no plugin for anybody."""

from __future__ import annotations

from typing import Any

from jackfield.plugins import (
    AgentSpec,
    CallFormatSpec,
    EmbedderSpec,
    ObserverSpec,
    ParserSpec,
    ProcessorSpec,
    SandboxSpec,
    SearcherSpec,
    ServerSpec,
    StoreSpec,
    TokenizerSpec,
    ToolsetSpec,
    ToolSpec,
    hook,
)


@hook.tools
def tools() -> list[ToolSpec]:
    from jackfield_zoo.tools import ALL, Honest

    names = ("description", "parameters", "read_only", "concurrent", "timeout_s", "raw_argument", "file_access")
    specs = []
    for made in ALL:
        values: dict[str, Any] = {name: getattr(made, name) for name in names}
        values |= {"effects": made.effects, **made.stated}
        specs.append(
            ToolSpec(
                name=made.__name__,
                target=f"jackfield_zoo.tools:{made.__name__}",
                **values,
            )
        )
    parameters = Honest.parameters  # not those of the function
    return [
        *specs,
        ToolSpec(
            name="count_letters",
            target="jackfield_zoo.tools:count_letters",
            description="Counts.",
            parameters=parameters,
        ),
    ]


@hook.toolsets
def toolsets() -> list[ToolsetSpec]:
    from jackfield_zoo import toolsets as module

    made = [ToolsetSpec(name=f"Set{m.__name__}", target=f"{m.__module__}:{m.__name__}") for m in _classes(module)]
    return [*made, ToolsetSpec(name="SetOfTwoKinds", target="jackfield_zoo.toolsets:Honest", tools=("Honest",))]


def _classes(module: Any) -> list[Any]:
    return [made for made in vars(module).values() if isinstance(made, type) and made.__module__ == module.__name__]


@hook.searchers
def searchers() -> list[SearcherSpec]:
    from jackfield_zoo import searchers as module

    return [SearcherSpec(name=m.__name__, target=f"{m.__module__}:{m.__name__}") for m in _classes(module)]


@hook.parsers
def parsers() -> list[ParserSpec]:
    from jackfield_zoo import parsers as module

    specs = []
    for made in _classes(module):
        values: dict[str, Any] = {"extensions": (made.__name__.lower(),), "magic": (made.mark(),)}
        values |= {"in_process_bytes": 2**16, **made.stated}
        specs.append(ParserSpec(name=made.__name__, target=f"{made.__module__}:{made.__name__}", **values))
    return specs


@hook.processors
def processors() -> list[ProcessorSpec]:
    from jackfield_zoo import processors as module

    return [
        ProcessorSpec(name=m.__name__, target=f"{m.__module__}:{m.__name__}", phase=m.stated_phase)
        for m in _classes(module)
        if issubclass(m, module.Honest)
    ]


@hook.call_formats
def call_formats() -> list[CallFormatSpec]:
    from jackfield_zoo import call_formats as module

    made = [m for m in _classes(module) if issubclass(m, module.Honest)]
    return [CallFormatSpec(name=m.__name__, target=f"{m.__module__}:{m.__name__}") for m in made]


@hook.agents
def agents() -> list[AgentSpec]:
    from jackfield_zoo import agents as module
    from jackfield_zoo import panels

    made = [m for m in _classes(module) if issubclass(m, module.Honest)]
    made += [m for m in _classes(panels) if issubclass(m, panels.Panel)]
    return [AgentSpec(name=m.__name__, target=f"{m.__module__}:{m.__name__}") for m in made]


@hook.tokenizers
def tokenizers() -> list[TokenizerSpec]:
    from jackfield_zoo import tokenizers as module

    made = [m for m in _classes(module) if issubclass(m, module.Honest)]
    return [TokenizerSpec(name=m.__name__, target=f"{m.__module__}:{m.__name__}") for m in made]


@hook.embedders
def embedders() -> list[EmbedderSpec]:
    from jackfield_zoo import embedders as module

    return [
        EmbedderSpec(
            name=m.__name__,
            target=f"{m.__module__}:{m.__name__}",
            config=f"{m.__module__}:Settings",
            effects=frozenset({"network"}),
        )
        for m in _classes(module)
        if issubclass(m, module.Honest)
    ]


@hook.observers
def observers() -> list[ObserverSpec]:
    from jackfield_zoo import observers as module

    made = [m for m in _classes(module) if issubclass(m, module.Honest)]
    files = frozenset({"files"})
    return [
        ObserverSpec(
            name=m.__name__,
            target=f"{m.__module__}:{m.__name__}",
            config=f"{m.__module__}:Settings",
            effects=files if m.__name__ in ("WritesADiary", "WritesItsToken") else frozenset(),
        )
        for m in made
    ]


@hook.sandboxes
def sandboxes() -> list[SandboxSpec]:
    from jackfield_zoo import sandboxes as module

    made = [m for m in _classes(module) if issubclass(m, module.Honest | module.HonestCode)]
    return [
        SandboxSpec(
            name=m.__name__,
            target=f"{m.__module__}:{m.__name__}",
            runs_programs=issubclass(m, module.Honest),
            runs_code=issubclass(m, module.HonestCode),
        )
        for m in made
    ]


@hook.stores
def stores() -> list[StoreSpec]:
    from jackfield_zoo import stores as module

    made = [m for m in _classes(module) if issubclass(m, module.Honest)]
    return [
        StoreSpec(name=m.__name__, target=f"{m.__module__}:{m.__name__}", config=f"{m.__module__}:Settings")
        for m in made
    ]


@hook.servers
def servers() -> list[ServerSpec]:
    from jackfield_zoo import servers as module

    made = [m for m in _classes(module) if issubclass(m, module.Honest | module.HonestLines)]
    return [
        ServerSpec(
            name=m.__name__,
            target=f"{m.__module__}:{m.__name__}",
            http=issubclass(m, module.Honest),
            stdio=issubclass(m, module.HonestLines),
        )
        for m in made
    ]
