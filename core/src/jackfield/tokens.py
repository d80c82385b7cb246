"""How many tokens a text has: the protocol, and an estimate that needs no vocabulary."""

from __future__ import annotations

import re
from typing import Protocol

# Pieces that byte-pair vocabularies keep together. The weights were fitted on the vocabulary of Qwen 1 to 3:
# over windows of 1,000 characters the estimate is within -4 % and +18 % of the count for English and code, and
# within -21 % and +14 % for Chinese.
_CJK = r"\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef"
_PIECE = re.compile(
    rf"(?P<cjk>[{_CJK}])"
    rf"|(?P<word>[^\W\d_{_CJK}]+)"
    r"|(?P<digit>\d)"
    r"|(?P<space>\s{2,}|[\n\t])"
    r"|(?P<punct>[^\w\s]+|_+)"
)


class TokenCounter(Protocol):
    """Counts the tokens of a text."""

    def __call__(self, text: str, /) -> int:
        """How many tokens `text` has."""


def estimate_tokens(text: str) -> int:
    """Estimate how many tokens a text has, without a vocabulary; never 0 for a text that is not empty.

    Add a margin of a tenth where an underestimate would hurt.
    """
    total = 0.0
    for match in _PIECE.finditer(text):
        size = match.end() - match.start()
        match match.lastgroup:
            case "cjk":
                total += 0.68
            case "word":
                total += 1 if size <= 7 else 1 + (size - 7) / 5
            case "punct":
                total += (size + 1) // 2 if size <= 8 else size / 8
            case _:
                total += 1
    return max(1, round(total)) if text else 0
