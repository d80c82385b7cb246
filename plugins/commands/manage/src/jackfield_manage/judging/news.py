"""Find and describe what has changed in an installation since the user last looked.

A file stores the state of each distribution per environment, with a hash of its content, so changes are reported again.
New components are described from their source code, which is not run. A refusal is stored elsewhere, as a `block` rule;
this file records only what has been reported and asked about.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from jackfield.defaults import MANAGER
from jackfield.errors import PluginError
from jackfield.plugins import PluginHost, Row
from jackfield_manage.choices import replace_file
from jackfield_manage.judging.activation import active_components, remarks
from jackfield_manage.judging.source import Described, described_in_source
from jackfield_manage.names import group_by_distribution
from jackfield_manage.record import content_hash

SEEN_FILE = "seen.json"
_ACCESS = {
    "llm": "receives conversations when used as the model",
    "tool": "runs when called by the model of an agent that has this tool",
    "searcher": "reads the documents that it searches",
    "parser": "reads documents of its type",
    "processor": "sees all questions and answers, once enabled",
    "observer": "sees every event of every run, once enabled",
    "call_format": "sees tools and answers when used as the call format",
    "agent": "runs conversations when selected by name",
    "sandbox": "runs code from models when used as the sandbox",
    "command": "runs when called by name",
    "tokenizer": "reads conversations to count their tokens",
    "embedder": "reads documents and questions when used by a searcher",
    "server": "receives conversations and shows runs to clients when serving agents",
    "store": "stores the records of runs when used as the store",
}
_DESCRIBED_FIELDS = frozenset(("effects", "network", "secrets", "**"))
_UNREADABLE = Described("", {}, ("**",))
_EFFECTS = {"network": "uses the network", "files": "reads or writes files", "processes": "starts processes"}


Change = Literal["new", "changed", "not asked about"]


@dataclass(frozen=True, slots=True)
class Seen:
    """The recorded state of a distribution.

    Attributes:
        version: The version.
        content: The `content_hash`, or '' if there is no RECORD.
        mark: The modification time and size of the metadata. The content is hashed again only if they change.
        asked: True if the user was asked about the distribution; False if it was only reported.
    """

    version: str
    content: str
    mark: tuple[int, int]
    asked: bool

    @property
    def identity(self) -> object:
        """A value that changes with the distribution: its content, or its mark if the content is unknown."""
        return self.content or self.mark


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A distribution that differs from its recorded state.

    Attributes:
        rows: Its components that may load.
        change: `new`, `changed`, or `not asked about` if it was reported without a question.
        seen: Its current state.
    """

    distribution: str
    version: str
    rows: tuple[Row, ...]
    change: Change
    seen: Seen


@dataclass(frozen=True, slots=True)
class News:
    """The differences between an installation and its recorded state."""

    newcomers: tuple[Newcomer, ...] = ()
    gone: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.newcomers or self.gone)


class Memory:
    """The file that records the state of an environment.

    Args:
        path: The file. Defaults to one below `$XDG_STATE_HOME` or `~/.local/state`.
        environment: The environment. Defaults to this interpreter's prefix.
    """

    def __init__(self, path: Path | None = None, environment: str | None = None) -> None:
        self.path = path or _state_folder() / "jackfield" / SEEN_FILE
        self._environment = environment or sys.prefix

    def seen(self) -> dict[str, Seen]:
        """Return the recorded states by distribution; empty if the file is missing or has another format."""
        seen: dict[str, Seen] = {}
        for name, entry in self._read().get(self._environment, {}).items():
            match entry:
                case {
                    "version": str(version),
                    "content": str(content),
                    "mark": [int(time), int(size)],
                    "asked": bool(asked),
                }:
                    seen[name] = Seen(version, content, (time, size), asked)
        return seen

    def keep(self, seen: Mapping[str, Seen]) -> None:
        """Replace the environment's recorded states.

        Raises:
            OSError: The file cannot be written.
        """
        environments = {**self._read(), self._environment: {name: asdict(seen[name]) for name in sorted(seen)}}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(self.path, json.dumps(environments, indent=1))

    def _read(self) -> dict[str, dict[str, object]]:
        try:
            table = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(table, dict):
            return {}
        return {environment: entry for environment, entry in table.items() if isinstance(entry, dict)}


def news(host: PluginHost, seen: Mapping[str, Seen]) -> News:
    """Return new and changed distributions that may load, and recorded ones that are gone.

    The manager is omitted: it asks the questions, so after a refusal it could never ask again.
    """
    loadable = group_by_distribution(
        row for row in host.catalog.rows if row.is_installed and not host.policy.why_not(row)
    )
    loadable.pop(MANAGER, None)
    newcomers: list[Newcomer] = []
    for name, rows in loadable.items():
        before = seen.get(name)
        now = _look(rows[0], before)
        change = _change(before, now)
        if change:
            newcomers.append(Newcomer(name, now.version, tuple(rows), change, now))
    gone = seen.keys() - {row.distribution for row in host.catalog.rows}
    return News(tuple(newcomers), tuple(sorted(gone)))


def _look(row: Row, before: Seen | None) -> Seen:
    mark = _mark(row.location)
    if before is not None and before.mark == mark and before.version == row.version:
        return before
    try:
        content = content_hash(row.location)
    except PluginError:
        content = ""
    return Seen(row.version, content, mark, asked=False)


def _mark(location: str) -> tuple[int, int]:
    for name in ("RECORD", "METADATA", ""):
        with suppress(OSError):
            status = os.stat(os.path.join(location, name))  # noqa: PTH116, PTH118 - there may be a thousand
            return status.st_mtime_ns, status.st_size
    return 0, 0


def _change(before: Seen | None, now: Seen) -> Change | None:
    if before is None:
        return "new"
    if before.identity != now.identity:
        return "changed"
    return None if before.asked else "not asked about"


def describe(newcomer: Newcomer, host: PluginHost) -> list[str]:
    """Describe each component of a newcomer: its access, its effects, and warnings about its origin."""
    lines: list[str] = []
    active = active_components(host)
    for row in newcomer.rows:
        access = _ACCESS[row.kind]
        if row in active:
            access = f"{access.partition(',')[0]}: it {active[row]}"
        lines.append("; ".join([f"{row.id}: {access}", *_effects([row], host)]))
        lines += [f"  Warning: it {remark}" for remark in remarks(row, host)]
    return lines


def summarise(newcomer: Newcomer, host: PluginHost) -> str:
    """Summarise a newcomer in one line: its components, their effects, and warnings."""
    active = active_components(host)
    names = [f"{row.id} (acts in every run)" if row in active else row.id for row in newcomer.rows]
    warnings = [f"warning: it {remark}" for remark in remarks_on(newcomer, host)]
    return "; ".join([", ".join(names), *_effects(newcomer.rows, host), *warnings])


def summarise_all(newcomers: Sequence[Newcomer], host: PluginHost) -> str:
    """Summarise several newcomers in one line, with the most important facts first in case the line is truncated."""
    rows = [row for newcomer in newcomers for row in newcomer.rows]
    active = active_components(host)
    parts = _effects(rows, host, most_secrets=2)
    if names := [row.name for row in rows if row in active]:
        parts.insert(0, f"in every run: {', '.join(names)}")
    parts.append(f"offers {', '.join(row.id for row in rows)}")
    return "; ".join(parts)


def remarks_on(newcomer: Newcomer, host: PluginHost) -> list[str]:
    """Return the warnings about a newcomer's components, without duplicates."""
    return list(dict.fromkeys(remark for row in newcomer.rows for remark in remarks(row, host)))


def _effects(rows: Sequence[Row], host: PluginHost, *, most_secrets: int = 99) -> list[str]:
    """Return the side effects declared by the components' descriptors in their source code."""
    described = [described_in_source(row, host.paths) or _UNREADABLE for row in rows]
    hosts = _declared(described, "network")
    phrases: list[str] = []
    for effect in _declared(described, "effects"):
        phrase = _EFFECTS.get(effect, effect)
        phrases.append(f"{phrase} ({', '.join(hosts)})" if effect == "network" and hosts else phrase)
    if secrets := _declared(described, "secrets"):
        more = f" and {len(secrets) - most_secrets} more" if len(secrets) > most_secrets else ""
        phrases.append(f"reads {', '.join(secrets[:most_secrets])}{more}")
    if any(_DESCRIBED_FIELDS.intersection(descriptor.unknown) for descriptor in described):
        phrases.append("other effects are unknown until loaded")
    return phrases


def _declared(described: Sequence[Described], key: str) -> list[str]:
    """Return the strings that descriptors declare under a key, sorted, ignoring other values."""
    return sorted(set(_texts_under(described, key)))


def _texts_under(described: Sequence[Described], key: str) -> Iterator[str]:
    for descriptor in described:
        entries = descriptor.values.get(key)
        if isinstance(entries, tuple | list | set | frozenset):
            yield from (entry for entry in entries if isinstance(entry, str))


def _state_folder() -> Path:
    base = os.environ.get("XDG_STATE_HOME")
    return Path(base) if base else Path.home() / ".local" / "state"
