"""Parse MCP server configurations in the formats of Qwen-Agent, VS Code, Claude and others."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    SecretStr,
    field_validator,
    model_validator,
)

from jackfield.config import HIDDEN, Config
from jackfield.errors import ConfigError
from jackfield.secrets import Secret, is_secret, looks_random
from jackfield_mcp.expanding import Variables

_log = logging.getLogger(__name__)

Transport = Literal["stdio", "sse", "http", "auto"]

_TYPES = {
    "stdio": "stdio",
    "sse": "sse",
    "http": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "streamable_http": "http",
}
_RENAMED = {"serverUrl": "url", "includeTools": "include", "excludeTools": "exclude"}
# Settings meant for other programs. None of them may make a server more trusted here.
_FOREIGN_KEYS = frozenset(
    ["alwaysAllow", "autoApprove", "description", "dev", "gallery", "sandbox", "sandboxEnabled", "timeout", "trust"]
)
_SHAPES = ("mcpServers", "servers")
_SAFETY = ("approval", "needs_approval", "effects", "read_only", "concurrent", "timeout_s")
_READ_APART = _FOREIGN_KEYS | {*_SAFETY, "disabled", "envFile"}


def _texts(values: object) -> object:
    """Convert numbers among environment values to strings, because they are often written unquoted."""
    if not isinstance(values, Mapping):
        return values
    return {key: str(value) if isinstance(value, int | float) else value for key, value in values.items()}


def _hidden(values: dict[str, str]) -> dict[str, str]:
    return _Hidden(values)


class _Hidden(dict[str, str]):
    """A dict of possible secrets, hidden in its repr and dropped when pickled."""

    def __repr__(self) -> str:
        return repr(dict.fromkeys(self, HIDDEN))

    def __reduce__(self) -> tuple[type[_Hidden], tuple[()]]:
        return _Hidden, ()


Secrets = Annotated[
    dict[str, str],
    BeforeValidator(_texts),
    AfterValidator(_hidden),
    PlainSerializer(lambda values: dict.fromkeys(values, HIDDEN)),
]


class OAuth(Config):
    """Settings for logging in to a server with OAuth.

    With a client secret and `grant="client_credentials"`, the login needs no user. Otherwise, a browser is opened once,
    and the tokens are stored for the current user.
    """

    grant: Literal["authorization_code", "client_credentials"] = "authorization_code"
    client_id: str = Field(default="", description="ID of a registered client; if empty, a client is registered")
    client_secret: SecretStr | None = None
    scope: str | None = None
    issuer: str | None = Field(default=None, description="Authorization server that issued the client secret")
    port: int = Field(default=0, ge=0, le=65535, description="Local port for the browser's callback; 0: any free port")
    timeout_s: float = Field(default=300.0, gt=0, description="Time limit for the login in the browser")

    @model_validator(mode="after")
    def _check_has_credentials(self) -> Self:
        # Without an issuer, the server itself would decide who gets the secret.
        if self.grant == "client_credentials" and not (self.client_id and self.client_secret and self.issuer):
            raise ValueError("client_credentials requires 'client_id', 'client_secret' and 'issuer'")
        return self


class ServerConfig(Config):
    """Settings of a server: how to reach it, its credentials, its limits, and which of its tools agents get."""

    command: str = Field(default="", description="Program that starts the server; the server communicates over stdio")
    args: tuple[str, ...] = Field(default=(), repr=False)  # some take a secret as an argument
    env: Secrets = Field(
        default_factory=dict, description="Environment variables of the server, in addition to PATH, HOME and similar"
    )
    cwd: str | None = None

    url: str = Field(default="", repr=False, description="URL of a running server")
    transport: Transport = "auto"
    headers: Secrets = Field(default_factory=dict)
    oauth: OAuth | None = None
    sse_read_timeout: float = Field(default=300.0, gt=0, description="Maximum time without data over HTTP, in seconds")

    connect_timeout_s: float = Field(default=60.0, gt=0)
    list_timeout_s: float = Field(default=30.0, gt=0)
    call_timeout_s: float | None = Field(
        default=None, gt=0, description="Time limit for a call; None: as for the agent's tools"
    )
    close_timeout_s: float = Field(default=3.0, gt=0, description="Time limit for the server to exit")

    include: tuple[str, ...] = Field(default=(), description="Tools to offer, such as 'read_*'; all if empty")
    exclude: tuple[str, ...] = Field(default=(), description="Tools not to offer")
    resources: bool = Field(default=True, description="Offer the server's resources, if any, through two tools")
    prompts: bool = Field(default=True, description="Offer the server's prompts, if any, through two tools")
    sampling: Any = Field(
        default=None, repr=False, description="Model that the server may call; if unset, the server may not call any"
    )
    max_tools: int = Field(default=500, ge=1)
    max_message_bytes: int = Field(default=32 * 2**20, ge=1024, description="Maximum size of a message from the server")
    safety: dict[str, Any] = Field(
        default_factory=dict, description="Same settings as for any tool: approval, timeout_s and so on"
    )

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        if url and not url.startswith(("http://", "https://")):
            raise ValueError("must start with https:// or http://")
        return url

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            for text, what in ((name, "a header name"), (value, f"the header {name!a}")):
                if not (text.isascii() and text.strip().replace("\t", " ").isprintable()):
                    fault = "a line break or control character" if text.isascii() else "a non-ASCII character"
                    raise ValueError(f"{what} contains {fault}, which HTTP does not allow: copy the value again")
        return _hidden({name.strip(): value.strip() for name, value in headers.items()})

    @model_validator(mode="after")
    def _check_is_one(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError("specify either 'command' to start the server or 'url' to connect to a running one")
        if self.command and self.transport not in ("auto", "stdio"):
            raise ValueError(f"type {self.transport!r} requires 'url', not 'command'")
        if self.url and self.transport == "stdio":
            raise ValueError("type 'stdio' requires 'command', not 'url'")
        return self

    def identity(self) -> str:
        """Return a digest of the server's command or URL and its credentials. Equal servers have equal digests."""
        oauth = None if self.oauth is None else [self.oauth.grant, self.oauth.client_id, self.oauth.scope]
        parts = [self.command, self.args, self.env, self.cwd, self.url, self.transport, self.headers, oauth]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def offers(self, tool: str) -> bool:
        """Return True if agents get the tool with this name."""
        included = not self.include or any(fnmatchcase(tool, pattern) for pattern in self.include)
        return included and not any(fnmatchcase(tool, pattern) for pattern in self.exclude)

    def secrets(self) -> list[str]:
        """Return the values to redact in messages, longest first."""
        values = [*self.env.values(), *self.headers.values()]
        if self.oauth and self.oauth.client_secret:
            values.append(self.oauth.client_secret.get_secret_value())
        parts = [part for value in values for part in (value, *value.split())]
        return sorted({part for part in parts if len(part) >= 6}, key=len, reverse=True)

    def secret_sources(self) -> Iterable[object]:
        """Yield the settings, and those command arguments that may be keys."""
        yield vars(self)
        for before, argument in pairwise(("", *self.args)):
            flag, equals, value = argument.partition("=")
            if is_secret(before.lstrip("-"), argument) or looks_random(argument):
                yield Secret("mcp.args", argument, is_named=False)
            # The server may print the value alone.
            if equals and (is_secret(flag.lstrip("-"), value) or looks_random(value)):
                yield Secret("mcp.args", value, is_named=False)

    def without_secrets(self, text: str) -> str:
        """Redact the environment and header values in a text by or about the server."""
        for secret in self.secrets():
            text = text.replace(secret, "…")
        return text


def is_servers(entry: object) -> bool:
    """Return True if a `function_list` entry configures MCP servers."""
    return isinstance(entry, Mapping) and any(isinstance(entry.get(shape), Mapping) for shape in _SHAPES)


def read_file(path: str | Path) -> dict[str, Any]:
    """Read a configuration file such as `mcp.json`.

    Raises:
        ConfigError: The file cannot be read or is not a JSON object.
    """
    file = Path(path).expanduser()
    try:
        read = json.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"cannot read MCP servers file {str(path)!r}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"MCP servers file {str(path)!r} is not valid JSON: {error}") from error
    if not isinstance(read, dict):
        raise ConfigError(f"MCP servers file {str(path)!r} must contain a JSON object")
    return read


def parse_servers(configuration: Mapping[str, Any], *, variables: Variables | None = None) -> dict[str, ServerConfig]:
    """Return the enabled servers of a configuration by name.

    Args:
        configuration: `{"mcpServers": {name: …}}`, or `{"servers": {name: …}, "inputs": […]}`. An optional
            `input_values` key provides the values of `${input:id}` by id.
        variables: Values for `${…}`. Defaults to the environment.

    Raises:
        ConfigError: A setting is unknown or invalid, or a variable has no value. The message names the server.
    """
    servers, inputs = _parts(configuration)
    values = replace(variables or Variables(), asked=inputs)
    if configuration.get("input_values"):
        values = replace(values, inputs=configuration["input_values"])
    return {
        str(name): _server(str(name), entry, values)
        for name, entry in servers.items()
        if not (isinstance(entry, Mapping) and entry.get("disabled") is True)
    }


def _parts(configuration: Mapping[str, Any]) -> tuple[Mapping[str, Any], Sequence[Any]]:
    """Return the servers and the inputs of a configuration."""
    shape = next((one for one in _SHAPES if one in configuration), "")
    if not shape:
        raise ConfigError("invalid MCP configuration: missing 'mcpServers', a dict that maps server names to settings")
    unknown = set(configuration) - {shape, "inputs", "input_values", "$schema"}
    if unknown:
        raise ConfigError(f"invalid MCP configuration: unknown setting {min(unknown)!r} next to {shape!r}")
    servers, inputs = configuration[shape], configuration.get("inputs") or ()
    if not isinstance(servers, Mapping) or not isinstance(inputs, Sequence):
        raise ConfigError(f"invalid MCP configuration: {shape!r} must be a dict that maps server names to settings")
    return servers, inputs


def _server(name: str, entry: object, variables: Variables) -> ServerConfig:
    where = f"MCP server {name!r}"
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{where} must be a dict of settings")
    settings: dict[str, Any] = {}
    for key, value in entry.items():
        settings |= _setting(key, value, where)
    if safety := {key: entry[key] for key in _SAFETY if key in entry}:
        settings["safety"] = safety
    if entry.get("envFile"):
        path = variables.expand_variables(entry["envFile"], f"{where}.envFile")
        settings["env"] = {**_env_file(path, where), **settings.get("env", {})}
    values = variables.expand_variables(settings, where)
    return ServerConfig.parse(values, what=where)


def _setting(key: str, value: Any, where: str) -> dict[str, Any]:
    """Translate a setting in a server's entry to our name for it, or to {} if it is handled elsewhere or ignored."""
    match key:
        case "httpUrl":
            return {"url": value, "transport": "http"}
        case "type":
            return {"transport": _transport(value, where)}
        case "oauth":
            return {"oauth": {} if value is True else value or None}
    if key in _FOREIGN_KEYS:
        _log.info("%s: %r is a setting for other programs and has no effect here", where, key)
    return {} if key in _READ_APART else {_RENAMED.get(key, str(key)): value}


def _transport(value: object, where: str) -> str:
    if value not in _TYPES:
        raise ConfigError(f"{where}: {value!r} is not a valid type: use 'stdio', 'sse' or 'streamable-http'")
    return _TYPES[str(value)]


def _env_file(path: str, where: str) -> dict[str, str]:
    try:
        lines = Path(path).expanduser().read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{where}: cannot read the envFile {path!r}: {error}") from error
    pairs = (line.strip().removeprefix("export ").partition("=") for line in lines if not line.strip().startswith("#"))
    return {name.strip(): value.strip().strip("\"'") for name, equals, value in pairs if equals}
