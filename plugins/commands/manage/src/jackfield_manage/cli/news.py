"""Tells, once, what is new among the plugins, and asks whether it may load."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import filterfalse

from jackfield.cli import printable
from jackfield.plugins import PluginHost, default_host
from jackfield.settings import load_settings
from jackfield_manage.choices import load_choices, write_choices
from jackfield_manage.judging.news import (
    Memory,
    Newcomer,
    News,
    Seen,
    description,
    news,
    remarks_on,
    summary,
    summary_of_all,
)

_OF_ONE = ("May it load when it is named? [Y]es, [n]o, [d]etails: ", "ynd")
_OF_SEVERAL = ("May they load when they are named? [Y]es, [n]o, [c]hoose, [d]etails: ", "yncd")


def main(_arguments: Sequence[str]) -> int:
    """Run `jackfield news`: tell and ask, as before any other command at a terminal."""
    tell_news()
    return 0


def tell_news() -> None:
    """As `greet`, for the default host, which then follows what was answered."""
    if sys.stderr.isatty() and greet(default_host()):
        default_host().refresh(load_settings())


def greet(host: PluginHost, memory: Memory | None = None) -> bool:
    """Tell and ask, on standard error. Without a terminal nothing happens, and only the rules apply.

    Returns:
        Whether something was refused, so that policy has changed and must be read again.
    """
    memory = memory or Memory()
    if not sys.stderr.isatty() or host.settings.safe:
        return False
    seen, can_ask = memory.seen(), sys.stdin.isatty()
    found = news(host, seen)
    if not can_ask:
        found = _untold(found)
    _tell(found, host)
    refused = _ask(found.newcomers, host) if can_ask else []
    if found:
        kept = {name: seen[name] for name in seen.keys() - found.gone}
        _keep(memory, kept, found.newcomers, asked=can_ask, otherwise="this will be reported again")
    return bool(refused)


def _untold(found: News) -> News:
    """What is still news where nobody can be asked."""
    return News(tuple(one for one in found.newcomers if one.change != "not asked about"), found.gone)


def remember(host: PluginHost, names: Collection[str], memory: Memory | None = None) -> None:
    """Note that somebody has asked for distributions by name; what came with them is still asked about."""
    memory = memory or Memory()
    seen = memory.seen()
    wanted = [one for one in news(host, seen).newcomers if one.distribution in names]
    if wanted:
        _keep(memory, seen, wanted, asked=True, otherwise="they will be asked about")


def _keep(
    memory: Memory, seen: Mapping[str, Seen], newcomers: Sequence[Newcomer], *, asked: bool, otherwise: str
) -> None:
    """Remember newcomers beside what was seen before; `otherwise` is what follows where that cannot be written."""
    try:
        memory.keep({**seen, **{one.distribution: _as_asked(one.seen, asked) for one in newcomers}})
    except OSError as error:
        _say(f"jackfield: {memory.path} cannot be written ({error.strerror}): {otherwise}")


def _tell(found: News, host: PluginHost) -> None:
    """Two lines about all newcomers, and one for each thing to beware of."""
    for name in found.gone:
        _say(f"jackfield: {name} was installed here, but no longer is. To get it back: pip install {name}")
    if not found.newcomers:
        return
    _say(_fitted("jackfield: " + "; ".join(_named_by_change(found.newcomers))))
    _say(_fitted(f"  {summary_of_all(found.newcomers, host)}"))
    for newcomer in found.newcomers:
        for remark in remarks_on(newcomer, host):
            _say(f"  Warning: {newcomer.distribution} {remark}")


def _named_by_change(newcomers: Sequence[Newcomer]) -> Iterator[str]:
    """The names of what is new and of what has changed, and how many, where they are many."""
    for what, changes in (("new here", ("new", "not asked about")), ("changed", ("changed",))):
        several = [one for one in newcomers if one.change in changes]
        if several:
            count = f" ({len(several)})" * (len(several) > 1)
            yield f"{what}{count}: {', '.join(map(_named, several))}"


def _fitted(text: str) -> str:
    """A text that fits into a line of the terminal; "details" shows all of it."""
    shown, width = printable(text), max(60, shutil.get_terminal_size().columns - 1)
    return shown if len(shown) <= width else f"{shown[: width - 2]} …"


def _named(newcomer: Newcomer) -> str:
    return f"{newcomer.distribution} {newcomer.version}"


def _ask(newcomers: Sequence[Newcomer], host: PluginHost) -> list[str]:
    """Ask about them together, if there are some; gives the distributions that were refused, which are blocked then.

    Raises:
        KeyboardInterrupt: There was no answer; nothing was decided.
    """
    answer = _decided(newcomers, host) if newcomers else "y"
    if answer == "y":
        return []
    if answer == "c":
        newcomers = list(filterfalse(partial(_is_chosen, host), newcomers))
    return _block([one.distribution for one in newcomers])


def _decided(newcomers: Sequence[Newcomer], host: PluginHost) -> str:
    """What somebody says to all, who may have looked at the details before."""
    question, allowed = _OF_SEVERAL if len(newcomers) > 1 else _OF_ONE
    while (answer := _answer(question, allowed)) == "d":
        for newcomer in newcomers:
            _say_all([_named(newcomer), *map("  {}".format, description(newcomer, host))])
    return answer


def _is_chosen(host: PluginHost, newcomer: Newcomer) -> bool:
    _say(f"{_named(newcomer)}: {summary(newcomer, host)}")
    return _answer(f"May {newcomer.distribution} load when it is named? [Y/n] ", "yn") == "y"


def _answer(question: str, allowed: str) -> str:
    while True:
        sys.stderr.write(printable(question))
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            raise KeyboardInterrupt
        answer = line.strip().lower()[:1] or allowed[0]
        if answer in allowed:
            return answer


def _block(names: Sequence[str]) -> list[str]:
    if names:
        choices = load_choices()
        path = write_choices(choices.with_changes(block=tuple(dict.fromkeys((*choices.block, *names)))))
        _say(f"jackfield: blocked {', '.join(names)}, in {path}")
        _say(f"To change that: jackfield plugins enable {' '.join(names)}")
    return list(names)


def _as_asked(seen: Seen, asked: bool) -> Seen:
    return Seen(seen.version, seen.content, seen.mark, asked)


def _say_all(lines: Sequence[str]) -> None:
    for line in lines:
        _say(line)


def _say(text: str) -> None:
    sys.stderr.write(f"{printable(text)}\n")
