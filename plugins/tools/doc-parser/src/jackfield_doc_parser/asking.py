"""Ask a model about a part of a document, below the run that calls a tool."""

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
    """Return an agent without tools, with this model or that of the agent that calls the tool.

    Args:
        llm: The model; None for that of the calling agent.
        context: The call.
        host: The host of the backends.
        name: The name of the agent in records.
        what: The start of the error if there is no model, up to the next step.

    Raises:
        ConfigError: There is no model.
    """
    if llm:
        return BasicAgent(llm=llm, name=name, host=host)
    calling = context.run.run.agent if isinstance(context.run, ParentRun) else None
    llm = getattr(calling, "llm", None)
    if llm is None:
        raise ConfigError(what)
    return BasicAgent(llm=llm, name=name, host=host)


async def ask_model(agent: BasicAgent, content: str | list[ContentItem], context: ToolContext, *, part: str) -> str:
    """Return the answer of the model. The request counts against the limits of the run, under the name `part`.

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
