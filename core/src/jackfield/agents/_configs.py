"""An agent's configuration, as written in a file or a dict."""

from __future__ import annotations

from itertools import chain
from typing import Any, TypeGuard

from pydantic import Field, model_validator

from jackfield.config import Adjustable, ComponentSettings, Config, Limits, SettingsDict

CORE_KINDS = ("basic", "fncall")
"""The core's agent kinds, whose only options are those of `AgentConfig`."""


class AgentConfig(Config):
    """An agent configured in a file or on the command line. Extra settings become options of the agent kind."""

    agent: str = Field(default="fncall", description="The agent kind: fncall, basic, or a plugin's (assistant …)")
    llm: str | ComponentSettings | None = Field(default=None, description="backend:model, or the settings of LLMConfig")
    function_list: tuple[str | ComponentSettings, ...] = Field(
        default=(),
        description="Names or addresses of tools, dicts of `name` and settings, or agents: dicts with `agent` as here",
    )
    handoffs: tuple[ComponentSettings, ...] = Field(
        default=(),
        description="Agents that can take the conversation over, as dicts like this; history: all or question",
    )
    system_message: str = Field(default="", description="Put before the caller's system message")
    name: str | None = Field(default=None, description="Its name, for people and for other agents")
    description: str | None = Field(default=None, description="Its purpose, for other agents")
    prompt: str = Field(
        default="", description="The question for `jackfield run`; {{ input }} inserts the typed text; code ignores it"
    )
    suggestions: tuple[str, ...] = Field(
        default=(), description="Questions that the web page offers at the start of a conversation"
    )
    adjustable: tuple[Adjustable, ...] = Field(
        default=(), description="Model options that users may change on the web page: temperature, top_p …"
    )
    models: tuple[str, ...] = Field(
        default=(), description="Other models that users may choose on the web page, as backend:model"
    )
    files: tuple[str, ...] = Field(default=(), description="Paths of the documents it can use")
    rag_cfg: ComponentSettings | None = Field(
        default=None, description="How documents are split and searched, for agent kinds that search them"
    )
    extra_generate_cfg: ComponentSettings | None = Field(
        default=None, description="Overrides the model's own generate_cfg"
    )
    observers: tuple[str, ...] = Field(default=(), description="Names of observers, which receive every event")
    store: str | ComponentSettings | None = Field(
        default=None, description="The store that records its runs: a name, or a dict of `name` and settings"
    )
    limits: Limits = Limits()
    approve: str | dict[str, Any] | None = Field(
        default=None, description="Which calls need approval: ask, read_only, or {allow: [names of tools]}"
    )
    forbid: tuple[str, ...] = Field(
        default=(), description="Effects that its tools may not have: network, files …; its model may"
    )
    options: ComponentSettings = Field(
        default=SettingsDict(), description="Options of its kind; they may also be written without this key"
    )

    @model_validator(mode="before")
    @classmethod
    def _with_options_of_the_kind(cls, given: Any) -> Any:
        if "options" in given or given.get("agent", "fncall") in CORE_KINDS:
            return given
        common = dict(given)
        own = {key: common.pop(key) for key in given if key not in cls.model_fields}
        return {**common, "options": own} if own else given

    def settings_of(self, tool: str) -> dict[str, object]:
        """Return the settings of the named tool, merged over the shared `rag_cfg`."""
        entries = (entry for entry in self.function_list if isinstance(entry, dict) and entry.get("name") == tool)
        return {**(self.rag_cfg or {}), **next(entries, {})}

    @property
    def agents(self) -> list[dict[str, Any]]:
        """The inner agents as dicts. Agents listed in `handoffs` may include `history`."""
        values = (value if isinstance(value, list | tuple) else [value] for value in self.options.values())
        return [*filter(is_agent, (*self.function_list, *chain(*values))), *self.handoffs]

    def inner(self) -> list[AgentConfig]:
        """Return the inner agents, validated.

        Raises:
            ConfigError: A setting of an inner agent is unknown or not valid.
        """
        given = ({key: value for key, value in entry.items() if key != "history"} for entry in self.agents)
        return [AgentConfig.parse(entry, what="agent") for entry in given]


def is_agent(entry: object) -> TypeGuard[dict[str, Any]]:
    """Return True if a tool list entry or an agent option describes an agent."""
    return isinstance(entry, dict) and "agent" in entry
