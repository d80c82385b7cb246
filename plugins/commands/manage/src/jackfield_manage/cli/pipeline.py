"""`jackfield pipeline`: show the processors around a model in order, and explain their positions."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from jackfield.cli import Parser, escape_line, print_json, print_table, with_consent
from jackfield.errors import ConfigError, PluginBlockedError
from jackfield.models import BaseChatModel, get_chat_model
from jackfield.plugins import PluginHost, default_host
from jackfield_agent_files.files import load_agent_config
from jackfield_manage.cli.news import tell_news
from jackfield_manage.judging.activation import activations, is_in_default_chain
from jackfield_manage.judging.pipeline import OrderedProcessor, explain_pipeline
from jackfield_manage.judging.trust import remark_on_project


def main(arguments: Sequence[str]) -> int:
    """Run `jackfield pipeline …` and return its exit code."""
    options = parser().parse_args(arguments)
    tell_news()
    return pipeline(options)


def parser() -> Parser:
    """Return the argument parser of `jackfield pipeline`."""
    pipeline_parser = Parser(
        prog="jackfield pipeline",
        description="Show the processors around an agent's model, and the reasons for their order.",
    )
    pipeline_parser.add_argument("agent_file", nargs="?", metavar="AGENT", help="an agent file (YAML, TOML or JSON)")
    pipeline_parser.add_argument("-m", "--model", help="a model (backend:model) instead of an agent")
    pipeline_parser.add_argument(
        "--trust", action="store_true", help="allow everything that the agent file asks for, for this run only"
    )
    pipeline_parser.add_argument("--json", action="store_true", help="print JSON")
    return pipeline_parser


def pipeline(options: argparse.Namespace) -> int:
    """Print a model's processors from the caller inwards, each with the reasons for its position."""
    host = default_host()
    model, generate_cfg = _load_model(options, host)
    merged = model.config.generate_cfg.merged(generate_cfg)
    ordered = explain_pipeline(model, merged)
    model_name, call_format = f"{model.backend}:{model.config.model}", model.call_format_name(merged)
    inactive = list(_explain_inactive(host))
    if options.json:
        print_json(
            {
                "model": model_name,
                "call_format": call_format,
                "pipeline": [_facts(entry) for entry in ordered],
                "left_out": inactive,
            }
        )
        return 0
    rows = [
        [
            str(number),
            entry.processor.name,
            type(entry.processor).__module__.partition(".")[0].replace("_", "-"),
            "; ".join(entry.reasons),
        ]
        for number, entry in enumerate(ordered, start=1)
    ]
    print_table(["", "processor", "from", "reason for position"], rows)
    print(escape_line(f"then {model_name}, with the call format {call_format!r}"))
    for line in inactive:
        print(escape_line(f"left out: {line}"))
    return 0


def _load_model(options: argparse.Namespace, host: PluginHost) -> tuple[BaseChatModel, dict[str, Any] | None]:
    if options.model and options.agent_file:
        raise ConfigError(f"pass either {options.agent_file} or -m {options.model}, not both")
    if options.model:
        return get_chat_model(options.model, host=host), None
    if not options.agent_file:
        raise ConfigError("no agent or model is specified: pass an agent file or -m backend:model")
    config = with_consent(lambda: load_agent_config(options.agent_file, trust=options.trust, params=None))
    if config.llm is None:
        raise ConfigError(f"no model is specified in {options.agent_file}: set llm")
    return get_chat_model(config.llm, host=host), config.extra_generate_cfg


def _facts(entry: OrderedProcessor) -> dict[str, object]:
    processor = entry.processor
    return {
        "name": processor.name,
        "phase": processor.phase,
        "class": f"{type(processor).__module__}:{type(processor).__qualname__}",
        "why": list(entry.reasons),
    }


def _explain_inactive(host: PluginHost) -> Iterator[str]:
    """Yield the processors that a rule prevents from acting here, and the ignored part of a project file."""
    if remark := remark_on_project(host.settings):
        yield remark
    for row, activation in activations(host).items():
        if is_in_default_chain(row) and not activation.is_active:
            yield f"{row.kind} {row.address!r} {activation.reason}"
    for component in host.settings.enabled:
        kind, _, address = component.partition(".")
        if kind == "processor":
            try:
                host.find(kind, address)
            except PluginBlockedError as error:
                yield str(error)
