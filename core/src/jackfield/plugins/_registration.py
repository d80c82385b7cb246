"""The one module that speaks to pluggy: it registers what answers hooks, refuses what cannot work, and asks.

Each plugin is asked by itself, so that none can break another. The answer to a hook has the
type that the hook says.
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

_WITHOUT_SENSE = {
    "wrapper": "wraps the answers of other plugins; each plugin answers for itself",
    "hookwrapper": "wraps the answers of other plugins; each plugin answers for itself",
    "tryfirst": "asks to be called first, but plugins have no order",
    "trylast": "asks to be called last, but plugins have no order",
}


class RegistrationManager(pluggy.PluginManager):
    """pluggy's manager, with the hooks of `hookspecs`."""

    def __init__(self) -> None:
        super().__init__(PROJECT)
        specified = pluggy.HookspecMarker(PROJECT)
        self.add_hookspecs(type("Hooks", (), {name: specified(one.specification) for name, one in HOOKS.items()}))

    def parse_hookimpl_opts(self, plugin: object, name: str) -> pluggy.HookimplOpts | None:
        """As pluggy's, and checked: pluggy itself would take an `async def` and never await it."""
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
        """What one registered plugin answers to a hook. No other plugin is called, so no other can fail here.

        Raises:
            TypeError: It is something else than a list of the hook's descriptors.
        """
        caller: pluggy.HookCaller = getattr(self.hook, hook.name)
        # Not a subset caller, which takes plugins away from those there are: one that another thread registers
        # meanwhile would be asked as well.
        own = (one for one in caller.get_hookimpls() if one.plugin_name == plugin_name)
        return [spec for one in own for spec in _checked(one.function(), hook)]

    def offers(self, plugin_name: str, kind: str) -> list[ComponentSpec]:
        """What one registered plugin offers of a kind, by whichever hook.

        Raises:
            TypeError: As `answers`.
        """
        return [spec for hook in hooks_of(kind) for spec in self.answers(plugin_name, hook)]


def _fault_of(function: object, hook: str, options: pluggy.HookimplOpts) -> str:
    """Why a function cannot answer a hook, or ''."""
    if hook not in HOOKS:
        return unknown_hook(hook)
    for option, why in _WITHOUT_SENSE.items():
        if options.get(option):
            return f"the hook {hook!r} has {option}=True, which {why}: leave it out"
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return f"the hook {hook!r} is async; hooks are plain functions"
    if inspect.isgeneratorfunction(function):
        return f"the hook {hook!r} is a generator; hooks return a list"
    return ""


def _checked(answer: object, hook: Hook[Spec]) -> Sequence[Spec]:
    wanted = hook.spec_class
    if isinstance(answer, Sequence) and all(isinstance(spec, wanted) for spec in answer):
        return answer
    raise TypeError(f"the hook {hook.name!r} must return a list of {wanted.__name__}")
