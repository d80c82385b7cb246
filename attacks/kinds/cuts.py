"""Streams that are split or end at every byte, and every notation that servers use."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from functools import partial

from attacks.kind import Attempt, Kind, law
from attacks.speaking import BACKENDS, model_of, server_of
from jackfield import sync
from jackfield.errors import JackfieldError
from jackfield.messages import Message, ModelResponse
from jackfield.models import BaseChatModel
from jackfield_testkit import replies
from jackfield_testkit.replies import Reply, ToolCall

TEXT = 'Grüße 🎛 aus 录音室: \\ " \u2028 ende'
ARGUMENTS = '{"place": "北京 🙂", "n": [1, {"a": null}]}'
SSE = {"Content-Type": "text/event-stream"}
_ASKED = [Message("user", "hello")]
_TOOL = {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}}

ANSWERS: dict[str, Reply] = {
    "words": replies.text(TEXT, chars=5),
    "thoughts": replies.reasoning(TEXT, then=TEXT, chars=7),
    "calls": replies.tool_calls(
        [ToolCall("look", ARGUMENTS, id="a"), ToolCall("look", ARGUMENTS, id="b")], content="so 🙂", interleaved=True
    ),
}
# A surrogate pair, with each half escaped in a separate event.
_HALVES = [
    '{"choices":[{"index":0,"delta":{"content":"a\\ud83c"}}]}',
    '{"choices":[{"index":0,"delta":{"content":"\\udf9bb"},"finish_reason":"stop"}]}',
]
_models: dict[str, BaseChatModel] = {}


def _ask(backend: str, reply: Reply) -> ModelResponse:
    server = server_of(backend)
    server.clear()
    server.reply(reply)
    if backend not in _models:
        _models[backend] = model_of(backend)
    return sync.run(_models[backend].acomplete(_ASKED, [_TOOL]))


def _content(answer: ModelResponse) -> tuple[object, ...]:
    calls = [message.function_call for message in answer.messages if message.function_call]
    thoughts = [str(message.reasoning_content) for message in answer.messages if message.reasoning_content]
    return answer.get_content(), thoughts, [(call.name, call.arguments) for call in calls]


_whole: dict[tuple[str, str], tuple[object, ...]] = {}


def _right(backend: str, name: str) -> tuple[object, ...]:
    if (backend, name) not in _whole:
        _whole[backend, name] = _content(_ask(backend, ANSWERS[name]))
    return _whole[backend, name]


def _same(backend: str, name: str, change: Callable[[Reply], Reply]) -> None:
    law(_content(_ask(backend, change(ANSWERS[name]))) == _right(backend, name), "the answer is another")


def _same_or_error(backend: str, name: str, change: Callable[[Reply], Reply]) -> None:
    try:
        got = _content(_ask(backend, change(ANSWERS[name])))
    except JackfieldError:
        return
    law(got == _right(backend, name), f"a part passes for the whole: {got}")


def _as_bytes(reply: Reply) -> bytes:
    return b"".join(replies.pieces(reply, "m", stream=True, with_usage=True))


def _written(form: Callable[[bytes], bytes], name: str, at: int | None) -> None:
    reply = replies.raw(form(_as_bytes(ANSWERS[name])), SSE)
    got = _content(_ask("openai", reply if at is None else reply.cut(at=[at])))
    law(got == _right("openai", name), f"the answer is another: {got}")


def _ended_at(name: str, at: int, ending: str) -> None:
    body = _as_bytes(ANSWERS[name])[:at]
    reply = replies.raw(body, SSE)
    _same_or_error("openai", name, lambda _: reply.reset_after(1) if ending == "reset" else reply)


def _halves(*cuts: int) -> None:
    reply = replies.chunks(_HALVES)
    text = _ask("openai", reply.cut(at=cuts) if cuts else reply).get_content()
    law(text == "a🎛b", f"two halves of a character became {text!r}")


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "as it is": lambda body: body,
    "BOM": lambda body: b"\xef\xbb\xbf" + body,
    "CRLF": lambda body: body.replace(b"\n", b"\r\n"),
    "lone CR": lambda body: body.replace(b"\n", b"\r"),
    "mixed line ends": lambda body: body.replace(b"\n\n", b"\r\n\n"),
    "no space after data:": lambda body: body.replace(b"data: ", b"data:"),
    "comments and ids": lambda body: body.replace(b"data: ", b": ping\nid: 1\nretry: 5\ndata: "),
}


FAULTS: dict[str, Callable[[Reply, int], Reply]] = {
    "reset": Reply.reset_after,
    "ended": lambda reply, n: reply.broken_after(n, "end"),
    "malformed": lambda reply, n: reply.broken_after(n, "malformed"),
}


def _inside_characters(reply: Reply) -> Reply:
    return reply.cut(inside_characters=True)


def _attempts(dice: random.Random) -> Iterator[Attempt]:
    yield Attempt("halves of a surrogate pair in two events", _halves)
    for form, name in itertools.product(FORMS, ANSWERS):
        yield Attempt(f"{name} with {form}", partial(_written, FORMS[form], name, None))
    for name, backend in itertools.product(ANSWERS, BACKENDS):
        yield Attempt(f"{name} over {backend}, in bytes", partial(_same, backend, name, lambda reply: reply.cut(1)))
        yield Attempt(f"{name} over {backend}, inside characters", partial(_same, backend, name, _inside_characters))
        for at in range(len(ANSWERS[name].chunks)):
            for fault, change in FAULTS.items():
                act = partial(_same_or_error, backend, name, partial(_at, change, at))
                yield Attempt(f"{name} over {backend}, {fault} after {at} events", act)
    while True:
        name, at = dice.choice(list(ANSWERS)), dice.randrange(1, 2500)
        match dice.choice(["cut", "cut", "written", "end", "reset", "halves"]):
            case "cut":
                backend, cuts = dice.choice(list(BACKENDS)), sorted(dice.sample(range(1, 3000), dice.randint(1, 4)))
                act = partial(_same, backend, name, partial(Reply.cut, at=cuts))
                yield Attempt(f"{name} over {backend}, cut at {cuts}", act)
            case "written":
                form = dice.choice(list(FORMS))
                yield Attempt(f"{name} with {form}, cut at {at}", partial(_written, FORMS[form], name, at))
            case "halves":
                yield Attempt(f"halves of a surrogate pair, cut at {at % 150 + 1}", partial(_halves, at % 150 + 1))
            case ending:
                yield Attempt(f"{name} with {ending} after {at} bytes", partial(_ended_at, name, at, ending))


def _at(change: Callable[[Reply, int], Reply], at: int, reply: Reply) -> Reply:
    return change(reply, at)


KIND = Kind(
    "A stream that is split or cut anywhere gives the same answer or an error, never only a part of the answer.",
    _attempts,
    quick=60,
)
