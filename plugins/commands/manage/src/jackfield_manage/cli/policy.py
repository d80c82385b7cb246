"""`jackfield plugins enable` and `disable`: what may load, and what acts without being named in code."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain, filterfalse

from jackfield.cli import printable
from jackfield.defaults import MANAGER
from jackfield.errors import ConfigError
from jackfield.plugins import PluginHost, Row
from jackfield.settings import CONSIDERED_KINDS, ENABLED_KINDS, load_settings, normalise
from jackfield_manage.choices import Choices, load_choices, write_choices
from jackfield_manage.judging.activation import standing
from jackfield_manage.names import not_installed, rows_named, whole_name


def enable(host: PluginHost, names: Sequence[str]) -> int:
    """Take back what was blocked, and let processors and observers act. Nothing is loaded."""
    choices = load_choices()
    for name in names:
        rows = _meant(host, name)
        forms = {name, *chain.from_iterable((row.distribution, row.id, row.address) for row in rows)}
        enabled = (*choices.enabled, *map(whole_name, filter(partial(_needs_enabling, host), rows)))
        choices = choices.with_changes(
            block=tuple(filterfalse(forms.__contains__, choices.block)), enabled=tuple(dict.fromkeys(enabled))
        )
    _write(choices)
    return int(_report(host, names))


def disable(host: PluginHost, names: Sequence[str]) -> int:
    """Keep processors and observers from acting, and everything else from loading. Nothing is loaded."""
    choices = load_choices()
    for name in names:
        rows = _meant(host, name, enabled=load_settings().enabled)
        choices = _without(choices, name, rows)
    write_choices(choices)
    _check_gone(names)
    # What acts all the same, because it is in the default chain or enabled elsewhere, must be kept from loading.
    fresh = PluginHost(load_settings(), paths=host.paths)
    left = [row for row in _all_meant(fresh, names) if standing(row, fresh).acts]
    _write(_blocking(choices, [row.address for row in left]))
    _report(host, names)
    return 0


def _needs_enabling(host: PluginHost, row: Row) -> bool:
    """True if the component does nothing without a name unless it is enabled."""
    return _is_enabled(row) or (row.kind in CONSIDERED_KINDS and row in host.policy.left_out(row.kind))


def _is_enabled(row: Row) -> bool:
    """Whether it acts only if it is enabled: it sees every run, or is asked for what nobody else offers."""
    return row.kind in ENABLED_KINDS or (row.is_source and row.is_installed)


def _without(choices: Choices, name: str, rows: Sequence[Row]) -> Choices:
    """Choices in which what a name means is neither enabled nor, if it would act in another way, may load."""
    if MANAGER in (row.distribution for row in rows):
        raise ConfigError(
            f"no command could enable {MANAGER} again. To remove it: jackfield plugins uninstall {MANAGER}; "
            f'or write it into your config.toml yourself: block = ["{MANAGER}"]'
        )
    names = {name, *chain.from_iterable((row.id, whole_name(row)) for row in rows)}
    choices = choices.with_changes(enabled=tuple(filterfalse(names.__contains__, choices.enabled)))
    return choices if all(map(_is_enabled, rows)) else _blocking(choices, [_blocked_form(name, rows)])


def _check_gone(names: Sequence[str]) -> None:
    """Raise ConfigError if something is enabled where no command writes."""
    settings = load_settings()
    for name in names:
        if name in settings.enabled and not rows_named(name, PluginHost(settings).catalog):
            raise ConfigError(f"{name!r} is enabled in {settings.origins[f'enabled:{name}']}: remove it there")


def _blocking(choices: Choices, names: Sequence[str]) -> Choices:
    return choices.with_changes(block=tuple(dict.fromkeys((*choices.block, *names))))


def _meant(host: PluginHost, name: str, enabled: Sequence[str] = ()) -> list[Row]:
    """What a distribution, `kind.name`, an address or a bare name stands for.

    Raises:
        PluginNotFoundError: Nothing of that name is installed, nor enabled.
    """
    rows = rows_named(name, host.catalog)
    if not rows and name not in enabled:
        raise not_installed(name, host.catalog)
    return rows


def _all_meant(host: PluginHost, names: Sequence[str]) -> list[Row]:
    """What several names stand for together, each component once; one that is only enabled may stand for nothing."""
    return list(dict.fromkeys(chain.from_iterable(_meant(host, name, names) for name in names)))


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
    rows = _all_meant(fresh, names)
    for row in rows:
        print(printable(f"{row.kind} {row.address} {standing(row, fresh).why}"))
    return any(fresh.policy.why_not(row) for row in rows)
