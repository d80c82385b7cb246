"""Embedders, which turn texts into vectors."""

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
    """Texts as vectors.

    Attributes:
        vectors: One vector per text, in order, all of the same length.
        usage: The usage; `prompt_tokens` are the tokens of the texts.
    """

    vectors: tuple[Vector, ...]
    usage: Usage = field(default_factory=Usage)


class Embedder(Configured, ABC):
    """Turns texts into vectors, so that texts with similar meanings are close to each other.

    `config_class` defines its settings; see `Configured`. An embedder connects at the first call, serves many tasks,
    threads and event loops at once, and splits any number of texts into requests itself.

    Attributes:
        space: The identity of the vector space: the model, and options that change the vectors, such as the dimension.
            Vectors of different spaces cannot be compared.
        dimension: The length of a vector; None if unknown before the first call.
    """

    backend: ClassVar[str]

    @property
    @abstractmethod
    def space(self) -> str:
        """The identity of the vector space."""

    @property
    def dimension(self) -> int | None:
        """The length of a vector; None if unknown before the first call."""
        return None

    @abstractmethod
    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        """Return the vectors of texts; an empty list for no texts.

        Args:
            texts: The texts. Empty texts are an error.
            purpose: `document` for texts to search, `query` for queries. Some models treat them differently.

        Raises:
            ValueError: A text is empty. The message has its number.
            ModelServiceError: The server failed or refused.
        """

    async def aclose(self) -> None:
        """Close connections that calls opened. A later call opens them again."""


def make_embedder(name: str, settings: Mapping[str, object], *, host: Plugins) -> Embedder:
    """Make an embedder by its name or address.

    Args:
        name: The name or address.
        settings: The embedder's settings. They override those in `[settings."embedder.NAME"]` of the user's
            `config.toml`.
        host: The plugins in which it is looked up.

    Raises:
        ConfigError: A setting is unknown or not valid.
        PluginError: The embedder is not installed or cannot be loaded.
    """
    row = host.find("embedder", name)
    return host.make(row, {**host.settings.options_of(row.kind, row.address), **settings}, Embedder)
