"""The `Hook` class. A hook decorates its implementations and holds metadata about its kind.

`hookspecs` defines the hooks. Neither module loads pluggy or the descriptors until they are needed, because listing
plugins requires only the names of the kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar, cast, get_args, get_type_hints, overload

if TYPE_CHECKING:
    from jackfield.descriptors import ComponentSpec

PROJECT = "jackfield"

Spec = TypeVar("Spec", bound="ComponentSpec")
Self = TypeVar("Self")
Offer = Callable[[], Sequence[Spec]]


class Hook(Generic[Spec]):
    """A hook.

    When used as a decorator, a hook marks a function as its implementation. The function's name does not matter.

    Attributes:
        name: The hook's name in pluggy.
        kind: The kind of component that the hook provides.
        base: The class that targets extend, as `module:name`, or '' if targets are plain functions.
        is_stable: True if the kind's contract is final.
        specification: The function in `hookspecs` that documents the hook.
    """

    def __init__(self, specification: Offer[Spec], *, base: str, kind: str, is_stable: bool) -> None:
        self.name = specification.__name__
        self.kind = kind or self.name.removesuffix("s")
        self.base = base
        self.is_stable = is_stable
        self.specification = specification
        self.__doc__ = specification.__doc__

    @overload
    def __call__(self, function: Offer[Spec], /) -> Offer[Spec]: ...

    @overload  # the function is a method of a registered object
    def __call__(self, function: Callable[[Self], Sequence[Spec]], /) -> Callable[[Self], Sequence[Spec]]: ...

    def __call__(self, function: Callable[..., Sequence[Spec]], /) -> Callable[..., Sequence[Spec]]:
        """Mark a function or method as an implementation of this hook."""
        from pluggy import HookimplMarker

        # `specname` lets the function have any name, so a typo in the name cannot disable the hook.
        return HookimplMarker(PROJECT)(function, specname=self.name)

    @cached_property
    def spec_class(self) -> type[Spec]:
        """The descriptor class. Implementations return a list of instances of this class."""
        from jackfield import descriptors

        (spec_class,) = get_args(get_type_hints(self.specification, vars(descriptors))["return"])
        return cast("type[Spec]", spec_class)

    def __repr__(self) -> str:
        return f"<hook {self.name}>"


def stable(base: str, *, kind: str = "") -> Callable[[Offer[Spec]], Hook[Spec]]:
    """Define a hook with a final contract. `kind` defaults to the hook's name without the trailing s."""
    return lambda specification: Hook(specification, base=base, kind=kind, is_stable=True)


def provisional(base: str, *, kind: str = "") -> Callable[[Offer[Spec]], Hook[Spec]]:
    """Define a hook whose contract may change, because its kind is new or has fewer than two real plugins."""
    return lambda specification: Hook(specification, base=base, kind=kind, is_stable=False)
