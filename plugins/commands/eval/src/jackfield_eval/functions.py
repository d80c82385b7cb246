"""Python functions that score, from local files that the user trusts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from jackfield.errors import ConfigError
from jackfield.settings import Settings


def load_function(address: str, settings: Settings) -> Callable[..., Any]:
    """The function that `module:function` means, of a local file that settings name and the user has agreed to.

    Raises:
        ConfigError: No trusted file has this name, it cannot be run, or it has no such function.
    """
    module, colon, name = address.partition(":")
    if not (colon and module.isidentifier() and name.isidentifier()):
        raise ConfigError(f"{address!r} is not a valid Python scorer: write module:function")
    function = getattr(_module(module, settings), name, None)
    if not callable(function):
        raise ConfigError(f"{module}.py has no function {name!r}")
    scorer: Callable[..., Any] = function
    return scorer


def _module(stem: str, settings: Settings) -> ModuleType:
    path, source = _trusted_source(stem, settings)
    module = ModuleType(f"_jackfield_eval_{stem}")
    module.__file__ = path
    try:
        exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - the user trusts it
    except Exception as error:
        raise ConfigError(f"{path} cannot be run: {type(error).__name__}: {error}") from error
    return module


def _trusted_source(stem: str, settings: Settings) -> tuple[str, bytes]:
    """The path and the content of a trusted local file."""
    file = next((one for one in settings.local if Path(one.path).stem == stem), None)
    if file is None:
        raise ConfigError(_how_to_trust(stem, settings))
    if file.fault:
        raise ConfigError(f"{stem}.py {file.fault}")
    raw = Path(file.path).read_bytes()
    # What is run is what was agreed to, and not what somebody has put there since.
    if hashlib.sha256(raw).hexdigest() != file.content:
        raise ConfigError(f"{file.path} has changed since the settings were read: run the command again")
    return file.path, raw


def _how_to_trust(stem: str, settings: Settings) -> str:
    named = settings.project.local if settings.project else ()
    if any(Path(one.path).stem == stem for one in named):
        return f"{stem}.py is named by this project, but you have not agreed to run it: jackfield trust"
    return (
        f'no trusted local file is named {stem}.py: put local = ["{stem}.py"] under [tool.jackfield] of '
        f"pyproject.toml, and then: jackfield trust"
    )
