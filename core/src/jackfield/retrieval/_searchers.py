"""Make a searcher by its name."""

from __future__ import annotations

from collections.abc import Mapping

from jackfield.errors import BrokenPluginError
from jackfield.plugins._host import PluginHost
from jackfield.plugins._loading import takes_host
from jackfield.retrieval._base import Searcher
from jackfield.tracebacks import LocalsForgotten


def make_searcher(name: str, cfg: Mapping[str, object] | None = None, *, host: PluginHost) -> Searcher:
    """A new searcher.

    Args:
        name: Its name, or `distribution/name`.
        cfg: Its settings.
        host: Where it is looked up, and where it looks up others.

    Raises:
        PluginError: It is not installed, cannot be loaded, or is not a searcher.
        ConfigError: A setting does not fit.
    """
    made_by = host.load("searcher", name)
    with LocalsForgotten():  # a key may be among them
        made = made_by(dict(cfg or {}), host=host) if takes_host(made_by) else made_by(dict(cfg or {}))
    if not isinstance(made, Searcher):
        raise BrokenPluginError(f"searcher {name!r} is not a subclass of jackfield.retrieval.Searcher")
    return made
