"""Find the components that an agent's configuration needs, without loading them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import PurePath

from jackfield.agents._configs import CORE_KINDS, AgentConfig, is_agent
from jackfield.config import Config, LLMConfig
from jackfield.errors import ConfigError
from jackfield.models._factory import backend_of
from jackfield.plugins import Plugins, known_components, parser_of_extension
from jackfield.tools._entries import name_of_entry

_NATIVE = "native"
_PICTURES = frozenset({"bmp", "gif", "jpeg", "jpg", "png", "tif", "tiff", "webp"})


def known_parser_of(file: str) -> str:
    """Return the name of Jackfield's parser for a file, based on the file extension.

    Return '' if no parser supports the file. Images have no parser, because the model receives them directly.
    """
    suffix = PurePath(file).suffix.lower().removeprefix(".")
    return "" if suffix in _PICTURES else parser_of_extension(suffix) or ""


def components_of(
    config: AgentConfig, host: Plugins, *, parser_of: Callable[[str], str] = known_parser_of
) -> Iterator[str]:
    """Yield the components that an agent and its inner agents need, as `kind.address`.

    Args:
        config: The agent's configuration.
        host: The plugin host, which provides the installed backends.
        parser_of: A function that returns the name of the parser for a file, or '' if the file needs no parser.

    Raises:
        ConfigError: An agent's model names neither a backend nor a server.
    """
    if config.agent not in CORE_KINDS:
        yield f"agent.{config.agent}"
    if config.llm is not None:
        yield from _components_of_model(config.llm, host)
    yield from models_in(config.models, host)
    for entry in config.function_list:
        if entry not in config.agents:
            yield from _components_of_entry("tool", entry, host)
    for inner in config.inner():
        yield from components_of(inner, host, parser_of=parser_of)
    yield from (f"observer.{observer}" for observer in config.observers)
    if config.store:
        yield f"store.{name_of_entry(config.store)}"
    if config.files and config.agent in CORE_KINDS and not config.function_list:
        yield "processor.multimodal"  # this processor reads files with the parsers
    yield from (f"parser.{parser}" for file in config.files if (parser := parser_of(file)))


def models_in(settings: object, host: Plugins) -> Iterator[str]:
    """Yield the backends that a component's settings refer to, such as a fallback, judge or summariser."""
    match settings:
        case str():
            backend, _, model = settings.partition(":")
            if model and backend in _backends(host):
                yield f"llm.{backend}"
        case Mapping() if settings.keys() & {"model", "model_type"}:
            # A mapping with these keys may be something else, which names no backend and needs nothing.
            with suppress(ConfigError):
                yield from _components_of_model(settings, host)
        case Mapping():
            for value in settings.values():
                yield from models_in(value, host)
        case list() | tuple():
            for value in settings:
                yield from models_in(value, host)


def missing_components(config: AgentConfig, host: Plugins) -> dict[str, str]:
    """Map each component that an agent is missing to the Jackfield package that provides it."""
    missing: dict[str, str] = {}
    pending = list(components_of(config, host, parser_of=known_parser_of))
    for component in pending:  # the loop appends to it
        kind, _, name = component.partition(".")
        if known := known_components().get(component):
            if name not in host.names(kind):
                missing[component] = known.distribution
            pending += [one for one in known.asks_for(config.settings_of(name)) if one not in pending]
    return missing


def config_of(kind: str, options: Mapping[str, object]) -> AgentConfig:
    """Return an agent's options as a configuration, leaving out options that are already objects."""
    values: dict[str, object] = {"agent": kind}
    llm, store, rag_cfg = (options.get(name) for name in ("llm", "store", "rag_cfg"))
    if isinstance(llm, LLMConfig):
        llm = {"model": llm.model, "model_type": llm.model_type}
    if isinstance(llm, str | Mapping):
        values["llm"] = llm
    if isinstance(store, str | Mapping):
        values["store"] = store
    if isinstance(rag_cfg, Config):
        rag_cfg = rag_cfg.model_dump(exclude_unset=True)
    if isinstance(rag_cfg, Mapping):
        values["rag_cfg"] = rag_cfg
    values["function_list"] = _entries(options.get("function_list"), str | Mapping)
    values["handoffs"] = [entry for entry in _entries(options.get("handoffs"), Mapping) if is_agent(entry)]
    values |= {name: _entries(options.get(name), str) for name in ("observers", "files")}
    if kind in CORE_KINDS:  # the core kinds read text files themselves and send images unparsed
        files = _entries(options.get("files"), str)
        values["files"] = [file for file in files if known_parser_of(str(file)) not in ("", "text")]
    else:
        values["options"] = {
            name: value
            for name, value in options.items()
            if is_agent(value) or any(map(is_agent, _entries(value, dict)))
        }
    return AgentConfig.parse(values, what="agent")


def _components_of_model(llm: str | Mapping[str, object], host: Plugins) -> Iterator[str]:
    yield f"llm.{backend_of(llm, _backends(host))}"
    settings: Mapping[str, object] = {} if isinstance(llm, str) else llm
    processors, generate_cfg = settings.get("processors"), settings.get("generate_cfg")
    for entry in processors if isinstance(processors, list | tuple) else ():
        if isinstance(entry, str | Mapping):
            yield from _components_of_entry("processor", entry, host)
    call_format = generate_cfg.get("fncall_prompt_type") if isinstance(generate_cfg, Mapping) else None
    if call_format and call_format != _NATIVE:
        yield f"call_format.{call_format}"


def _components_of_entry(kind: str, entry: str | Mapping[str, object], host: Plugins) -> Iterator[str]:
    """Yield the component that a list entry (an address, or a dict with settings) names, and the models it uses."""
    yield f"{kind}.{name_of_entry(entry)}"
    if not isinstance(entry, str):
        yield from models_in(entry, host)


def _backends(host: Plugins) -> list[str]:
    known = [component.removeprefix("llm.") for component in known_components() if component.startswith("llm.")]
    return [*host.names("llm"), *known]


def _entries(value: object, types: object) -> list[object]:
    listed = value if isinstance(value, list | tuple) else ()
    return [entry for entry in listed if isinstance(entry, types)]  # type: ignore[arg-type]
