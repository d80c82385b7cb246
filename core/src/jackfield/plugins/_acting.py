"""Processors and observers that are active in every run without being named in code.

Runs and reports share these functions, so their results cannot differ.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from jackfield.defaults import DEFAULT_CHAIN
from jackfield.errors import PluginError

if TYPE_CHECKING:
    from jackfield.plugins._catalog import Row
    from jackfield.plugins._host import PluginHost
    from jackfield.plugins._protocol import Plugins


def acting(host: Plugins, kind: str, *, named: Collection[Row] = ()) -> list[Row]:
    """List the components that are active in addition to the components named in code. Enabled components come first.

    Args:
        host: The plugin host.
        kind: `processor` or `observer`.
        named: The components named in code, which replace defaults with the same name.

    Raises:
        PluginError: An enabled component cannot be used. Runs do not start without the component, because it may
            protect the user.
    """
    enabled = [row for row in host.enabled(kind) if row not in named]
    return [*enabled, *default_chain(host, kind, besides=(*named, *enabled))]


def default_chain(host: Plugins, kind: str, *, besides: Collection[Row]) -> list[Row]:
    """List the components of the default chain that are active in addition to `besides`.

    A component in `besides` replaces a default with the same name. Only components that are proven to be Jackfield's
    own are ever active by default.
    """
    if kind != "processor":
        return []
    taken = {row.name for row in besides}
    policy = host.policy
    ours = [row for row in policy.rows(kind) if row.address in DEFAULT_CHAIN and row.name not in taken]
    return [row for row in ours if not policy.unproven(row)]


def enabled_by(host: PluginHost, kind: str) -> dict[Row, str]:
    """Map each usable component that the settings enable to its first entry in the settings."""
    names: dict[Row, str] = {}
    for name in host.settings.enabled:
        if name.partition(".")[0] != kind:
            continue
        try:
            row = host.find_enabled(name)
        except PluginError:
            continue
        if row is not None:
            names.setdefault(row, name)
    return names
