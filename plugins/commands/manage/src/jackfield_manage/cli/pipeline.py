"""`jackfield pipeline`: the processors around a model, in order and with the reasons."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from jackfield.cli import Parser, print_json, print_table, printable, with_consent
from jackfield.errors import ConfigError, PluginBlockedError
from jackfield.models import BaseChatModel, get_chat_model
from jackfield.plugins import PluginHost, default_host
from jackfield_agent_files.files import load_agent_config
from jackfield_manage.cli.news import tell_news
from jackfield_manage.judging.activation import acts_by_default, standings
from jackfield_manage.judging.pipeline import Placed
from jackfield_manage.judging.pipeline import pipeline as pipeline_of
from jackfield_manage.judging.trust import remark_on_project


def main(arguments: Sequence[str]) -> int:
    """Run `jackfield pipeline …`, and return its exit code."""
    options = parser().parse_args(arguments)
    tell_news()
    return pipeline(options)


def parser() -> Parser:
    """What `jackfield pipeline` takes."""
    made = Parser(
        prog="jackfield pipeline", description="Show the processors around an agent's model, and why in this order."
    )
    made.add_argument("agent_file", nargs="?", metavar="AGENT", help="an agent, as a YAML, TOML or JSON file")
    made.add_argument("-m", "--model", help="backend:model, instead of an agent")
    made.add_argument("--trust", action="store_true", help="use the agent file whatever it asks for, this time")
    made.add_argument("--json", action="store_true", help="as JSON")
    return made


def pipeline(options: argparse.Namespace) -> int:
    """Print the processors of a model from the caller inwards, each with the reasons of its place."""
    host = default_host()
    model, generate_cfg = _model_of(options, host)
    merged = model.config.generate_cfg.merged(generate_cfg)
    placed = pipeline_of(model, merged)
    left_out = list(_left_out(host))
    if options.json:
        print_json(
            {
                "model": f"{model.backend}:{model.config.model}",
                "call_format": model.call_format_name(merged),
                "pipeline": [_facts(one) for one in placed],
                "left_out": left_out,
            }
        )
        return 0
    rows = [
        [str(number), one.processor.name, _origin(one), "; ".join(one.reasons)] for number, one in enumerate(placed, 1)
    ]
    print_table(["", "processor", "from", "reason for its place"], rows)
    print(
        printable(f"then {model.backend}:{model.config.model}; calls are written as {model.call_format_name(merged)!r}")
    )
    for line in left_out:
        print(printable(f"left out: {line}"))
    return 0


def _model_of(options: argparse.Namespace, host: PluginHost) -> tuple[BaseChatModel, Any]:
    if options.model:
        return get_chat_model(options.model, host=host), None
    if not options.agent_file:
        raise ConfigError("which chain? Name an agent's file, or a model: jackfield pipeline -m backend:model")
    config = with_consent(lambda: load_agent_config(options.agent_file, trust=options.trust))
    if config.llm is None:
        raise ConfigError(f"{options.agent_file} names no model: set llm")
    return get_chat_model(config.llm, host=host), config.extra_generate_cfg


def _facts(placed: Placed) -> dict[str, object]:
    processor = placed.processor
    return {
        "name": processor.name,
        "phase": processor.phase,
        "class": f"{type(processor).__module__}:{type(processor).__qualname__}",
        "why": list(placed.reasons),
    }


def _origin(placed: Placed) -> str:
    return type(placed.processor).__module__.partition(".")[0].replace("_", "-")


def _left_out(host: PluginHost) -> Iterator[str]:
    """What is enabled, and kept from loading by the user's own rules; and what of the project's file does not count."""
    yield from filter(None, [remark_on_project(host.settings)])
    for row, stands in standings(host).items():
        if acts_by_default(row) and not stands.acts:
            yield f"{row.kind} {row.address!r} {stands.why}"
    yield from filter(None, (_why_blocked(name, host) for name in host.settings.enabled))


def _why_blocked(component: str, host: PluginHost) -> str:
    """Why a processor may not load, '' if it may, or is not one."""
    kind, _, address = component.partition(".")
    try:
        if kind == "processor":
            host.find(kind, address)
    except PluginBlockedError as error:
        return str(error)
    return ""
