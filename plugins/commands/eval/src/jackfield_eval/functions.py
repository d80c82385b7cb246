"""Load Python scorers from local files that the user trusts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from jackfield.errors import ConfigError
from jackfield.settings import Settings


def load_function(address: str, settings: Settings) -> Callable[..., Any]:
    """Load `module:function` from a local file named in the settings and trusted by the user.

    Raises:
        ConfigError: No trusted file has this name, the file fails to load, or it does not define the function.
    """
    module, colon, name = address.partition(":")
    if not (colon and module.isidentifier() and name.isidentifier()):
        raise ConfigError(f"{address!r} is not a valid Python scorer: use the form module:function")
    function = getattr(_run_file(module, settings), name, None)
    if not callable(function):
        raise ConfigError(f"{module}.py has no function {name!r}")
    scorer: Callable[..., Any] = function
    return scorer


def _run_file(stem: str, settings: Settings) -> ModuleType:
    path, source = _read_trusted(stem, settings)
    module = ModuleType(f"_jackfield_eval_{stem}")
    module.__file__ = path
    try:
        exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - the user trusts it
    except Exception as error:
        raise ConfigError(f"cannot run {path}: {type(error).__name__}: {error}") from error
    return module


def _read_trusted(stem: str, settings: Settings) -> tuple[str, bytes]:
    """Return the path and content of a trusted local file."""
    files = [file for file in settings.local if Path(file.path).stem == stem]
    if not files:
        raise ConfigError(_how_to_trust(stem, settings))
    file = files[0]
    if file.fault:
        raise ConfigError(f"{stem}.py {file.fault}")
    raw = Path(file.path).read_bytes()
    # Run only the content to which the user agreed.
    if hashlib.sha256(raw).hexdigest() != file.content:
        raise ConfigError(f"{file.path} has changed since the settings were read: run the command again")
    return file.path, raw


def _how_to_trust(stem: str, settings: Settings) -> str:
    requested = settings.project.local if settings.project else ()
    if any(Path(file.path).stem == stem for file in requested):
        return f"this project uses {stem}.py, which is not trusted yet; to trust the file, run: jackfield trust"
    return (
        f'no trusted local file is named {stem}.py: add local = ["{stem}.py"] under [tool.jackfield] in '
        f"pyproject.toml, then run: jackfield trust"
    )
