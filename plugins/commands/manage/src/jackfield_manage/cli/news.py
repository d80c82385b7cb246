"""Report new plugins once, and ask whether they may load."""

from __future__ import annotations

import select
import shutil
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from jackfield.cli import escape_line
from jackfield.plugins import PluginHost, default_host, known_components
from jackfield.settings import load_settings
from jackfield_manage.choices import lock_choices, write_choices
from jackfield_manage.judging.news import (
    Memory,
    Newcomer,
    News,
    Seen,
    describe,
    news,
    remarks_on,
    summarise,
    summarise_all,
)

_ASK_ABOUT_ONE = ("Allow it to be loaded by name? [Y]es, [n]o, [d]etails: ", "ynd")
_ASK_ABOUT_SEVERAL = ("Allow them to be loaded by name? [Y]es, [n]o, [c]hoose, [d]etails: ", "yncd")


def main(_arguments: Sequence[str]) -> int:
    """Run `jackfield news`: report new plugins and ask about them, as other commands do in a terminal."""
    tell_news()
    return 0


def tell_news() -> None:
    """Run `greet` for the default host, and apply the user's decisions to it."""
    if sys.stderr.isatty() and greet(default_host()):
        default_host().refresh(load_settings())


def greet(host: PluginHost, memory: Memory | None = None) -> bool:
    """Report new plugins on standard error and ask about them. Without a terminal, do nothing.

    Returns:
        True if the user refused a plugin, so the settings have changed and must be reloaded.
    """
    memory = memory or Memory()
    if not sys.stderr.isatty() or host.settings.safe:
        return False
    # Typeahead is meant for the command or the shell, so it must not become the answer.
    seen, can_ask = memory.seen(), sys.stdin.isatty() and not _has_typed_ahead()
    fresh = news(host, seen)
    if not can_ask:
        unreported = [newcomer for newcomer in fresh.newcomers if newcomer.change != "not asked about"]
        fresh = News(tuple(unreported), fresh.gone)
    ours = can_ask and not fresh.gone and _are_ours(fresh.newcomers, host)
    if not ours:
        _tell(fresh, host)
    refused = _ask(fresh.newcomers, host, ours=ours) if can_ask and fresh.newcomers else []
    if refused:
        _block(refused)
    if fresh:
        kept = {name: seen[name] for name in seen.keys() - fresh.gone}
        _keep(memory, kept, fresh.newcomers, asked=can_ask, otherwise="these changes will be reported again")
    return bool(refused)


def remember(host: PluginHost, names: Collection[str], memory: Memory | None = None) -> None:
    """Record that the user requested distributions by name. The user is still asked about their requirements."""
    memory = memory or Memory()
    seen = memory.seen()
    requested = [newcomer for newcomer in news(host, seen).newcomers if newcomer.distribution in names]
    if requested:
        _keep(memory, seen, requested, asked=True, otherwise="you will be asked about these plugins")


def _keep(
    memory: Memory, seen: Mapping[str, Seen], newcomers: Sequence[Newcomer], *, asked: bool, otherwise: str
) -> None:
    """Record newcomers in addition to `seen`. `otherwise` is the consequence to print if that fails."""
    try:
        changes = {newcomer.distribution: replace(newcomer.seen, asked=asked) for newcomer in newcomers}
        memory.keep({**seen, **changes})
    except OSError as error:
        _say(f"jackfield: {memory.path} cannot be written ({error.strerror}), so {otherwise}")


def _tell(fresh: News, host: PluginHost) -> None:
    """Print a summary of all newcomers in two lines, and a line for each warning."""
    for name in fresh.gone:
        _say(f"jackfield: {name} is no longer installed. To reinstall it, run: pip install {name}")
    if not fresh.newcomers:
        return
    parts: list[str] = []
    for heading, changes in (("newly installed", ("new", "not asked about")), ("changed", ("changed",))):
        names = [_name(newcomer) for newcomer in fresh.newcomers if newcomer.change in changes]
        if names:
            count = f" ({len(names)})" if len(names) > 1 else ""
            parts.append(f"{heading}{count}: {', '.join(names)}")
    _say(_fit_line(f"jackfield: {'; '.join(parts)}"))
    _say(_fit_line(f"  {summarise_all(fresh.newcomers, host)}"))
    for newcomer in fresh.newcomers:
        for remark in remarks_on(newcomer, host):
            _say(f"  Warning: {newcomer.distribution} {remark}")


def _fit_line(text: str) -> str:
    """Truncate a text at a word boundary to fit on one line; "details" shows the whole text."""
    shown, width = escape_line(text), max(60, shutil.get_terminal_size().columns - 1)
    if len(shown) <= width:
        return shown
    head = shown[: width - 1]
    return f"{head[: head.rfind(' ')].rstrip(' ,;:')} …" if " " in head.strip() else f"{head[:-1]} …"


def _has_typed_ahead() -> bool:
    """Return True if the terminal has unread input."""
    try:
        return bool(select.select([sys.stdin], [], [], 0)[0])
    except (OSError, ValueError):  # not a file, or a Windows console
        return False


def _are_ours(newcomers: Sequence[Newcomer], host: PluginHost) -> bool:
    """Return True if all newcomers are proven, unchanged Jackfield packages without warnings."""
    known = {component.distribution for component in known_components().values()}
    return all(
        newcomer.distribution in known
        and newcomer.change != "changed"
        and not remarks_on(newcomer, host)
        and not any(host.policy.unproven(row) for row in host.catalog.rows if row.distribution == newcomer.distribution)
        for newcomer in newcomers
    )


def _name(newcomer: Newcomer) -> str:
    return f"{newcomer.distribution} {newcomer.version}"


def _ask(newcomers: Sequence[Newcomer], host: PluginHost, *, ours: bool) -> list[str]:
    """Ask about all newcomers together, and return the distributions that the user refuses.

    If all of them are our own packages, the question fits on one line.

    Raises:
        KeyboardInterrupt: Standard input has ended; no decision is recorded.
    """
    question, choices = _ASK_ABOUT_SEVERAL if len(newcomers) > 1 else _ASK_ABOUT_ONE
    if ours and len(newcomers) > 1:
        question = f"{len(newcomers)} new Jackfield packages: allow loading by name? [Y]es, [n]o, [c]hoose, [d]etails: "
    elif ours:
        question = f"New: {_name(newcomers[0])}. Allow loading by name? [Y]es, [n]o, [d]etails: "
    while (answer := _read_answer(question, choices)) == "d":
        for newcomer in newcomers:
            _say(_name(newcomer))
            for line in describe(newcomer, host):
                _say(f"  {line}")
    if answer == "y":
        return []
    refused: list[str] = []
    for newcomer in newcomers:
        if answer == "c":
            _say(f"{_name(newcomer)}: {summarise(newcomer, host)}")
            if _read_answer(f"Allow {newcomer.distribution} to be loaded by name? [Y/n] ", "yn") == "y":
                continue
        refused.append(newcomer.distribution)
    return refused


def _read_answer(question: str, choices: str) -> str:
    while True:
        sys.stderr.write(escape_line(question))
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            raise KeyboardInterrupt
        answer = line.strip().lower()[:1] or choices[0]
        if answer in choices:
            return answer


def _block(names: Sequence[str]) -> None:
    with lock_choices() as choices:
        path = write_choices(choices.blocking(*names))
    _say(f"jackfield: blocked {', '.join(names)} in {path}")
    _say(f"To undo this, run: jackfield plugins enable {' '.join(names)}")


def _say(text: str) -> None:
    sys.stderr.write(f"{escape_line(text)}\n")
