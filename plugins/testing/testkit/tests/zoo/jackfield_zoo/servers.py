"""A face that does all as it should, and faces that do one thing otherwise."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, ClassVar, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, Router

from jackfield.errors import InvalidMessageError
from jackfield.events import MediaDelta, RunFailed, RunFinished, TextDelta
from jackfield.results import text_of_answer
from jackfield.servers import ASGIApp, HttpServer, Refusal, RequestRefusedError, StdioServer, owner_of, read_object

_log = logging.getLogger("jackfield_zoo")


class Honest(HttpServer):
    """Answers `POST /acme`, in pieces with `?stream`, in a conversation with `?after=ID`, and `GET /acme/runs/ID`."""

    name = "acme"
    paths: ClassVar[tuple[str, ...]] = ("/acme",)

    def app(self, serving: Any) -> ASGIApp:
        async def ask(request: Request) -> Response:
            return await self.ask(serving, request)

        async def show(request: Request) -> Response:
            return await self.show(serving, request.path_params["run_id"], owner_of(request.scope))

        methods = self.methods()
        return Router([Route("/acme", ask, methods=methods), Route("/acme/runs/{run_id}", show, methods=["GET"])])

    def methods(self) -> list[str]:
        return ["POST"]

    def read(self, body: bytes) -> tuple[str, str]:
        question = read_object(body)
        match question:
            case {"agent": str(agent), "text": str(text)} if len(question) == 2:
                return agent, text
        raise InvalidMessageError("the body must have the texts 'agent' and 'text'")

    async def ask(self, serving: Any, request: Request) -> Response:
        agent, text = self.read(await request.body())
        if agent not in serving.agents:
            raise RequestRefusedError("there is no such agent", status=404, code="not_found")
        owner = owner_of(request.scope)
        run_id = await serving.start(self.chosen(agent), text, owner=owner, continues=self.run_before(request))
        if "stream" in request.query_params:
            return StreamingResponse(self.with_signs_of_life(self.pieces(serving, run_id, owner)))
        return await self.show(serving, run_id, owner)

    def chosen(self, agent: str) -> str:
        return agent

    def run_before(self, request: Request) -> str:
        return request.query_params.get("after", "")

    async def show(self, serving: Any, run_id: str, owner: str) -> Response:
        async for _, event in serving.attach(run_id, owner=owner):
            match event.event:
                case RunFinished(messages=messages) if event.depth == 0:
                    return self.answer(run_id, text_of_answer(messages))
                case RunFailed(error=error) if event.depth == 0:
                    return JSONResponse({"error": {"code": "failed", "message": self.reason(error)}}, 500)
        return JSONResponse({"error": {"code": "failed", "message": "it was stopped"}}, 500)

    def answer(self, run_id: str, text: str) -> Response:
        # `JSONResponse` cannot write half a character, which a question may contain.
        return Response(json.dumps({"run_id": run_id, "text": text}), media_type="application/json")

    def reason(self, error: str) -> str:
        return "the run failed"

    async def with_signs_of_life(self, pieces: AsyncIterator[str]) -> AsyncIterator[str]:
        waiting: asyncio.Future[str] = asyncio.ensure_future(anext(pieces))
        try:
            while True:
                await asyncio.wait([waiting], timeout=15)
                if not waiting.done():
                    yield "\n"
                    continue
                yield waiting.result()
                waiting = asyncio.ensure_future(anext(pieces))
        except StopAsyncIteration:
            pass
        finally:
            waiting.cancel()

    async def pieces(self, serving: Any, run_id: str, owner: str) -> AsyncIterator[str]:
        async for _, event in serving.attach(run_id, owner=owner):
            if isinstance(event.event, TextDelta):
                yield json.dumps({"text": event.event.text}) + "\n"
            elif isinstance(event.event, RunFailed):
                yield json.dumps({"error": self.reason(event.event.error)}) + "\n"


class AsksTheFirst(Honest):
    def chosen(self, agent: str) -> str:
        return "echo"


class MixesAnswers(Honest):
    text = ""

    async def show(self, serving: Any, run_id: str, owner: str) -> Response:
        answer = await super().show(serving, run_id, owner)
        self.text = json.loads(answer.body)["text"]
        await asyncio.sleep(0.3)
        return self.answer(run_id, self.text)


class TakesAnyAgent(Honest):
    def read(self, body: bytes) -> tuple[str, str]:
        agent, text = super().read(body)
        return (agent if agent == "shout" else "echo"), text


class InventsRuns(Honest):
    async def show(self, serving: Any, run_id: str, owner: str) -> Response:
        try:
            return await super().show(serving, run_id, owner)
        except LookupError:
            return self.answer(run_id, "")


class ShowsRunsToAll(Honest):
    def __init__(self) -> None:
        super().__init__()
        self.owners: dict[str, str] = {}

    async def show(self, serving: Any, run_id: str, owner: str) -> Response:
        return await super().show(serving, run_id, self.owners.setdefault(run_id, owner))


class ForgetsConversations(Honest):
    def run_before(self, request: Request) -> str:
        return ""


class LogsRequests(Honest):
    def refusal(self, refusal: Refusal) -> tuple[str, bytes]:
        return super().refusal(refusal)

    def app(self, serving: Any) -> ASGIApp:
        inner = super().app(serving)

        async def logged(scope: Any, receive: Any, send: Any) -> None:
            _log.debug("request %s", scope["headers"])
            await inner(scope, receive, send)

        return logged


class WritesPlainErrors(Honest):
    def refusal(self, refusal: Refusal) -> tuple[str, bytes]:
        return "application/json", json.dumps({"detail": refusal.message}).encode()


class ReadsAnyJson(Honest):
    def read(self, body: bytes) -> tuple[str, str]:
        try:
            question = json.loads(body)
        except ValueError:
            question = {}
        return question.get("agent", "echo"), question.get("text", "")


class TakesTwins(Honest):
    def read(self, body: bytes) -> tuple[str, str]:
        try:
            return super().read(body)
        except RequestRefusedError as error:
            if "duplicate" not in str(error):
                raise
            return super().read(json.dumps(json.loads(body)).encode())


class TrustsTypes(Honest):
    def read(self, body: bytes) -> tuple[str, str]:
        question = read_object(body)
        return question["agent"], question["text"]


class AllowsEveryOrigin(Honest):
    def methods(self) -> list[str]:
        return ["POST", "OPTIONS"]

    async def ask(self, serving: Any, request: Request) -> Response:
        if request.method == "OPTIONS":
            return PlainTextResponse("", headers={"access-control-allow-origin": "*"})
        return await super().ask(serving, request)


class WaitsForBodies(Honest):
    def __init__(self) -> None:
        super().__init__()
        self.tasks: list[asyncio.Task[Any]] = []

    async def ask(self, serving: Any, request: Request) -> Response:
        task = asyncio.create_task(asyncio.Event().wait())
        self.tasks.append(task)
        await request.body()
        task.cancel()
        return await super().ask(serving, request)


class ForgetsItsTasks(WaitsForBodies):
    async def ask(self, serving: Any, request: Request) -> Response:
        return await Honest.ask(self, serving, request)

    async def pieces(self, serving: Any, run_id: str, owner: str) -> AsyncIterator[str]:
        task = asyncio.create_task(asyncio.Event().wait())
        self.tasks.append(task)
        async for piece in super().pieces(serving, run_id, owner):
            await asyncio.sleep(0.01)
            yield piece
        task.cancel()


class ShowsReasons(Honest):
    def reason(self, error: str) -> str:
        return error


class ShowsPaths(Honest):
    async def pieces(self, serving: Any, run_id: str, owner: str) -> AsyncIterator[str]:
        async for _, event in serving.attach(run_id, owner=owner):
            if isinstance(event.event, MediaDelta):
                yield json.dumps({"text": str(event.event.item.value)}) + "\n"


class ShowsTracebacks(Honest):
    async def ask(self, serving: Any, request: Request) -> Response:
        try:
            return await super().ask(serving, request)
        except ZeroDivisionError:
            return JSONResponse({"error": traceback.format_exc()}, 500)


class FallsSilent(Honest):
    def with_signs_of_life(self, pieces: AsyncIterator[str]) -> AsyncIterator[str]:
        return pieces


class KeepsAnswers(Honest):
    def __init__(self) -> None:
        super().__init__()
        self.answers: dict[str, Response] = {}

    async def show(self, serving: Any, run_id: str, owner: str) -> Response:
        if run_id not in self.answers:
            self.answers[run_id] = await super().show(serving, run_id, owner)
        return self.answers[run_id]


class CountsQuestions(Honest):
    """Its table is in a closure, behind two objects."""

    def app(self, serving: Any) -> ASGIApp:
        inner, counts = super().app(serving), dict[bytes, int]()

        async def counted(scope: Any, receive: Any, send: Any) -> None:
            async def read() -> Any:
                message = await receive()
                counts[message.get("body", b"")] = counts.get(message.get("body", b""), 0) + 1
                return message

            await inner(scope, read, send)

        return counted


class HonestLines(StdioServer):
    """Answers lines of JSON."""

    name = "acme-lines"

    async def talk(self, serving: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await self.line(reader):
            try:
                reply = await self.reply(serving, line)
            except (RequestRefusedError, InvalidMessageError) as error:
                reply = {"error": str(error)}
            writer.write(json.dumps(reply).encode() + b"\n")
            with suppress(ConnectionError):
                await writer.drain()

    async def line(self, reader: asyncio.StreamReader) -> bytes:
        try:
            return await reader.readline()
        except ConnectionError:
            return b""

    async def reply(self, serving: Any, line: bytes) -> dict[str, Any]:
        agent, text = self.read(line)
        run_id = await serving.start(agent, text)
        async for _, event in serving.attach(run_id):
            if isinstance(event.event, RunFinished):
                return {"text": text_of_answer(event.event.messages)}
        return {"error": "the run failed"}

    def read(self, line: bytes) -> tuple[str, str]:
        return Honest().read(line)


class LinesForTheFirst(HonestLines):
    def read(self, line: bytes) -> tuple[str, str]:
        return "echo", super().read(line)[1]


class LinesForEver(HonestLines):
    async def line(self, reader: asyncio.StreamReader) -> bytes:
        return await super().line(reader) or await asyncio.sleep(30, b"")


class LinesWithTracebacks(HonestLines):
    async def reply(self, serving: Any, line: bytes) -> dict[str, Any]:
        try:
            return await super().reply(serving, line)
        except RequestRefusedError:
            return {"error": traceback.format_exc()}


class LinesWithTasks(HonestLines):
    def __init__(self) -> None:
        super().__init__()
        self.tasks: list[asyncio.Task[Any]] = []

    async def reply(self, serving: Any, line: bytes) -> dict[str, Any]:
        if not line.endswith(b"\n"):
            self.tasks.append(asyncio.create_task(asyncio.sleep(30)))
        return await super().reply(serving, line)


class LinesThatAreKept(HonestLines):
    async def talk(self, serving: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        counts: dict[bytes, int] = {}

        class Counting:
            async def readline(self) -> bytes:
                line = await reader.readline()
                counts[line] = counts.get(line, 0) + 1
                return line

        await super().talk(serving, cast(asyncio.StreamReader, Counting()), writer)


class AnswersAnything(Honest):
    """Answers each request alike, without reading it: wrong from end to end, so that it fails many laws."""

    def app(self, serving: Any) -> ASGIApp:
        async def answered(scope: Any, receive: Any, send: Any) -> None:
            told = {"run_id": "x", "text": "7301"}
            headers = {"set-cookie": "a=b", "connection": "close"}
            await JSONResponse(told, 201, headers=headers)(scope, receive, send)

        return answered


class LinesWithFiles(HonestLines):
    """Names the file in which a line was refused."""

    async def reply(self, serving: Any, line: bytes) -> dict[str, Any]:
        try:
            return await super().reply(serving, line)
        except (RequestRefusedError, InvalidMessageError) as error:
            return {"error": f"{__file__}: {error}"}
