"""The method with which components declare their secrets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable


@runtime_checkable
class HasSecrets(Protocol):
    """A component that declares its secrets."""

    def secret_sources(self) -> Iterable[object]:
        """Yield everything that may hold secrets: settings, `Secret`s, and other components."""


class StatesSecrets:
    """Mixin that declares all attributes (settings, keys and other components) as possible sources of secrets."""

    def secret_sources(self) -> Iterable[object]:
        """Yield everything that may hold secrets: settings, `Secret`s, and other components.

        To add sources that are not attributes, override this method and start with `yield from
        super().secret_sources()`.
        """
        yield getattr(self, "__dict__", {})
