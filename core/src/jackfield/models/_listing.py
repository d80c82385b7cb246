"""Optional protocol for backends that can list their server's models."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class ListsModels(Protocol):
    """Protocol for a backend that can list its server's models."""

    async def alist_models(self) -> list[str]:
        """Return the names of the server's models in the order given by the server.

        Raises:
            ModelServiceError: The server did not answer, or does not list its models.
            ConfigError: The server's address or API key is missing.
        """
        ...
