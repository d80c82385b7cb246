"""What it offers: the component of each example."""

from __future__ import annotations

from jackfield.plugins import (
    AgentSpec,
    CallFormatSpec,
    CommandSpec,
    EmbedderSpec,
    LLMSpec,
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

HOME = "jackfield_acme.components"
PARAMETERS = {
    "type": "object",
    "properties": {"text": {"type": "string", "description": "Whose words are counted"}},
    "required": ["text"],
    "additionalProperties": False,
}


@hook.agents
def agents() -> list[AgentSpec]:
    return [
        AgentSpec(name="acme", target="jackfield_zoo.agents:Honest"),
        AgentSpec(name="panel", target="jackfield_zoo.panels:Panel"),
    ]


@hook.call_formats
def call_formats() -> list[CallFormatSpec]:
    return [CallFormatSpec(name="acme", target=f"{HOME}:Format")]


@hook.commands
def commands() -> list[CommandSpec]:
    return [CommandSpec(name="report", target="jackfield_acme.report:main")]


@hook.embedders
def embedders() -> list[EmbedderSpec]:
    effects = frozenset({"network"})
    return [EmbedderSpec(name="acme", target=f"{HOME}:Embeds", config=f"{HOME}:EmbedsConfig", effects=effects)]


@hook.llms
def llms() -> list[LLMSpec]:
    return [LLMSpec(name="acme", target=f"{HOME}:Chat", secrets=("TINY_KEY",), effects=frozenset({"network"}))]


@hook.observers
def observers() -> list[ObserverSpec]:
    return [ObserverSpec(name="acme", target="jackfield_zoo.observers:Honest")]


@hook.parsers
def parsers() -> list[ParserSpec]:
    return [ParserSpec(name="acme", target=f"{HOME}:Reads", extensions=("acme",))]


@hook.processors
def processors() -> list[ProcessorSpec]:
    return [ProcessorSpec(name="shout", target=f"{HOME}:Shouts", phase="output")]


@hook.sandboxes
def sandboxes() -> list[SandboxSpec]:
    return [
        SandboxSpec(name="acme", target="jackfield_zoo.sandboxes:Honest"),
        SandboxSpec(name="acme-code", target="jackfield_zoo.sandboxes:HonestCode", runs_programs=False, runs_code=True),
    ]


@hook.searchers
def searchers() -> list[SearcherSpec]:
    return [SearcherSpec(name="acme", target="jackfield_zoo.searchers:Honest")]


@hook.tokenizers
def tokenizers() -> list[TokenizerSpec]:
    return [TokenizerSpec(name="acme", target=f"{HOME}:Bytes")]


@hook.tools
def tools() -> list[ToolSpec]:
    return [ToolSpec(name="counter", target=f"{HOME}:Counter", description="Counts words.", parameters=PARAMETERS)]


@hook.toolsets
def toolsets() -> list[ToolsetSpec]:
    return [ToolsetSpec(name="clocks", target="jackfield_zoo.toolsets:Honest")]


@hook.stores
def stores() -> list[StoreSpec]:
    return [StoreSpec(name="acme", target="jackfield_zoo.stores:Honest")]


@hook.servers
def servers() -> list[ServerSpec]:
    return [
        ServerSpec(name="acme", target="jackfield_zoo.servers:Honest"),
        ServerSpec(name="acme-lines", target="jackfield_zoo.servers:HonestLines", http=False, stdio=True),
    ]
