"""Resolve names to components, or explain why none matches."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence

from jackfield.errors import AmbiguousPluginError, IncompatiblePluginError, PluginBlockedError, PluginNotFoundError
from jackfield.plugins._catalog import ANY, Row
from jackfield.plugins._known import install_hint, known_distribution, spelling_hint
from jackfield.plugins._loading import Loader
from jackfield.plugins._policy import Policy, is_blocked, is_incompatible, why_not
from jackfield.settings import Settings, normalise
from jackfield.suggestions import close_names, suggest


class Resolver:
    """Resolves names under a policy. Local files are queried, as are sources that are named or enabled.

    Args:
        policy: The rules and the components.
        loader: The loader that queries the sources.
        explain: A function that takes the kind and address of a missing component and returns additional sentences for
            the error, or ''.
    """

    def __init__(self, policy: Policy, loader: Loader, *, explain: Callable[[str, str], str]) -> None:
        self.policy = policy
        self._settings = policy.settings
        self._loader = loader
        self._explain = explain

    def names(self, kind: str) -> list[str]:
        """List the usable component names of a kind, without duplicates, including names from local files."""
        return list(dict.fromkeys(row.name for row in (*self.policy.rows(kind), *self._local_rows(kind))))

    def considered(self, kind: str) -> list[Row]:
        """List the components of a kind that may be selected without being named in code. See `PluginHost.considered`.

        Raises:
            PluginError: A local file cannot be queried, and the settings are strict.
        """
        left_out = self.policy.left_out(kind)
        return [*(row for row in self.policy.rows(kind) if row not in left_out), *self._local_rows(kind)]

    def _local_rows(self, kind: str) -> list[Row]:
        sources = [source for source in self.policy.sources(kind) if not source.is_installed]
        return self.policy.usable(row for source in sources for row in self._loader.offers_or_log(source, kind))

    # --- one name ---

    def find(self, kind: str, address: str) -> Row:
        """Resolve a name or `distribution/name` to one component. See `PluginHost.find`."""
        candidates = self._candidates(kind, address)
        squatters: dict[Row, str] = {}
        if known_distribution(kind, address):
            squatters = {row: reason for row in candidates if (reason := self.policy.why_unconsidered(row))}
            candidates = [row for row in candidates if row not in squatters]
        allowed = _preferred([row for row in candidates if not why_not(row, self.policy.rules)], self.policy.rules)
        if len(allowed) > 1:
            raise AmbiguousPluginError(_ambiguity(allowed, self.policy))
        if not candidates:
            raise PluginNotFoundError(self._absence(kind, address, squatters), component=f"{kind}.{address}")
        # If the project denies a component, do not substitute another one, which the user did not choose.
        row = (allowed or candidates)[0]
        if reason := self.policy.why_not(row):
            error = IncompatiblePluginError if is_incompatible(row) else PluginBlockedError
            raise error(f"{kind} {row.address!r} {reason}")
        return row

    def _candidates(self, kind: str, address: str) -> list[Row]:
        """List the components that a name may refer to.

        Packages with `kind.*` are only used if nothing else matches.
        """
        distribution, slash, name = address.rpartition("/")
        wanted = normalise(distribution) if slash else None
        catalog = self.policy.catalog
        rows = [row for row in catalog.named(kind, name) if wanted in (None, row.distribution)]
        if name == ANY:
            return rows
        rows += self._ask(catalog.named(ANY, ANY), kind, name, wanted)
        return rows or self._ask(catalog.named(kind, ANY), kind, name, wanted)

    def _ask(self, sources: Iterable[Row], kind: str, name: str, wanted: str | None) -> list[Row]:
        """Query sources for a name. Without a wanted distribution, only local files and enabled sources are queried."""
        rows = []
        for source in sources:
            if wanted is not None and source.distribution == wanted:
                if reason := self.policy.why_not(source):
                    raise PluginBlockedError(f"{kind} {wanted}/{name} {reason}")
                rows += self._loader.offers(source, kind)
            elif wanted is None and self._is_open(source) and not self.policy.why_not(source):
                rows += self._loader.offers_or_log(source, kind)
        return [row for row in rows if row.name == name]

    def _is_open(self, source: Row) -> bool:
        """Return True if a source is also queried for names that do not include its distribution."""
        return not source.is_installed or f"{source.kind}.{source.address}" in self._settings.enabled

    # --- missing names ---

    def _absence(self, kind: str, address: str, squatters: Mapping[Row, str]) -> str:
        if self._settings.safe:
            return f"no {kind} {address!r}: plugins do not load in safe mode (JACKFIELD_SAFE)"
        sentences = [
            f"{problem.distribution} {problem.text}"
            for problem in self.policy.catalog.problems
            if kind in problem.text and address in problem.text
        ][:1]
        sentences += [f"{row.address} {reason}" for row, reason in squatters.items()]
        sentences += [f"{file.name} {file.fault}" for file in self._settings.local if file.fault]
        sentences += self._unasked_sources(kind)
        details = "".join(f". {sentence}" for sentence in sentences) + self._explain(kind, address)
        others = [name for name in self.names(kind) if name != address]
        install = install_hint(kind, address.rpartition("/")[2])
        if not install and not close_names(address, others):
            install = spelling_hint(kind, address)
        return f"no {kind} {address!r} is installed{suggest(address, others)}{details}{install}"

    def _unasked_sources(self, kind: str) -> list[str]:
        """Return a sentence for each source that is installed but not enabled, or enabled but not installed."""
        installed = {f"{kind}.{row.address}" for row in self.policy.sources(kind) if row.is_installed}
        enabled = set(fnmatch.filter(self._settings.enabled, f"{kind}.*/[*]"))
        return [
            f"{name} was not searched: use the component's full address, or enable {name!r}"
            if name in installed
            else f"{name!r} is enabled, but not installed"
            for name in sorted(installed ^ enabled)
        ]

    # --- enabled names ---

    def enabled(self, kind: str) -> list[Row]:
        """List the components of a kind that are active without being named in code. See `PluginHost.enabled`."""
        rows = [self.find_enabled(name) for name in self._settings.enabled if name.partition(".")[0] == kind]
        return list(dict.fromkeys(row for row in rows if row is not None))

    def find_enabled(self, name: str) -> Row | None:
        """Resolve an entry of `enabled` to its component. Return None if the user's own rules exclude it.

        Raises:
            PluginError: As for `PluginHost.enabled`.
        """
        kind, _, address = name.partition(".")
        if self.policy.rules.safe or (not self._settings.strict and self._is_blocked_by_user(kind, address)):
            return None
        try:
            return self.find(kind, address)
        except (PluginNotFoundError, PluginBlockedError) as error:
            remedy = f"run: jackfield plugins disable {name}"
            if isinstance(error, PluginBlockedError):
                remedy = (
                    f"allow it there, skip it in this run with --block {kind}.{address.rpartition('/')[2]}, or {remedy}"
                )
            origin = self._settings.origins.get(f"enabled:{name}", "`enabled`")
            text = (
                f"{name!r} is enabled ({origin}), but {error}. Nothing runs without this plugin. To continue, {remedy}"
            )
            raise type(error)(text) from None

    def _is_blocked_by_user(self, kind: str, address: str) -> bool:
        candidates = self._candidates(kind, address)
        return bool(candidates) and all(is_blocked(row, self.policy.rules) for row in candidates)


def _preferred(rows: list[Row], rules: Settings) -> list[Row]:
    """Return the row whose distribution the settings prefer for the name, or all rows if there is no preference."""
    if len(rows) < 2:
        return rows
    preferred = normalise(rules.prefer.get(rows[0].id, ""))
    return [row for row in rows if row.distribution == preferred] or rows


def _ambiguity(rows: list[Row], policy: Policy) -> str:
    addresses = " or ".join(repr(row.address) for row in rows)
    lines = " or ".join(f'"{row.id}" = "{row.distribution}"' for row in proposed_rows(rows, policy))
    return (
        f"{rows[0].kind} {rows[0].name!r} is provided by {len(rows)} packages: use {addresses}, or set a preference "
        f"in your config.toml: [prefer] {lines}"
    )


def proposed_rows(rows: Sequence[Row], policy: Policy) -> Sequence[Row]:
    """Return the component that is proven to be Jackfield's own, or all components if there is none.

    Proposing the first component by name could favour an intruder.
    """
    for row in rows:
        if known_distribution(row.kind, row.name) == row.distribution and not policy.unproven(row):
            return [row]
    return rows
