"""Secrets, which no record has."""

from __future__ import annotations

import json
import os

from jackfield.config import is_secret
from jackfield.settings import Settings

_SHORTEST_SECRET = 8
_HIDDEN = "[key]"


class Hide:
    """Takes secrets out of a text: keys and tokens of the environment, and of the user's settings.

    Args:
        settings: The user's.
        more: Others, such as the API key of a model.
    """

    def __init__(self, settings: Settings, *more: str) -> None:
        named = [value for name, value in os.environ.items() if is_secret(name, value)]
        values = [value for value in (*more, *settings.secret_values(), *named) if len(value) >= _SHORTEST_SECRET]
        # Also as they stand in JSON; the longest first: one may be a part of another.
        written = {json.dumps(value, ensure_ascii=in_ascii)[1:-1] for value in values for in_ascii in (True, False)}
        self._secrets = sorted({*values, *written}, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """The text with `[key]` in their place."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, _HIDDEN)
        return text
