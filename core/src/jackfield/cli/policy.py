"""`jackfield plugins enable` and `disable`: what may load, and what acts without being named in code."""

from __future__ import annotations

from collections.abc import Sequence

from jackfield.cli.tables import printable
from jackfield.composition.choices import Choices, load_choices, write_choices
from jackfield.errors import PluginNotFoundError
from jackfield.plugins.catalog import Row
from jackfield.plugins.host import PluginHost
from jackfield.plugins.known import install_hint
from jackfield.plugins.policy import is_enabled
from jackfield.settings import ENABLED_KINDS, closest, load_settings, normalise


def enable(host: PluginHost, names: Sequence[str]) -> int:
    """Take back what was blocked, and let processors and observers act. Nothing is loaded."""
    choices = load_choices()
    for name in names:
        rows = _meant(host, name)
        forms = {form for row in rows for form in (row.distribution, row.id, row.address, name)}
        acting = [f"{row.kind}.{row.address}" for row in rows if row.kind in ENABLED_KINDS]
        choices = choices.with_changes(
            block=tuple(blocked for blocked in choices.block if blocked not in forms),
            enabled=tuple(dict.fromkeys((*choices.enabled, *acting))),
        )
    _write(choices)
    return int(_report(host, names))


def disable(host: PluginHost, names: Sequence[str]) -> int:
    """Keep processors and observers from acting, and everything else from loading. Nothing is loaded."""
    choices = load_choices()
    for name in names:
        rows = _meant(host, name, enabled=choices.enabled)
        acting = {name, *(form for row in rows for form in (row.id, f"{row.kind}.{row.address}"))}
        enabled = tuple(one for one in choices.enabled if one not in acting)
        if enabled != choices.enabled:
            choices = choices.with_changes(enabled=enabled)
        else:
            choices = choices.with_changes(block=tuple(dict.fromkeys((*choices.block, _blocked_form(name, rows)))))
    _write(choices)
    _report(host, names)
    return 0


def _meant(host: PluginHost, name: str, enabled: Sequence[str] = ()) -> list[Row]:
    """What a distribution, `kind.name`, an address or a bare name stands for.

    Raises:
        PluginNotFoundError: Nothing of that name is installed, nor enabled.
    """
    wanted = normalise(name)
    rows = [
        row
        for row in host.catalog.rows
        if wanted == row.distribution or name in (row.id, row.address, row.name, f"{row.kind}.{row.address}")
    ]
    if not rows and name not in enabled:
        known = sorted({row.distribution for row in host.catalog.rows} | {row.id for row in host.catalog.rows})
        kind, _, short = name.partition(".")
        raise PluginNotFoundError(f"no plugin {name!r} is installed{closest(name, known)}{install_hint(kind, short)}")
    return rows


def _blocked_form(name: str, rows: Sequence[Row]) -> str:
    if normalise(name) in {row.distribution for row in rows}:
        return normalise(name)
    return name if "." in name or "/" in name else rows[0].id


def _write(choices: Choices) -> None:
    path = write_choices(choices)
    print(f"Written: {path}")


def _report(host: PluginHost, names: Sequence[str]) -> bool:
    """Say what is so now, and whether a stronger rule keeps something from loading."""
    fresh = PluginHost(load_settings(), paths=host.paths)
    kept_out = False
    for row in dict.fromkeys(row for name in names for row in _meant(fresh, name, names)):
        reason = fresh.why_not(row)
        kept_out = kept_out or bool(reason)
        if reason:
            state = reason
        elif row.kind in ENABLED_KINDS:
            state = "acts in every run" if is_enabled(row, fresh.settings) else "acts only where it is named in code"
        else:
            state = "may load when it is named"
        print(printable(f"{row.kind} {row.address} {state}"))
    return kept_out
