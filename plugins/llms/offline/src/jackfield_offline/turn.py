"""What the user asked for, what has been done so far, and what is next. Pure."""

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
    """Where a conversation stands since the user last spoke.

    Attributes:
        question: What the user wrote besides directives.
        topic: What to look for in the documents: the question, or what the tools were asked.
        documents: What may be quoted.
        results: What tools said, without the documents they brought.
        origins: How the calls made so far got their values.
        ready: The calls to make now.
        problem: Why a call that was asked for cannot be made.
        offered: The names of the tools there are.
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
    """Read a request. Calls are made in their order; one whose slots the documents cannot fill waits for the results
    of those before it, and is a problem when there are none to wait for."""
    messages = request.messages
    asked = max((index for index, message in enumerate(messages) if message.role == USER), default=-1)
    question, directives = parse_message("" if asked < 0 else messages[asked].get_text_content())
    made = _calls_since(messages, asked)
    followed = [call.name for _, call in made] == [directive.tool for directive in directives[: len(made)]]
    pending = directives[len(made) :] if followed else []
    ready, problem = _next_calls(request, pending)
    return Turn(
        question=question,
        topic=question or _asked_of_tools(directives),
        documents=_documents(messages, asked),
        results=tuple(message for message in messages[asked + 1 :] if _is_result(message)),
        origins=_origins(request, directives, made) if followed else (),
        ready=ready,
        problem=problem,
        offered=tuple(str(schema["name"]) for schema in request.functions),
    )


def _asked_of_tools(directives: Sequence[Directive]) -> str:
    return " ".join(directive.template for directive in directives if not directive.slots)


def _calls_since(messages: Sequence[Message], asked: int) -> list[tuple[int, FunctionCall]]:
    """The calls after the user's message, each with its place in the history."""
    return [
        (index, message.function_call)
        for index, message in enumerate(messages)
        if index > asked and message.function_call is not None
    ]


def _next_calls(request: ChatRequest, pending: Sequence[Directive]) -> tuple[tuple[ReadyCall, ...], CannotCall | None]:
    for directive in pending:
        refused = _refusal(request, directive)
        if refused:
            return (), refused
    library = Library(read_passages(request.messages)) if pending else Library(())
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
    """Where the values in calls already made came from: each call prepared again, from what was known before it."""
    fillings: list[Filling] = []
    for directive, (index, call) in zip(directives, made, strict=False):
        if not directive.slots or _refusal(request, directive):
            continue
        outcome = _outcome(request, directive, Library(read_passages(request.messages[:index])))
        if isinstance(outcome, ReadyCall) and outcome.arguments == call.arguments:
            fillings += outcome.fillings
    return tuple(fillings)


def _documents(messages: Sequence[Message], asked: int) -> Library:
    """What can be quoted. What tools said since the user spoke is shown whole, and not quoted once more."""
    before = read_passages(messages[: asked + 1])
    since = [passage for passage in read_passages(messages[asked + 1 :]) if not passage.from_tool]
    return Library(dict.fromkeys([*before, *since]))


def _is_result(message: Message) -> bool:
    if message.role != FUNCTION:
        return False
    passages = passages_in_result(message)
    return not passages or any(passage.from_tool for passage in passages)
