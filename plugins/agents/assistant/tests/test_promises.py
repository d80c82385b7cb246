"""Test what is promised before a component is used: its descriptor."""

from __future__ import annotations

from typing import Any

from jackfield_assistant.plugin import agents
from tests.support.promises import promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "AgentSpec assistant": {"effects": frozenset({"files", "network"}), "requires": ("tool.retrieval",)},
    "AgentSpec dialogue_retrieval": {"effects": frozenset({"files", "network"}), "requires": ("tool.retrieval",)},
    "AgentSpec doc_qa": {"effects": frozenset({"files", "network"}), "requires": ("tool.retrieval",)},
    "AgentSpec memo": {"effects": frozenset({"files", "network"}), "requires": ("tool.retrieval", "tool.storage")},
    "AgentSpec memory": {"effects": frozenset({"files", "network"}), "requires": ("tool.retrieval",)},
    "AgentSpec parallel_doc_qa": {"effects": frozenset({"files", "network"}), "requires": ("tool.retrieval",)},
    "AgentSpec virtual_memory": {"effects": frozenset({"files", "network"}), "requires": ("tool.retrieval",)},
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    assert promises_of(agents()) == PROMISES
