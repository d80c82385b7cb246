"""How a component gets its settings: one class defines them, in one place."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator

from jackfield.config import Config, SettingsDict
from jackfield.errors import ConfigError


def _text_of(path: object) -> object:
    return os.fspath(path) if isinstance(path, os.PathLike) else path


PathText = Annotated[str, BeforeValidator(_text_of)]
"""A path in settings: a string or a `pathlib` path."""


class Configured:
    """A component with settings: processors, tools, searchers, parsers, embedders, tokenizers.

    A class states `config_class`, which its descriptor names as `config`, and reads `self.config`. It needs no
    `__init__`. One that takes other arguments (a clock, `host`) passes the settings on, as `super().__init__(cfg)` or
    `super().__init__(**settings)`.

    Args:
        cfg: The settings as `config_class` or as a dict.
        settings: Settings as keywords; they override `cfg`.

    Attributes:
        config_class: The class of the settings; None for a component without settings, or one that reads `cfg` itself.
        cfg: The settings as they were given; values whose names look like a secret's are not shown.
        config: The settings, checked, with their defaults; only if there is a `config_class`.

    Raises:
        ConfigError: A setting is unknown or does not fit. No value is shown.
    """

    config_class: ClassVar[type[Config] | None] = None
    cfg: Mapping[str, Any]
    config: Config

    def __init__(self, cfg: Config | Mapping[str, object] | None = None, **settings: Any) -> None:
        super().__init__()  # of what it is mixed into
        what = str(getattr(self, "name", "") or type(self).__name__)
        given: Any = cfg
        if settings:
            given = {**_as_dict(cfg), **settings}
        if self.config_class is not None:
            self.config = self.config_class.parse(given, what=what)
        elif settings:
            raise ConfigError(f"{what} takes no settings; got {', '.join(map(repr, settings))}")
        self.cfg = SettingsDict(_as_dict(given))


def _as_dict(cfg: Config | Mapping[str, object] | None) -> dict[str, object]:
    if isinstance(cfg, Config):
        return {name: getattr(cfg, name) for name in cfg.model_fields_set}
    return dict(cfg or {})
