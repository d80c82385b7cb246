"""Runs that make one call of a tool, with the rules, approvals and record of their agent, but without its model."""

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
    """Makes a call, and ends the run with its result.

    Args:
        call: The call.
    """

    backend = "call"

    def __init__(self, call: FunctionCall) -> None:
        super().__init__(LLMConfig(model=call.name), processors=())
        self._call = call

    @property
    def facts(self) -> ModelFacts:
        """The facts of a model that takes tool results as they are."""
        return ModelFacts(native_tools=True)

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        """Yield the call, or the end."""
        if request.messages[-1].role == "function":
            yield TextDelta("The call has ended.")
            yield ModelFinished("stop")
            return
        yield FunctionCallDelta(0, id=_CALL_ID, name=self._call.name, arguments=self._call.arguments)
        yield ModelFinished("tool_calls")


def agent_of_call(agent: Agent[Any], call: FunctionCall) -> Agent[Any]:
    """Return an agent that makes one call with the tools and the rules of another one."""
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
