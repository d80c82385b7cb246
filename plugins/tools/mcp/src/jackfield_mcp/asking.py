"""Answer a server's questions during a call (elicitation): confirmations, forms and links."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jackfield.tools import ToolContext
from jackfield_mcp.bridge import on_loop

if TYPE_CHECKING:
    import mcp_types

_log = logging.getLogger(__name__)

_MOST_QUESTIONS = 10  # per call; a server that asks more often is misbehaving


class Asked:
    """Forwards a server's questions to the user of the running call.

    If the caller can fill in forms (`ToolContext.fills_forms`), the user answers the form. Otherwise, the user only
    approves, and the form is filled with its defaults; boolean fields without a default become true. A form that cannot
    be filled this way is declined, and so is any question unless exactly one call is running. Approving a URL means
    that the user may be sent there, but nothing here opens the URL.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._calls: list[Asking] = []

    def begin(self, context: ToolContext, loop: asyncio.AbstractEventLoop) -> Asking:
        """Register a running call. The user is asked on the event loop of the caller."""
        call = Asking(context, loop)
        self._calls.append(call)
        return call

    def end(self, call: Asking) -> None:
        """Unregister a call, and withdraw its open questions."""
        self._calls.remove(call)
        for waiting in call.waiting:
            waiting.cancel()

    async def elicit(self, context: Any, params: Any) -> mcp_types.ElicitResult:  # noqa: ARG002 - it is called by name
        """Answer a question from the server. The SDK prescribes the signature."""
        from mcp_types import ElicitResult

        if len(self._calls) != 1:
            _log.warning(
                "declined a question from MCP server %r: exactly one call must be running, got %d",
                self._server,
                len(self._calls),
            )
            return ElicitResult(action="decline")
        call = self._calls[0]
        call.questions += 1
        question: dict[str, object] = {"server_asks": params.message}
        if params.mode == "url":
            question["address"] = params.url
            content = None
        else:
            content = question["answer"] = _fill_form(params.requested_schema)
            if call.context.fills_forms:
                question["form"] = params.requested_schema
            elif content is None:
                _log.warning(
                    "declined a question from MCP server %r: an approval cannot provide the requested values",
                    self._server,
                )
                return ElicitResult(action="decline")
        answer = await call.answer(question) if call.questions <= _MOST_QUESTIONS else False
        if params.mode == "url":  # which has no fields to fill in
            return ElicitResult(action="accept" if answer is True else "decline")
        if isinstance(answer, Mapping):
            content = _as_content(answer, params.requested_schema)
        if answer is False or content is None:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content=content)


class Asking:
    """A running call whose user can be asked."""

    __slots__ = ("context", "loop", "questions", "waiting")

    def __init__(self, context: ToolContext, loop: asyncio.AbstractEventLoop) -> None:
        self.context = context
        self.loop = loop
        self.questions = 0
        self.waiting: set[asyncio.Task[bool | Mapping[str, object]]] = set()

    async def answer(self, question: Mapping[str, object]) -> bool | Mapping[str, object]:
        """Ask the user, and return the answer, or False if the call ends first."""
        waiting = asyncio.ensure_future(on_loop(self.loop, _await_answer(self.context, question)))
        self.waiting.add(waiting)
        try:
            await asyncio.wait([waiting])
        finally:
            self.waiting.discard(waiting)
            waiting.cancel()
        return False if waiting.cancelled() else waiting.result()


async def _await_answer(context: ToolContext, question: Mapping[str, object]) -> bool | Mapping[str, object]:
    answer = await context.ask(question)
    return answer if isinstance(answer, Mapping) else answer is True


def _as_content(values: Mapping[str, object], schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the form's values, or None if they are invalid or a required value is missing.

    The protocol allows strings, numbers, booleans and lists of strings.
    """
    fields = schema.get("properties") or {}
    if any(name not in values for name in schema.get("required") or ()) or not fields.keys() >= values.keys():
        return None
    if not all(isinstance(one, str | int | float | list) for one in values.values()):
        return None
    return dict(values)


def _fill_form(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Fill a form with its defaults, or return None if a required field has none."""
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
