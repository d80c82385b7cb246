"""What a hook is: the decorator for whoever answers it, and what the core knows of the kind it is about.

Which hooks there are stands in `hookspecs`. Neither loads pluggy or the descriptors before somebody needs them: listing
what is installed needs the kinds' names only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar, get_args, get_type_hints, overload

if TYPE_CHECKING:
    from jackfield.descriptors import ComponentSpec

PROJECT = "jackfield"

Spec = TypeVar("Spec", bound="ComponentSpec")
Self = TypeVar("Self")
Offer = Callable[[], Sequence[Spec]]


class Hook(Generic[Spec]):
    """One hook. Decorating a function with it makes the function answer the hook, whatever the function's name is.

    Attributes:
        name: What pluggy knows it by.
        kind: The kind of what it offers.
        base: What a target of the kind extends or is, as `module:name`; '' if it is a plain function.
        is_stable: Whether the contract of the kind is settled.
        specification: The function that describes it.
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

    @overload  # of an object that code registers
    def __call__(self, function: Callable[[Self], Sequence[Spec]], /) -> Callable[[Self], Sequence[Spec]]: ...

    def __call__(self, function: Callable[..., Sequence[Spec]], /) -> Callable[..., Sequence[Spec]]:
        """Mark a function, or the method of an object, as an answer to this hook."""
        from pluggy import HookimplMarker

        # `specname` lets the function have any name, so a typing slip in it cannot silence the hook.
        return HookimplMarker(PROJECT)(function, specname=self.name)

    @cached_property
    def spec_class(self) -> type[Spec]:
        """The descriptor that it returns a list of."""
        from jackfield import descriptors

        (spec_class,) = get_args(get_type_hints(self.specification, vars(descriptors))["return"])
        found: type[Spec] = spec_class
        return found

    def __repr__(self) -> str:
        return f"<hook {self.name}>"


def stable(base: str, *, kind: str = "") -> Callable[[Offer[Spec]], Hook[Spec]]:
    """A hook whose contract is settled; its kind is its name in the singular, if none is given."""
    return lambda specification: Hook(specification, base=base, kind=kind, is_stable=True)


def provisional(base: str, *, kind: str = "") -> Callable[[Offer[Spec]], Hook[Spec]]:
    """A hook whose contract may still change: the kind has fewer than two real plugins, or is young."""
    return lambda specification: Hook(specification, base=base, kind=kind, is_stable=False)
