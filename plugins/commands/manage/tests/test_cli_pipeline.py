"""`jackfield pipeline`, as a person runs it: the rows, the reasons, and what is left out."""

from __future__ import annotations

import json
from typing import Any

import pytest

LIGHT = """
from jackfield.plugins import CallFormatSpec, LLMSpec, ObserverSpec, ProcessorSpec, hook

@hook.processors
def processors():
    return [ProcessorSpec(name=name, target=f"acme_heavy:{name.title()}") for name in ("guard", "watch")]

@hook.llms
def llms():
    return [LLMSpec(name="parrot", target="acme_heavy:Parrot")]

@hook.call_formats
def call_formats():
    return [CallFormatSpec(name="tags", target="acme_heavy:Tags")]

@hook.observers
def observers():
    return [ObserverSpec(name="spy", target="acme_heavy:Spy")]
"""
HEAVY = """
from jackfield.models import BaseChatModel
from jackfield.processors import CallFormat, Preprocessor
from jackfield.request import ModelFacts

class Guard(Preprocessor):
    name, phase, after = "guard", "input", ("watch",)
    def prepare(self, request):
        return request

class Watch(Preprocessor):
    name, phase = "watch", "input"
    def prepare(self, request):
        return request

class Tags(CallFormat):
    def render(self, request): return request
    def reader(self, request): raise NotImplementedError

class Parrot(BaseChatModel):
    backend = "parrot"
    facts = ModelFacts()
    async def stream(self, request):
        raise NotImplementedError
        yield
"""
AGENT = """
llm: {model: m, model_type: parrot, processors: [guard, watch]}
extra_generate_cfg: {fncall_prompt_type: tags}
"""
ROWS = [
    "1 watch acme-heavy phase input",
    "2 guard acme-heavy phase input; inside watch (guard declares after='watch')",
    "3 call_format jackfield phase format",
    "4 retry jackfield phase transport",
]


@pytest.fixture(autouse=True)
def _plugins(command_line: Any, site: Any) -> None:
    names = ["processor.guard", "processor.watch", "llm.parrot", "call_format.tags", "observer.spy"]
    site.add("acme", dict.fromkeys(names, "acme_light"), modules={"acme_light": LIGHT, "acme_heavy": HEAVY})
    (command_line.folder / "a.yaml").write_text(AGENT)


def test_the_pipeline_of_an_agent_has_its_settings(command_line: Any) -> None:
    done = command_line("pipeline", "--trust", "a.yaml")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines == [
        "processor from reason for position",
        *ROWS,
        "then parrot:m, with the call format 'tags'",
    ]
    table = json.loads(command_line("pipeline", "--trust", "--json", "a.yaml").stdout)
    assert (table["model"], table["call_format"], table["left_out"]) == ("parrot:m", "tags", [])
    assert table["pipeline"][:2] == [
        {"name": "watch", "phase": "input", "class": "acme_heavy:Watch", "why": ["phase input"]},
        {
            "name": "guard",
            "phase": "input",
            "class": "acme_heavy:Guard",
            "why": ["phase input", "inside watch (guard declares after='watch')"],
        },
    ]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((), "no agent or model is specified: pass an agent file or -m backend:model"),
        (("none.yaml",), "no model is specified in none.yaml: set llm"),
        (("a.yaml", "-m", "parrot:m"), "pass either a.yaml or -m parrot:m, not both"),
        (("gone.yaml",), "gone.yaml cannot be read: No such file or directory"),
    ],
)
def test_an_agent_or_a_model_is_needed(command_line: Any, words: tuple[str, ...], error: str) -> None:
    (command_line.folder / "none.yaml").write_text("agent: basic\n")
    done = command_line("pipeline", *words)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"jackfield: {error}\n")


def test_an_agent_file_that_enables_something_needs_consent(command_line: Any) -> None:
    done = command_line("pipeline", "a.yaml")
    assert (done.returncode, done.stdout) == (1, "")
    assert "--trust" in done.stderr


def test_only_processors_that_a_rule_keeps_from_acting_are_left_out(command_line: Any, site: Any) -> None:
    site.add("jackfield-truncation", {"processor.truncation": "truncation_light"}, modules={"truncation_light": ""})
    (command_line.folder / "pyproject.toml").write_text('[tool.jackfield]\norder = ["guard"]\n')
    enabled = {
        "JACKFIELD_PLUGINS_ENABLED": "processor.guard,observer.spy",
        "JACKFIELD_PLUGINS_BLOCK": "processor.guard,observer.spy,jackfield-truncation",
    }
    remark, truncation, guard = json.loads(command_line("pipeline", "--json", "-m", "parrot:m", **enabled).stdout)[
        "left_out"
    ]
    assert remark.startswith("ignored order in ")
    assert truncation.startswith("processor 'jackfield-truncation/truncation' is blocked")
    assert guard.startswith("processor 'acme/guard' is blocked")


def test_a_processor_of_the_default_chain_that_acts_is_not_left_out(command_line: Any, site: Any) -> None:
    light = "from jackfield.plugins import ProcessorSpec, hook\n@hook.processors\ndef processors():\n"
    light += "    return [ProcessorSpec(name='truncation', target='truncation_heavy:Truncation')]\n"
    heavy = "from acme_heavy import Watch\nclass Truncation(Watch): name = 'truncation'\n"
    modules = {"truncation_light": light, "truncation_heavy": heavy}
    site.add("jackfield-truncation", {"processor.truncation": "truncation_light"}, modules=modules)
    table = json.loads(command_line("pipeline", "--json", "-m", "parrot:m").stdout)
    assert ([entry["name"] for entry in table["pipeline"]], table["left_out"]) == (["truncation", "retry"], [])
