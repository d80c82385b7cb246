"""Requests close the event streams that they leave, instead of leaving them to the garbage collector."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from types import AsyncGeneratorType
from typing import Any

import httpx
import pytest

from jackfield import FnCallAgent
from jackfield.testing import ScriptedModel, answer
from jackfield_serve import serving_app

CHAT = {"model": "helper", "messages": [{"role": "user", "content": "Hi"}]}
RESPONSE = {"model": "helper", "input": "Hi"}


def note_abandoned() -> list[str]:
    """Return a list that gets the names of generators of ours that are collected before their end."""
    abandoned: list[str] = []
    hooks = sys.get_asyncgen_hooks()

    def note(generator: AsyncGenerator[Any, Any]) -> None:
        if isinstance(generator, AsyncGeneratorType) and "jackfield" in generator.ag_code.co_filename:
            abandoned.append(generator.__qualname__)
        assert hooks.finalizer is not None
        hooks.finalizer(generator)

    sys.set_asyncgen_hooks(firstiter=hooks.firstiter, finalizer=note)
    return abandoned


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("path", "body"), [("chat/completions", CHAT), ("responses", RESPONSE)])
def test_a_request_leaves_no_generator_to_the_garbage_collector(path: str, body: dict[str, Any], stream: bool) -> None:
    async def main() -> None:
        agent = FnCallAgent(llm=ScriptedModel(lambda _: answer("Hello.")), name="helper")
        app = serving_app({"helper": agent})
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            abandoned = note_abandoned()
            reply = await client.post(f"/v1/{path}", json={**body, "stream": stream})
            assert "Hello." in reply.text
            await app.aclose()
        assert abandoned == []

    asyncio.run(main())
