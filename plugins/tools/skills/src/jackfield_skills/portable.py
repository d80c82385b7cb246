"""Read folders in the Agent Plugins 1.0 format: a manifest, skills and MCP server configurations.

Source: the Agent Plugins specification 1.0.0, agent-plugins.org/specification. Section numbers refer to it.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jackfield.errors import ConfigError, ToolArgumentError
from jackfield.tools import Workspace
from jackfield_skills.files import read_text

MANIFEST, SERVERS, SKILLS = "plugin.json", "mcp.json", "skills"
_SCHEMA = re.compile(r"https://agent-plugins\.org/schemas/(1\.\d+\.\d+)/(plugin|mcp)\.schema\.json")
_NAME = re.compile(r"(?!.*(--|\.\.))[a-z0-9]([a-z0-9.-]{0,62}[a-z0-9])?")
_PLACEHOLDER = re.compile(r"\$\{(PLUGIN_ROOT|PLUGIN_DATA)\}")
_STDIO_KEYS = {"type", "command", "args", "env", "cwd"}
_HTTP_KEYS = {"type", "url", "headers"}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")

_log = logging.getLogger(__name__)


def check_manifest(root: Path) -> str:
    """Validate a folder's manifest, and return the plugin name.

    Raises:
        ConfigError: The manifest does not conform to the specification.
    """
    table = _json(root, MANIFEST)
    version = _version(table, "plugin")
    name = table.get("name")
    if version is None:
        raise ConfigError(
            f"{root / MANIFEST}: $schema must be an Agent Plugins 1.x schema, got {table.get('$schema')!r:.120}"
        )
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(
            f"{root / MANIFEST}: {name!r:.80} is not a valid name: use 1 to 64 characters from a-z, 0-9, '-' and '.'"
        )
    return name


def servers_of(root: Path, *, name: str, data: Path) -> dict[str, object]:
    """Return a folder's MCP servers in the common format, with placeholders replaced (9.2).

    Invalid server entries are skipped with a warning, as the specification requires (7.2.2).

    Args:
        root: The folder.
        name: The plugin's name.
        data: The servers' data folder, `PLUGIN_DATA`. The code that starts a server must create it.
    """
    try:
        table = _json(root, SERVERS)
        fits = _version(table, "mcp") == _version(_json(root, MANIFEST), "plugin") and isinstance(
            table.get("mcpServers"), dict
        )
    except ConfigError as error:
        _log.warning("skipping the MCP servers of %s: %s", name, error)
        return {}
    if not fits:
        _log.warning("skipping the MCP servers of %s: %s and %s have different versions", name, SERVERS, MANIFEST)
        return {}
    found: dict[str, object] = {}
    for server, entry in table["mcpServers"].items():
        try:
            found[server] = _server(entry, root.resolve(), data)
        except (ValueError, ToolArgumentError) as error:
            _log.warning("skipping MCP server %r of %s: %s", server, name, error)
    return found


def _server(entry: object, root: Path, data: Path) -> dict[str, object]:
    if not isinstance(entry, dict):
        raise ValueError("must be an object")
    kind = entry.get("type")
    if kind == "stdio":
        return _of_stdio(_only(entry, _STDIO_KEYS), root, data)
    if kind in ("streamable-http", "sse"):
        return _of_http(_only(entry, _HTTP_KEYS))
    raise ValueError(f"type must be stdio, streamable-http or sse, got {kind!r:.40}")


def _only(entry: dict[str, object], allowed_keys: set[str]) -> dict[str, object]:
    if unknown := sorted(set(entry) - allowed_keys):
        raise ValueError(f"field {unknown[0]!r} is not allowed for this type")
    return entry


def _of_stdio(entry: dict[str, object], root: Path, data: Path) -> dict[str, object]:
    places = {"PLUGIN_ROOT": str(root), "PLUGIN_DATA": str(data)}
    command = _text(entry.get("command"), "command")
    env = {key: _replaced(value, places) for key, value in _texts(entry.get("env", {}), "env").items()}
    if reserved := sorted(key for key in env if key.upper() in places):
        raise ValueError(f"env must not set the reserved variable {reserved[0]}")
    arguments = entry.get("args", [])
    if not isinstance(arguments, list):
        raise ValueError("args must be a list of strings")
    return {
        "type": "stdio",
        "command": _command(command, root),
        "args": [_replaced(_text(one, "args"), places) for one in arguments],
        "env": {**env, **places},
        "cwd": _folder(_text(entry.get("cwd", "./"), "cwd"), root, data, places),
    }


def _of_http(entry: dict[str, object]) -> dict[str, Any]:
    url = _text(entry.get("url"), "url")
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise ValueError("url must start with https://")
    if not parts.hostname or parts.username is not None or parts.fragment:
        raise ValueError("url must have a host, and no user or fragment")
    headers = {_literal(key): _literal(text) for key, text in _texts(entry.get("headers", {}), "headers").items()}
    return {"type": entry["type"], "url": _literal(url), "headers": headers}


def _command(command: str, root: Path) -> str:
    if command.startswith("./"):
        return str(Workspace(root).resolve(command))
    if not command or os.sep in command or "/" in command or "\\" in command:
        raise ValueError(f"command {command!r:.80} must be a bare name or a path starting with ./")
    return _literal(command)


def _folder(given: str, root: Path, data: Path, places: Mapping[str, str]) -> str:
    base, below = root, given
    for name, folder in (("${PLUGIN_ROOT}", root), ("${PLUGIN_DATA}", data)):
        if given == name or given.startswith(f"{name}/"):
            base, below = folder, f".{given.removeprefix(name)}"
    if base is root and below is given and not given.startswith("./"):
        raise ValueError(f"cwd {given!r:.80} must start with ./, ${{PLUGIN_ROOT}} or ${{PLUGIN_DATA}}")
    return str(Workspace(base).resolve(_replaced(below, places)))


def _replaced(text: str, places: Mapping[str, str]) -> str:
    _literal(_PLACEHOLDER.sub("", text))
    return _PLACEHOLDER.sub(lambda found: places[found[1]], text)


def _literal(text: str) -> str:
    """Reject variables in a text, because they would later be expanded with the user's values, including keys."""
    if "${" in text:
        raise ValueError(f"unsupported variable in {text!r:.80}; only PLUGIN_ROOT and PLUGIN_DATA are allowed")
    return text


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{what} must be a string")
    return value


def _texts(value: object, what: str) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        raise ValueError(f"{what} must be an object whose values are strings")
    return value


def _version(table: Mapping[str, object], kind: str) -> str | None:
    found = _SCHEMA.fullmatch(str(table.get("$schema")))
    return found[1] if found and found[2] == kind else None


def _json(root: Path, name: str) -> dict[str, Any]:
    try:
        table = json.loads(read_text(root, name))
    except (ToolArgumentError, ValueError, RecursionError) as error:
        raise ConfigError(f"{root / name} cannot be used: {error}") from error
    if not isinstance(table, dict):
        raise ConfigError(f"{root / name} must be an object")
    return table
