"""Normalise a history to the form that strict chat servers accept.

- A model's answer (reasoning, text, and one message per call) is one unit.
- Each call has an id that is unique in the request, and a JSON object as arguments.
- An answer's results follow it directly, one per call, in call order.

Nothing is lost: a call without a result gets a placeholder result, and a result without a call becomes a note in a user
message.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

from jackfield.jsontext import dumps, loads_lenient
from jackfield.media import notes_of
from jackfield.messages import ASSISTANT, FUNCTION, ContentItem, FunctionCall, Message
from jackfield.models import OpenCall, pair_results

NO_RESULT = "(no result: the call was not carried out)"
RESULT_BELOW = "(the result is in the next message)"


@dataclass(frozen=True, slots=True)
class Result:
    """A tool result: its text and its media, which few servers accept in results.

    `text` contains notes in place of files, and is never empty if there is any media.
    """

    name: str
    text: str
    media: tuple[ContentItem, ...] = ()

    @property
    def label(self) -> str:
        """The heading for a result that is written into a user message."""
        return f"Result of the tool {self.name}:"


@dataclass(frozen=True, slots=True)
class Call:
    """A function call in an answer, with its result.

    Attributes:
        id: The call's id, unique in the request. Derived only from earlier messages, so that the ids stay the same as
            the history grows.
        function: The tool's name, and the arguments as JSON object text.
        result: The tool's result, or a placeholder if the call has none.
    """

    id: str
    function: FunctionCall
    result: Result


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's consecutive messages, merged into one answer with the results of its calls.

    Attributes:
        messages: The original messages, for backends that read `origin`. Empty if there are only stray results.
        text: The messages' texts, with notes in place of media.
        reasoning: The reasoning, or '' if there is none.
        calls: The function calls, in order.
        strays: Results that match none of the calls.
    """

    messages: tuple[Message, ...]
    text: str
    reasoning: str
    calls: tuple[Call, ...]
    strays: tuple[Result, ...]

    def by_origin(self) -> Iterator[tuple[list[Message], list[Call]]]:
        """Yield the messages and their calls, grouped by the original server answer."""
        calls = iter(self.calls)
        for _, run in itertools.groupby(self.messages, key=lambda message: message.origin):
            messages = list(run)
            yield messages, [next(calls) for message in messages if message.function_call is not None]


_IN_ONE_ANSWER = {(ASSISTANT, ASSISTANT), (ASSISTANT, FUNCTION), (FUNCTION, FUNCTION)}
"""Pairs of consecutive roles that belong to the same answer."""


def parts_of(messages: Sequence[Message]) -> list[Message | Answer]:
    """Split a history into answers and the system and user messages between them."""
    groups: list[list[Message]] = []
    for message in messages:
        if groups and (groups[-1][-1].role, message.role) in _IN_ONE_ANSWER:
            groups[-1].append(message)
        else:
            groups.append([message])
    taken_ids: set[str] = set()
    return [_answer(group, taken_ids) if group[0].role in (ASSISTANT, FUNCTION) else group[0] for group in groups]


def text_of(content: str | Sequence[ContentItem] | None) -> str:
    """Return a content's text, followed by a note for each item of another type."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join([*(item.text for item in content if item.text), *notes_of(content)])


def repair_arguments(text: str) -> str:
    """Return a call's arguments as JSON object text, repaired if malformed.

    Servers that parse arguments would reject the whole history because of a single malformed call.
    """
    # A history is sent again and again, so short arguments are cached.
    if _is_object_cached(text) if len(text) <= _MAX_CACHED_CHARS else _is_object(text):
        return text
    try:
        value = loads_lenient(text)
    except ValueError:
        value = None
    return dumps(value if isinstance(value, dict) else {"invalid_arguments": text} if text.strip() else {})


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not valid JSON")


_decode_strictly = json.JSONDecoder(parse_constant=_refuse).decode
_MAX_CACHED_CHARS = 2000  # longer arguments are rare, and would fill the cache


def _is_object(text: str) -> bool:
    try:
        return isinstance(_decode_strictly(text), dict)
    except (ValueError, RecursionError):
        return False


_is_object_cached = lru_cache(maxsize=4096)(_is_object)


# --- calls and their results ------------------------------------------------------------------------------------------


def _answer(messages: Sequence[Message], taken_ids: set[str]) -> Answer:
    first = messages[0]
    if len(messages) == 1 and first.role == ASSISTANT and not first.function_call:  # most answers of a long history
        return Answer((first,), text_of(first.content), text_of(first.reasoning_content), (), ())
    spoken = [message for message in messages if message.role == ASSISTANT]  # all results follow these
    open_calls = [_open_call(message, taken_ids) for message in spoken if message.function_call is not None]
    results, strays = pair_results(open_calls, messages[len(spoken) :])
    calls = []
    for call, message in zip(open_calls, results, strict=True):
        result = Result(call.function.name, NO_RESULT) if message is None else _result(message)
        calls.append(Call(call.id, call.function, result))
    return Answer(
        messages=tuple(spoken),
        text=_join([message.content for message in spoken]),
        reasoning=_join([message.reasoning_content for message in spoken]),
        calls=tuple(calls),
        strays=tuple(_result(message) for message in strays),
    )


def _join(contents: Sequence[str | Sequence[ContentItem] | None]) -> str:
    if len(contents) == 1:  # as in most answers
        return text_of(contents[0])
    return "\n".join(text for content in contents if (text := text_of(content)))


def _open_call(message: Message, taken_ids: set[str]) -> OpenCall:
    call: Any = message.function_call
    arguments = repair_arguments(call.arguments)
    function = call if arguments == call.arguments else FunctionCall(call.name, arguments)
    return OpenCall(_unique_id(message.function_id, taken_ids), message.function_id, function)


def _unique_id(original_id: str | None, taken: set[str]) -> str:
    call_id = original_id or ""
    number = len(taken)
    while not call_id or call_id in taken:
        number += 1
        call_id = f"call_{number}"
    taken.add(call_id)
    return call_id


def _result(message: Message) -> Result:
    name, content = message.name or "", message.content
    if isinstance(content, str):
        return Result(name, content)
    media = tuple(item for item in content if item.is_media_content())
    text = text_of([item for item in content if not item.is_media_content()])
    return Result(name, text or (RESULT_BELOW if media else ""), media)
