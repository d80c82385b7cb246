"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from jackfield import FnCallAgent
from jackfield.agents import Agent
from jackfield.testing import Script, ScriptedModel
from jackfield.tools import BaseTool
from jackfield_multi_agent import DialogueSimulator, GroupChat, Router
from jackfield_testkit.installed import plain_host
from jackfield_testkit.suites import AgentSuite, ConversationSuite, PluginSuite

OTHER = {"name": "elsewhere", "description": "Is never asked."}


class TestPlugin(PluginSuite):
    dist = "jackfield-multi-agent"


class TestRouter(AgentSuite):
    """One that answers itself."""

    component = "jackfield-multi-agent/router"

    def make_agent(self, script: Script, tools: Sequence[BaseTool] = (), **options: Any) -> Agent:
        model = ScriptedModel(script, processors=[])
        other = FnCallAgent(llm=ScriptedModel([]), host=plain_host(), **OTHER)
        return Router(list(tools), model, agents=[other], host=plain_host(), **options)


class TestGroupChat(AgentSuite):
    """One in which a single agent speaks once."""

    component = "jackfield-multi-agent/group_chat"

    def make_agent(self, script: Script, tools: Sequence[BaseTool] = (), **options: Any) -> Agent:
        model = ScriptedModel(script, processors=[])
        member = FnCallAgent(list(tools), model, name="member", host=plain_host())
        return GroupChat([member], "round_robin", model, max_round=1, host=plain_host(), **options)


class TestConversationInGroup(ConversationSuite):
    component = "jackfield-multi-agent/group_chat"
    config: ClassVar[dict[str, Any]] = {"agent_selection_method": "round_robin", "max_round": 2}


class TestDialogue(ConversationSuite):
    """The second member is asked first."""

    component = "jackfield-multi-agent/dialogue_simulator"

    def make_conversation(self, members: Sequence[Agent], **options: Any) -> Agent:
        user, assistant = (*members, None, None)[:2]
        return DialogueSimulator(user, assistant, max_round=1, host=plain_host(), **options)
