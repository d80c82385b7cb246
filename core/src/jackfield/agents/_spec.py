"""Agents as data: files that say what an agent is, in YAML, TOML or JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from jackfield.config import AgentConfig
from jackfield.errors import ConfigError
from jackfield.tracebacks import LocalsForgotten

MAX_FILE_BYTES = 1 << 20
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")  # two letters at least: C: is a drive


def load_agent_config(path: str | Path) -> AgentConfig:
    """Read an agent from a YAML, TOML or JSON file. Paths in it are relative to its folder.

    Raises:
        ConfigError: The file cannot be read, or one of its settings does not fit.
    """
    with LocalsForgotten():  # a key may be among them
        return _config_of(Path(path))


def _config_of(file: Path) -> AgentConfig:
    text = text_of(file)
    try:
        table = _parsed(file, text)
    except json.JSONDecodeError as error:
        # Without the cause, which carries all of the text.
        raise ConfigError(f"{file} cannot be read: it is not JSON: {error}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error
    if not isinstance(table, dict):
        raise ConfigError(f"{file} must be a table, with keys such as llm and function_list")
    config = AgentConfig.parse(table, what=str(file))
    # What a file names is beside it, wherever it is read from.
    for entry in config.agents:
        _place_files(file, entry)
    if not config.files:
        return config
    return config.model_copy(update={"files": tuple(_beside(file, name) for name in config.files)})


def _place_files(file: Path, agent: dict[str, Any]) -> None:
    if isinstance(files := agent.get("files"), list):
        agent["files"] = [_beside(file, name) if isinstance(name, str) else name for name in files]
    for key in ("function_list", "handoffs"):
        for entry in agent.get(key) or ():
            if isinstance(entry, dict):
                _place_files(file, entry)


def _beside(file: Path, name: str) -> str:
    path = file.parent / Path(name).expanduser()
    # An address, or something else that says what it is (index:NAME), and not a file that happens to look like it.
    return name if _SCHEME.match(name) and not path.exists() else str(path)


def _parsed(file: Path, text: str) -> Any:
    match file.suffix.lower():
        case ".yaml" | ".yml":
            import yaml

            try:
                return yaml.safe_load(text)
            except yaml.YAMLError as error:
                # Without the cause and its words, which quote the line: a key may be on it.
                raise ConfigError(f"{file} is not YAML: {_place_of(error)}") from None
        case ".toml":
            import tomllib

            return tomllib.loads(text)
        case ".json":
            return json.loads(text)
    raise ConfigError(f"{file}: an agent is a .yaml, .toml or .json file (or .py, where it is only read)")


def _place_of(error: Any) -> str:
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None) or "it cannot be read"
    return f"{problem}, line {mark.line + 1}, column {mark.column + 1}" if mark else str(problem)


def text_of(file: Path) -> str:
    """The text of a file that describes an agent.

    Raises:
        ConfigError: It cannot be read, is larger than 1 MiB, or is not UTF-8.
    """
    try:
        text = file.read_text(encoding="utf-8") if file.stat().st_size <= MAX_FILE_BYTES else None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        # Without the cause, which carries all of the text: a key may be in it.
        raise ConfigError(f"{file} is not UTF-8 text: {error.reason}, at byte {error.start}") from None
    except ValueError as error:  # a name with a NUL, or with half of a surrogate pair
        raise ConfigError(f"{str(file)!r} is not the name of a file") from error
    if text is None:
        raise ConfigError(f"{file} is larger than 1 MiB, too large for an agent file")
    return text
