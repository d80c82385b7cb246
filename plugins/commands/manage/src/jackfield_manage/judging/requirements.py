"""Find the distributions that an agent needs from its configuration, without loading anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from jackfield import AgentConfig
from jackfield.agents import components_of, models_in
from jackfield.errors import PluginNotFoundError
from jackfield.plugins import Known, PluginHost, known_components, parser_of_extension
from jackfield.settings import normalise
from jackfield.suggestions import suggest
from jackfield_manage.distributions import CORE
from jackfield_manage.judging.python_files import PythonUses
from jackfield_manage.judging.source import described_in_source


@dataclass(frozen=True, slots=True)
class Needs:
    """The distributions an agent needs.

    Attributes:
        distributions: Each distribution with the components it provides, core first.
        missing: The distributions that are not installed.
        unknown: A line for each component that no installed or known distribution offers.
    """

    distributions: Mapping[str, tuple[str, ...]]
    missing: tuple[str, ...]
    unknown: tuple[str, ...] = ()

    @property
    def used(self) -> list[str]:
        """The core, and the distributions that provide a component."""
        return [name for name, components in self.distributions.items() if components or name == CORE]

    @property
    def install_line(self) -> str:
        """The command that installs the missing packages, or '' if none is missing."""
        return f"pip install {' '.join(self.missing)}" if self.missing else ""


def needs_of(config: AgentConfig, host: PluginHost) -> Needs:
    """Find the distributions an agent needs.

    Raises:
        AmbiguousPluginError: Two installed distributions offer a component named by the agent.
        ConfigError: The agent's model names neither a backend nor a server.
    """
    return _resolve([config], host)


def needs_of_python(uses: PythonUses, host: PluginHost) -> Needs:
    """Find the distributions a Python file needs, as far as its source shows.

    Raises:
        AmbiguousPluginError: See `needs_of`.
        ConfigError: See `needs_of`.
    """
    needs = _resolve([AgentConfig.parse(_as_config(parts), what="the agent") for parts in uses.parts], host)
    imported = {normalise(package): ("imported",) for package in uses.packages}
    missing = imported.keys() - {row.distribution for row in host.catalog.rows}
    return Needs(
        _with_core_first({**imported, **needs.distributions}),
        tuple(sorted(missing.union(needs.missing))),
        needs.unknown,
    )


def _as_config(parts: Mapping[str, object]) -> dict[str, object]:
    agent = parts.get("agent")
    if isinstance(agent, dict):
        return {**agent, **{key: value for key, value in parts.items() if key != "agent"}}
    return dict(parts)


class _Offer(NamedTuple):
    """The distribution that offers a component."""

    known: Known
    is_installed: bool


def _resolve(configs: Sequence[AgentConfig], host: PluginHost) -> Needs:
    """Find the distributions of all components that agents name or that those components require."""
    uses: dict[str, list[str]] = {CORE: []}
    installed = {CORE}
    unknown: list[str] = []
    pending = [component for config in configs for component in _components(config, host)]
    resolved: set[str] = set()
    for component in pending:  # grows during the loop
        if component in resolved:
            continue
        resolved.add(component)
        try:
            offer = _find_offer(component, host)
        except PluginNotFoundError as error:
            hint = suggest(component, list(known_components()))
            unknown.append(f"{component}: {error}{hint if 'did you mean' in hint else ''}")
            continue
        uses.setdefault(offer.known.distribution, []).append(component)
        if offer.is_installed:
            installed.add(offer.known.distribution)
        for config in configs:
            pending += offer.known.asks_for(config.settings_of(component.partition(".")[2]))
    distributions = {name: tuple(sorted(components)) for name, components in uses.items()}
    return Needs(_with_core_first(distributions), tuple(sorted(uses.keys() - installed)), tuple(unknown))


def _find_offer(component: str, host: PluginHost) -> _Offer:
    """Return the installed distribution that offers a component, or else a known one.

    Raises:
        PluginNotFoundError: There is neither.
    """
    kind, _, address = component.partition(".")
    try:
        row = host.find(kind, address)
    except PluginNotFoundError:
        known = _find_known(kind, address)
        if known is None:
            raise
        return _Offer(known, is_installed=False)
    described = described_in_source(row, host.paths)
    return _Offer(Known.of(row.distribution, described.values if described else {}), is_installed=True)


def _find_known(kind: str, address: str) -> Known | None:
    distribution, slash, name = address.rpartition("/")
    known = known_components().get(f"{kind}.{name}")
    if slash and (known is None or known.distribution != normalise(distribution)):
        return Known.of(normalise(distribution), {})
    return known


def _with_core_first(distributions: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {CORE: distributions.get(CORE, ()), **{name: distributions[name] for name in sorted(distributions)}}


def _components(config: AgentConfig, host: PluginHost) -> Iterator[str]:
    """Yield the components that an agent names or that act without being named, as `kind.address`."""
    yield from components_of(config, host, parser_of=lambda file: _find_parser(Path(file), host))
    for component in host.settings.enabled:
        yield component
        yield from models_in(host.settings.options_of(*component.split(".", 1)), host)


def _find_parser(file: Path, host: PluginHost) -> str:
    """Return the parser for a file, or the file's extension if no parser is known."""
    extension = file.suffix.lower().removeprefix(".")
    for row in host.policy.rows("parser"):
        described = described_in_source(row, host.paths)
        if described and extension in described.values.get("extensions", ()):
            return row.name
    return parser_of_extension(extension) or extension
