"""Determine a turn's next step from the user's request and the calls so far. This module is pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jackfield.messages import FUNCTION, USER, FunctionCall, Message
from jackfield.request import ChatRequest
from jackfield_offline.filling import CannotCall, Filling, Outcome, ReadyCall, prepare_call
from jackfield_offline.grammar import Directive, parse_message
from jackfield_offline.knowledge import passages_in_result, read_passages
from jackfield_offline.sentences import Library


@dataclass(frozen=True, slots=True)
class Turn:
    """The state of a conversation since the last user message.

    Attributes:
        question: The user's text without directives.
        topic: The query for the documents: the question or the tools' arguments.
        documents: The sentences that may be quoted.
        results: The output of tools, except for documents they returned.
        origins: The origins of values in the calls so far.
        ready: The calls to make now.
        problem: Why a requested call cannot be made, or None.
        offered: The names of the available tools.
    """

    question: str
    topic: str
    documents: Library
    results: tuple[Message, ...]
    origins: tuple[Filling, ...]
    ready: tuple[ReadyCall, ...]
    problem: CannotCall | None
    offered: tuple[str, ...]


def read_turn(request: ChatRequest) -> Turn:
    """Determine the state of a request's turn.

    Calls are made in order. If the documents cannot fill a call's slots, the call waits for the results of earlier
    calls; if there are none to wait for, it is a problem.
    """
    messages = request.messages
    since = max((place for place, message in enumerate(messages, 1) if message.role == USER), default=0)
    question, directives = parse_message(messages[since - 1].get_text_content() if since else "")
    topic = question or _asked_of_tools(directives)
    made = _calls_since(messages, since)
    if not _are_asked_for(made, directives):
        directives, made = [], []
    ready, problem = _next_calls(request, directives[len(made) :])
    return Turn(
        question=question,
        topic=topic,
        documents=_documents(messages, since),
        results=tuple(filter(_is_result, messages[since:])),
        origins=_origins(request, directives, made),
        ready=ready,
        problem=problem,
        offered=tuple(str(schema["name"]) for schema in request.functions),
    )


def _asked_of_tools(directives: Sequence[Directive]) -> str:
    return " ".join(directive.template for directive in directives if not directive.slots)


def _calls_since(messages: Sequence[Message], since: int) -> list[tuple[int, FunctionCall]]:
    """Return the calls made since the user's message, each with its position in the history."""
    after = enumerate(messages[since:], since)
    return [(index, message.function_call) for index, message in after if message.function_call is not None]


def _are_asked_for(made: Sequence[tuple[int, FunctionCall]], directives: Sequence[Directive]) -> bool:
    """Return True if the calls so far match the user's directives."""
    return [call.name for _, call in made] == [directive.tool for directive in directives[: len(made)]]


def _next_calls(request: ChatRequest, pending: Sequence[Directive]) -> tuple[tuple[ReadyCall, ...], CannotCall | None]:
    refused = next(filter(None, (_refusal(request, directive) for directive in pending)), None)
    if refused or not pending:
        return (), refused
    library = Library(read_passages(request.messages))
    ready: list[ReadyCall] = []
    for directive in pending:
        outcome = _outcome(request, directive, library)
        if isinstance(outcome, CannotCall):
            return tuple(ready), None if ready else outcome
        ready.append(outcome)
    return tuple(ready), None


def _refusal(request: ChatRequest, directive: Directive) -> CannotCall | None:
    if request.config.function_choice == "none":
        return CannotCall("not_allowed", directive.tool)
    if not request.functions:
        return CannotCall("none_offered", directive.tool)
    if all(schema["name"] != directive.tool for schema in request.functions):
        return CannotCall("not_offered", directive.tool)
    return None


def _outcome(request: ChatRequest, directive: Directive, library: Library) -> Outcome:
    schema = next(schema for schema in request.functions if schema["name"] == directive.tool)
    return prepare_call(directive, schema, library)


def _origins(
    request: ChatRequest, directives: Sequence[Directive], made: Sequence[tuple[int, FunctionCall]]
) -> tuple[Filling, ...]:
    """Return the origins of values in earlier calls, by preparing each call again from the messages before it."""
    fillings: list[Filling] = []
    for directive, (index, call) in zip(directives, made, strict=False):
        if not directive.slots or _refusal(request, directive):
            continue
        outcome = _outcome(request, directive, Library(read_passages(request.messages[:index])))
        if isinstance(outcome, ReadyCall) and outcome.arguments == call.arguments:
            fillings += outcome.fillings
    return tuple(fillings)


def _documents(messages: Sequence[Message], since: int) -> Library:
    """Return the sentences that may be quoted. New tool results are excluded, since the answer shows them in full."""
    before = read_passages(messages[:since])
    brought = [passage for passage in read_passages(messages[since:]) if not passage.from_tool]
    return Library(dict.fromkeys([*before, *brought]))


def _is_result(message: Message) -> bool:
    if message.role != FUNCTION:
        return False
    passages = passages_in_result(message)
    return not passages or any(passage.from_tool for passage in passages)
