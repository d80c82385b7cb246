"""Peers that serve an agent over HTTP, each in its own environment: `python benchmarks/peer_served.py NAME`.

Each peer prints its address and serves one agent, whose model answers in-process with 20 pieces, one every 0.1 s.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

CHUNKS = 20
PAUSE_S = 0.1
PIECE = "piece "


async def pieces() -> AsyncIterator[str]:
    """Yield the model's answer."""
    for _ in range(CHUNKS):
        await asyncio.sleep(PAUSE_S)
        yield PIECE


def fastapi_app() -> Any:
    """Return an OpenAI-compatible endpoint as one might write it in an afternoon: no store, no sessions, no tools."""
    from fastapi import FastAPI, HTTPException
    from fastapi.responses import StreamingResponse
    from pydantic import BaseModel

    class Message(BaseModel):
        role: str
        content: str

    class Body(BaseModel):
        model: str
        messages: list[Message]
        stream: bool = False

    app = FastAPI()

    async def events(body: Body) -> AsyncIterator[str]:
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": body.model}
        async for piece in pieces():
            choice = {"index": 0, "delta": {"content": piece}, "finish_reason": None}
            yield f"data: {json.dumps({**head, 'choices': [choice]})}\n\n"
        choice = {"index": 0, "delta": {}, "finish_reason": "stop"}
        yield f"data: {json.dumps({**head, 'choices': [choice]})}\n\n"
        yield "data: [DONE]\n\n"

    async def complete(body: Body) -> Any:
        if not body.messages:
            raise HTTPException(400, "no messages")
        if body.stream:
            return StreamingResponse(events(body), media_type="text/event-stream")
        text = "".join([piece async for piece in pieces()])
        return {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]}

    complete.__annotations__["body"] = Body  # FastAPI cannot find a class by name if it is defined in a function
    app.post("/v1/chat/completions")(complete)
    return app


def agno_app() -> Any:
    """Return agno's AgentOS with one agent."""
    from agno.agent import Agent
    from agno.models.base import Model
    from agno.models.response import ModelResponse
    from agno.os import AgentOS

    class Paced(Model):
        def invoke(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

        invoke_stream = ainvoke = invoke

        async def ainvoke_stream(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
            async for piece in pieces():
                yield ModelResponse(content=piece)

        def _parse_provider_response(self, response: Any, **_: Any) -> Any:
            return response

        def _parse_provider_response_delta(self, response: Any) -> Any:
            return response

    agent = Agent(id="agent", model=Paced(id="paced"), telemetry=False)
    return AgentOS(agents=[agent], telemetry=False).get_app()


def pydantic_agent() -> Any:
    """Return a pydantic-ai agent."""
    from pydantic_ai import Agent
    from pydantic_ai.models.function import FunctionModel

    async def answer(*_: Any) -> AsyncIterator[str]:
        async for piece in pieces():
            yield piece

    return Agent(FunctionModel(stream_function=answer))


def to_web_app() -> Any:
    """Return pydantic-ai's web application. The benchmark uses its API, not its page."""
    return pydantic_agent().to_web()


def ag_ui_app() -> Any:
    """Return a pydantic-ai agent behind AG-UI."""
    from pydantic_ai.ui.ag_ui import AGUIAdapter
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.routing import Route

    agent = pydantic_agent()

    async def run(request: Request) -> Any:
        return await AGUIAdapter.dispatch_request(request, agent=agent)

    return Starlette(routes=[Route("/", run, methods=["POST"])])


APPS: dict[str, Callable[[], Any]] = {
    "fastapi": fastapi_app,
    "agno": agno_app,
    "to_web": to_web_app,
    "ag_ui": ag_ui_app,
}


def main() -> None:
    """Serve the peer named in the first argument."""
    import uvicorn

    app = APPS[sys.argv[1]]()
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        config = uvicorn.Config(app, log_level="warning", access_log=False, http="h11")
        uvicorn.Server(config).run([listener])


if __name__ == "__main__":
    main()
