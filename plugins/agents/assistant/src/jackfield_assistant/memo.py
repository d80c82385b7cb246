"""Assistant that remembers facts about its user."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Unpack

from jackfield.agents import AgentOptions, Event, Run, ToolEntry
from jackfield.config import ComponentSettings, LLMConfig
from jackfield.errors import ToolArgumentError, ToolServiceError
from jackfield.messages import FUNCTION, SYSTEM, USER, Message, with_system_text
from jackfield.models import BaseChatModel
from jackfield.streams import closing
from jackfield.tools import acall_tool
from jackfield_agent_parts import GivenPrompts
from jackfield_assistant.agent import Assistant
from jackfield_documents import RAGConfig

STORAGE = "storage"
TURNS_SEEN = 400
_ENTRY = re.compile(r"/(.+?): (.*)")


class MemoAssistant(Assistant):
    """Assistant that saves notes with the `storage` tool and sees them in its system message.

    The model sees the last 400 questions and everything after them, but notes are collected from the whole
    conversation. A new conversation starts with the notes already in the storage.

    Args:
        function_list, llm, system_message, name, description, rag_cfg, prompts, citations: See `Assistant`.
        storage_cfg: Settings of the `storage` tool, such as `storage_root_path`. Give each user a separate directory.
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
        rag_cfg: RAGConfig | Mapping[str, object] | None = None,
        storage_cfg: ComponentSettings | None = None,
        prompts: GivenPrompts = None,
        citations: bool = True,
        **options: Unpack[AgentOptions],
    ) -> None:
        tools = [*(function_list or ()), {**(storage_cfg or {}), "name": STORAGE}]
        super().__init__(
            tools,
            llm,
            system_message,
            name,
            description,
            rag_cfg=rag_cfg,
            prompts=prompts,
            citations=citations,
            **options,
        )

    async def events(self, run: Run) -> AsyncIterator[Event]:
        kept = {**await self._stored(run), **kept_in(run.messages)}
        lines = "\n".join(f"- {key}: {value}" for key, value in kept.items())
        memory = lines or self.memory.prompts.text("nothing_kept", run.lang)
        instructions = self.memory.prompts.text("memo", run.lang, memory=memory)
        seen = with_system_text(_last_turns(run.messages), instructions, first=False)
        async with closing(super().events(replace(run, messages=seen))) as events:
            async for event in events:
                yield event

    async def _stored(self, run: Run) -> dict[str, str]:
        """Return the notes of earlier conversations, or no notes if the storage cannot be read."""
        try:
            storage = self.function_map[STORAGE]
            output = await acall_tool(storage, {"operate": "scan"}, context=run.context, host=self.host)
        except ToolServiceError:
            return {}
        return _scanned(str(output))


def _scanned(text: str) -> dict[str, str]:
    """Parse the storage's listing: one `/key: value` per entry, where a value may span several lines."""
    kept: dict[str, str] = {}
    key = ""
    for line in text.splitlines():
        entry = _ENTRY.match(line)
        if entry:
            key, kept[entry[1]] = entry[1], entry[2]
        elif key:
            kept[key] += f"\n{line}"
    return kept


def kept_in(messages: Sequence[Message]) -> dict[str, str]:
    """Return the notes that a conversation saved and did not delete, ignoring failed calls."""
    calls: dict[str | None, dict[str, Any]] = {}
    kept: dict[str, str] = {}
    for message in messages:
        call = message.function_call
        if call is not None and call.name == STORAGE:
            with suppress(ToolArgumentError):  # the tool has refused it as well
                calls[message.function_id] = call.get_parsed_arguments()
        elif message.role == FUNCTION and message.name == STORAGE:
            arguments = calls.pop(message.function_id, {})
            if not message.error:
                _done(arguments, kept)
    return kept


def _done(arguments: Mapping[str, Any], kept: dict[str, str]) -> None:
    """Apply a storage call to `kept`."""
    key = str(arguments.get("key", "")).removeprefix("/")
    if arguments.get("operate") == "put":
        kept[key] = str(arguments.get("value", ""))
    elif arguments.get("operate") == "delete":
        kept.pop(key, None)


def _last_turns(messages: Sequence[Message]) -> tuple[Message, ...]:
    questions = [index for index, message in enumerate(messages) if message.role == USER]
    if len(questions) <= TURNS_SEEN:
        return tuple(messages)
    start = questions[-TURNS_SEEN]
    return (*(message for message in messages[:start] if message.role == SYSTEM), *messages[start:])
