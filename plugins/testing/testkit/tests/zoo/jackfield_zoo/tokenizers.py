"""A tokenizer that does all as it should, and tokenizers that do one thing otherwise."""

from __future__ import annotations

import random
import re
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from types import ModuleType

from jackfield.errors import ConfigError
from jackfield.tokenizers import Tokenizer

HALF = re.compile("[\ud800-\udfff]")


class PanicException(BaseException):
    """What ends a thread."""


class Honest(Tokenizer):
    """Its tokens are bytes."""

    def __init__(self) -> None:
        self.name = type(self).__name__

    def encode(self, text: str) -> list[int]:
        return list(self.bytes_of(text))

    def decode(self, tokens: Sequence[int]) -> str:
        return bytes(tokens).decode(errors="replace")

    def count(self, text: str) -> int:
        return len(self.bytes_of(text))

    def bytes_of(self, text: str) -> bytes:
        return HALF.sub("\ufffd", text).encode()


class Renames(Honest):
    def __init__(self) -> None:
        self.name = "another"


class ReadsAtOnce(Honest):
    def __init__(self) -> None:
        super().__init__()
        with tempfile.TemporaryFile() as file:
            file.read()


class CountsBelowZero(Honest):
    def encode(self, text: str) -> list[int]:
        return [-1 - token for token in super().encode(text)]


class OverlooksLetters(Honest):
    """A letter alone has no tokens."""

    def count(self, text: str) -> int:
        return 0 if len(text) == 1 and text.isalpha() else super().count(text)


class GivesFloats(Honest):
    def encode(self, text: str) -> list[int]:
        return [float(token) for token in super().encode(text)]  # type: ignore[misc]


class MarksNothing(Honest):
    def encode(self, text: str) -> list[int]:
        return super().encode(text) or [0]


class LoadsAtOnce(Honest):
    def __init__(self) -> None:
        super().__init__()
        # As if it were installed.
        sys.modules["sentencepiece"] = ModuleType("sentencepiece")


class Connects(Honest):
    def count(self, text: str) -> int:
        with socket.socket() as connection:
            connection.connect_ex(("127.0.0.1", 9))
        return super().count(text)


class BeginsWithAToken(Honest):
    def count(self, text: str) -> int:
        return super().count(text) + 1


class Miscounts(Honest):
    def count(self, text: str) -> int:
        return len(text)


class CountsPairs(Honest):
    def count(self, text: str) -> int:
        return super().count(text) ** 2


class CountsDown(Honest):
    def count(self, text: str) -> int:
        return super().count(text) + 1000 // len(text) if text else 0


class CountsToThirty(Honest):
    def count(self, text: str) -> int:
        return min(super().count(text), 30)


class LosesMarks(Honest):
    def bytes_of(self, text: str) -> bytes:
        return super().bytes_of(text.replace("\u0301", ""))


class ObeysUsers(Honest):
    def encode(self, text: str) -> list[int]:
        return [0] if text == "<|im_end|>" else super().encode(text)

    def count(self, text: str) -> int:
        return len(self.encode(text))


class NeedsWholeTokens(Honest):
    def decode(self, tokens: Sequence[int]) -> str:
        return bytes(tokens).decode()


class TakesAnyToken(Honest):
    def decode(self, tokens: Sequence[int]) -> str:
        return super().decode([token % 256 for token in tokens])


class PretendsToEncode(Honest):
    exact = False


class CutsByCharacters(Honest):
    def cut(self, text: str, most: int) -> str:
        return text[: max(0, most)]


class CutsTooMuch(Honest):
    def cut(self, text: str, most: int) -> str:
        return text if self.count(text) <= most else super().cut(text, most)[:-1]


class CutsAlways(Honest):
    def cut(self, text: str, most: int) -> str:
        return self._bisected(text, most) if most > 0 else ""


class NeedsWholeCharacters(Honest):
    def bytes_of(self, text: str) -> bytes:
        return text.encode()


class Panics(Honest):
    def bytes_of(self, text: str) -> bytes:
        if len(text) > 500_000:
            raise PanicException("StackOverflow")
        return super().bytes_of(text)


class Throws(Honest):
    def count(self, text: str) -> int:
        return super().count(text) + random.randrange(1000) if text else 0


class LoadsHalf(Honest):
    """Says that it has read its vocabulary before it has."""

    vocabulary: list[int] | None = None

    def bytes_of(self, text: str) -> bytes:
        if self.vocabulary is None:
            self.vocabulary = []
            time.sleep(0.05)
            self.vocabulary += range(256)
        return bytes(self.vocabulary[byte] for byte in super().bytes_of(text))


# --- tokenizers that are wrong from end to end, so that each fails many laws, at all of their assertions ---


class SaysX(Honest):
    """Takes everything for the same text."""

    exact = "yes"  # type: ignore[assignment]

    def encode(self, text: str) -> list[int]:
        return [1, 2]

    def decode(self, tokens: Sequence[int]) -> str:
        return "x"

    def count(self, text: str) -> int:
        return sum(map(ord, text[:20])) + 7

    def cut(self, text: str, most: int) -> str:
        return "xx"


class SaysNothing(Honest):
    """Takes everything for nothing."""

    def __init__(self) -> None:
        self.name = ""

    def encode(self, text: str) -> list[int]:
        return [random.randrange(1000)]

    def decode(self, tokens: Sequence[int]) -> str:
        return ""

    def count(self, text: str) -> int:
        return 0

    def cut(self, text: str, most: int) -> str:
        return ""


class CannotBeMade(Honest):
    def __init__(self) -> None:
        raise RuntimeError("no vocabulary")


class Estimates(Honest):
    """Has no tokens, and says so."""

    exact = False

    def encode(self, text: str) -> list[int]:
        raise ConfigError("there are no tokens")

    def decode(self, tokens: Sequence[int]) -> str:
        raise ConfigError("there are no tokens")
