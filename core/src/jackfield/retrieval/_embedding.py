"""Vectors of texts, and the embedders that make them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from jackfield.config import Configured
from jackfield.messages import Usage

Vector = tuple[float, ...]
Purpose = Literal["document", "query"]


@dataclass(frozen=True, slots=True)
class Embedded:
    """Texts as vectors.

    Attributes:
        vectors: One for each text, in order, all of one length.
        usage: What it cost; `prompt_tokens` counts the texts.
    """

    vectors: tuple[Vector, ...]
    usage: Usage = field(default_factory=Usage)


class Embedder(Configured, ABC):
    """Turns texts into vectors, near each other where the texts mean something alike.

    Its settings are those of its `config_class`; see `Configured`. It makes no connection before the first call, and is
    used by many tasks, threads and event loops at once. Any number of texts may be given: how many go into one request
    is its own business.

    Attributes:
        space: Which vectors may be compared with each other: the model and what else decides them (the dimension). An
            index that was made in one space must not be asked in another.
        dimension: The length of a vector; None if it is not known before the first call.
    """

    backend: ClassVar[str]

    @property
    @abstractmethod
    def space(self) -> str:
        """See above."""

    @property
    def dimension(self) -> int | None:
        """See above."""
        return None

    @abstractmethod
    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        """The vectors of texts; of none, none.

        Args:
            texts: None of them empty.
            purpose: Whether the texts are to be found, or to be searched with; some models tell the two apart.

        Raises:
            ValueError: A text is empty; the message says which.
            ModelServiceError: The server failed or refused.
        """

    async def aclose(self) -> None:
        """Close what calls opened; the embedder may be used again, and reopens it."""
