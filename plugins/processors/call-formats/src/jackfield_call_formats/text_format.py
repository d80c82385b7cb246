"""Base class for call formats: write the tools, calls and results of a request as text.

All functions are pure. Messages that need no change are forwarded unchanged.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from jackfield.messages import ASSISTANT, FUNCTION, USER, FunctionCall, Message, with_system_text
from jackfield.processors import CallFormat
from jackfield.request import ChatRequest
from jackfield_call_formats.content import Content, in_lines
from jackfield_call_formats.told import is_tool_traffic, without_tools


class TextFormat(CallFormat):
    """Call format that appends tools to the system message and writes calls and results in place."""

    def render(self, request: ChatRequest) -> ChatRequest:
        """Return the request with tools, calls and results as text, or the same object if it has none.

        If calls are forbidden, no function is offered, and past calls are described in user messages.
        """
        offers_tools = bool(request.functions) and request.config.function_choice != "none"
        if not request.functions and not any(is_tool_traffic(message) for message in request.messages):
            return request
        # Without functions, a choice among them would make no sense to a backend.
        config = request.config.model_copy(update={"function_choice": "auto", "parallel_function_calls": None})
        if offers_tools:
            messages = with_system_text(self._with_traffic(request), self.prompt(request), first=False)
            stop = tuple(dict.fromkeys((*config.stop, *self.stop_words(request))))
            config = config.model_copy(update={"stop": stop})
        else:
            messages = tuple(without_tools(request.messages, request.lang))
        return replace(request, messages=messages, functions=(), config=config)

    @abstractmethod
    def prompt(self, request: ChatRequest) -> str:
        """Return the tools, the instructions for calling them, and the requirements for the next answer."""

    @abstractmethod
    def write_call(self, call: FunctionCall, request: ChatRequest) -> str:
        """Write a call as the model should have written it."""

    @abstractmethod
    def write_result(self, result: Message) -> Content:
        """Write a tool's result so that its untrusted text cannot be mistaken for anything else."""

    def write_results(self, results: Sequence[Message]) -> Content:
        """Write the results of one turn."""
        return in_lines([self.write_result(result) for result in results])

    def stop_words(self, request: ChatRequest) -> tuple[str, ...]:  # noqa: ARG002 - for formats with stop words
        """Return the strings at which the model must stop, so that it does not invent results."""
        return ()

    def write_turn(self, turn: Sequence[Message], request: ChatRequest) -> Message:
        """Merge the assistant messages of one turn, with calls written as text."""
        parts = [part for message in turn for part in self.said(message, request)]
        reasoning = in_lines([message.reasoning_content for message in turn if message.reasoning_content])
        return one_assistant(turn, in_lines(parts), reasoning or None)

    def said(self, message: Message, request: ChatRequest) -> Iterator[Content]:
        """Yield an assistant message's text and its call."""
        if message.content:
            yield message.content
        if message.function_call:
            yield self.write_call(message.function_call, request)

    def _with_traffic(self, request: ChatRequest) -> list[Message]:
        out: list[Message] = []
        for group in _groups(request.messages):
            match group[0].role:
                case "assistant" if len(group) > 1 or group[0].function_call:
                    out.append(self.write_turn(group, request))
                case "function":
                    out.append(Message(USER, self.write_results(group)))
                case _:
                    out += group
        return out


def one_assistant(turn: Sequence[Message], content: Content, reasoning: Content | None) -> Message:
    """Return a single assistant message for a turn, with any name and origin that all its messages share."""
    first = turn[0]
    return Message(
        ASSISTANT,
        content,
        reasoning_content=reasoning,
        name=first.name if all(message.name == first.name for message in turn) else None,
        origin=first.origin if all(message.origin == first.origin for message in turn) else None,
    )


def _groups(messages: Iterable[Message]) -> list[list[Message]]:
    """Group consecutive assistant messages and consecutive results. Every other message is a group of its own."""
    groups: list[list[Message]] = []
    for message in messages:
        if groups and message.role in (ASSISTANT, FUNCTION) and groups[-1][0].role == message.role:
            groups[-1].append(message)
        else:
            groups.append([message])
    return groups
