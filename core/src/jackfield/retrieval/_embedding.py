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
    """The vectors that an embedder returned for a list of texts.

    Attributes:
        vectors: One vector per text, in order. All vectors have the same length.
        usage: The usage. `prompt_tokens` counts the tokens in the texts.
    """

    vectors: tuple[Vector, ...]
    usage: Usage = field(default_factory=Usage)


class Embedder(Configured, ABC):
    """Converts texts to vectors. Texts with similar meanings get vectors that are close to each other.

    `config_class` defines the settings; see `Configured`. An embedder connects on the first call, serves many tasks,
    threads and event loops concurrently, and splits any number of texts into requests.

    Attributes:
        space: The identity of the vector space: the model, and any options that change the vectors, such as the
            dimension. Vectors from different spaces cannot be compared.
        dimension: The length of the vectors, or None if the length is not known before the first call.
    """

    backend: ClassVar[str]

    @property
    @abstractmethod
    def space(self) -> str:
        """The identity of the vector space."""

    @property
    def dimension(self) -> int | None:
        """The length of the vectors, or None if the length is not known before the first call."""
        return None

    @abstractmethod
    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        """Return the vectors of the texts, or an empty list if there are none.

        Args:
            texts: The texts. No text may be empty.
            purpose: `document` for texts to be searched, `query` for queries. Some models treat the two differently.

        Raises:
            ValueError: A text is empty. The message contains the text's number.
            ModelServiceError: The server failed or rejected the request.
        """

    async def aclose(self) -> None:
        """Close connections that calls opened. A later call reopens them."""


def make_embedder(name: str, settings: Mapping[str, object], *, host: Plugins) -> Embedder:
    """Create an embedder by name or address.

    Args:
        name: The name or address.
        settings: The embedder's settings, which override the settings in `[settings."embedder.NAME"]` of the user's
            `config.toml`.
        host: The plugin host that resolves the name.

    Raises:
        ConfigError: A setting is unknown or not valid.
        PluginError: The embedder is not installed or cannot be loaded.
    """
    row = host.find("embedder", name)
    return host.make(row, {**host.settings.options_of(row.kind, row.address), **settings}, Embedder)
