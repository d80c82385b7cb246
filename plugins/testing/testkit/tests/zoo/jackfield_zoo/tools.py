"""A tool that does all as it should, and tools that do one thing otherwise."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
import subprocess
import tempfile
import threading
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote

from jackfield.errors import ToolServiceError
from jackfield.plugins import default_host
from jackfield.tools import BaseTool, ToolContext, ToolResult, Workspace, tool

Params = str | Mapping[str, Any]


class Honest(BaseTool):
    """Counts characters."""

    name = "Honest"
    description = "Counts the characters of a text."
    parameters: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "What to count"}},
        "required": ["text"],
        "additionalProperties": False,
    }
    effects: ClassVar[frozenset[str]] = frozenset()
    stated: ClassVar[Mapping[str, Any]] = {}  # what the descriptor says otherwise

    def __init_subclass__(cls) -> None:
        cls.name = cls.__name__

    def call(self, params: Params, *, context: ToolContext | None = None) -> Any:
        text = self.parse_arguments(params)["text"]
        if text == "fail":
            raise ToolServiceError("There is nothing to count; give another text.")
        return self.answer(text, context)

    def answer(self, text: str, context: ToolContext | None) -> Any:
        workspace = context.workspace if context else Workspace()
        assert workspace.root.is_absolute(), "outside of a run it would write where the tests are run"
        return f"{len(text)} characters"


LISTED = [{"name": "text", "type": "string", "description": "What to count", "required": True}]
AS_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string", "description": "What to count"}},
    "required": ["text"],
}


class OfQwen(Honest):
    """As tools written for Qwen-Agent are: parameters in a list, arguments as text."""

    parameters: ClassVar[Any] = LISTED
    stated: ClassVar = {"parameters": AS_SCHEMA}

    def call(self, params: str, **kwargs: Any) -> Any:  # type: ignore[override]
        return super().call(params, **kwargs)


class TakesText(Honest):
    params_as_text = True

    def call(self, params: Params, *, context: ToolContext | None = None) -> Any:
        assert isinstance(params, str)
        return super().call(params, context=context)


class ReadsByPattern(Honest):
    """Declares text, and takes it apart by hand."""

    params_as_text = True

    def call(self, params: Params, *, context: ToolContext | None = None) -> Any:
        found = re.fullmatch(r'\{"text": ?"(.*)"\}', str(params), re.DOTALL)
        return super().call({"text": found[1]} if found else {}, context=context)


class MisspellsAType(OfQwen):
    parameters: ClassVar[Any] = [{**LISTED[0], "type": "strnig"}]


class RequiresInWords(OfQwen):
    parameters: ClassVar[Any] = [{**LISTED[0], "required": "true"}]


class NamesTwice(OfQwen):
    parameters: ClassVar[Any] = [*LISTED, *LISTED]


class Mumbles(Honest):
    parameters: ClassVar = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


class Backtracks(Honest):
    parameters: ClassVar = {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "A text", "pattern": r"^(?!(.)\1+$)"}},
        "required": ["text"],
    }


class TwoFaced(Honest):
    read_only = True
    stated: ClassVar = {"read_only": False}


class TwoFacedAboutRepeats(Honest):
    idempotent = True
    stated: ClassVar = {"idempotent": False}


class TwoFacedAboutTurns(Honest):
    concurrent = False
    stated: ClassVar = {"concurrent": True}


class TwoFacedAboutTime(Honest):
    timeout_s = 5.0
    stated: ClassVar = {"timeout_s": 6.0}


class TwoFacedAboutFiles(Honest):
    file_access = True
    stated: ClassVar = {"file_access": False}


class TwoFacedAboutText(Honest):
    raw_argument = "text"
    stated: ClassVar = {"raw_argument": ""}


class HidesAnEffect(Honest):
    effects: ClassVar = frozenset({"network"})
    stated: ClassVar = {"effects": frozenset()}


class SaysTwoThings(Honest):
    stated: ClassVar = {"description": "Counts sheep."}


class Miscounts(Honest):
    def answer(self, text: str, context: ToolContext | None) -> Any:
        return f"{len(text) + 1} characters"


class TakesDictsOnly(Honest):
    def call(self, params: Params, *, context: ToolContext | None = None) -> Any:
        return f"{len(params['text'])} characters"  # type: ignore[index]


class EatsArguments(Honest):
    def call(self, params: Params, *, context: ToolContext | None = None) -> Any:
        output = super().call(params, context=context)
        if isinstance(params, dict):
            params.clear()
        return output


class GivesAnything(Honest):
    def answer(self, text: str, context: ToolContext | None) -> Any:
        return ToolResult(f"{len(text)} characters", {"set": {1, 2}})


class Floods(Honest):
    def answer(self, text: str, context: ToolContext | None) -> Any:
        return f"{len(text)} characters" * 100_000


class KeepsItsLoop(Honest):
    loop: Any = None

    async def call(self, params: Params, *, context: ToolContext | None = None) -> Any:
        self.loop = self.loop or asyncio.get_running_loop()
        if self.loop is not asyncio.get_running_loop():
            raise RuntimeError("attached to a different loop")
        return super().call(params, context=context)


class NeedsARun(Honest):
    def answer(self, text: str, context: ToolContext | None) -> Any:
        return f"{len(text)} characters for {context.run_id[:0]}"  # type: ignore[union-attr]


class ReportsNumbers(Honest):
    def answer(self, text: str, context: ToolContext | None) -> Any:
        if context:
            context.report(17)  # type: ignore[arg-type]
        return f"{len(text)} characters"


class ActsFirst(Honest):
    def call(self, params: Params, *, context: ToolContext | None = None) -> Any:
        if context:
            (context.workspace.root / "log.txt").write_text("called")
        return super().call(params, context=context)


class BelievesAll(Honest):
    def call(self, params: Params, *, context: ToolContext | None = None) -> Any:
        arguments = params if isinstance(params, Mapping) else json.loads(params)
        return f"{len(arguments.get('text') or '')} characters"


class BelievesText(Honest):
    def call(self, params: Params, *, context: ToolContext | None = None) -> Any:
        if isinstance(params, str) and not params.startswith("{"):
            return f"{len(params)} characters"
        return super().call(params, context=context)


class NeedsWholeCharacters(Honest):
    def answer(self, text: str, context: ToolContext | None) -> Any:
        text.encode()
        return f"{len(text)} characters"


class TellsItsTraceback(Honest):
    def answer(self, text: str, context: ToolContext | None) -> Any:
        if "half" in text:
            try:
                int(text)
            except ValueError:
                raise ToolServiceError(traceback.format_exc()) from None
        return super().answer(text, context)


class TellsItsPath(Honest):
    def answer(self, text: str, context: ToolContext | None) -> Any:
        if "half" in text and context:
            raise ToolServiceError(f"Nothing in {context.workspace.root} helps.")
        return super().answer(text, context)


class NeverFails(Honest):
    def call(self, params: Params, *, context: ToolContext | None = None) -> Any:
        return f"{len(self.parse_arguments(params)['text'])} characters"


class WritesOutside(Honest):
    def answer(self, text: str, context: ToolContext | None) -> Any:
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"secret")
        return f"{len(text)} characters"


class WritesAboutUmlauts(Honest):
    """Writes only for a text that its first example does not have."""

    def answer(self, text: str, context: ToolContext | None) -> Any:
        if not text.isascii():
            with tempfile.NamedTemporaryFile() as file:
                file.write(text.encode())
        return f"{len(text)} characters"


class Connects(Honest):
    def answer(self, text: str, context: ToolContext | None) -> Any:
        with socket.socket() as connection:
            connection.connect_ex(("127.0.0.1", 9))
        return f"{len(text)} characters"


class Starts(Honest):
    def answer(self, text: str, context: ToolContext | None) -> Any:
        subprocess.run(["true"], check=True)
        return f"{len(text)} characters"


class StartsAtFirst(Honest):
    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(cfg)
        subprocess.run(["true"], check=True)


class Boasts(Honest):
    effects: ClassVar = frozenset({"network"})


class Keeps(Honest):
    cacheable = True
    stated: ClassVar = {"cacheable": True}


class CountsCalls(Keeps):
    calls = 0

    def answer(self, text: str, context: ToolContext | None) -> Any:
        self.calls += 1
        return f"{len(text)} characters, call {self.calls}"


class KnowsItsCaller(Keeps):
    def answer(self, text: str, context: ToolContext | None) -> Any:
        return f"{super().answer(text, context)}{'!' if context and context.deps == 'Bob' else ''}"


class DoesItTwice(Honest):
    idempotent = True
    stated: ClassVar = {"idempotent": True}
    done = 0

    def answer(self, text: str, context: ToolContext | None) -> Any:
        self.done += 1
        return f"{len(text)} characters, {self.done} done"


class SaysResumableToo(Honest):
    """Says both, of which the one says nothing of the other."""

    idempotent = True
    resumable = True
    stated: ClassVar = {"idempotent": True, "resumable": True}


class NeedsShortTexts(Honest):
    def answer(self, text: str, context: ToolContext | None) -> Any:
        if len(text) > 100_000:
            raise MemoryError
        return super().answer(text, context)


class ReadsAndWrites(Honest):
    read_only = True

    def answer(self, text: str, context: ToolContext | None) -> Any:
        if context:
            (context.workspace.root / f"{len(text)}.txt").write_text(text, errors="replace")
        return f"{len(text)} characters"


class Opens(Honest):
    """Takes any text for the name of a file."""

    effects: ClassVar = frozenset({"files"})

    def answer(self, text: str, context: ToolContext | None) -> Any:
        try:
            content = (context.workspace.root / text).read_text() if context else ""
        except (OSError, ValueError):
            content = ""
        return f"{len(text)} characters {content}"


class OpensInside(Opens):
    """Opens names that look as if they stayed inside."""

    def answer(self, text: str, context: ToolContext | None) -> Any:
        is_inside = not (text.startswith(("/", "..")) or "/../" in text)
        return super().answer(text, context) if is_inside else f"{len(text)} characters"


class OpensAbsolute(Opens):
    """Opens names from the root on."""

    def answer(self, text: str, context: ToolContext | None) -> Any:
        return super().answer(text, context) if text.startswith("/") else f"{len(text)} characters"


class OpensDecoded(Opens):
    """Decodes a name after it has checked it."""

    def answer(self, text: str, context: ToolContext | None) -> Any:
        return super().answer(unquote(text), context) if "/" in text and "%" in text else f"{len(text)} characters"


class OpensRoundabout(Opens):
    """Looks at the beginning of a name only."""

    def answer(self, text: str, context: ToolContext | None) -> Any:
        return super().answer(text, context) if text.startswith("here/") else f"{len(text)} characters"


class Overwrites(Honest):
    """Takes any text for the name of a file to write."""

    effects: ClassVar = frozenset({"files"})

    def answer(self, text: str, context: ToolContext | None) -> Any:
        try:
            if context and text.endswith(".txt"):
                (context.workspace.root / text).write_text("mine")
        except (OSError, ValueError):
            pass
        return f"{len(text)} characters"


class WaitsForPipes(Honest):
    """Reads whatever has the name in the workspace."""

    effects: ClassVar = frozenset({"files"})

    def answer(self, text: str, context: ToolContext | None) -> Any:
        try:
            content = context.workspace.resolve(text).read_text() if context else ""
        except (OSError, ValueError, ToolServiceError):
            content = ""
        return f"{len(text)} characters {content}"


class WritesIntoPipes(Honest):
    """Writes into whatever has the name in the workspace."""

    effects: ClassVar = frozenset({"files"})

    def answer(self, text: str, context: ToolContext | None) -> Any:
        with suppress(OSError, ValueError, ToolServiceError):
            if context and text.endswith(".txt"):
                context.workspace.resolve(text).write_text("mine")
        return f"{len(text)} characters"


class MixesCalls(Honest):
    text: str = ""

    async def call(self, params: Params, *, context: ToolContext | None = None) -> Any:
        self.text = self.parse_arguments(params)["text"]
        await asyncio.sleep(0)
        return f"{len(self.text)} characters"


class Waits(Honest):
    """Waits a while, as it may; what it does when it is cancelled is the matter of others."""

    async def call(self, params: Params, *, context: ToolContext | None = None) -> Any:
        for _ in range(3):
            await asyncio.sleep(0.01)
        return super().call(params, context=context)


class Swallows(Waits):
    async def call(self, params: Params, *, context: ToolContext | None = None) -> Any:
        try:
            return await super().call(params, context=context)
        except asyncio.CancelledError:
            return "never mind"


class GoesOn(Waits):
    async def call(self, params: Params, *, context: ToolContext | None = None) -> Any:
        for _ in range(200):
            try:
                await asyncio.sleep(0.01 if params["text"] != "go" else 0)  # type: ignore[index,call-overload]
            except asyncio.CancelledError:
                continue
        return Honest.call(self, params, context=context)


class StaysBusy(Waits):
    busy = False

    async def call(self, params: Params, *, context: ToolContext | None = None) -> Any:
        if self.busy:
            raise ToolServiceError("I am busy.")
        self.busy = True
        output = await super().call(params, context=context)
        self.busy = False
        return output


class NeverFree(Waits):
    busy = False

    async def call(self, params: Params, *, context: ToolContext | None = None) -> Any:
        if NeverFree.busy:
            raise ToolServiceError("I am busy.")
        NeverFree.busy = True  # for all instances, and for ever once a call is given up
        await asyncio.sleep(1)
        output = await super().call(params, context=context)
        NeverFree.busy = False
        return output


class HoldsUpTheLoop(Honest):
    async def call(self, params: Params, *, context: ToolContext | None = None) -> Any:
        threading.Event().wait(0.2)
        return super().call(params, context=context)


class ReadsPasswords(Honest):
    def answer(self, text: str, context: ToolContext | None) -> Any:
        Path("/etc/passwd").read_bytes()
        return super().answer(text, context)


class ForgetsItsHost(Honest):
    def answer(self, text: str, context: ToolContext | None) -> Any:
        default_host()
        return super().answer(text, context)


class SeesNoFiles(Honest):
    file_access = True


class LeavesOpen(Honest):
    sockets: ClassVar[list[socket.socket]] = []

    def answer(self, text: str, context: ToolContext | None) -> Any:
        self.sockets.append(socket.socket())
        return super().answer(text, context)


class Today(Honest):
    """Takes no argument that it needs."""

    parameters: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "What to count"}},
        "additionalProperties": False,
    }

    def call(self, params: Params, *, context: ToolContext | None = None) -> Any:
        return super().call({"text": "", **self.parse_arguments(params)}, context=context)


class StatesNoSecret(Honest):
    def secret_sources(self) -> tuple[object, ...]:
        return ()


class ShowsItsToken(Honest):
    def __repr__(self) -> str:
        return f"ShowsItsToken(token={self.cfg['token']!r})"


class PrintsAsItsToken(Honest):
    def __str__(self) -> str:
        return f"a tool with {self.cfg['token']}"


class LogsItsToken(Honest):
    def answer(self, text: str, context: ToolContext | None) -> Any:
        logging.getLogger("jackfield_zoo").debug("asked with %s", self.cfg.get("token"))
        return super().answer(text, context)


class TellsItsToken(Honest):
    def call(self, params: Params, *, context: ToolContext | None = None) -> Any:
        try:
            return super().call(params, context=context)
        except ToolServiceError as error:
            raise ToolServiceError(f"{error} The token was {self.cfg.get('token')}.") from None


class WritesItsToken(Honest):
    def answer(self, text: str, context: ToolContext | None) -> Any:
        workspace = context.workspace if context else Workspace()
        (workspace.root / "logs").mkdir(exist_ok=True)
        (workspace.root / "logs" / "request.txt").write_text(str(self.cfg.get("token")))
        return super().answer(text, context)


class SaysNothing(Honest):
    """Has no description, and fails without a word."""

    description = " "

    def answer(self, text: str, context: ToolContext | None) -> Any:
        raise ToolServiceError(" ")


class ChangesOnTheWay(Honest):
    """Has a schema that JSON changes."""

    parameters: ClassVar = {**Honest.parameters, "x-order": {1: "text"}}


class KnowsNoArguments(Honest):
    parameters: ClassVar = {"type": "object", "properties": {}}

    def answer(self, text: str, context: ToolContext | None) -> Any:
        return len(text)


class FailsEachSecondTime(Honest):
    calls = 0

    def call(self, params: Params, *, context: ToolContext | None = None) -> Any:
        self.calls += 1
        if self.calls % 2 == 0:
            raise ToolServiceError("Not now.")
        return super().call(params, context=context)


class WritesBeside(Honest):
    """Leaves a file beside its workspace."""

    def answer(self, text: str, context: ToolContext | None) -> Any:
        if context and context.workspace:
            (context.workspace.root.parent / "diary.txt").write_text(text, encoding="utf-8", errors="replace")
        return super().answer(text, context)


@tool
def count_letters(text: str) -> str:
    """Counts the letters of a text.

    Args:
        text: What to count.
    """
    return f"{len(text)} characters"


class TakesRawText(Honest):
    raw_argument = "text"


ALL = [
    made
    for made in list(globals().values())
    if isinstance(made, type) and issubclass(made, Honest) and made.__module__ == __name__
]
