"""Ask a model about part of a document, as a child of the run that called the tool."""

from __future__ import annotations

from typing import Any

from jackfield.agents import BasicAgent, ParentRun, run_below
from jackfield.errors import ConfigError
from jackfield.messages import USER, ContentItem, Message
from jackfield.plugins import Plugins
from jackfield.results import ResultFold
from jackfield.streams import closing
from jackfield.tools import ToolContext


def agent_for(llm: Any, context: ToolContext, host: Plugins, *, name: str, what: str) -> BasicAgent:
    """Return an agent without tools that uses the given model or, by default, the calling agent's model.

    Args:
        llm: The model. If None, the calling agent's model is used.
        context: The context of the tool call.
        host: The plugin host that provides the backends.
        name: The agent's name in records.
        what: The error message if there is no model; it should tell the user how to set one.

    Raises:
        ConfigError: Neither `llm` nor the calling agent provides a model.
    """
    if llm:
        return BasicAgent(llm=llm, name=name, host=host)
    calling = context.run.run.agent if isinstance(context.run, ParentRun) else None
    llm = getattr(calling, "llm", None)
    if llm is None:
        raise ConfigError(what)
    return BasicAgent(llm=llm, name=name, host=host)


async def ask_model(agent: BasicAgent, content: str | list[ContentItem], context: ToolContext, *, part: str) -> str:
    """Return the model's answer. The request counts against the limits of the run, recorded as `part`.

    Raises:
        ModelServiceError: The model failed.
    """
    question = (Message(USER, content),)
    fold = ResultFold(question)
    parent = context.run.at(part) if isinstance(context.run, ParentRun) else None
    async with closing(run_below(agent, question, parent)) as events:
        emit = parent.pass_up() if parent else None
        async for event in events:
            if emit:
                emit(event)
            fold.feed(event)
    return fold.result(str).text
