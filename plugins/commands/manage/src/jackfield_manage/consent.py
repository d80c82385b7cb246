"""What is new in an installation since somebody last looked, and what they said to it.

It is kept for each environment and distribution with the hash of its content, so that a changed one is asked about
again. What a newcomer would do is read from its source; nothing of it runs. A refusal becomes a rule (`block`); this
file only remembers what has been told and asked.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from jackfield.defaults import MANAGER
from jackfield.errors import PluginError
from jackfield.plugins import PluginHost, Row
from jackfield_manage.choices import write_whole
from jackfield_manage.record import content_hash
from jackfield_manage.source import Described, described_in_source
from jackfield_manage.standings import remarks, standings

SEEN_FILE = "seen.json"
_SIGHT = {
    "llm": "receives conversations, if it is the model",
    "tool": "runs when a model calls it, in an agent that has it",
    "searcher": "reads documents, when it searches them",
    "parser": "reads documents of its kind",
    "processor": "sees all questions and answers, once it is enabled",
    "observer": "sees every event of every run, once it is enabled",
    "call_format": "sees tools and answers, if it is the call format",
    "agent": "runs conversations, if it is named",
    "sandbox": "runs the code of models, if it is the sandbox",
    "command": "runs when its name is typed",
}
_TOLD = frozenset(("effects", "network", "secrets", "**"))
_EFFECTS = {"network": "uses the network", "files": "reads or writes files", "processes": "starts processes"}


Change = Literal["new", "changed", "not asked about"]


@dataclass(frozen=True, slots=True)
class Seen:
    """What is remembered of one distribution.

    Attributes:
        version, content: What was there, the content as `content_hash` gives it, '' where there is no RECORD.
        mark: The time and size of its metadata: while these are the same, the content is not hashed again.
        asked: Somebody was asked; otherwise it was only told.
    """

    version: str
    content: str
    mark: tuple[int, int]
    asked: bool


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A distribution that is not as it was when somebody last looked.

    Attributes:
        rows: What of it may load.
        change: Whether it is new, changed, or told of and not asked about yet.
    """

    distribution: str
    version: str
    rows: tuple[Row, ...]
    change: Change
    seen: Seen


@dataclass(frozen=True, slots=True)
class News:
    """What is different from what is remembered."""

    newcomers: tuple[Newcomer, ...] = ()
    gone: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.newcomers or self.gone)


class Memory:
    """The file in which it is kept, for one environment.

    Args:
        path: The file; below `$XDG_STATE_HOME`, or `~/.local/state`, if None.
        environment: Which one; the prefix of this interpreter if None.
    """

    def __init__(self, path: Path | None = None, environment: str | None = None) -> None:
        self.path = path or _state_folder() / "jackfield" / SEEN_FILE
        self._environment = environment or sys.prefix

    def seen(self) -> dict[str, Seen]:
        """What is remembered, by distribution; nothing if the file is missing or has another format."""
        seen: dict[str, Seen] = {}
        for name, entry in self._all().get(self._environment, {}).items():
            match entry:
                case {
                    "version": str(version),
                    "content": str(content),
                    "mark": [int(time), int(size)],
                    "asked": bool(a),
                }:
                    seen[name] = Seen(version, content, (time, size), a)
        return seen

    def keep(self, seen: Mapping[str, Seen]) -> None:
        """Remember this, and nothing else, of the environment.

        Raises:
            OSError: The file cannot be written.
        """
        everything = {**self._all(), self._environment: {name: asdict(one) for name, one in sorted(seen.items())}}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self.path, json.dumps(everything, indent=1))

    def _all(self) -> dict[str, dict[str, object]]:
        try:
            table = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(table, dict):
            return {}
        return {environment: entry for environment, entry in table.items() if isinstance(entry, dict)}


def news(host: PluginHost, seen: Mapping[str, Seen]) -> News:
    """What is new among the distributions that may load, and which of those remembered are gone.

    The manager is not among them: it is what asks, and a no would be a rule that keeps it from being asked again.
    """
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    for row in host.catalog.rows:
        if row.is_installed and row.distribution != MANAGER and not host.why_not(row):
            rows[row.distribution].append(row)
    newcomers = []
    for distribution, its_rows in sorted(rows.items()):
        before = seen.get(distribution)
        now = _look(its_rows[0], before)
        change = _change(before, now)
        if change:
            newcomers.append(Newcomer(distribution, its_rows[0].version, tuple(its_rows), change, now))
    installed = {row.distribution for row in host.catalog.rows}
    return News(tuple(newcomers), tuple(sorted(set(seen) - installed)))


def _change(before: Seen | None, now: Seen) -> Change | None:
    if before is None:
        return "new"
    if before.content != now.content or (not now.content and before.mark != now.mark):
        return "changed"
    return None if before.asked else "not asked about"


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
        try:
            found = os.stat(os.path.join(location, name))  # noqa: PTH116, PTH118 - a thousand of them are looked at
        except OSError:
            continue
        return found.st_mtime_ns, found.st_size
    return 0, 0


def description(newcomer: Newcomer, host: PluginHost) -> list[str]:
    """Lines that say what each component is, would see and would do, by its source, and who offers it."""
    lines = []
    stands = standings(host)
    for row in newcomer.rows:
        described = described_in_source(row, host.paths)
        sight = _SIGHT.get(row.kind, "acts when it is named")
        if row in stands and stands[row].acts:
            sight = f"{sight.partition(',')[0]}: it {stands[row].why}"
        does = "; ".join([sight, *_doings([described])])
        lines.append(f"{row.id}: {does}")
        lines += [f"  Warning: it {remark}" for remark in remarks(row, host)]
    return lines


def summary(newcomer: Newcomer, host: PluginHost) -> str:
    """The same in one line for the whole distribution, without what each kind sees."""
    doings = _doings([described_in_source(row, host.paths) for row in newcomer.rows])
    warnings = [f"warning: it {remark}" for remark in remarks_on(newcomer, host)]
    stands = standings(host)
    names = [f"{row.id} (acts in every run)" if row in stands and stands[row].acts else row.id for row in newcomer.rows]
    return "; ".join([", ".join(names), *doings, *warnings])


def summary_of_all(newcomers: Sequence[Newcomer], host: PluginHost) -> str:
    """What several distributions would do together, then what they offer: whoever cuts it keeps what matters most."""
    rows = [row for newcomer in newcomers for row in newcomer.rows]
    stands = standings(host)
    acting = [row.name for row in rows if row in stands and stands[row].acts]
    doings = _doings([described_in_source(row, host.paths) for row in rows], most_secrets=2)
    offers = f"offers {', '.join(row.id for row in rows)}"
    return "; ".join([*([f"in every run: {', '.join(acting)}"] if acting else []), *doings, offers])


def remarks_on(newcomer: Newcomer, host: PluginHost) -> list[str]:
    """What to beware of in a distribution, each once."""
    return list(dict.fromkeys(remark for row in newcomer.rows for remark in remarks(row, host)))


def _doings(described: Sequence[Described | None], *, most_secrets: int | None = None) -> list[str]:
    """What they do besides answering, as far as their source says."""
    hosts, secrets, effects = (_all_texts(described, key) for key in ("network", "secrets", "effects"))
    told = {**_EFFECTS, "network": _EFFECTS["network"] + (f" ({', '.join(hosts)})" if hosts else "")}
    doings = [told.get(effect, effect) for effect in effects]
    if secrets:
        more = f" and {len(secrets) - most_secrets} more" if most_secrets and len(secrets) > most_secrets else ""
        doings.append(f"reads {', '.join(secrets[:most_secrets])}{more}")
    if any(one is None or not _TOLD.isdisjoint(one.unknown) for one in described):
        doings.append("what else it does is not known without loading it")
    return doings


def _all_texts(described: Sequence[Described | None], key: str) -> list[str]:
    return sorted({text for one in described if one is not None for text in _texts(one.values.get(key))})


def _texts(value: object) -> list[str]:
    """The texts in what should be a list of some: the source may say anything."""
    return (
        [text for text in value if isinstance(text, str)] if isinstance(value, tuple | list | set | frozenset) else []
    )


def _state_folder() -> Path:
    base = os.environ.get("XDG_STATE_HOME")
    return Path(base) if base else Path.home() / ".local" / "state"
