"""A tokenizer that loads its encoding once, on first use from any thread."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from jackfield.tokenizers import Tokenizer
from jackfield_bpe.safe import SafeEncoding


class BPETokenizer(Tokenizer):
    """The base class for byte-pair tokenizers. Subclasses define `name` and `load`.

    Instances can be pickled; a copy loads the vocabulary again.
    """

    def __init__(self) -> None:
        self._loading = threading.Lock()
        self._loaded: SafeEncoding | None = None

    @abstractmethod
    def load(self) -> SafeEncoding:
        """Load the encoding. Called once, and again only after a failure.

        Raises:
            ConfigError: The vocabulary cannot be read; the message explains how to fix it.
        """

    @property
    def encoding(self) -> SafeEncoding:
        """The encoding, loaded on first use.

        Raises:
            ConfigError: See `load`.
        """
        if self._loaded is None:
            with self._loading:
                if self._loaded is None:
                    self._loaded = self.load()
        return self._loaded

    def encode(self, text: str) -> list[int]:
        """See `Tokenizer`."""
        return self.encoding.encode(text)

    def decode(self, tokens: Sequence[int]) -> str:
        """See `Tokenizer`."""
        return self.encoding.decode(tokens)

    def count(self, text: str) -> int:
        """See `Tokenizer`."""
        return self.encoding.count(text) if text else 0

    def cut(self, text: str, most: int) -> str:
        """See `Tokenizer`."""
        return self.encoding.cut(text, most) if most > 0 else ""

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name not in ("_loading", "_loaded")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _loading=threading.Lock(), _loaded=None)
