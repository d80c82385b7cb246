"""Find problems that appear only when distributions are compared: clashing names, packages and requirements."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from os.path import commonprefix
from typing import Any

from jackfield.plugins import PluginHost, Row, known_components
from jackfield.settings import normalise
from jackfield_manage.distributions import installed, required_by, requirements_of, requirers
from jackfield_manage.judging.activation import activations
from jackfield_manage.judging.findings import Verdict

_RELEASE = re.compile(r"(\d+!)?\d+(\.\d+)*", re.ASCII)
_IMITABLE_CHARS = 4
_LAST_NUMBER = re.compile(r"\d+$", re.ASCII)


class Neighbours:
    """All distributions of an installation, against which each one is judged."""

    def __init__(self, host: PluginHost) -> None:
        self.addresses: defaultdict[str, list[str]] = defaultdict(list)
        self.owners: defaultdict[str, set[str]] = defaultdict(set)
        for row in host.policy.rows():
            self.addresses[row.id].append(row.address)
            self.owners[package_of(row)].add(row.distribution)
        self._by_variant: defaultdict[str, list[str]] = defaultdict(list)
        for component in self.addresses:
            for variant in _variants(component):
                self._by_variant[variant].append(component)
        self.prefer = host.settings.prefer
        self._policy = host.policy
        self.activations = activations(host)
        self.installation = installed(None if host.paths is None else (*host.paths, *sys.path))
        self._requirers = requirers({row.distribution for row in host.catalog.rows}, self.installation)

    def requirers_of(self, name: str) -> tuple[str, ...]:
        """Return the distributions that require `name`, unless a user requested it by name."""
        distribution = self.installation.get(name)
        if distribution is None or distribution.requested:
            return ()
        return tuple(self._requirers.get(name, ()))

    def may_act(self, row: Row) -> bool:
        """Return True unless a component must first be enabled."""
        return row not in self.activations or self.activations[row].is_active

    def contradicting(self, distribution: str, required: str, specifier: Any) -> list[tuple[str, str]]:
        """Return other distributions with an incompatible requirement for the same package, and their specifiers."""
        # `required_by` lists `name[extra]` for optional requirements. They are ignored: the extra may not be chosen.
        names = self.installation.keys() & required_by(required, self.installation)
        return [
            (name, str(requirement.specifier))
            for name in sorted(names - {distribution})
            for requirement in requirements_of(self.installation[name])
            if normalise(requirement.name) == required and not is_satisfiable(specifier & requirement.specifier)
        ]

    def judge(self, row: Row, *, failed: bool) -> Iterator[Verdict]:
        """Yield a component's problems that others cause. `failed` is True if the component could not be loaded."""
        rivals = self.addresses[row.id]
        if len(rivals) > 1 and row.id not in self.prefer:
            yield Verdict(
                "ambiguous",
                f"{row.id} is provided by {', '.join(rivals)}",
                f"use the full address, or set a preference in your config.toml: [prefer] {self._proposals(row)}",
            )
        owners = self.owners[package_of(row)] - {row.distribution}
        if owners:
            why = f"the package {package_of(row)!r} also belongs to {', '.join(sorted(owners))}"
            yield Verdict("broken" if failed else "duplicate", why, "uninstall one of them, and reinstall the other")
        similar = self._similar_addresses(row)
        # Reported once per pair, for the one that sorts later.
        if similar and row.address > min(similar):
            why = f"the name of {row.id} differs by one letter from {', '.join(similar)}"
            yield Verdict("ok", why, "make sure this is the one you want")

    def _proposals(self, row: Row) -> str:
        """Return the setting that prefers our own component, if proven, or else one setting for each candidate."""
        rivals = [rival for rival in self._policy.catalog.named(row.kind, row.name) if not self._policy.why_not(rival)]
        known = known_components().get(row.id)
        ours = [rival for rival in rivals if known and rival.distribution == known.distribution]
        proven = [rival for rival in ours if not self._policy.unproven(rival)]
        return " or ".join(f'"{rival.id}" = "{rival.distribution}"' for rival in proven or rivals)

    def _similar_addresses(self, row: Row) -> list[str]:
        """Return other distributions' components whose names differ from this one by a single letter.

        Pairs of our own names are skipped, since neither imitates the other.
        """
        candidates = {other for variant in _variants(row.id) for other in self._by_variant[variant]}
        return [
            address
            for component in sorted(candidates)
            if differs_by_one(row.id, component)
            for address in self.addresses[component]
            if address.partition("/")[0] != row.distribution
            and not (_is_known(row.id, row.distribution) and _is_known(component, address.partition("/")[0]))
        ]


def _is_known(component: str, distribution: str) -> bool:
    known = known_components().get(component)
    return known is not None and known.distribution == distribution


def package_of(row: Row) -> str:
    """Return the top-level package of a component's module."""
    return row.module.partition(".")[0]


def is_satisfiable(specifier: Any) -> bool:
    """Return True if some version matches. Trying 0, each bound, and the versions around each is sufficient."""
    candidates = ["0"]
    for clause in specifier:
        bound = clause.version.removesuffix(".*")
        candidates += [bound, _successor(bound)]
        if release := _RELEASE.match(bound):
            candidates += [release[0], f"{release[0]}.dev0", f"{release[0]}.0.0.0.1"]
    return any(specifier.contains(version, prereleases=True) for version in candidates)


def _successor(version: str) -> str:
    """Return the next version of the same form: `1.5` for `1.4`, `2.0a2` for `2.0a1`."""
    return _LAST_NUMBER.sub(lambda match: str(int(match[0]) + 1), version)


def _variants(component: str) -> set[str]:
    """Return an id and all its variants with one character of the name removed.

    Ids that differ by one character have a variant in common.
    """
    start = component.index(".") + 1
    return {component, *(component[:place] + component[place + 1 :] for place in range(start, len(component)))}


def differs_by_one(first: str, second: str) -> bool:
    """Return True if two components of one kind have names that differ by one changed, added or missing character.

    Names of at most three characters, such as `x` and `y`, or `csv` and `tsv`, differ so by chance.
    """
    start = len(commonprefix((first, second)))  # noqa: RUF071 - compares strings, not paths
    longer = max((first, second), key=len).partition(".")[2]
    if first == second or "." not in first[:start] or len(longer) < _IMITABLE_CHARS:
        return False
    first, second = first[start:], second[start:]
    return first[1:] in (second, second[1:]) or first == second[1:]
