"""The default chain: our own processors, where they are installed, unless somebody says otherwise."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jackfield.defaults import DEFAULT_CHAIN
from jackfield.testing import ScriptedModel, answer

LIGHT = """
from jackfield.plugins import ProcessorSpec, hook

@hook.processors
def processors():
    return [ProcessorSpec(name="{name}", target="{heavy}:Passing", config="{heavy}:Settings")]
"""
HEAVY = """
from jackfield.config import Config
from jackfield.processors import Processor

class Settings(Config):
    loud: bool = False

class Passing(Processor):
    name = "{name}"

    def __init__(self, *, loud=False):
        self.loud = loud
        self.closed = 0

    def around(self, request, call_next):
        return call_next(request)

    async def aclose(self):
        self.closed += 1
"""


def add_processor(site: Any, address: str) -> None:
    distribution, _, name = address.partition("/")
    stem = distribution.replace("-", "_")
    modules = {
        f"{stem}_light": LIGHT.format(name=name, heavy=f"{stem}_heavy"),
        f"{stem}_heavy": HEAVY.format(name=name),
    }
    site.add(distribution, {f"processor.{name}": f"{stem}_light"}, modules=modules)


def origins(model: ScriptedModel) -> set[str]:
    return {type(processor).__module__.removesuffix("_heavy").replace("_", "-") for processor in model.processors()}


def test_what_is_installed_of_it_stands_around_a_model_and_nothing_else_does(site: Any) -> None:
    for address in (*DEFAULT_CHAIN[1:], "acme-noise/noise"):
        add_processor(site, address)
    model = ScriptedModel([answer("a")], host=site.host())
    assert origins(model) == {"jackfield-multimodal", "jackfield-truncation", "jackfield.models.-retry"}
    assert model.quick_chat("q") == "a"


def test_a_name_that_is_taken_is_not_taken_twice(site: Any) -> None:
    add_processor(site, DEFAULT_CHAIN[2])
    add_processor(site, "acme-short/truncation")
    model = ScriptedModel([], config={"model": "m", "processors": ["acme-short/truncation"]}, host=site.host())
    assert origins(model) == {"acme-short", "jackfield.models.-retry"}


@pytest.mark.parametrize("rule", [{"block": ("jackfield-truncation",)}, {"safe": True}], ids=str)
def test_policy_keeps_it_away(site: Any, rule: dict[str, Any]) -> None:
    add_processor(site, DEFAULT_CHAIN[2])
    assert origins(ScriptedModel([], host=site.host(**rule))) == {"jackfield.models.-retry"}


def test_settings_reach_it_and_a_chain_that_is_given_is_the_whole_chain(site: Any) -> None:
    add_processor(site, DEFAULT_CHAIN[2])
    model = ScriptedModel(
        [], config={"model": "m", "processors": [{"name": "truncation", "loud": True}]}, host=site.host()
    )
    (truncation, _) = model.processors()
    assert truncation.loud  # type: ignore[attr-defined]
    assert ScriptedModel([], processors=[], host=site.host()).processors() == []


def test_processors_are_made_once_and_closed_with_their_model(site: Any) -> None:
    add_processor(site, DEFAULT_CHAIN[2])
    model = ScriptedModel([], host=site.host())
    first, again = model.processors()[0], model.processors()[0]
    assert first is again
    asyncio.run(model.aclose())
    assert first.closed == 1  # type: ignore[attr-defined]
