"""What an agent needs installed: the exact list of distributions, from its configuration. Nothing is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, filterfalse
from pathlib import Path
from typing import Any, NamedTuple

from jackfield import AgentConfig
from jackfield.errors import ConfigError, PluginNotFoundError, closest
from jackfield.models import backend_of
from jackfield.plugins import Known, PluginHost, known_components, parser_of_extension
from jackfield.settings import normalise
from jackfield.tools import name_of_entry
from jackfield_manage.distributions import CORE
from jackfield_manage.judging.python_files import PythonUses
from jackfield_manage.judging.source import described_in_source

CORE_AGENTS = ("basic", "fncall")
NATIVE = "native"


@dataclass(frozen=True, slots=True)
class Needs:
    """What must be installed.

    Attributes:
        distributions: Each with the components it is needed for, the core first.
        missing: Those of them that are not installed.
        unknown: A line for each component that no installed and no known distribution offers.
    """

    distributions: Mapping[str, tuple[str, ...]]
    missing: tuple[str, ...]
    unknown: tuple[str, ...] = ()

    @property
    def listed(self) -> list[str]:
        """The core, and the distributions that are needed for something."""
        return [name for name, uses in self.distributions.items() if uses or name == CORE]

    @property
    def install_line(self) -> str:
        """The command that installs what is missing, '' if nothing is."""
        return f"pip install {' '.join(self.missing)}" if self.missing else ""


def needs_of(config: AgentConfig, host: PluginHost) -> Needs:
    """What an agent needs.

    Raises:
        AmbiguousPluginError: Two installed distributions offer something it names.
        ConfigError: It has a model, and says neither backend nor server.
    """
    return _resolved([config], host)


def needs_of_python(uses: PythonUses, host: PluginHost) -> Needs:
    """What a Python file needs, as far as it says. Raises as `needs_of`."""
    needs = _resolved([AgentConfig.parse(_as_config(parts), what="the agent") for parts in uses.parts], host)
    imported = dict.fromkeys(map(normalise, uses.packages), ("imported",))
    missing = imported.keys() - {row.distribution for row in host.catalog.rows}
    distributions = _core_first({**imported, **needs.distributions})
    return Needs(distributions, tuple(sorted(missing.union(needs.missing))), needs.unknown)


def _as_config(parts: Mapping[str, object]) -> dict[str, object]:
    known = {key: value for key, value in parts.items() if key in AgentConfig.model_fields}
    agent = known.get("agent")
    if isinstance(agent, dict):
        del known["agent"]
        return {**agent, **known}
    return known


def _components(config: AgentConfig, host: PluginHost) -> Iterator[str]:
    """The components that an agent names, as `kind.address`."""
    if config.agent not in CORE_AGENTS:
        yield f"agent.{config.agent}"
    if config.llm is not None:
        yield from _of_model(config.llm, host)
    for entry in filterfalse(config.agents.__contains__, config.function_list):
        yield from _of_entry("tool", entry, host, name_of_entry(entry))
    yield from chain.from_iterable(_components(inner, host) for inner in config.inner())
    yield from map("observer.{}".format, config.observers)
    yield from _of_enabled(host)
    yield from (f"parser.{_parser_of(Path(file), host)}" for file in config.files)


def _of_enabled(host: PluginHost) -> Iterator[str]:
    for component in host.settings.enabled:
        yield component
        yield from _of_settings(host.settings.options_of(*component.split(".", 1)), host)


def _of_model(llm: str | Mapping[str, Any], host: PluginHost) -> Iterator[str]:
    yield f"llm.{backend_of(llm, _backends(host))}"
    settings = {} if isinstance(llm, str) else llm
    for entry in settings.get("processors", ()):
        yield from _of_entry("processor", entry, host, name_of_entry(entry))
    call_format = dict(settings.get("generate_cfg") or {}).get("fncall_prompt_type") or NATIVE
    if call_format != NATIVE:
        yield f"call_format.{call_format}"


def _of_entry(kind: str, entry: str | Mapping[str, object], host: PluginHost, name: str) -> Iterator[str]:
    """A component with its settings, or its address alone."""
    yield f"{kind}.{name}"
    if not isinstance(entry, str):
        yield from _of_settings(entry, host)


def _of_settings(value: object, host: PluginHost) -> Iterator[str]:
    """The models among the settings of a component: one to fall back to, one that judges, one that summarises."""
    match value:
        case str():
            yield from _of_address(value, host)
        case Mapping() if value.keys() & {"model", "model_type"}:
            # What has these keys need not be a model: then it says no backend, and nothing is needed for it.
            with suppress(ConfigError):
                yield from _of_model(value, host)
        case Mapping():
            yield from _of_settings(list(value.values()), host)
        case list() | tuple():
            yield from chain.from_iterable(_of_settings(part, host) for part in value)


def _of_address(text: str, host: PluginHost) -> Iterator[str]:
    backend, _, model = text.partition(":")
    if model and backend in _backends(host):
        yield f"llm.{backend}"


def _backends(host: PluginHost) -> list[str]:
    known = (component.partition(".") for component in known_components())
    return [*host.names("llm"), *(name for kind, _, name in known if kind == "llm")]


def _parser_of(file: Path, host: PluginHost) -> str:
    """The parser of a file, or its extension if nobody is known to parse such files."""
    extension = file.suffix.lower().removeprefix(".")
    for row in host.policy.rows("parser"):
        described = described_in_source(row, host.paths)
        if described and extension in described.values.get("extensions", ()):
            return row.name
    return parser_of_extension(extension) or extension


def _resolved(configs: Sequence[AgentConfig], host: PluginHost) -> Needs:
    """The distributions of all components that are named, and of those that these ask for in turn."""
    uses: dict[str, list[str]] = {CORE: []}
    here, unknown = {CORE}, []
    for component, offer in _offers_of(configs, host).items():
        if isinstance(offer, str):
            unknown.append(offer)
        else:
            uses.setdefault(offer.known.distribution, []).append(component)
            here |= {offer.known.distribution} if offer.is_installed else set()
    distributions = {name: tuple(sorted(components)) for name, components in uses.items()}
    return Needs(_core_first(distributions), tuple(sorted(uses.keys() - here)), tuple(unknown))


def _offers_of(configs: Sequence[AgentConfig], host: PluginHost) -> dict[str, _Offer | str]:
    """What `_offer_of` says of each component."""
    offers: dict[str, _Offer | str] = {}
    open_ = [component for config in configs for component in _components(config, host)]
    for component in open_:  # it grows while it is walked
        if component not in offers:
            offers[component] = _offer_of(component, host)
            open_ += _asked_for(component, offers[component], configs)
    return offers


def _asked_for(component: str, offer: _Offer | str, configs: Sequence[AgentConfig]) -> Iterator[str]:
    """The components that one asks for in turn."""
    if not isinstance(offer, str):
        for config in configs:
            yield from offer.known.asks_for(config.settings_of(component.partition(".")[2]))


class _Offer(NamedTuple):
    """Who offers a component, and what it asks for in turn."""

    known: Known
    is_installed: bool


def _offer_of(component: str, host: PluginHost) -> _Offer | str:
    """The offer, or a line that says that nobody is known to make one."""
    kind, _, address = component.partition(".")
    try:
        row = host.find(kind, address)
    except PluginNotFoundError as error:
        known = _known(kind, address)
        return f"{component}: {error}{_close_known(component)}" if known is None else _Offer(known, is_installed=False)
    described = described_in_source(row, host.paths)
    return _Offer(Known.of(row.distribution, described.values if described else {}), is_installed=True)


def _known(kind: str, address: str) -> Known | None:
    distribution, slash, name = address.rpartition("/")
    known = known_components().get(f"{kind}.{name}")
    if slash and (known is None or known.distribution != normalise(distribution)):
        return Known.of(normalise(distribution), {})
    return known


def _close_known(component: str) -> str:
    hint = closest(component, list(known_components()))
    return hint if "did you mean" in hint else ""


def _core_first(distributions: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {CORE: distributions.get(CORE, ()), **{name: distributions[name] for name in sorted(distributions)}}
