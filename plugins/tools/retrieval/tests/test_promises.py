"""Test what is promised before a component is used: its descriptor."""

from __future__ import annotations

from typing import Any

from jackfield_retrieval.plugin import tools
from tests.support.promises import promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "ToolSpec retrieval": {"effects": frozenset({"files", "network"}), "read_only": True, "file_access": True},
}


def test_the_descriptors_promise_these_facts_besides_their_texts_and_schemas() -> None:
    promised = promises_of(tools())
    others = ("description", "parameters", "required_by")
    assert {name: {k: v for k, v in facts.items() if k not in others} for name, facts in promised.items()} == PROMISES
