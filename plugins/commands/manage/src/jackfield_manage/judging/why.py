"""Why a plugin is here and whether it may act: who installed and who requires it, and which rule of which file decides.

Everything comes from metadata and settings; nothing is loaded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, filterfalse
from typing import TypeVar

from jackfield.errors import PluginNotFoundError, closest
from jackfield.plugins import Catalog, PluginHost, Problem, Row, known_components
from jackfield.settings import ENABLED_KINDS, Settings, normalise
from jackfield_manage.distributions import Distribution, installed, required_by, requirements_of
from jackfield_manage.judging.activation import remarks, standing
from jackfield_manage.judging.trust import remark_on_project
from jackfield_manage.names import distributions_named

_ASKED_FOR = {
    True: "It was requested by name",
    False: "It was not requested by name",
    None: "Whether it was requested by name is not recorded",
}


@dataclass(frozen=True, slots=True)
class Offer:
    """One component of a distribution, and what the rules make of it.

    Attributes:
        id: `kind.name`.
        address: `distribution/name`.
        may_load: Nothing keeps it from loading.
        reason: What keeps it from loading, as the end of a sentence, with the file or variable that says so.
        also_from: The other distributions that offer this and may load.
        choice: What its short name means where several offer it, as a sentence.
        acts: Whether it acts without being named in code; None for kinds that never do.
        acts_because: Why it does or does not, as the end of a sentence.
        remarks: What somebody who reads the name should know of who offers it, as ends of sentences.
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


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that is known of why one distribution is here.

    Attributes:
        installer: Who put it there; '' if nobody signed.
        requested: Whether somebody asked for it by name; None where the installer does not tell.
        required_by: The distributions that require it; `name[extra]` if only with an extra.
        requires: What it requires here, as requirements.
        problems: What is wrong with its metadata.
        remark: What of the project's file does not count, as a sentence.
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
        """The explanation in plain sentences."""
        how = ", as an editable folder" * self.editable
        who = f" by {self.installer}" * bool(self.installer)
        return [
            f"{self.distribution} {self.version} is installed{who}{how}: {self.location}",
            f"{_ASKED_FOR[self.requested]}; {_who_requires(self.required_by)}.",
            *(f"It {problem}." for problem in self.problems),
            f"It requires {', '.join(self.requires) or 'nothing'}.",
            *chain.from_iterable(map(_sentences, self.offers)),
            *filter(None, [self.remark]),
        ]


def _who_requires(names: Sequence[str]) -> str:
    with_extra = [name for name in names if name.endswith("]")]
    always = list(filterfalse(with_extra.__contains__, names)) or ["nothing that is installed"]
    extra = f"; {', '.join(with_extra)} would, if that extra was chosen" * bool(with_extra)
    return f"{' and '.join(always)} require{'s' * (len(always) == 1)} it{extra}"


def why(name: str, settings: Settings, paths: Sequence[str] | None = None) -> list[Explanation]:
    """Explain all that a name means.

    Args:
        name: A distribution, `kind.name`, `distribution/name`, or a component's name.
        settings: The rules.
        paths: Where distributions are looked for, in place of `sys.path`.

    Raises:
        PluginNotFoundError: Nothing installed has that name; the message says what to install, if that is known.
    """
    host = PluginHost(settings, paths=paths)
    catalog, found = host.catalog, installed(paths)
    meant = _distributions_meant(name, catalog, found)
    if not meant:
        raise PluginNotFoundError(_absence(name, settings, catalog))
    return [_explain(distribution, host, found) for distribution in meant]


def _distributions_meant(name: str, catalog: Catalog, found: Mapping[str, Distribution]) -> list[str]:
    # A library that plugins require has a reason to be here, too; a component's name comes first: both may be `openai`.
    return distributions_named(name, catalog) or [wanted for wanted in [normalise(name)] if wanted in found]


def _explain(name: str, host: PluginHost, found: Mapping[str, Distribution]) -> Explanation:
    rows, problems = _of(name, host.catalog.rows), _of(name, host.catalog.problems)
    distribution = found.get(name) or _from_catalog(name, rows, problems)
    return Explanation(
        name,
        distribution.version,
        distribution.location,
        installer=distribution.installer,
        requested=distribution.requested,
        editable=distribution.editable,
        required_by=tuple(required_by(name, found)),
        requires=tuple(map(str, requirements_of(distribution))),
        offers=tuple(map(partial(_offer, host), rows)),
        problems=tuple(problem.text for problem in problems),
        remark=remark_on_project(host.settings),
    )


_Told = TypeVar("_Told", Row, Problem)


def _of(name: str, told: Iterable[_Told]) -> list[_Told]:
    """What of this belongs to a distribution."""
    return [one for one in told if one.distribution == name]


def _from_catalog(name: str, rows: Sequence[Row], problems: Sequence[Problem]) -> Distribution:
    """What is known of a distribution in an archive, or without metadata that can be read."""
    if rows:
        return Distribution(name, rows[0].version, rows[0].location)
    return Distribution(name, "", problems[0].location)


def _offer(host: PluginHost, row: Row) -> Offer:
    reason = host.policy.why_not(row)
    others = _others_with(row, host)
    offer = Offer(row.id, row.address, not reason, reason, tuple(sorted(others)), remarks=tuple(remarks(row, host)))
    if others and not reason:
        offer = replace(offer, choice=_choice(row, host.settings, others))
    if row.kind not in ENABLED_KINDS:
        return offer
    stands = standing(row, host)
    return replace(offer, acts=stands.acts, acts_because=stands.why)


def _others_with(row: Row, host: PluginHost) -> set[str]:
    """The other distributions that offer a component of this name and may load."""
    loadable = filterfalse(host.policy.why_not, host.catalog.rows)
    return {other.distribution for other in loadable if other.id == row.id} - {row.distribution}


def _choice(row: Row, settings: Settings, others: Collection[str]) -> str:
    preferred = normalise(settings.prefer.get(row.id, ""))
    origin = settings.origins.get(f"prefer:{row.id}", "`prefer`")
    if preferred == row.distribution:
        return f"{row.name!r} means this one ({origin} prefers it)"
    if preferred in others:
        return f"{row.name!r} means the one of {preferred} ({origin} prefers it); write {row.address!r} for this one"
    return (
        f"{row.name!r} is ambiguous: write {row.address!r}, "
        f'or prefer one, in your config.toml: [prefer] "{row.id}" = "{row.distribution}"'
    )


def _sentences(offer: Offer) -> Iterator[str]:
    yield f"{offer.id} {offer.reason or 'may load'}."
    yield from map("  It {}.".format, offer.remarks)
    yield from map("  {} also offers it.".format, filter(None, [", ".join(offer.also_from)]))
    yield from map("  {}.".format, filter(None, [offer.choice]))
    if offer.may_load and offer.acts is not None:
        end = {True: ".", False: f": jackfield plugins enable {offer.id}"}[offer.acts]
        yield f"  It {offer.acts_because}{end}"


def _absence(name: str, settings: Settings, catalog: Catalog) -> str:
    publishers = sorted(_publishers(name))
    what_next = f". Install it: jackfield plugins install {publishers[0]}" if publishers else _close(name, catalog)
    return f"nothing called {name!r:.200} is installed{''.join(_rules_about(name, settings))}{what_next}"


def _close(name: str, catalog: Catalog) -> str:
    names = {row.distribution for row in catalog.rows} | {row.name for row in catalog.rows if not row.is_source}
    return closest(name, sorted(names))


def _rules_about(name: str, settings: Settings) -> Iterator[str]:
    for key, origin in settings.origins.items():
        rule, _, named = key.partition(":")
        if named in (name, normalise(name)):
            yield f"; {rule} in {origin} names it"


def _publishers(name: str) -> Iterator[str]:
    """The known distributions that a name means."""
    for component, known in known_components().items():
        short = component.partition(".")[2]
        if name in (component, short, f"{known.distribution}/{short}") or normalise(name) == known.distribution:
            yield known.distribution
