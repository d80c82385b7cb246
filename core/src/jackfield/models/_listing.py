"""The optional ability of a backend to name the models of its server."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class ListsModels(Protocol):
    """A backend that can ask its server which models it has."""

    async def alist_models(self) -> list[str]:
        """Return the names of the server's models, in the order of the server.

        Raises:
            ModelServiceError: The server did not answer, or has no list.
            ConfigError: The address or the key is missing.
        """
        ...
