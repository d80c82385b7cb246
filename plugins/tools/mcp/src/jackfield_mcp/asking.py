"""Questions of a server during a call: confirmations (elicitation), answered by an approval."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from jackfield_mcp.bridge import on_loop

if TYPE_CHECKING:
    import mcp_types

_log = logging.getLogger(__name__)

Ask = Callable[[Mapping[str, object]], Awaitable[bool]]

_MOST_QUESTIONS = 10  # of one call: a server that asks more wants something else


class Asked:
    """Answers the questions of one server with approvals of the running calls.

    A yes to a form fills it with its defaults; yes-or-no fields without one become yes, because that is what was
    confirmed. What else a form wants nobody can give, so it is declined. A yes to an address says that the person
    may be sent there; nothing opens it here.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._calls: list[Asking] = []

    def begin(self, ask: Ask, loop: asyncio.AbstractEventLoop) -> Asking:
        """Register a running call, whose caller can be asked on its own loop, until `end`."""
        call = Asking(ask, loop)
        self._calls.append(call)
        return call

    def end(self, call: Asking) -> None:
        """Remove a call that has ended. Its open questions are withdrawn."""
        self._calls.remove(call)
        for waiting in call.waiting:
            waiting.cancel()

    async def elicit(self, context: Any, params: Any) -> mcp_types.ElicitResult:  # noqa: ARG002 - it is called by name
        """Answer a question of the server. The SDK prescribes the signature."""
        from mcp_types import ElicitResult

        if len(self._calls) != 1:
            _log.warning("MCP server %r asked something, but %d calls run: declined", self._server, len(self._calls))
            return ElicitResult(action="decline")
        call = self._calls[0]
        call.questions += 1
        question: dict[str, object] = {"server_asks": params.message}
        if params.mode == "url":
            question["address"] = params.url
            content = None
        else:
            content = _fill_form(params.requested_schema)
            question["answer"] = content
            if content is None:
                _log.warning("MCP server %r asked for what an approval cannot give: declined", self._server)
                return ElicitResult(action="decline")
        if call.questions > _MOST_QUESTIONS or not await call.answer(question):
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content=content)


class Asking:
    """A call that runs, and whom to ask."""

    __slots__ = ("ask", "loop", "questions", "waiting")

    def __init__(self, ask: Ask, loop: asyncio.AbstractEventLoop) -> None:
        self.ask = ask
        self.loop = loop
        self.questions = 0
        self.waiting: set[asyncio.Task[bool]] = set()

    async def answer(self, question: Mapping[str, object]) -> bool:
        """Ask; False if the call ends before there is an answer."""
        waiting = asyncio.ensure_future(on_loop(self.loop, _await_answer(self.ask, question)))
        self.waiting.add(waiting)
        try:
            await asyncio.wait([waiting])
        finally:
            self.waiting.discard(waiting)
            waiting.cancel()
        return not waiting.cancelled() and waiting.result()


async def _await_answer(ask: Ask, question: Mapping[str, object]) -> bool:
    return await ask(question) is True


def _fill_form(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a form that an approval fills; None if it needs more than that."""
    filled: dict[str, Any] = {}
    required = schema.get("required") or ()
    for name, entry in (schema.get("properties") or {}).items():
        if "default" in entry:
            filled[name] = entry["default"]
        elif entry.get("type") == "boolean":
            filled[name] = True
        elif name in required:
            return None
    return filled
