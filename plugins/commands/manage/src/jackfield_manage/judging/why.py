"""Explain why a distribution is installed, and whether its components may load and act.

All information comes from metadata and settings; nothing is loaded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from jackfield.errors import PluginNotFoundError
from jackfield.plugins import Catalog, PluginHost, Row, known_components
from jackfield.settings import ENABLED_KINDS, Settings, normalise
from jackfield.suggestions import suggest
from jackfield_manage.distributions import Distribution, installed, required_by, requirements_of
from jackfield_manage.judging.activation import activation_of, remarks
from jackfield_manage.judging.trust import remark_on_project
from jackfield_manage.names import find_distributions


@dataclass(frozen=True, slots=True)
class Offer:
    """A component of a distribution, with the rules that apply to it.

    Attributes:
        id: `kind.name`.
        address: `distribution/name`.
        may_load: True if no rule prevents the component from loading.
        reason: Why the component may not load, as a predicate that names the file or variable.
        also_from: The other distributions that offer this component and may load.
        choice: The component that its short name selects if several distributions offer it, as a sentence.
        acts: True if the component acts without being named in code; None for kinds that never do.
        acts_because: Why it does or does not act, as a predicate.
        remarks: Warnings about the component's distribution, as predicates.
    """

    id: str
    address: str
    may_load: bool
    reason: str = ""
    also_from: tuple[str, ...] = ()
    choice: str = ""
    acts: bool | None = None
    acts_because: str = ""
    remarks: tuple[str, ...] = ()

    def sentences(self) -> Iterator[str]:
        """Describe the component in sentences."""
        yield f"{self.id} {self.reason or 'may load'}."
        for remark in self.remarks:
            yield f"  It {remark}."
        if self.also_from:
            verb = "offers" if len(self.also_from) == 1 else "offer"
            yield f"  {_join(self.also_from)} also {verb} it."
        if self.choice:
            yield f"  {self.choice}."
        if self.acts:
            yield f"  It {self.acts_because}."
        elif self.may_load and self.acts is False:
            yield f"  It {self.acts_because}. To enable it, run: jackfield plugins enable {self.id}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a distribution is installed, and what it offers.

    Attributes:
        installer: The program that installed the distribution, or '' if unknown.
        requested: True if a user requested the distribution by name; None if the installer does not record this.
        required_by: The distributions that require it; `name[extra]` if only with an extra.
        requires: Its requirements on this machine.
        problems: Faults in its metadata.
        remark: The ignored part of the project file, as a sentence.
    """

    distribution: str
    version: str
    location: str
    installer: str = ""
    requested: bool | None = None
    editable: bool = False
    required_by: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    offers: tuple[Offer, ...] = ()
    problems: tuple[str, ...] = ()
    remark: str = ""

    def lines(self) -> list[str]:
        """Return the explanation as sentences."""
        installed_by = f" by {self.installer}" if self.installer else ""
        editable = " in editable mode" if self.editable else ""
        lines = [
            f"{self.distribution} {self.version} is installed{installed_by}{editable}: {self.location}",
            f"{self._request()}; {self._requirers()}.",
        ]
        for problem in self.problems:
            subject = "Its" if problem.startswith("entry_points.txt") else "It"
            lines.append(f"{subject} {problem}.")
        lines.append(f"It requires {', '.join(self.requires) or 'nothing'}.")
        for offer in self.offers:
            lines += offer.sentences()
        if self.remark:
            lines.append(self.remark)
        return lines

    def _request(self) -> str:
        if self.requested is None:
            return "The installer does not record whether it was requested by name"
        return f"It was {'' if self.requested else 'not '}requested by name"

    def _requirers(self) -> str:
        always = [name for name in self.required_by if not name.endswith("]")]
        extras = [name for name in self.required_by if name.endswith("]")]
        optional = f"the extra {extras[0]}" if len(extras) == 1 else f"the extras {_join(extras)}"
        if always:
            sentence = f"{_join(always)} {'requires' if len(always) == 1 else 'require'} it"
            verb = "does" if len(extras) == 1 else "do"
            return f"{sentence}, and so {verb} {optional}" if extras else sentence
        if extras:
            return f"only {optional} {'requires' if len(extras) == 1 else 'require'} it"
        return "no installed package requires it"


def why(name: str, settings: Settings, paths: Sequence[str] | None = None) -> list[Explanation]:
    """Explain every distribution that matches a name.

    Args:
        name: A distribution, `kind.name`, `distribution/name`, or a component's name.
        settings: The rules.
        paths: The directories to search for distributions. Defaults to `sys.path`.

    Raises:
        PluginNotFoundError: No installed distribution has or offers the name. The message says what to install.
    """
    host = PluginHost(settings, paths=paths)
    installation = installed(paths)
    names = find_distributions(name, host.catalog)
    # Libraries required by plugins can be explained as well. Components take precedence: both may be named `openai`.
    if not names and normalise(name) in installation:
        names = [normalise(name)]
    if not names:
        raise PluginNotFoundError(_explain_absence(name, settings, host.catalog))
    return [_explain(distribution, host, installation) for distribution in names]


def _explain(name: str, host: PluginHost, installation: Mapping[str, Distribution]) -> Explanation:
    rows = [row for row in host.catalog.rows if row.distribution == name]
    problems = [problem for problem in host.catalog.problems if problem.distribution == name]
    distribution = installation.get(name)
    if distribution is None:  # in an archive, or its metadata is unreadable
        version, location = (rows[0].version, rows[0].location) if rows else ("", problems[0].location)
        distribution = Distribution(name, version, location)
    return Explanation(
        name,
        distribution.version,
        distribution.location,
        installer=distribution.installer,
        requested=distribution.requested,
        editable=distribution.editable,
        required_by=tuple(required_by(name, installation)),
        requires=tuple(str(requirement) for requirement in requirements_of(distribution)),
        offers=tuple(_offer(row, host) for row in rows),
        problems=tuple(problem.text for problem in problems),
        remark=remark_on_project(host.settings),
    )


def _offer(row: Row, host: PluginHost) -> Offer:
    reason = host.policy.why_not(row)
    others = {
        other.distribution for other in host.catalog.rows if other.id == row.id and not host.policy.why_not(other)
    }
    others.discard(row.distribution)
    offer = Offer(
        row.id,
        row.address,
        may_load=not reason,
        reason=reason,
        also_from=tuple(sorted(others)),
        choice=_explain_choice(row, host.settings, others) if others and not reason else "",
        remarks=tuple(remarks(row, host)),
    )
    if row.kind not in ENABLED_KINDS:
        return offer
    activation = activation_of(row, host)
    return replace(offer, acts=activation.is_active, acts_because=activation.reason)


def _explain_choice(row: Row, settings: Settings, others: Collection[str]) -> str:
    preferred = normalise(settings.prefer.get(row.id, ""))
    origin = settings.origins.get(f"prefer:{row.id}", "`prefer`")
    if preferred == row.distribution:
        return f"{row.name!r} means this one ({origin} prefers it)"
    if preferred in others:
        return f"{row.name!r} means the one from {preferred} ({origin} prefers it); use {row.address!r} for this one"
    return (
        f"{row.name!r} is ambiguous: use {row.address!r}, "
        f'or set a preference in your config.toml: [prefer] "{row.id}" = "{row.distribution}"'
    )


def _explain_absence(name: str, settings: Settings, catalog: Catalog) -> str:
    message = f"nothing named {name!r:.200} is installed"
    for key, origin in settings.origins.items():
        rule, _, target = key.partition(":")
        if target in (name, normalise(name)):
            message += f"; {rule} in {origin} refers to it"
    publishers = sorted(_known_publishers(name))
    if publishers:
        return f"{message}. To install it, run: jackfield plugins install {publishers[0]}"
    names = {row.distribution for row in catalog.rows} | {row.name for row in catalog.rows if not row.is_source}
    return message + suggest(name, sorted(names))


def _join(names: Sequence[str]) -> str:
    """Join names for a sentence: `a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _known_publishers(name: str) -> Iterator[str]:
    """Yield the known distributions that match a name, whether installed or not."""
    for component, known in known_components().items():
        short = component.partition(".")[2]
        if name in (component, short, f"{known.distribution}/{short}") or normalise(name) == known.distribution:
            yield known.distribution
