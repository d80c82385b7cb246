"""`jackfield plugins enable` and `disable`: change what may load, and what acts without being named."""

from __future__ import annotations

from collections.abc import Sequence

from jackfield.cli import escape_line
from jackfield.defaults import MANAGER
from jackfield.errors import ConfigError
from jackfield.plugins import PluginHost, Row
from jackfield.settings import CONSIDERED_KINDS, ENABLED_KINDS, load_settings, normalise
from jackfield_manage.choices import Choices, lock_choices, write_choices
from jackfield_manage.judging.activation import activation_of
from jackfield_manage.names import find_rows, full_name, not_installed_error


def enable(host: PluginHost, names: Sequence[str]) -> int:
    """Unblock components and activate processors and observers; return 1 if a rule prevents this. Nothing is loaded."""
    with lock_choices() as before:
        choices = before
        for name in names:
            choices = _with(choices, name, host)
        path = write_choices(choices)
    print(f"Wrote {path}")
    fresh = PluginHost(load_settings(), paths=host.paths)
    rows = _report(fresh, names)
    return int(any(fresh.policy.why_not(row) for row in rows))


def disable(host: PluginHost, names: Sequence[str]) -> int:
    """Deactivate processors and observers, and block everything else. Nothing is loaded."""
    with lock_choices() as before:
        choices = before
        for name in names:
            choices = _without(choices, name, _find_rows(host, name, enabled=load_settings().enabled))
        write_choices(choices)
        _check_not_enabled(names)
        # Components that still act, by default or because another file enables them, must be blocked.
        host = PluginHost(load_settings(), paths=host.paths)
        active = [full_name(row) for row in _find_all_rows(host, names) if activation_of(row, host).is_active]
        path = write_choices(choices.blocking(*active))
    print(f"Wrote {path}")
    _report(PluginHost(load_settings(), paths=host.paths), names)
    return 0


def _needs_enabling(host: PluginHost, row: Row) -> bool:
    """Return True if a component has no effect unless it is named or enabled."""
    return _acts_if_enabled(row) or (row.kind in CONSIDERED_KINDS and row in host.policy.left_out(row.kind))


def _acts_if_enabled(row: Row) -> bool:
    """Return True for processors, observers, and component sources that belong to an installed distribution."""
    return row.kind in ENABLED_KINDS or (row.is_source and row.is_installed)


def _with(choices: Choices, name: str, host: PluginHost) -> Choices:
    """Return choices that no longer block a name's components, and that enable those that need it."""
    rows = _find_rows(host, name)
    unblocked = {name, *(form for row in rows for form in (row.distribution, row.id, row.address, full_name(row)))}
    enabled = [full_name(row) for row in rows if _needs_enabling(host, row)]
    return choices.with_changes(
        block=tuple(rule for rule in choices.block if rule not in unblocked),
        enabled=tuple(dict.fromkeys((*choices.enabled, *enabled))),
    )


def _without(choices: Choices, name: str, rows: Sequence[Row]) -> Choices:
    """Return choices that no longer enable a name's components, and that block those that would act or load anyway."""
    if any(row.distribution == MANAGER for row in rows):
        raise ConfigError(
            f"{MANAGER} cannot be disabled by a command, because no command could enable it again. To remove it, run: "
            f"jackfield plugins uninstall {MANAGER}. To block it, add this to your config.toml: "
            f'block = ["{MANAGER}"]'
        )
    disabled = {name, *(form for row in rows for form in (row.id, full_name(row)))}
    choices = choices.with_changes(enabled=tuple(form for form in choices.enabled if form not in disabled))
    blocked = [row for row in rows if not _acts_if_enabled(row)]
    if blocked and normalise(name) in {row.distribution for row in rows}:
        return choices.blocking(normalise(name))
    is_bare = any(name == row.name for row in rows)  # rules do not have this form
    return choices.blocking(*(row.id if is_bare else name for row in blocked))


def _check_not_enabled(names: Sequence[str]) -> None:
    """Raise ConfigError if a file that commands do not write enables a component that is not installed."""
    settings = load_settings()
    for name in names:
        if name in settings.enabled and not find_rows(name, PluginHost(settings).catalog):
            raise ConfigError(f"{name!r} is enabled in {settings.origins[f'enabled:{name}']}: remove it there")


def _find_rows(host: PluginHost, name: str, enabled: Sequence[str] = ()) -> list[Row]:
    """Return the components with a given distribution, `kind.name`, address or bare name.

    Raises:
        PluginNotFoundError: The name is neither installed nor in `enabled`.
    """
    rows = find_rows(name, host.catalog)
    if not rows and name not in enabled:
        raise not_installed_error(name, host.catalog)
    return rows


def _find_all_rows(host: PluginHost, names: Sequence[str]) -> list[Row]:
    """Return the components with any of the names, without duplicates. Some names may have no components."""
    return list(dict.fromkeys(row for name in names for row in _find_rows(host, name, names)))


def _report(host: PluginHost, names: Sequence[str]) -> list[Row]:
    """Print the new state of the named components, and return these components."""
    rows = _find_all_rows(host, names)
    for row in rows:
        print(escape_line(f"{row.kind} {row.address} {activation_of(row, host).reason}"))
    return rows
