"""Find the effects of configuration files: agents, evaluation cases, MCP servers and saved runs.

`request_of` reads a file and everything the file refers to, and returns a `jackfield.consent.Request`. Nothing is
loaded, started or contacted. Settings are examined at any depth, because an agent may contain another agent, a searcher
may contain a tool, and a tool may contain a model.
"""

from __future__ import annotations

import glob
import ipaddress
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from jackfield.agents import open_calls
from jackfield.consent import (
    Contacts,
    Effect,
    Loosens,
    MakesCall,
    ReachesOutside,
    Request,
    RunsCode,
    SendsVariable,
    StartsProcess,
    UsesPackage,
    content_hash,
    unique,
)
from jackfield.errors import ConfigError
from jackfield.hookspecs import KINDS
from jackfield.jsontext import dumps
from jackfield.messages import as_messages
from jackfield.plugins import Plugins, default_host, read_file
from jackfield.settings import normalise
from jackfield_agent_files.tables import FORMS, parse_table, read_text

MAX_BYTES = 16 << 20
SAVED_RUN = "jackfield-run/1"
ReadAs = Literal["agent", "cases", "saved run", "index"]
"""The ways to read a file. An MCP servers file is read as an agent, because an agent may contain such a table at any
depth. For an index, the searchers and file names are read."""

BESIDE_THE_FILE = ("files", "knowledge_files", "prompts", "agents", "cassettes", "results")
"""Settings whose paths are relative to the file. All other paths are relative to the working directory."""

PROVIDERS = (
    "api.openai.com",
    "api.anthropic.com",
    "api.deepseek.com",
    "openrouter.ai",
    ".aliyuncs.com",
    "huggingface.co",
)
"""Model providers' hosts, to which backends may send requests. A leading dot includes all subdomains."""

# Read by people and models, never opened or called.
_TEXTS = frozenset(
    [
        *("system_message", "description", "prompt", "content", "instruction", "name", "query", "suggestions"),
        "adjustable",
        *("expect", "exact", "contains", "equals", "regex", "pattern", "judge"),
    ]
)
_SERVER_TABLES = ("mcpServers", "servers")
_PROGRAMS = ("command", "python", "soffice", "tesseract", "program", "executable")
_PATH_NAME = re.compile(
    r"(^|_)(path|paths|folder|folders|dir|file|files|root|cwd|workspace|readable|envFile|prompts|prices)$"
)
_LOOKS_LIKE_A_PATH = re.compile(r"[/~]|\\\\|\.\.?([/\\]|$)|[A-Za-z]:[\\/]|file:|.*(^|[/\\])\.\.([/\\]|$)", re.DOTALL)
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_LIMITS = frozenset(["turns", "memory_mb", "cpu_s", "processes", "file_mb", "brought_files", "brought_mb"])
_STRICT_VALUES: Mapping[str, tuple[object, ...]] = {
    "approval": ("ask", "always", True, None),
    "approve": ("ask", "read_only", "marked", None, "", []),
    "sandbox": ("auto", None),
    "sandbox_cfg": ({}, None),
    "sampling": (None,),
    "network": (False, None),
    "allow": ([], "", None),
    "recover": (False, None),
}
"""Protective settings, each with the values that are no less strict than its default."""
_SERVERS = ("dsn", "host", "endpoint")
_FUNCTION = re.compile(r"\w+:\w+")  # a scorer in a local file, which needs its own consent
_MAX_WALKED = 20_000


def request_of(path: str | Path, *, host: Plugins | None = None) -> Request:
    """Find the effects that a file could have.

    Args:
        path: An agent file, a case file, an MCP servers file, or a saved run.
        host: The plugin host that maps components to packages, using package metadata only. Defaults to the default
            host.

    Raises:
        ConfigError: The file cannot be read.
    """
    file = Path(path)
    text = read_text(file, max_bytes=MAX_BYTES)
    try:
        table = parse_table(text, FORMS.get(file.suffix.lower(), "yaml" if file.suffix else "json"))
    except ValueError as error:
        raise ConfigError(f"{file} cannot be read: {error}") from None
    return request_for(file, text, table, host=host)


def request_for(
    file: Path,
    text: str,
    table: object,
    *,
    read_as: ReadAs | None = None,
    host: Plugins | None = None,
    agents: dict[str, str] | None = None,
) -> Request:
    """Find the effects that a file could have, given its text, so that the text judged is the text used.

    Args:
        file: The file's path.
        text: The file's content.
        table: The value parsed from `text`.
        read_as: The way the caller uses the file. If None, the content's shape decides. Consent covers only this way of
            reading the file, because the same content may have several shapes.
        host: See `request_of`.
        agents: The texts of the agent files that cases refer to, by path. Missing texts are read and added, so that the
            caller uses the texts that were judged.

    Raises:
        ConfigError: An agent file that the cases refer to cannot be read.
    """
    kind = read_as or _shape_of(table)
    parts = {f"{kind}:{file.name}": text.encode(errors="surrogatepass")}
    reader = _Reader(file, host or default_host(), parts, {} if agents is None else agents)
    effects = unique(reader.effects_of(table, kind))
    return Request(file, effects, content_hash(reader.parts), by_command=kind != "index")


def _shape_of(table: object) -> ReadAs:
    match table:
        case {"format": str(form), "messages": list()} if form == SAVED_RUN:
            return "saved run"
        case {"cases": list()}:
            return "cases"
    return "agent"


@dataclass(slots=True)
class _Reader:
    """Reads one file, and collects in `parts` the contents that the consent covers."""

    file: Path
    host: Plugins
    parts: dict[str, bytes]
    agents: dict[str, str]
    _foreign: tuple[Mapping[str, tuple[str, str]], frozenset[str]] | None = None

    @property
    def folder(self) -> str:
        return os.path.realpath(self.file.parent)

    def effects_of(self, table: Any, kind: ReadAs) -> Iterator[Effect]:
        """Yield the effects of a whole file, depending on how the file is read."""
        match kind:
            case "saved run":
                yield from self._of_saved_run(table["messages"])
            case "cases":
                yield from self._of_cases(table)
            case "agent" | "index":
                yield from self._of_value("", table)

    def effects_of_file(self, path: Path) -> Iterator[Effect]:
        """Return the effects of another agent file, whose paths are relative to its own folder."""
        text = self.agents.get(str(path))
        if text is None:
            text = self.agents[str(path)] = read_text(path, max_bytes=MAX_BYTES, what="an agent file")
        try:
            table = parse_table(text, FORMS.get(path.suffix.lower(), "yaml"))
        except ValueError as error:
            raise ConfigError(f"{path} cannot be read: {error}") from None
        inner = _Reader(path, self.host, {}, self.agents)
        effects = list(inner.effects_of(table, "agent"))
        self.parts |= {f"{path}:{name}": raw for name, raw in inner.parts.items()} | {str(path): text.encode()}
        return iter(effects)

    # --- kinds of files ---

    def _of_cases(self, table: Mapping[str, Any]) -> Iterator[Effect]:
        approved = table.get("approve")
        if approved:
            yield Loosens("approve", _text_of(approved))
            # A cassette records the arguments of approved calls.
            self._add_folder(self.file.parent / str(table.get("cassettes") or f"{self.file.stem}.cassettes"))
        yield from self._of_value("", {key: value for key, value in table.items() if key not in ("approve", "agents")})
        for name in table.get("agents") or ():
            if isinstance(name, str):
                yield from self.effects_of_file(self.file.parent / name)

    def _of_saved_run(self, messages: Sequence[Any]) -> Iterator[Effect]:
        history = as_messages(messages)
        for planned in open_calls(history):
            yield MakesCall(planned.call.name, planned.call.arguments)
        for message in messages:
            if message.get("role") in ("user", "system"):
                yield from self._of_media(message.get("content"))

    def _of_media(self, content: object) -> Iterator[Effect]:
        for item in content if isinstance(content, list) else ():
            for key, value in item.items() if isinstance(item, dict) else ():
                for one in value if isinstance(value, list) else (value,):
                    if key != "text" and isinstance(one, str) and not one.startswith(("data:", "http://", "https://")):
                        yield from self._of_path(key, one.removeprefix("file://"))

    # --- values ---

    def _of_value(self, key: str, value: object) -> Iterator[Effect]:
        match value:
            case dict():
                yield from self._of_table(value)
            case list():
                for one in value:
                    yield from self._of_value(key, one)
            case str():
                yield from self._of_text(key, value)
        yield from _loosened(key, value)

    def _of_table(self, table: Mapping[str, Any]) -> Iterator[Effect]:
        for shape in _SERVER_TABLES:
            if isinstance(servers := table.get(shape), dict):
                for name, server in servers.items():
                    yield from self._of_server(str(name), server)
        name = str(table.get("name", "")).rpartition("/")[2]
        if name == "mcp" and isinstance(table.get("file"), str):
            yield from self._of_server_file(table["file"])
        if name == "skills":
            for folder in table.get("folders") or ():
                yield from self._of_skills(folder)
        for inner, value in table.items():
            if not (inner in _SERVER_TABLES and isinstance(value, dict)):
                yield from self._of_value(str(inner), value)

    def _of_text(self, key: str, text: str) -> Iterator[Effect]:
        yield from self._of_package(text)
        if key in _PROGRAMS and text and not _FUNCTION.fullmatch(text):
            yield StartsProcess(text)
            self._add_file(text)
        if key in _TEXTS:
            return
        if address := _ADDRESS.match(text):
            if address[1].lower() == "file":
                yield from self._of_path(key, text[len("file://") :])
            elif not (key in BESIDE_THE_FILE and _is_public(text)) and not _is_provider(text):
                yield Contacts(_without_secrets(text))
        elif key in _SERVERS:
            yield Contacts(text if key != "dsn" else "a database (dsn)")
        elif text.startswith("index:"):
            yield from self._of_index(key, text.removeprefix("index:"))
        elif _PATH_NAME.search(key) or _LOOKS_LIKE_A_PATH.match(text):
            yield from self._of_path(key, text)
        for found in _VARIABLE.finditer(text):
            yield SendsVariable(found[1].partition(":-")[0], f"whatever reads {key!r}")

    def _of_package(self, text: str) -> Iterator[Effect]:
        """Yield the components from third-party packages that a text names, whatever the setting."""
        names, packages = self._foreign_names()
        for name in dict.fromkeys((text, text.partition(":")[0])):
            distribution, slash, _ = name.rpartition("/")
            if slash and normalise(distribution) in packages:
                yield UsesPackage(name, normalise(distribution))
            elif name in names:
                yield UsesPackage(*names[name])

    def _foreign_names(self) -> tuple[Mapping[str, tuple[str, str]], frozenset[str]]:
        """Return the component names from third-party packages, and those packages; loading them may add more names."""
        if self._foreign is None:
            policy = self.host.policy
            rows = [row for kind in KINDS for row in policy.left_out(kind)]
            named = {row.name: (row.id, row.distribution) for row in rows}
            sources = [row for kind in KINDS for row in policy.sources(kind) if policy.why_unconsidered(row)]
            self._foreign = named, frozenset(row.distribution for row in (*rows, *sources))
        return self._foreign

    # --- paths ---

    def _of_path(self, key: str, text: str) -> Iterator[Effect]:
        """Yield an effect if the path leads out of the folder, directly or through a link."""
        base = self.folder if key in BESIDE_THE_FILE else os.getcwd()  # noqa: PTH109 - as the reader of the setting does
        path = os.path.join(base, os.path.expanduser(text))  # noqa: PTH111, PTH118
        if not self._is_inside(path):
            yield ReachesOutside(key, text)
        elif glob.has_magic(text) or os.path.isdir(path):  # noqa: PTH112
            yield from (ReachesOutside(key, link) for link in self._links_out_of(path))

    def _is_inside(self, path: str) -> bool:
        real = os.path.realpath(_before_magic(path))
        return real == self.folder or real.startswith(os.path.join(self.folder, ""))  # noqa: PTH118

    def _links_out_of(self, path: str) -> Iterator[str]:
        """Yield the links out of the folder that lie below a path, or below the fixed part of a glob pattern."""
        walked = 0
        for root, folders, names in os.walk(_before_magic(path)):
            for name in (*folders, *names):
                walked += 1
                one = os.path.join(root, name)  # noqa: PTH118
                if os.path.islink(one) and not self._is_inside(one):  # noqa: PTH114
                    yield os.path.relpath(one, self.folder)
            if walked > _MAX_WALKED:
                yield f"{os.path.relpath(root, self.folder)} and others: the folder contains too many files to check"
                return

    def _of_index(self, key: str, name: str) -> Iterator[Effect]:
        if "/" in name or os.sep in name:
            yield from self._of_path(key, name)
        else:  # one of the user's own indexes, by name
            yield ReachesOutside(key, f"index:{name}")

    def _add_file(self, text: str) -> None:
        """Tie the consent to the content of a local file that will be run, if the file exists inside the folder."""
        for base in dict.fromkeys((self.folder, os.getcwd())):  # noqa: PTH109
            path = os.path.join(base, text)  # noqa: PTH118
            if "\0" not in text and self._is_inside(path) and os.path.isfile(path):  # noqa: PTH113
                self.parts[path] = read_file(path) or b"(it cannot be read)"

    def _add_folder(self, folder: Path) -> None:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        for path in files[:_MAX_WALKED]:
            self._add_file(os.path.realpath(path))

    # --- servers and skills ---

    def _of_server(self, name: str, server: object) -> Iterator[Effect]:
        if not isinstance(server, dict) or server.get("disabled") is True:
            return
        receiver = f"the MCP server {name!r}"
        if isinstance(command := server.get("command"), str) and command:
            arguments = [one for one in server.get("args") or () if isinstance(one, str)]
            yield StartsProcess(" ".join(map(_quoted, (command, *arguments))))
            for one in (command, *arguments):
                self._add_file(one)
        for key in ("url", "httpUrl", "serverUrl"):
            if isinstance(url := server.get(key), str) and url:
                receiver = _without_secrets(url)
                yield Contacts(receiver)
        for variable in _variables_in(server):
            yield SendsVariable(variable, receiver)
        # Addresses and programs are reported above; the rest is like any other setting.
        said = ("command", "args", "url", "httpUrl", "serverUrl", "env", "headers")
        for key, value in server.items():
            if key not in said:
                yield from (one for one in self._of_value(key, value) if not isinstance(one, SendsVariable))

    def _of_server_file(self, text: str) -> Iterator[Effect]:
        """Yield the effects of a separate MCP server list; a missing file has none."""
        path = Path(os.path.expanduser(text))  # noqa: PTH111
        if "\0" in text or not path.exists():
            return
        raw = read_text(path, max_bytes=MAX_BYTES, what="an MCP servers file")
        self.parts[str(path)] = raw.encode()
        try:
            table = parse_table(raw.removeprefix("\ufeff"), "json")
        except ValueError as error:
            # Not skipped: the code that starts the servers may read it differently.
            raise ConfigError(f"MCP servers file {str(path)!r} is not valid JSON: {error}") from None
        yield from self._of_value("", table)

    def _of_skills(self, folder: object) -> Iterator[Effect]:
        if not isinstance(folder, str):
            return
        root = Path(os.path.expanduser(folder))  # noqa: PTH111
        if (root / "plugin.json").is_file() and (root / "mcp.json").is_file():
            self._add_file(os.path.abspath(root / "plugin.json"))  # noqa: PTH100
            yield from self._of_server_file(str(root / "mcp.json"))


def _loosened(key: str, value: object) -> Iterator[Effect]:
    """Yield an effect if the setting weakens a protection."""
    if key == "trust_remote_code" and value:
        yield RunsCode("the model's repository contains its own code (trust_remote_code)")
    elif key in _LIMITS and value is None:
        yield Loosens(key, "no limit")
    elif key in _STRICT_VALUES and not any(value is one or value == one for one in _STRICT_VALUES[key]):
        yield Loosens(key, _text_of(value))


def _variables_in(value: object) -> Iterator[str]:
    match value:
        case str():
            for found in _VARIABLE.finditer(value):
                name = found[1].removeprefix("env:").partition(":-")[0]
                if not name.startswith("input:") and name not in ("workspaceFolder", "/", "pathSeparator"):
                    yield name
        case dict():
            for inner in value.values():
                yield from _variables_in(inner)
        case list():
            for inner in value:
                yield from _variables_in(inner)


def _before_magic(path: str) -> str:
    """Return the part of a glob pattern before its first wildcard."""
    while glob.has_magic(path):
        path = os.path.dirname(path)  # noqa: PTH120
    return path


def _is_public(url: str) -> bool:
    """Return True unless a URL points to this machine or a private network."""
    host = (_split(url) or "").strip("[]").rstrip(".").lower()
    if not host or host == "localhost" or not ({".", ":"} & set(host)):
        return False
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        return not (
            host.endswith((".localhost", ".local", ".internal", ".home.arpa")) or host.replace(".", "").isdigit()
        )


def _is_provider(url: str) -> bool:
    host = (_split(url) or "").lower()
    named = any(host == one.lstrip(".") or (one.startswith(".") and host.endswith(one)) for one in PROVIDERS)
    return named and url.lower().startswith("https://")


def _split(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _without_secrets(url: str) -> str:
    """Return a URL without its user, password and query, any of which may be a secret."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return url.partition("://")[0] + "://…"
    return f"{parts.scheme}://{host}{parts.path}"


def _quoted(word: str) -> str:
    return word if word and not set(word) & set(" \"'\\$`") else repr(word)


def _text_of(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return dumps(value)
    except (TypeError, ValueError):  # TOML has dates
        return repr(value)
