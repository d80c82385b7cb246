"""Approvals and other questions of runs, as elicitations that a person answers at the client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequest, InputResponse
from pydantic import ValidationError

from jackfield.cli import escape_line
from jackfield.messages import FunctionCall
from jackfield_serving import WaitingCall

_ALLOW = "allow"
_MESSAGE = "message"


class Asker:
    """Asks a client whose version of the protocol lets a server send requests.

    Attributes:
        can_ask: The client shows forms to a person.
    """

    def __init__(self, context: ServerRequestContext[Any, Any]) -> None:
        self._session, self._request_id = context.session, context.request_id
        capabilities = context.session.client_capabilities
        elicitation = None if capabilities is None else capabilities.elicitation
        # A client that names no mode has forms.
        self.can_ask = elicitation is not None and (elicitation.form is not None or elicitation.url is None)

    async def ask(self, waiting: Sequence[WaitingCall]) -> tuple[dict[str, bool | str], list[str]]:
        """Return the answers, and a note on each call that is refused because the client cannot ask a person."""
        answers: dict[str, bool | str] = {}
        notes: list[str] = []
        for call in waiting:
            result = await self._elicit(call) if self.can_ask and self._session.can_send_request else None
            if result is None:
                notes.append(_note_on(call))
                result = ElicitResult(action="decline")
            answer = _answer_in(call.kind, result)
            if answer is not None:
                answers[call.call_id] = answer
        return answers, notes

    async def _elicit(self, call: WaitingCall) -> ElicitResult | None:
        form = form_of(call)
        try:
            return await self._session.elicit_form(form.message, form.requested_schema, self._request_id)
        except (MCPError, ValidationError):
            return None


def requests_of(waiting: Sequence[WaitingCall]) -> dict[str, InputRequest]:
    """Return what a run waits for as requests to a client, by the ids of the calls and their kinds."""
    return {f"{call.kind}:{call.call_id}": ElicitRequest(params=form_of(call)) for call in waiting}


def read_answers(responses: Mapping[str, InputResponse]) -> dict[str, bool | str]:
    """Return the answers in a client's responses, by the ids of the calls."""
    answers: dict[str, bool | str] = {}
    for key, response in responses.items():
        kind, _, call_id = key.partition(":")
        answer = _answer_in(kind, response) if isinstance(response, ElicitResult) else None
        if answer is not None:
            answers[call_id] = answer
    return answers


def form_of(call: WaitingCall) -> ElicitRequestFormParams:
    """Return the form in which a person answers."""
    if call.kind == "input":
        return _form(_MESSAGE, {"type": "string", "title": "Message"}, "The agent waits for your message.")
    field = {"type": "boolean", "title": "Allow", "description": "Allow this call"}
    agent = f"{escape_line(call.agent)} wants to call" if call.agent else "Allow the call"
    doubt = " It may have been made already." if call.in_doubt else ""
    return _form(_ALLOW, field, f"{agent} {_describe(call.call)}?{doubt}")


def _form(name: str, field: Mapping[str, str], message: str) -> ElicitRequestFormParams:
    schema = {"type": "object", "properties": {name: dict(field)}, "required": [name]}
    return ElicitRequestFormParams(message=message, requested_schema=schema)


def _answer_in(kind: str, result: ElicitResult) -> bool | str | None:
    """Return a person's answer; None if a person does not write a message."""
    content = result.content if result.action == "accept" and result.content is not None else {}
    if kind == "input":
        message = content.get(_MESSAGE)
        return message if isinstance(message, str) else None
    return content.get(_ALLOW) is True


def _note_on(call: WaitingCall) -> str:
    if call.kind == "input":
        return "The agent waits for a person's message, and this client cannot ask for one."
    return f"The call {_describe(call.call)} needs an approval, and was refused: this client cannot ask for one."


def _describe(call: FunctionCall) -> str:
    return escape_line(f"{call.name} {call.arguments}")
