"""Models that answer as no model should: with malformed, endless or duplicate calls, and unattached files."""

from __future__ import annotations

import itertools
import math
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from attacks.kind import Attempt, Kind, law
from attacks.speaking import Ended, arun, longest_pause, run
from jackfield import sync
from jackfield.agents import FnCallAgent
from jackfield.events import FunctionCallDelta, ModelFinished, TextDelta
from jackfield.jsontext import loads_lenient
from jackfield.messages import ASSISTANT, FUNCTION, USER, ContentItem, FunctionCall, Message
from jackfield.testing import ScriptedModel, answer
from jackfield.tools import BaseTool, ToolContext

STANDS_STILL_S = 1.0  # of the event loop; normally nothing takes longer than a few milliseconds
CPU_S = 3.0


class _Seen(BaseTool):
    """Records the arguments and files it receives."""

    name = "look"
    description = "Look."
    file_access = True
    parameters = {"type": "object", "properties": {"x": {}}, "additionalProperties": True}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()
        self.arguments: list[Any] = []
        self.files: list[str] = []

    def call(self, params: Any, *, context: ToolContext | None = None) -> str:
        self.arguments.append(params)
        self.files += context.files if context else ()
        return "seen"


def _called(*deltas: FunctionCallDelta, more: Sequence[Any] = ()) -> tuple[_Seen, Ended]:
    """Make a model send these deltas, then a text answer."""
    seen = _Seen()
    model = ScriptedModel([[*deltas, ModelFinished("tool_calls")], *more, answer("done")])
    ended = Ended()

    async def watched() -> float:
        async def work() -> None:
            ended.events += (await arun(FnCallAgent([seen], model), "go")).events

        return await longest_pause(work())

    began = time.process_time()
    pause_s = sync.run(watched())
    used_s = time.process_time() - began
    law(pause_s < STANDS_STILL_S, f"the event loop stood still for {pause_s:.1f} s")
    law(used_s < CPU_S, f"it took {used_s:.1f} s of CPU")
    ended.check_history()
    return seen, ended


def _with_arguments(text: str) -> None:
    seen, ended = _called(FunctionCallDelta(0, id="a", name="look", arguments=text))
    law(ended.reason == "finished", f"the run ended with {ended.reason!r}")
    law(len(seen.arguments) <= 1, f"one call was done {len(seen.arguments)} times")


def _not_finite(text: str) -> None:
    seen, _ = _called(FunctionCallDelta(0, id="a", name="look", arguments=text))
    law(not any(map(_has_no_number, seen.arguments)), f"the tool was given {seen.arguments}")


def _has_no_number(value: Any) -> bool:
    match value:
        case float():
            return not math.isfinite(value)
        case dict():
            return any(map(_has_no_number, value.values()))
        case list():
            return any(map(_has_no_number, value))
    return False


def _two_objects(text: str) -> None:
    seen, _ = _called(FunctionCallDelta(0, id="a", name="look", arguments=text))
    law(not seen.arguments, f"of two objects, the tool was given {seen.arguments}")


def _deltas(*deltas: FunctionCallDelta) -> None:
    seen, ended = _called(*deltas)
    law(ended.reason in ("finished", "turn_limit", "empty_reply"), f"the run ended with {ended.reason!r}")
    law(len(seen.arguments) <= len(deltas), f"{len(deltas)} deltas, but {len(seen.arguments)} calls")


def _for_ever(call_id: str) -> None:
    """Check that the turn limit ends a run whose model makes a call in every turn."""
    seen = _Seen()

    def script(_: object) -> Sequence[Any]:
        return [FunctionCallDelta(0, id=call_id, name="look", arguments="{}"), ModelFinished("tool_calls")]

    ended = run(FnCallAgent([seen], ScriptedModel(script), limits={"turns": 5}))
    law(ended.reason == "turn_limit" and len(seen.arguments) <= 5, f"{ended.reason}, {len(seen.arguments)} calls")


def _history(call_id: str | None, resume: bool) -> None:
    """Check that a call in a given history runs exactly once, and only when the caller resumes."""
    seen = _Seen()
    call = Message(ASSISTANT, "", function_call=FunctionCall("look", "{}"))
    if call_id is not None:
        call = call.replace(extra={"function_id": call_id})
    model = ScriptedModel(lambda _: answer("done"))
    options = {"resume": True} if resume else {}
    ended = run(FnCallAgent([seen], model, limits={"turns": 3}), [Message(USER, "go"), call], **options)
    law(len(seen.arguments) == int(resume), f"the call was done {len(seen.arguments)} times; resume: {resume}")
    law(ended.reason == ("finished" if resume else "approval_needed"), f"the run ended with {ended.reason!r}")


def _file(role: str, kind: str, url: str) -> None:
    """Check that only attachments from the user are treated as files."""
    with tempfile.NamedTemporaryFile(suffix=".txt") as secret:
        Path(secret.name).write_text("secret")
        path = url + secret.name
        item = ContentItem(file=path) if kind == "file" else ContentItem(image=path)
        extra = {"name": "look", "extra": {"function_id": "a"}} if role == FUNCTION else {}
        before = [Message(USER, "go")]
        if role == FUNCTION:
            call = Message(ASSISTANT, "", function_call=FunctionCall("look", "{}"), extra={"function_id": "a"})
            before.append(call)
        history = [*before, Message(role, [ContentItem(text="see"), item], **extra), Message(USER, "and?")]
        seen = _Seen()
        script: list[Any] = [
            [FunctionCallDelta(0, id="b", name="look", arguments="{}"), ModelFinished("tool_calls")],
            answer("ok"),
        ]
        ended = run(FnCallAgent([seen], ScriptedModel(script)), history)
    law(ended.reason == "finished", f"the run ended with {ended.reason!r}")
    given = any(secret.name in name for name in seen.files)
    law(given == (role == USER), f"the tool was given {seen.files}, from a message of {role}")


def _lenient(text: str) -> None:
    began = time.process_time()
    with suppress(ValueError):
        loads_lenient(text)
    used_s = time.process_time() - began
    law(used_s < CPU_S, f"{len(text):,} characters took {used_s:.1f} s of CPU")


QUADRATIC: dict[str, Callable[[int], str]] = {
    "open strings": lambda n: '{"a": "' + '"b" ' * (n // 4),
    "open quotes": lambda n: "{" + '"' * n,
    "open lists": lambda n: '{"a": ' + "[" * n,
    "open objects": lambda n: '{"a":' * (n // 5),
    "commas": lambda n: "[" + "," * n,
    "colons": lambda n: "{" + ":" * n,
    "words": lambda n: "{" + "a " * (n // 2),
    "half pairs": lambda n: '{"a": "b" "c": ' * (n // 15),
    "escapes": lambda n: '{"a": "' + '\\"' * (n // 2),
    "comments": lambda n: '{"a": /* ' * (n // 9),
    "slashes": lambda n: "{" + "//" * (n // 2),
    "brackets in a string": lambda n: '{"a": "' + "}{" * (n // 2),
    "quotes and brackets": lambda n: '["' + '"]["' * (n // 4),
    "single quotes": lambda n: "{'a': '" + "' '" * (n // 3),
    "fences": lambda n: "{```" * (n // 4),
    "long number": lambda n: '{"a": ' + "9" * n,
    "numbers": lambda n: "[" + "1e" * (n // 2),
    "missing commas": lambda n: '{"a": [' + '"x" 1 ' * (n // 6),
    "missing values": lambda n: "{" + '"a":, ' * (n // 6),
}
NOT_NUMBERS = ("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "nan", "inf", "+Infinity")
PARTS = "{}[]:,\"'\\ \n`/*#-+.eEtrufalsn0123456789xNaI\u201c\ud83c"


def _attempts(dice: random.Random) -> Iterator[Attempt]:
    yield Attempt("sound arguments", partial(_with_arguments, '{"x": 1}'))
    for number in NOT_NUMBERS:
        for text in (f'{{"x": {number}}}', f'{{"x": [{number}]}}', f"{{'x': {number},}}"):
            yield Attempt(f"arguments {text}", partial(_not_finite, text))
    for text in ('{"x": 1}{"x": 2}', '{"x": 1}\n{"x": 2}', '{"x": 1} {"y": 2', '{"x": 1}, {"x": 2}', '{"x":1}]{"x":2}'):
        yield Attempt(f"arguments {text!r}", partial(_two_objects, text))
    for call_id in ("", "a", "1"):
        yield Attempt(f"a model that calls {call_id!r} for ever", partial(_for_ever, call_id))
    for known, resume in itertools.product((None, "", "a"), (False, True)):
        yield Attempt(f"a history that ends in a call {known!r}, resume {resume}", partial(_history, known, resume))
    for role, kind, url in itertools.product((USER, ASSISTANT, FUNCTION), ("file", "image"), ("", "file://")):
        yield Attempt(f"a {kind} {url} in a message of {role}", partial(_file, role, kind, url))
    for (name, make), size in itertools.product(QUADRATIC.items(), (6_000, 20_000, 150_000)):
        yield Attempt(f"{size:,} characters of {name}", partial(_with_arguments, make(size)))
    yield from _odd_calls()
    while True:
        make, size = dice.choice(list(QUADRATIC.values())), dice.randrange(10, 20_000)
        text = dice.choice(
            [
                lambda: make(size),
                lambda: "{" + "".join(dice.choices(PARTS, k=size // 40)),
                lambda: make(size // 2)[: dice.randrange(size)] + make(9),
                lambda: '{"x": ' + "".join(dice.choices(['"', "[", "{", ",", ":", "1", "\\", " "], k=size // 20)),
            ]
        )()
        if dice.random() < 0.7:
            yield Attempt(f"mending {text[:40]!r} … ({len(text):,})", partial(_lenient, text))
        else:
            yield Attempt(f"arguments {text[:40]!r} … ({len(text):,})", partial(_with_arguments, text))


def _odd_calls() -> Iterator[Attempt]:
    call = FunctionCallDelta
    odd: dict[str, tuple[FunctionCallDelta, ...]] = {
        "an unknown tool": (call(0, id="a", name="nobody", arguments="{}"),),
        "no name": (call(0, id="a", name="", arguments="{}"),),
        "a name of controls": (call(0, id="a", name="\x1b[31m\x00\n", arguments="{}"),),
        "a name of half a character": (call(0, id="a", name="\ud800", arguments="{}"),),
        "a very long name": (call(0, id="a", name="n" * 1_000_000, arguments="{}"),),
        "no ids": tuple(call(n, name="look", arguments="{}") for n in range(5)),
        "one id for all": tuple(call(n, id="a", name="look", arguments="{}") for n in range(5)),
        "the ids of others": tuple(call(n, id=str(5 - n), name="look", arguments="{}") for n in range(5)),
        "a negative index": (call(-1, id="a", name="look", arguments="{}"),),
        "a huge index": (call(10**12, id="a", name="look", arguments="{}"),),
        "arguments before the name": (call(0, arguments="{}"), call(0, id="a", name="look")),
        "a thousand calls": tuple(call(n, id=str(n), name="look", arguments="{}") for n in range(1000)),
        "a list": (call(0, id="a", name="look", arguments="[1]"),),
        "a text": (call(0, id="a", name="look", arguments='"x"'),),
        "nothing": (call(0, id="a", name="look", arguments="null"),),
        "a long id": (call(0, id="i" * 1_000_000, name="look", arguments="{}"),),
        "a duplicate key": (call(0, id="a", name="look", arguments='{"x": 1, "x": 2}'),),
    }
    for name, deltas in odd.items():
        yield Attempt(f"a call with {name}", partial(_deltas, *deltas))
    yield Attempt("a call deep in lists", partial(_with_arguments, '{"x": ' + "[" * 90_000 + "]" * 90_000 + "}"))
    yield Attempt("an answer without an end", _without_end)


def _without_end() -> None:
    run(FnCallAgent([], ScriptedModel([[TextDelta("half")]])))
    law(False, "half an answer was taken for a whole one")


KIND = Kind(
    "Each call in a model's answer runs at most once or is reported, and no call stops the run.",
    _attempts,
    1.2,
    quick=56,
)
