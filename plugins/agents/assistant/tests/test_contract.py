"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from jackfield_assistant.plugin import agents
from jackfield_testkit.suites import AgentSuite, AnswerSuite, PluginSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-assistant"


class TestAssistant(AgentSuite):
    component = "jackfield-assistant/assistant"


class TestMemo(AgentSuite):
    component = "jackfield-assistant/memo"


class TestDialogueRetrieval(AgentSuite):
    component = "jackfield-assistant/dialogue_retrieval"


class TestVirtualMemory(AgentSuite):
    component = "jackfield-assistant/virtual_memory"


class TestDocQA(AnswerSuite):
    component = "jackfield-assistant/doc_qa"


class TestParallelDocQA(AnswerSuite):
    component = "jackfield-assistant/parallel_doc_qa"


def test_its_descriptors_state_their_effects_and_what_they_require() -> None:
    assert {tuple(sorted(spec.effects)) for spec in agents()} == {("files", "network")}
    assert {spec.name: spec.requires for spec in agents() if spec.requires != ("tool.retrieval",)} == {
        "memo": ("tool.retrieval", "tool.storage")
    }
