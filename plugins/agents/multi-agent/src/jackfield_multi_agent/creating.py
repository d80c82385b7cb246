"""Design a group chat from a user's description."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Unpack

from jackfield.agents import Agent, AgentOptions, BasicAgent, Event, ParentRun, Run, ToolEntry
from jackfield.config import LLMConfig
from jackfield.events import PluginEvent, ResponseReplaced, RunFinished
from jackfield.jsontext import dumps
from jackfield.messages import ASSISTANT, Message, with_system_text
from jackfield.models import BaseChatModel
from jackfield.streams import Interrupted, closing
from jackfield_agent_parts import Answered, GivenPrompts, Prompts, ask_below, object_in
from jackfield_multi_agent.files import PROMPTS

BACKGROUND, ROLE_CONFIG = "background", "role_config"
NO_DESIGN = "jackfield-multi-agent.no_design"
_TEXTS = ("name", "description", "instructions")


class GroupChatCreator(Agent):
    """Agent that designs group chats.

    The answer consists of a message named `background`, one named `role_config` for each agent, and a reply to the
    user. `group_config` turns these messages into arguments for `GroupChat`.

    Args:
        function_list, llm, system_message, name, description: See `Agent`. Tools are never called.
        prompts: Prompts that override those in this package's `prompts.toml`.
        options: See `Agent`.
    """

    resumable = True

    def __init__(
        self,
        function_list: Iterable[ToolEntry] | None = None,
        llm: str | Mapping[str, Any] | LLMConfig | BaseChatModel | None = None,
        system_message: str | None = "",
        name: str | None = None,
        description: str | None = None,
        *,
        prompts: GivenPrompts = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        super().__init__(function_list, llm, system_message, name, description, **options)
        self._prompts = Prompts.read(PROMPTS, prompts)
        self._asked = BasicAgent(llm=self.llm, name=self.name or type(self).__name__, host=self.host)

    async def events(self, run: Run) -> AsyncIterator[Event]:
        asked = with_system_text(run.messages, self._prompts.text("creator", run.lang), first=False)
        parent, answered = ParentRun(run, run.start.spent), Answered()
        try:
            async with closing(
                ask_below(self._asked, asked, parent, answered, lang=run.lang, config=run.caller_config)
            ) as events:
                async for event in events:
                    yield event
        except Interrupted:
            yield RunFinished(run.interruption, (), parent.spent.usage)
            return
        messages, problem = self._design(answered.text)
        if problem:
            yield PluginEvent(NO_DESIGN, {"note": problem})
        yield ResponseReplaced(messages)
        yield RunFinished(answered.stop_reason, messages, parent.spent.usage)

    def _design(self, text: str) -> tuple[tuple[Message, ...], str]:
        """Parse a design into messages; if it is invalid, also return the reason."""
        try:
            design = object_in(text)
        except ValueError as error:
            return (Message(ASSISTANT, text, name=self.name),), f"the model did not design a group chat: {error}"
        roles = _roles(design.get("agents"))
        messages = [Message(ASSISTANT, dumps(role), name=ROLE_CONFIG) for role in roles]
        if background := str(design.get("background") or ""):
            messages.insert(0, Message(ASSISTANT, background, name=BACKGROUND))
        messages.append(Message(ASSISTANT, str(design.get("answer") or ""), name=self.name))
        return tuple(messages), "" if roles else "the design contains no named agents"


def _roles(listed: object) -> list[dict[str, str]]:
    return list(filter(None, map(_role, listed))) if isinstance(listed, list) else []


def _role(entry: object) -> dict[str, str] | None:
    match entry:
        case {"name": str(name), **others} if name.strip():
            role = {**others, "name": name}
            return {key: str(role[key]) for key in _TEXTS if role.get(key)}
    return None


def group_config(messages: Sequence[Message]) -> dict[str, Any]:
    """Return the latest design from a conversation with a `GroupChatCreator`, as a dict that `GroupChat` accepts."""
    background, roles, is_open = "", list[Any](), False
    for message in messages:
        if message.name == BACKGROUND:
            background, roles = message.get_text_content(), []
        elif message.name == ROLE_CONFIG:
            roles = roles if is_open else []
            roles.append(json.loads(message.get_text_content()))
        is_open = message.name in (BACKGROUND, ROLE_CONFIG)
    return {"background": background, "agents": roles}
