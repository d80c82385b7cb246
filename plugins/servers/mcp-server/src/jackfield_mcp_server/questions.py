"""Present approvals and other questions of a run as elicitations that the client's user answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequest, InputResponse
from pydantic import ValidationError

from jackfield.cli import escape_line
from jackfield.messages import FunctionCall
from jackfield_serving import WaitingCall

PersonsAnswer: TypeAlias = bool | str | dict[str, Any]
"""An approval, a message, or the values of a form."""
_ALLOW = "allow"
_MESSAGE = "message"


class Asker:
    """Asks clients whose protocol version lets a server send requests.

    Attributes:
        can_ask: True if the client can show forms to its user.
    """

    def __init__(self, context: ServerRequestContext[Any, Any]) -> None:
        self._session, self._request_id = context.session, context.request_id
        capabilities = context.session.client_capabilities
        elicitation = None if capabilities is None else capabilities.elicitation
        # A client that names no mode supports forms.
        self.can_ask = elicitation is not None and (elicitation.form is not None or elicitation.url is None)

    async def ask(self, waiting: Sequence[WaitingCall]) -> tuple[dict[str, PersonsAnswer], list[str]]:
        """Return the answers, and a note for each call rejected because the client cannot ask its user."""
        answers: dict[str, PersonsAnswer] = {}
        notes: list[str] = []
        for call in waiting:
            result = await self._elicit(call) if self.can_ask and self._session.can_send_request else None
            if result is None:
                notes.append(_note_on(call))
                result = ElicitResult(action="decline")
            answer = _answer_in(_kind_of(call), result)
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
    """Return a run's pending questions as requests to the client, by kind and call id (`KIND:ID`)."""
    return {f"{_kind_of(call)}:{call.call_id}": ElicitRequest(params=form_of(call)) for call in waiting}


def read_answers(responses: Mapping[str, InputResponse]) -> dict[str, PersonsAnswer]:
    """Return the answers in a client's responses, by call id."""
    answers: dict[str, PersonsAnswer] = {}
    for key, response in responses.items():
        kind, _, call_id = key.partition(":")
        answer = _answer_in(kind, response) if isinstance(response, ElicitResult) else None
        if answer is not None:
            answers[call_id] = answer
    return answers


def form_of(call: WaitingCall) -> ElicitRequestFormParams:
    """Return the form for answering a question."""
    if call.kind == "input":
        return _form(_MESSAGE, {"type": "string", "title": "Message"}, "The agent is waiting for your message.")
    if form := _own_form_of(call):
        text = _arguments_of(call).get("message")
        message = escape_line(text) if isinstance(text, str) else f"{call.call.name} requests these values."
        return ElicitRequestFormParams(message=message, requested_schema=form)
    field = {"type": "boolean", "title": "Allow", "description": "Allow this call"}
    agent = f"{escape_line(call.agent)} wants to call" if call.agent else "Allow the call"
    doubt = " The call may already have been made." if call.in_doubt else ""
    return _form(_ALLOW, field, f"{agent} {_describe(call.call)}?{doubt}")


def _kind_of(call: WaitingCall) -> str:
    return "form" if _own_form_of(call) else call.kind


def _own_form_of(call: WaitingCall) -> dict[str, Any] | None:
    """Return the form a tool wants filled in, or None if its question is an approval."""
    form = _arguments_of(call).get("form") if call.kind == "question" else None
    return form if isinstance(form, dict) else None


def _arguments_of(call: WaitingCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call.call.arguments)
    except ValueError:
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _form(name: str, field: Mapping[str, str], message: str) -> ElicitRequestFormParams:
    schema = {"type": "object", "properties": {name: dict(field)}, "required": [name]}
    return ElicitRequestFormParams(message=message, requested_schema=schema)


def _answer_in(kind: str, result: ElicitResult) -> PersonsAnswer | None:
    """Return the user's answer, or None if the user was asked for a message and gave none."""
    content = result.content if result.action == "accept" and result.content is not None else {}
    if kind == "input":
        message = content.get(_MESSAGE)
        return message if isinstance(message, str) else None
    if kind == "form":
        return dict(content) if result.action == "accept" else False
    return content.get(_ALLOW) is True


def _note_on(call: WaitingCall) -> str:
    if call.kind == "input":
        return "The agent is waiting for a message from the user, but this client cannot ask for user input."
    return f"The call {_describe(call.call)} requires approval and was denied: this client cannot ask for approval."


def _describe(call: FunctionCall) -> str:
    return escape_line(f"{call.name} {call.arguments}")
