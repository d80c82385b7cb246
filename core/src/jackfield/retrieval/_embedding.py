"""Embedders, which convert texts to vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from jackfield.config import Configured
from jackfield.messages import Usage

if TYPE_CHECKING:
    from jackfield.plugins import Plugins

Vector = tuple[float, ...]
Purpose = Literal["document", "query"]


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vectors of some texts.

    Attributes:
        vectors: One vector per text, in order, all of the same length.
        usage: The usage, with the texts' tokens as `prompt_tokens`.
    """

    vectors: tuple[Vector, ...]
    usage: Usage = field(default_factory=Usage)


class Embedder(Configured, ABC):
    """Converter of texts to vectors, which are close to each other if the texts have similar meanings.

    `config_class` defines the settings; see `Configured`. An embedder connects on the first call, serves many tasks,
    threads and event loops at once, and splits any number of texts into requests.

    Attributes:
        space: The identity of the vector space: the model, and options that change the vectors, such as the dimension.
            Vectors from different spaces cannot be compared.
        dimension: The length of the vectors, or None if it is unknown before the first call.
    """

    backend: ClassVar[str]

    @property
    @abstractmethod
    def space(self) -> str:
        """The identity of the vector space."""

    @property
    def dimension(self) -> int | None:
        """The length of the vectors, or None if it is unknown before the first call."""
        return None

    @abstractmethod
    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        """Return the vectors of the texts, or an empty list if there are none.

        Args:
            texts: The texts, none of them empty.
            purpose: `document` for texts to search, `query` for queries. Some models treat them differently.

        Raises:
            ValueError: A text is empty. The message contains its number.
            ModelServiceError: The server failed or rejected the request.
        """

    async def aclose(self) -> None:
        """Close connections that calls opened. A later call reopens them."""


def make_embedder(name: str, settings: Mapping[str, object], *, host: Plugins) -> Embedder:
    """Create an embedder by name or address.

    Args:
        name: The name or address.
        settings: The embedder's settings. They override those in `[settings."embedder.NAME"]` of the user's
            `config.toml`.
        host: The plugin host that resolves the name.

    Raises:
        ConfigError: A setting is unknown or not valid.
        PluginError: The embedder is not installed or cannot be loaded.
    """
    row = host.find("embedder", name)
    return host.make(row, {**host.settings.options_of(row.kind, row.address), **settings}, Embedder)
