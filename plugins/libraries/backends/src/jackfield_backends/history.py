"""A history in the form that chat servers accept: what strict servers would refuse is repaired here, for all backends.

- A model's answer (reasoning, text, a message for each call) is one thing.
- Each call has an id that no other call of the request has, and arguments that are a JSON object.
- The results of an answer's calls follow it directly, one for each call, in the order of the calls.

Nothing is lost on the way: a call without a result gets one that says so, and a result that belongs to no call becomes
a note in a user message.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
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
    """What a tool returned: its text, never empty if there are media, and the media, which few servers accept there.

    `text` has notes in place of files.
    """

    name: str
    text: str
    media: tuple[ContentItem, ...] = ()

    @property
    def label(self) -> str:
        """What precedes the result when it is written into a user message."""
        return f"Result of the tool {self.name}:"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an answer, with its result.

    Attributes:
        id: Unique in the request. It depends only on what came before, so a longer history begins with the same ids.
        function: Its name, and its arguments as the text of a JSON object.
        result: What the tool returned, or a note that there was no result.
    """

    id: str
    function: FunctionCall
    result: Result


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said between two messages of others, with the results of its calls.

    Attributes:
        messages: The messages it is made of, for backends that look at `origin`; empty if there are only strays.
        text: Its texts, with notes in place of media.
        reasoning: Its reasoning, '' if there is none.
        calls: In order.
        strays: Results that belong to none of these calls.
    """

    messages: tuple[Message, ...]
    text: str
    reasoning: str
    calls: tuple[Call, ...]
    strays: tuple[Result, ...]

    def by_origin(self) -> Iterator[tuple[list[Message], list[Call]]]:
        """Its messages with their calls, apart for each answer of a server that they came in."""
        calls = iter(self.calls)
        for _, run in itertools.groupby(self.messages, key=lambda message: message.origin):
            messages = list(run)
            yield messages, [next(calls) for message in messages if message.function_call is not None]


_IN_ONE_ANSWER = {(ASSISTANT, ASSISTANT), (ASSISTANT, FUNCTION), (FUNCTION, FUNCTION)}
"""The roles of two messages in a row that belong to one answer."""


def parts_of(messages: Sequence[Message]) -> list[Message | Answer]:
    """Split a history into system and user messages, and the answers between them."""
    groups: list[list[Message]] = []
    for message in messages:
        if groups and (groups[-1][-1].role, message.role) in _IN_ONE_ANSWER:
            groups[-1].append(message)
        else:
            groups.append([message])
    taken_ids: set[str] = set()
    return [_answer(group, taken_ids) if group[0].role in (ASSISTANT, FUNCTION) else group[0] for group in groups]


def text_of(content: str | Sequence[ContentItem] | None) -> str:
    """The texts of a content, then a note in place of everything else."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join([*(item.text for item in content if item.text), *notes_of(content)])


def whole_arguments(text: str) -> str:
    """A call's arguments as the text of a JSON object, repaired if they are broken.

    A server that parses them would refuse the whole history for one broken call.
    """
    if _is_object(text):
        return text
    try:
        value = loads_lenient(text)
    except ValueError:
        value = None
    return dumps(value if isinstance(value, dict) else {"invalid_arguments": text} if text.strip() else {})


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_strictly = json.JSONDecoder(parse_constant=_refuse).decode
_SHORT = 2000  # characters: longer arguments are rare, and would fill the memory of what was seen


def _is_object(text: str) -> bool:
    return _seen_as_object(text) if len(text) <= _SHORT else _looks_like_object(text)


def _looks_like_object(text: str) -> bool:
    try:
        return isinstance(_strictly(text), dict)
    except (ValueError, RecursionError):
        return False


_seen_as_object = lru_cache(maxsize=4096)(_looks_like_object)  # a history is sent again and again


# --- calls and their results ------------------------------------------------------------------------------------------


def _answer(messages: Sequence[Message], taken_ids: set[str]) -> Answer:
    first = messages[0]
    if len(messages) == 1 and first.role == ASSISTANT and not first.function_call:  # most are, and a history is long
        return Answer((first,), text_of(first.content), text_of(first.reasoning_content), (), ())
    said = list(itertools.takewhile(_is_said, messages))  # results follow all of it
    asked = [_asked(message, taken_ids) for message in said if message.function_call is not None]
    found, strays = pair_results(asked, messages[len(said) :])
    return Answer(
        messages=tuple(said),
        text=_joined(message.content for message in said),
        reasoning=_joined(message.reasoning_content for message in said),
        calls=tuple(map(_call, asked, found)),
        strays=tuple(map(_result, strays)),
    )


def _is_said(message: Message) -> bool:
    return message.role == ASSISTANT


def _joined(contents: Iterable[str | Sequence[ContentItem] | None]) -> str:
    return "\n".join(filter(None, map(text_of, contents)))


def _call(asked: OpenCall, found: Message | None) -> Call:
    return Call(asked.id, asked.function, _result(found) if found else Result(asked.function.name, NO_RESULT))


def _asked(message: Message, taken_ids: set[str]) -> OpenCall:
    call: Any = message.function_call
    arguments = whole_arguments(call.arguments)
    function = call if arguments == call.arguments else FunctionCall(call.name, arguments)
    return OpenCall(_unique_id(message.function_id, taken_ids), message.function_id, function)


def _unique_id(given_id: str | None, taken: set[str]) -> str:
    call_id = given_id or ""
    if not call_id or call_id in taken:
        numbers = itertools.count(len(taken) + 1)
        call_id = next(name for number in numbers if (name := f"call_{number}") not in taken)
    taken.add(call_id)
    return call_id


def _result(message: Message) -> Result:
    name, content = message.name or "", message.content
    if isinstance(content, str):
        return Result(name, content)
    media = tuple(filter(ContentItem.is_media_content, content))
    text = text_of(list(itertools.filterfalse(ContentItem.is_media_content, content)))
    return Result(name, text or (RESULT_BELOW if media else ""), media)
