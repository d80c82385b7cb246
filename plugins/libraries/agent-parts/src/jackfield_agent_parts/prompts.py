"""Load the prompts of an agent kind from a file, by name and language, with optional overrides by the user."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from jackfield.config import Lang
from jackfield.errors import ConfigError
from jackfield.suggestions import suggest

GivenPrompts: TypeAlias = "str | PathLike[str] | Mapping[str, str | Mapping[str, str]] | None"
"""A user's prompts: a TOML file's path, or a dict. Each prompt is one text for all languages, or one per language."""

_LANGS = ("en", "zh")
_PLACE = re.compile(r"\{([a-z_]+)\}")


class Prompts:
    """An agent kind's prompts by name and language.

    Args:
        own: The kind's built-in prompts, by name and language.
        given: The user's prompts, which override some or all of the built-in ones.

    Raises:
        ConfigError: `given` cannot be read, names an unknown prompt, or has a value that is not text.
    """

    def __init__(self, own: Mapping[str, Mapping[str, str]], given: GivenPrompts = None) -> None:
        self._texts = {name: dict(texts) for name, texts in own.items()}
        for name, texts in _table(given).items():
            if name not in self._texts:
                raise ConfigError(f"unknown prompt {name!r}{suggest(name, sorted(self._texts))}")
            self._texts[name].update(_by_language(name, texts))

    @classmethod
    def read(cls, path: Path, given: GivenPrompts = None) -> Prompts:
        """Load the built-in prompts from a TOML file.

        Raises:
            ConfigError: See `Prompts`.
        """
        return cls(tomllib.loads(path.read_text(encoding="utf-8")), given)

    def text(self, name: str, lang: Lang, /, **values: str) -> str:
        """Return a prompt with each `{name}` replaced by its value. Placeholders inside values are not expanded."""
        return _PLACE.sub(lambda place: values.get(place[1], place[0]), self._texts[name][lang]).strip()


def _table(given: GivenPrompts) -> Mapping[str, Any]:
    if isinstance(given, str | PathLike):
        return _table_of(Path(given))
    if given is None or isinstance(given, Mapping):
        return given or {}
    raise ConfigError(f"prompts must be the path of a TOML file or a dict, got {type(given).__name__}")


def _table_of(file: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"prompts file {file} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ConfigError(f"prompts file {file} is not valid TOML: {error}") from error


def _by_language(name: str, texts: object) -> Mapping[str, str]:
    by_lang = dict.fromkeys(_LANGS, texts) if isinstance(texts, str) else texts
    if not isinstance(by_lang, Mapping):
        raise ConfigError(f"prompt {name!r} must be a string, or one string for each of {', '.join(_LANGS)}")
    if unknown := [lang for lang in by_lang if lang not in _LANGS]:
        raise ConfigError(f"prompt {name!r}: unknown language {unknown[0]!r}; available: {', '.join(_LANGS)}")
    for lang, text in by_lang.items():
        if not isinstance(text, str):
            raise ConfigError(f"prompt {name!r} must be a string for {lang!r}, got {type(text).__name__}")
    return by_lang
