"""The hooks, typed at both ends.

Authors write `@hook.tools` over a function that returns descriptors; type checkers see a wrong return type. The core
asks through `answers_of`, the one place that reads pluggy's registrations. A hook is called at most once per plugin,
does no work, and returns light values: nothing that flows (a delta, a result) passes through a hook.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import pluggy

from jackfield.plugins.descriptors import (
    KINDS,
    AgentSpec,
    CallFormatSpec,
    CommandSpec,
    ComponentSpec,
    EmbedderSpec,
    LLMSpec,
    ObserverSpec,
    ParserSpec,
    ProcessorSpec,
    RunnerSpec,
    SandboxSpec,
    SearcherSpec,
    ServerSpec,
    StoreSpec,
    TokenizerSpec,
    ToolSpec,
)
from jackfield.plugins.kinds import hook_name
from jackfield.settings import near

PROJECT = "jackfield"
_implement = pluggy.HookimplMarker(PROJECT)
_specify = pluggy.HookspecMarker(PROJECT)

Spec = TypeVar("Spec", bound=ComponentSpec)
Offer = Callable[[], Sequence[Spec]]


class _Hook:
    """The decorators for authors, one for each kind."""

    if not TYPE_CHECKING:  # a type checker finds a misspelt one by itself

        def __getattr__(self, name):
            raise AttributeError(_unknown_hook(name), name=name, obj=self)

    def llms(self, function: Offer[LLMSpec], /) -> Offer[LLMSpec]:
        """Offer backends."""
        return _marked(function, "llms")

    def tools(self, function: Offer[ToolSpec], /) -> Offer[ToolSpec]:
        """Offer tools."""
        return _marked(function, "tools")

    def searchers(self, function: Offer[SearcherSpec], /) -> Offer[SearcherSpec]:
        """Offer searchers."""
        return _marked(function, "searchers")

    def processors(self, function: Offer[ProcessorSpec], /) -> Offer[ProcessorSpec]:
        """Offer processors."""
        return _marked(function, "processors")

    def agents(self, function: Offer[AgentSpec], /) -> Offer[AgentSpec]:
        """Offer agent kinds."""
        return _marked(function, "agents")

    def call_formats(self, function: Offer[CallFormatSpec], /) -> Offer[CallFormatSpec]:
        """Offer call formats."""
        return _marked(function, "call_formats")

    def tokenizers(self, function: Offer[TokenizerSpec], /) -> Offer[TokenizerSpec]:
        """Offer tokenizers."""
        return _marked(function, "tokenizers")

    def embedders(self, function: Offer[EmbedderSpec], /) -> Offer[EmbedderSpec]:
        """Offer embedders."""
        return _marked(function, "embedders")

    def parsers(self, function: Offer[ParserSpec], /) -> Offer[ParserSpec]:
        """Offer document parsers."""
        return _marked(function, "parsers")

    def sandboxes(self, function: Offer[SandboxSpec], /) -> Offer[SandboxSpec]:
        """Offer sandboxes."""
        return _marked(function, "sandboxes")

    def stores(self, function: Offer[StoreSpec], /) -> Offer[StoreSpec]:
        """Offer stores of runs."""
        return _marked(function, "stores")

    def runners(self, function: Offer[RunnerSpec], /) -> Offer[RunnerSpec]:
        """Offer runners of batches."""
        return _marked(function, "runners")

    def observers(self, function: Offer[ObserverSpec], /) -> Offer[ObserverSpec]:
        """Offer observers."""
        return _marked(function, "observers")

    def commands(self, function: Offer[CommandSpec], /) -> Offer[CommandSpec]:
        """Offer commands."""
        return _marked(function, "commands")

    def servers(self, function: Offer[ServerSpec], /) -> Offer[ServerSpec]:
        """Offer servers."""
        return _marked(function, "servers")


hook = _Hook()


def _marked(function: Offer[Spec], name: str) -> Offer[Spec]:
    # `specname` lets the function have any name, so a typing slip in it cannot silence the hook.
    return _implement(function, specname=name)


def _unknown_hook(name: str) -> str:
    close = near(name, list(map(hook_name, KINDS)))
    meant = f": did you mean {' or '.join(map(repr, close))}?" if close else ""
    return f"unknown hook {name!r}{meant or '; a newer core may have it'}"


def _specification() -> type:
    """A class with one empty method for each kind: what pluggy checks registrations against."""

    def specified(name: str) -> Callable[..., Any]:
        def empty(self: object) -> None:
            """Return descriptors."""

        empty.__name__ = name
        return _specify(empty)

    return type("Hooks", (), {hook_name(kind): specified(hook_name(kind)) for kind in KINDS})


class RegistrationManager(pluggy.PluginManager):
    """Registers the hooks that offer components, and refuses what cannot work: hooks that are async or unknown."""

    _offered: ClassVar[frozenset[str]] = frozenset(map(hook_name, KINDS))

    def __init__(self) -> None:
        super().__init__(PROJECT)
        self.add_hookspecs(_specification())

    def parse_hookimpl_opts(self, plugin: object, name: str) -> pluggy.HookimplOpts | None:
        """As pluggy's, and checked: pluggy itself would take an `async def` and never await it."""
        options = super().parse_hookimpl_opts(plugin, name)
        if options is None:
            return None
        if (options["specname"] or name) not in self._offered:
            raise pluggy.PluginValidationError(plugin, _unknown_hook(options["specname"] or name))
        function = getattr(plugin, name)
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise pluggy.PluginValidationError(plugin, f"the hook {name!r} is async; hooks are plain functions")
        return options


def answers_of(manager: pluggy.PluginManager, plugin_name: str, kind: str) -> list[ComponentSpec]:
    """What one registered plugin offers of one kind. Only its own hook is called, so no other can fail here.

    Raises:
        TypeError: The hook returned something else than a list of the kind's descriptors.
    """
    wanted = KINDS[kind]
    caller = cast("pluggy.HookCaller", getattr(manager.hook, hook_name(kind)))
    offers: list[ComponentSpec] = []
    for implementation in caller.get_hookimpls():
        if implementation.plugin_name != plugin_name:
            continue
        answer = implementation.function()
        if not isinstance(answer, Sequence) or not all(isinstance(spec, wanted) for spec in answer):
            raise TypeError(f"the hook {hook_name(kind)!r} must return a list of {wanted.__name__}")
        offers += answer
    return offers
