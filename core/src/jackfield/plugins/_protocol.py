"""Protocol for an application's plugins, as used by the rest of the core and by components."""

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
    """Protocol for finding, describing, loading and creating components. `PluginHost` implements it."""

    @property
    def settings(self) -> Settings:
        """The application's settings, including its secrets."""

    @property
    def policy(self) -> Policy:
        """The current rules for which components may load, with the reasons why others must not."""

    def find(self, kind: str, address: str) -> Row:
        """Resolve a name or `distribution/name` to a component; see `PluginHost.find`."""

    def names(self, kind: str) -> list[str]:
        """List the usable component names of a kind, without duplicates."""

    def enabled(self, kind: str) -> list[Row]:
        """List the components of a kind that are active without being named in code."""

    def specs(self, kind: str, spec_class: type[Spec]) -> list[tuple[Row, Spec]]:
        """Return the descriptors of the components of a kind that may be selected without being named."""

    def spec_of(self, row: Row, spec_class: type[Spec]) -> Spec:
        """Return a component's descriptor, importing its light module."""

    def load_row(self, row: Row) -> Any:
        """Import a component's module and return its class or function."""

    def load_target(self, row: Row, target: str) -> Any:
        """Import an object that a component's descriptor names, such as its settings class."""

    def make(self, row: Row, cfg: Mapping[str, object], base: type[Component]) -> Component:
        """Create a component from its settings."""

    def narrowed_to(self, row: Row) -> Plugins:
        """Return the host to pass to a component, possibly with fewer secrets."""
