"""Runs that make a single tool call under their agent's rules, approvals and record, but without its model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from jackfield.agents import Agent, FnCallAgent
from jackfield.config import LLMConfig
from jackfield.events import FunctionCallDelta, ModelEvent, ModelFinished, TextDelta
from jackfield.messages import FunctionCall
from jackfield.models import BaseChatModel
from jackfield.request import ChatRequest, ModelFacts

_CALL_ID = "call_1"


class OneCall(BaseChatModel):
    """Stands in for a model: makes one call, then ends the run with its result.

    Args:
        call: The call.
    """

    backend = "call"

    def __init__(self, call: FunctionCall) -> None:
        super().__init__(LLMConfig(model=call.name), processors=())
        self._call = call

    @property
    def facts(self) -> ModelFacts:
        """The facts of a model that accepts any tool result unchanged."""
        return ModelFacts(native_tools=True)

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        """Yield the call, or the end once the call has a result."""
        if request.messages[-1].role == "function":
            yield TextDelta("The call has finished.")
            yield ModelFinished("stop")
            return
        yield FunctionCallDelta(0, id=_CALL_ID, name=self._call.name, arguments=self._call.arguments)
        yield ModelFinished("tool_calls")


def agent_of_call(agent: Agent[Any], call: FunctionCall) -> Agent[Any]:
    """Return an agent that makes one call with another agent's tools and rules."""
    caller: FnCallAgent[Any] = FnCallAgent(
        llm=OneCall(call),
        name=agent.name,
        workspace=agent.workspace,
        limits=agent.limits,
        store=agent.store,
        host=agent.host,
    )
    caller.function_map, caller.executor = agent.function_map, agent.executor
    caller.observers, caller.files = agent.observers, agent.files
    return caller
