"""Load agents defined in YAML, TOML or JSON files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jackfield.agents import AgentConfig, is_agent
from jackfield.consent import require_consent
from jackfield.errors import ConfigError
from jackfield.secrets import ForgetLocals
from jackfield_agent_files.effects import request_for
from jackfield_agent_files.tables import FORMS, Form, parse_table, read_text
from jackfield_agent_files.templates import DEFAULTS, OF_AGENTS, fill_variables

MAX_FILE_BYTES = 1 << 20
_PATHS = ("files", "knowledge_files", "prompts")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")  # two letters at least: C: is a drive


def load_agent_config(
    path: str | Path,
    *,
    trust: bool = False,
    text: str | None = None,
    params: Mapping[str, str] | None = MappingProxyType({}),
) -> AgentConfig:
    """Load an agent from a YAML, TOML or JSON file. Relative paths in the file start at its folder.

    Args:
        path: The file.
        trust: True if the caller vouches for the file. Otherwise, a file that starts a program, contacts a server,
            leaves its folder or loosens a protection needs the user's consent (`jackfield trust FILE`).
        text: The file's text, if the caller has already read and judged it. If None, the file is read.
        params: Values for the file's variables, such as `{{ topic }}`. None leaves variables unfilled, for callers that
            do not run the agent. See `templates`.

    Raises:
        ConsentNeededError: The file has effects that the user has not agreed to; the message lists them.
        ConfigError: The file cannot be read, or a setting is invalid.
    """
    with ForgetLocals():  # they may contain a key
        return _config_of(Path(path), text, params, trust=trust)


def _config_of(file: Path, text: str | None, params: Mapping[str, str] | None, *, trust: bool) -> AgentConfig:
    text = text_of(file) if text is None else text
    try:
        table = parse_table(text, _form_of(file))
    except ValueError as error:
        # Without the cause, which may carry the whole text, keys included.
        raise ConfigError(f"{file} cannot be read: {error}") from None
    if not isinstance(table, dict):
        raise ConfigError(f"{file} must be a table with keys such as llm and function_list")
    settings = {key: value for key, value in table.items() if key != DEFAULTS}
    filled = settings if params is None else fill_variables(table, params, file=str(file))
    config = AgentConfig.parse(_placed(file, filled), what=str(file))
    require_consent(request_for(file, text, settings, read_as="agent"), trust=trust)
    return config


def _form_of(file: Path) -> Form:
    form = FORMS.get(file.suffix.lower())
    if form is None:
        raise ValueError("an agent file must be .yaml, .toml or .json (or .py, where it is only read)")
    return form


def _placed(file: Path, value: Any, key: str = "") -> Any:
    """Return a setting with relative paths resolved against the file's folder."""
    if isinstance(value, list):
        return [_placed(file, entry, key) for entry in value]
    if isinstance(value, dict) and (key in OF_AGENTS or is_agent(value)):
        return {name: _placed(file, entry, name) for name, entry in value.items()}
    return _beside(file, value) if key in _PATHS and isinstance(value, str) else value


def _beside(file: Path, name: str) -> str:
    path = file.parent / Path(name).expanduser()
    # An address or another name with a scheme (index:NAME), not a file that happens to look like one.
    return name if _SCHEME.match(name) and not path.exists() else str(path)


def text_of(file: Path) -> str:
    """Return the text of an agent file.

    Raises:
        ConfigError: The file cannot be read, is larger than 1 MiB, or is not UTF-8.
    """
    return read_text(file, max_bytes=MAX_FILE_BYTES, what="an agent file")
