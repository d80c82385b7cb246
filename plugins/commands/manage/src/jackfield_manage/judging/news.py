"""What is new in an installation since somebody last looked, and what they said to it.

It is kept for each environment and distribution with the hash of its content, so that a changed one is asked about
again. What a newcomer would do is read from its source; nothing of it runs. A refusal becomes a rule (`block`); this
file only remembers what has been told and asked.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Literal

from jackfield.defaults import MANAGER
from jackfield.errors import PluginError
from jackfield.plugins import PluginHost, Row
from jackfield_manage.choices import write_whole
from jackfield_manage.judging.activation import acting, remarks
from jackfield_manage.judging.source import Described, described_in_source
from jackfield_manage.names import by_distribution
from jackfield_manage.record import content_hash

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
_UNREADABLE = Described("", {}, ("**",))
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

    @property
    def what(self) -> object:
        """What is different if the distribution is: its content, and without one the mark."""
        return self.content or self.mark


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
    loadable = by_distribution(row for row in host.catalog.rows if row.is_installed and not host.policy.why_not(row))
    loadable.pop(MANAGER, None)
    newcomers = [_newcomer(rows, seen.get(name)) for name, rows in loadable.items()]
    gone = seen.keys() - by_distribution(host.catalog.rows).keys()
    return News(tuple(filter(None, newcomers)), tuple(sorted(gone)))


def _newcomer(rows: Sequence[Row], before: Seen | None) -> Newcomer | None:
    now = _look(rows[0], before)
    change = _change(before, now)
    return Newcomer(rows[0].distribution, now.version, tuple(rows), change, now) if change else None


def _change(before: Seen | None, now: Seen) -> Change | None:
    if before is None:
        return "new"
    if before.what != now.what:
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
        with suppress(OSError):
            found = os.stat(os.path.join(location, name))  # noqa: PTH116, PTH118 - a thousand of them are looked at
            return found.st_mtime_ns, found.st_size
    return 0, 0


def description(newcomer: Newcomer, host: PluginHost) -> list[str]:
    """Lines that say what each component is, would see and would do, by its source, and who offers it."""
    lines = []
    acts = acting(host)
    for row in newcomer.rows:
        sight = _SIGHT.get(row.kind, "acts when it is named")
        if row in acts:
            sight = f"{sight.partition(',')[0]}: it {acts[row]}"
        lines.append("; ".join([f"{row.id}: {sight}", *_doings([row], host)]))
        lines += [f"  Warning: it {remark}" for remark in remarks(row, host)]
    return lines


def summary(newcomer: Newcomer, host: PluginHost) -> str:
    """The same in one line for the whole distribution, without what each kind sees."""
    warnings = [f"warning: it {remark}" for remark in remarks_on(newcomer, host)]
    acts = acting(host)
    names = [f"{row.id}{' (acts in every run)' * (row in acts)}" for row in newcomer.rows]
    return "; ".join([", ".join(names), *_doings(newcomer.rows, host), *warnings])


def summary_of_all(newcomers: Sequence[Newcomer], host: PluginHost) -> str:
    """What several distributions would do together, then what they offer: whoever cuts it keeps what matters most."""
    rows = [row for newcomer in newcomers for row in newcomer.rows]
    names = ", ".join(row.name for row in filter(acting(host).__contains__, rows))
    offers = f"offers {', '.join(row.id for row in rows)}"
    return "; ".join([*[f"in every run: {names}"] * bool(names), *_doings(rows, host, most_secrets=2), offers])


def remarks_on(newcomer: Newcomer, host: PluginHost) -> list[str]:
    """What to beware of in a distribution, each once."""
    return list(dict.fromkeys(remark for row in newcomer.rows for remark in remarks(row, host)))


def _doings(rows: Sequence[Row], host: PluginHost, *, most_secrets: int = 99) -> list[str]:
    """What components do besides answering, as far as their source says."""
    described = [described_in_source(row, host.paths) or _UNREADABLE for row in rows]
    hosts, secrets, effects = map(partial(_all_texts, described), ("network", "secrets", "effects"))
    named = {"network": f" ({', '.join(hosts)})" * bool(hosts)}
    doings = [_EFFECTS.get(effect, effect) + named.get(effect, "") for effect in effects]
    doings += _reading(secrets, most_secrets)
    if any(_TOLD.intersection(one.unknown) for one in described):
        doings.append("what else it does is not known without loading it")
    return doings


def _reading(secrets: Sequence[str], most: int) -> Iterator[str]:
    more = f" and {len(secrets) - most} more" * (len(secrets) > most)
    if secrets:
        yield f"reads {', '.join(secrets[:most])}{more}"


def _all_texts(described: Sequence[Described], key: str) -> list[str]:
    """The texts in what should be lists of some: the source may say anything."""
    entries = chain.from_iterable(_entries(one.values.get(key)) for one in described)
    return sorted({text for text in entries if isinstance(text, str)})


def _entries(value: object) -> Iterable[object]:
    return value if isinstance(value, tuple | list | set | frozenset) else ()


def _state_folder() -> Path:
    base = os.environ.get("XDG_STATE_HOME")
    return Path(base) if base else Path.home() / ".local" / "state"
