"""The interface to an application's plugins, for the rest of the core and for components."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from jackfield.descriptors import ComponentSpec
    from jackfield.plugins._catalog import Row
    from jackfield.plugins._policy import Policy
    from jackfield.settings import Settings

Spec = TypeVar("Spec", bound="ComponentSpec")
Component = TypeVar("Component")


class Plugins(Protocol):
    """Finds, describes, loads and makes components. `PluginHost` implements it."""

    @property
    def settings(self) -> Settings:
        """The settings of the application, with its secrets."""

    @property
    def policy(self) -> Policy:
        """The current rules: which components may load, and why others may not."""

    def find(self, kind: str, address: str) -> Row:
        """Return the component that a name or `distribution/name` means; see `PluginHost.find`."""

    def names(self, kind: str) -> list[str]:
        """List the usable names of a kind, each once."""

    def enabled(self, kind: str) -> list[Row]:
        """List the components of a kind that act without being named in code."""

    def specs(self, kind: str, spec_class: type[Spec]) -> list[tuple[Row, Spec]]:
        """Describe the components of a kind that may be picked without being named."""

    def spec_of(self, row: Row, spec_class: type[Spec]) -> Spec:
        """Return the descriptor of a component, and import its light module."""

    def load_row(self, row: Row) -> Any:
        """Return the class or function of a component, and import its module."""

    def load_target(self, row: Row, target: str) -> Any:
        """Return an object that a component's descriptor names, such as the class of its settings."""

    def make(self, row: Row, cfg: Mapping[str, object], base: type[Component]) -> Component:
        """Make a component from its settings."""

    def narrowed_to(self, row: Row) -> Plugins:
        """Return the plugins for a component: these, perhaps with fewer secrets."""
