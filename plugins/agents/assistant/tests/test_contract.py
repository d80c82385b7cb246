"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

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
