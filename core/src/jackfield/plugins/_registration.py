"""Register plugins with pluggy, reject invalid hooks and call valid hooks. No other module uses pluggy.

Each plugin is called separately, so it cannot break other plugins. Answers must have the type that the hook declares.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TypeVar

import pluggy

from jackfield._hooks import PROJECT, Hook
from jackfield.descriptors import ComponentSpec
from jackfield.hookspecs import HOOKS, hooks_of, unknown_hook

Spec = TypeVar("Spec", bound=ComponentSpec)

_MEANINGLESS_OPTIONS = {
    "wrapper": "would wrap other plugins, but each plugin is called separately",
    "hookwrapper": "would wrap other plugins, but each plugin is called separately",
    "tryfirst": "would be called first, but plugins have no order",
    "trylast": "would be called last, but plugins have no order",
}


class RegistrationManager(pluggy.PluginManager):
    """pluggy's plugin manager, set up with the hooks of `hookspecs`."""

    def __init__(self) -> None:
        super().__init__(PROJECT)
        specified = pluggy.HookspecMarker(PROJECT)
        self.add_hookspecs(type("Hooks", (), {name: specified(one.specification) for name, one in HOOKS.items()}))

    def parse_hookimpl_opts(self, plugin: object, name: str) -> pluggy.HookimplOpts | None:
        """Validate a hook and return its pluggy options.

        pluggy itself would accept `async def` functions but never await them.
        """
        options = super().parse_hookimpl_opts(plugin, name)
        if options is None:
            return None
        hook = options["specname"] or name
        if hook not in HOOKS and options["optionalhook"]:
            return None
        if fault := _fault_of(getattr(plugin, name), hook, options):
            raise pluggy.PluginValidationError(plugin, fault)
        return options

    def answers(self, plugin_name: str, hook: Hook[Spec]) -> list[Spec]:
        """Call one registered plugin's implementation of a hook. No other plugin is called.

        Raises:
            TypeError: The answer is not a list of the hook's descriptors.
        """
        caller: pluggy.HookCaller = getattr(self.hook, hook.name)
        # pluggy's subset caller only excludes plugins, so it could call one that another thread has just registered.
        specs: list[Spec] = []
        for implementation in caller.get_hookimpls():
            if implementation.plugin_name == plugin_name:
                answer = implementation.function()
                if not isinstance(answer, Sequence) or not all(isinstance(spec, hook.spec_class) for spec in answer):
                    raise TypeError(f"hook {hook.name!r} must return a list of {hook.spec_class.__name__}")
                specs += answer
        return specs

    def offers(self, plugin_name: str, kind: str) -> list[ComponentSpec]:
        """Return the components of a kind that a registered plugin provides through any hook.

        Raises:
            TypeError: As for `answers`.
        """
        return [spec for hook in hooks_of(kind) for spec in self.answers(plugin_name, hook)]


def _fault_of(function: object, hook: str, options: pluggy.HookimplOpts) -> str:
    """Return the reason why a function cannot implement a hook, or '' if it can."""
    if hook not in HOOKS:
        return unknown_hook(hook)
    for option, why in _MEANINGLESS_OPTIONS.items():
        if options.get(option):
            return f"hook {hook!r} has {option}=True, which is not supported: the hook {why}; remove the option"
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return f"hook {hook!r} is async, but hooks must be plain functions"
    if inspect.isgeneratorfunction(function):
        return f"hook {hook!r} is a generator, but hooks must return a list"
    return ""
