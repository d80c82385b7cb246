"""Read the agents, clients and address of `jackfield serve` from its command line."""

from __future__ import annotations

import argparse
import ipaddress
import json
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from jackfield.agents import Agent, create_agent
from jackfield.cli import with_consent
from jackfield.errors import ConfigError
from jackfield.plugins import PluginHost, default_host
from jackfield.servers import FaceCommand, HttpServer, load_server
from jackfield_agent_files.files import load_agent_config
from jackfield_serve.app import DEFAULT_FACES, ServingApp, serving_app
from jackfield_serve.tokens import Tokens
from jackfield_serving import ServingLimits

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_WEB = "web"


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """The command's validated options.

    Attributes:
        agents: The agents by name. Each is a file, `module:agent`, or an agent.
        params: Values for variables in agent files.
        trust: True if the user vouches for the agent files.
        faces: The faces, as names or as dicts with `name` and settings.
        host, port: The address to listen on.
        token_file: The token file, or None if clients need no token.
        tokens: The tokens.
        hosts: Host names by which clients reach the server, in addition to its address.
        store: The name of the store for runs, or None to keep them in memory.
        workers: The number of processes.
        runs: The maximum number of concurrent runs per process. Further runs are queued.
        max_body_bytes: The maximum size of a request body.
        drain_s: How long requests may take to finish when the server is stopped.
        browser: True to open the page in the user's browser.
        words: The command line, for worker processes.
    """

    agents: Mapping[str, str | Agent]
    params: Mapping[str, str]
    trust: bool
    faces: Sequence[str | dict[str, Any]]
    host: str
    port: int
    token_file: Path | None
    tokens: Tokens | None
    hosts: frozenset[str]
    store: str | None
    workers: int
    runs: int
    max_body_bytes: int
    drain_s: int
    browser: bool
    words: Sequence[str] = ()


def read_options(
    options: argparse.Namespace, *, words: Sequence[str] = (), command: FaceCommand | None = None
) -> ServeOptions:
    """Validate the options from the command line `words`.

    Raises:
        ConfigError: An option is invalid, or two options are mutually exclusive.
    """
    tokens = Tokens.read(options.token_file) if options.token_file else None
    if tokens is None and not _is_loopback(options.host):
        raise ConfigError(
            f"{options.host} can be reached from other machines: pass --token-file FILE to require a token from clients"
        )
    if options.workers > 1 and not options.store:
        raise ConfigError("multiple workers need a shared store: pass --store (for example, --store sqlite)")
    agents: Mapping[str, str | Agent] = _read_agents(options.agents)
    if not agents and command is not None:
        agents = command.agents()
        if options.workers > 1:
            raise ConfigError(
                "multiple workers need an agent file or module:agent, because each worker creates its own agents"
            )
    hosts = {name.lower() for name in options.allow_host}
    return ServeOptions(
        agents=agents,
        params=dict(_read_pair(text) for text in options.param),
        trust=options.trust,
        faces=[_read_face(text) for text in options.face] or _default_faces(default_host()),
        host=options.host,
        port=options.port,
        token_file=options.token_file,
        tokens=tokens,
        hosts=frozenset(hosts | _LOOPBACK_NAMES if hosts and tokens is None else hosts),
        store=options.store,
        workers=options.workers,
        runs=options.runs,
        max_body_bytes=options.max_body << 20,
        drain_s=options.drain,
        browser=options.browser,
        words=words,
    )


_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


def make_app(options: ServeOptions, agents: Mapping[str, Agent] | None = None) -> ServingApp:
    """Return the application with the given agents, or with those created from the options.

    Raises:
        ConsentNeededError: The user has not agreed to the effects of an agent file.
        ConfigError: An agent cannot be created.
    """
    faces = [load_server(face, default_host()) for face in options.faces]
    for face in faces:
        if options.workers > 1 and isinstance(face, HttpServer) and face.one_process:
            raise ConfigError(
                f"face {face.name!r} does not support multiple workers with its current settings: set "
                f"{face.one_process}, "
                f'for example under [settings."server.{face.name}"] in config.toml'
            )
    return serving_app(
        load_agents(options) if agents is None else agents,
        faces=faces,
        store=options.store,
        limits=ServingLimits(runs=options.runs),
        tokens=options.tokens,
        hosts=options.hosts,
        max_body_bytes=options.max_body_bytes,
    )


def load_agents(options: ServeOptions) -> dict[str, Agent]:
    """Create the agents.

    Raises:
        ConsentNeededError: The user has not agreed to the effects of an agent file.
        ConfigError: An agent cannot be created.
    """
    return {
        name: _load_agent(agent, options) if isinstance(agent, str) else agent for name, agent in options.agents.items()
    }


def _load_agent(text: str, options: ServeOptions) -> Agent:
    if _is_file(text):
        if not Path(text).exists():
            raise ConfigError(f"no agent file {text!r}: specify an existing file or module:agent")
        config = with_consent(lambda: load_agent_config(text, trust=options.trust, params=options.params))
        return create_agent(config)
    module, _, name = text.partition(":")
    if module.startswith("."):
        raise ConfigError(f"cannot import {text!r}: give the module's full name, without a leading dot")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        value: object = import_module(module)
        for part in name.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"cannot import {text!r}: {error}") from error
    if not isinstance(value, Agent):
        raise ConfigError(f"{text!r} must be an agent, got {type(value).__name__}")
    return value


def _read_agents(texts: Sequence[str]) -> dict[str, str]:
    agents: dict[str, str] = {}
    for text in texts:
        name, equals, target = text.partition("=")
        if not equals:
            target = text
        if Path(target).is_dir():
            raise ConfigError(f"{target!r} is a folder: specify an agent file, such as {Path(target, 'agent.yaml')}")
        if not equals:
            name = Path(text).stem if _is_file(text) else text.rpartition(":")[2].rpartition(".")[2]
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"{name!r} is not a valid agent name: use a name such as {shlex.quote(f'helper={target}')}"
            )
        if name in agents:
            raise ConfigError(f"two agents are named {name!r}: rename one, as in {shlex.quote(f'{name}2={target}')}")
        agents[name] = target
    return agents


def _read_face(text: str) -> str | dict[str, Any]:
    if not text.startswith("{"):
        return text
    try:
        table: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"--face must be a name or a JSON object with a name and settings: {error}") from None
    return table


def _is_file(text: str) -> bool:
    return text.endswith((".yaml", ".yml", ".toml", ".json")) or ":" not in text


def _read_pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name.strip()):
        raise ConfigError(f"expected NAME=VALUE, as in -p topic=tides, got {text!r}")
    return name.strip(), value


def _default_faces(host: PluginHost) -> list[str | dict[str, Any]]:
    return [*DEFAULT_FACES, *([_WEB] if _WEB in host.names("server") else [])]


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
