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
    llm: str | ComponentSettings | None = Field(
        default=None, description="backend:model, or a dict with the settings of LLMConfig"
    )
    function_list: tuple[str | ComponentSettings, ...] = Field(
        default=(),
        description="Tool names or addresses, dicts with `name` and settings, or agents as dicts with `agent`",
    )
    handoffs: tuple[ComponentSettings, ...] = Field(
        default=(),
        description="Agents that can take over the conversation, as dicts like this one; history: all or question",
    )
    system_message: str = Field(default="", description="Added before the caller's system message")
    name: str | None = Field(default=None, description="The agent's name, shown to people and other agents")
    description: str | None = Field(default=None, description="The agent's purpose, shown to other agents")
    prompt: str = Field(
        default="",
        description="The question for `jackfield run`; {{ input }} inserts the user's input; ignored when used from "
        "code",
    )
    suggestions: tuple[str, ...] = Field(
        default=(), description="Questions suggested by the web page at the start of a conversation"
    )
    adjustable: tuple[Adjustable, ...] = Field(
        default=(), description="Model options that users may change on the web page: temperature, top_p …"
    )
    models: tuple[str, ...] = Field(
        default=(), description="Other models that users may choose on the web page, as backend:model"
    )
    files: tuple[str, ...] = Field(default=(), description="Paths of the documents that the agent can use")
    rag_cfg: ComponentSettings | None = Field(
        default=None, description="How documents are split and searched, for agent kinds that search documents"
    )
    extra_generate_cfg: ComponentSettings | None = Field(
        default=None, description="Overrides the model's own generate_cfg"
    )
    observers: tuple[str, ...] = Field(default=(), description="Names of observers that receive every event")
    store: str | ComponentSettings | None = Field(
        default=None, description="The store that records the agent's runs: a name, or a dict with `name` and settings"
    )
    limits: Limits = Field(default_factory=Limits)
    approve: str | dict[str, Any] | None = Field(
        default=None, description="Which tool calls need approval: ask, read_only, or {allow: [tool names]}"
    )
    forbid: tuple[str, ...] = Field(
        default=(), description="Effects that tools may not have: network, files …; does not apply to the model"
    )
    options: ComponentSettings = Field(
        default=SettingsDict(), description="Options of the agent kind; can also be given at the top level"
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
