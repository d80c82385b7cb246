"""The drawings of the documentation show the house as it is, and load nothing."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

import pytest

from jackfield import FnCallAgent, ToolContext, tool
from jackfield.hookspecs import KINDS
from jackfield.testing import ScriptedModel, answer, calls

ASSETS = Path(__file__).resolve().parent.parent / "docs/assets"
SVG = "{http://www.w3.org/2000/svg}"
DRAWN_KINDS = {
    "Backends": {"llm"},
    "Tools": {"tool"},
    "Documents": {"parser", "searcher"},
    "Processors": {"processor", "call_format"},
    "Agent kinds": {"agent"},
    "Stores": {"store"},
    "Sandboxes": {"sandbox"},
    "Embedders": {"embedder", "tokenizer"},
    "Observers": {"observer"},
    "Commands": {"command", "server"},
}
"""The boxes of the architecture, with the kinds of plugins that each stands for."""


def texts_of(name: str, style: str) -> list[str]:
    root = ElementTree.parse(ASSETS / name).getroot()
    return [element.text or "" for element in root.iter(f"{SVG}text") if element.get("class") == style]


@pytest.mark.parametrize("picture", sorted(ASSETS.rglob("*.svg")), ids=lambda path: path.name)
def test_a_picture_has_a_description_and_loads_nothing(picture: Path) -> None:
    root = ElementTree.parse(picture).getroot()
    assert root.find(f"{SVG}title") is not None
    assert root.find(f"{SVG}desc") is not None
    source = picture.read_text(encoding="utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")
    source = re.sub(r"(<text[^>]*>)[^<]*", r"\1", source)  # a text may name an address
    assert not re.search(r"https?:|<script|href=|@import|@font-face", source)


def test_the_drawn_events_are_those_of_a_run_in_their_order() -> None:
    @tool(needs_approval=True)
    def pay(to: str, context: ToolContext) -> str:
        """Pay someone."""
        context.report("asking the bank")
        return f"Paid {to}."

    model = ScriptedModel([calls(("pay", {"to": "Cleo"})), answer("Done: Cleo is paid.")])
    agent = FnCallAgent([pay], model, approve=lambda call, context: True)
    names = [type(event).__name__ for event in agent.stream("Pay Cleo.")]
    assert texts_of("events.svg", "code") == [name for name, _ in groupby(names)]


def test_the_drawn_architecture_has_a_place_for_every_kind_of_plugin() -> None:
    assert set(DRAWN_KINDS) <= set(texts_of("architecture.svg", "name"))
    assert set().union(*DRAWN_KINDS.values()) == set(KINDS)
