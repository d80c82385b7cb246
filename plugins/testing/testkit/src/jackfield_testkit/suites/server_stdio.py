"""Contract tests for faces over standard input and output."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

import asyncio
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import pytest

from jackfield.servers import StdioServer, load_server
from jackfield_testkit.growth import Growth, globals_of
from jackfield_testkit.installed import plain_host
from jackfield_testkit.suites.base import Suite
from jackfield_testkit.suites.server_agents import ANSWERS, NOT_JSON, make_agents

_CUTS = 40
_QUESTIONS_BEFORE = 15
_QUESTIONS = 30


class StdioServerSuite(Suite):
    """Contract of faces over standard input and output, which serve a single client.

    ```python
    import json
    from asyncio import StreamReader, StreamWriter


    class TestAcme(StdioServerSuite):
        component = "jackfield-acme/acme-lines"

        async def ask(self, reader: StreamReader, writer: StreamWriter, agent: str, text: str) -> str:
            writer.write(json.dumps({"agent": agent, "text": text}).encode() + b"\\n")
            return json.loads(await reader.readline())["text"]
    ```

    Attributes:
        component: The face to test, as `distribution/name`, or only the name if it is unique.
        config: The face's settings.
        limit_s: The maximum duration of a conversation, in seconds.
    """

    component: ClassVar[str]
    config: ClassVar[Mapping[str, Any]] = {}
    limit_s: ClassVar[float] = 60.0

    async def ask(self, reader: StreamReader, writer: StreamWriter, agent: str, text: str) -> str:
        """Ask an agent over a new client's streams, and return its answer."""
        raise NotImplementedError

    def test_a_question_is_answered_by_the_agent_that_it_names(self) -> None:
        for agent, form in ANSWERS.items():
            assert self._talk(partial(self.ask, agent=agent, text="Hello 🙂")) == form("Hello 🙂")

    def test_it_ends_when_the_client_closes_its_side(self) -> None:
        async def leave(reader: StreamReader, writer: StreamWriter) -> bytes:
            writer.write_eof()
            return await reader.read()

        self._talk(leave)

    @pytest.mark.parametrize("name", list(NOT_JSON))
    def test_a_line_that_is_not_what_is_expected_does_not_break_it(self, name: str) -> None:
        async def babble(reader: StreamReader, writer: StreamWriter) -> bytes:
            writer.write(NOT_JSON[name] + b"\n")
            writer.write_eof()
            return await reader.read()

        written = self._talk(babble)
        assert b"Traceback" not in written
        assert b".py" not in written

    def test_a_client_may_vanish_at_any_byte(self) -> None:
        sent = self._recorded_question()
        for count in range(0, len(sent), max(1, len(sent) // _CUTS)):

            async def vanish(_: StreamReader, writer: StreamWriter, count: int = count) -> None:
                writer.write(sent[:count])
                writer.close()

            self._talk(vanish)

    def test_nothing_that_it_keeps_grows_with_the_number_of_questions(self) -> None:
        """A face that retains a bounded number of recent items passes if the subclass lowers the bound below 15."""
        from jackfield_serving import Serving

        async def keep_asking(reader: StreamReader, writer: StreamWriter) -> list[str]:
            for number in range(_QUESTIONS_BEFORE):
                await self.ask(reader, writer, "echo", f"Hello {number}")
            # Runs are stored by the service behind the face, which has its own limits.
            growth = Growth(_held_by_other_tasks(), beyond=(Serving,))
            for number in range(_QUESTIONS):
                await self.ask(reader, writer, "echo", f"Hello again {number}")
            return growth.grown(by=_QUESTIONS // 2)

        assert self._talk(keep_asking) == []

    # --- helpers ---

    def _recorded_question(self) -> bytes:
        """Return the bytes that a client sends for one question."""
        sent: list[bytes] = []

        async def record(reader: StreamReader, writer: StreamWriter) -> None:
            write = writer.write

            def note(data: Any) -> None:
                sent.append(bytes(data))
                write(data)

            writer.write = note  # type: ignore[method-assign]
            await self.ask(reader, writer, "echo", "Hi")

        self._talk(record)
        return b"".join(sent)

    def _talk(self, client: Callable[[StreamReader, StreamWriter], Awaitable[Any]]) -> Any:
        """Serve one client, and return its result once the face has ended without leaving tasks behind."""
        return asyncio.run(asyncio.wait_for(self._serve(client), self.limit_s))

    async def _serve(self, client: Callable[[StreamReader, StreamWriter], Awaitable[Any]]) -> Any:
        from jackfield_serving import Serving

        face = load_server({"name": self.component, **self.config}, plain_host())
        assert isinstance(face, StdioServer)
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours, limit=1 << 24)
        their_reader, their_writer = await asyncio.open_connection(sock=theirs, limit=1 << 24)
        async with Serving(make_agents()) as serving:
            before = asyncio.all_tasks()
            talk = asyncio.ensure_future(face.talk(serving, their_reader, their_writer))
            talk.add_done_callback(lambda _: their_writer.close())  # as when the program exits
            try:
                result = await client(reader, writer)
            finally:
                writer.close()
            await talk
            await face.aclose()
            await serving.drain(self.limit_s)
            left = asyncio.all_tasks() - before
            if left:
                await asyncio.wait(left, timeout=1)
            left = {task for task in left if not task.done()}
            assert not left, [repr(task.get_coro()) for task in left]
        return result


def _held_by_other_tasks() -> dict[str, object]:
    """Return the local variables of all other tasks, and the globals of the face's package."""
    held: dict[str, object] = {}
    for number, task in enumerate(asyncio.all_tasks() - {asyncio.current_task()}):
        inner: Any = task.get_coro()
        while (frame := getattr(inner, "cr_frame", None)) is not None:
            held |= {f"{number}.{frame.f_code.co_name}.{name}": one for name, one in frame.f_locals.items()}
            inner = inner.cr_await
    for face in [one for one in held.values() if isinstance(one, StdioServer)]:
        held |= globals_of(type(face).__module__.partition(".")[0])
    return held
