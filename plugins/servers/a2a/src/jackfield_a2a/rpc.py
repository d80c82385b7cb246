"""Read and write the JSON-RPC 2.0 messages of A2A."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from a2a.utils.errors import InvalidParamsError
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.json_format import ParseDict
from google.protobuf.json_format import ParseError as ProtobufError
from google.protobuf.message import Message as ProtobufMessage

from jackfield.servers import Refusal, RequestRefusedError

Wire: TypeAlias = dict[str, Any]
Params = TypeVar("Params", bound=ProtobufMessage)

_DOMAIN = "a2a-protocol.org"
_ERRORS: Mapping[str, tuple[int, str]] = {
    "invalid_json": (-32700, "JSON_PARSE_ERROR"),
    "method_not_found": (-32601, "METHOD_NOT_FOUND"),
    "invalid_params": (-32602, "INVALID_PARAMS"),
    "invalid_request": (-32600, "INVALID_REQUEST"),
    "not_found": (-32001, "TASK_NOT_FOUND"),
    "not_cancelable": (-32002, "TASK_NOT_CANCELABLE"),
    "no_push_notifications": (-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
    "unsupported": (-32004, "UNSUPPORTED_OPERATION"),
    "session_busy": (-32004, "UNSUPPORTED_OPERATION"),
    "not_waiting": (-32004, "UNSUPPORTED_OPERATION"),
    "conflict": (-32004, "UNSUPPORTED_OPERATION"),
    "content_type": (-32005, "CONTENT_TYPE_NOT_SUPPORTED"),
    "no_extended_card": (-32007, "EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
    "version": (-32009, "VERSION_NOT_SUPPORTED"),
}
"""A2A error code and reason, by the refusal's code."""


@dataclass(frozen=True, kw_only=True)
class RpcRequest:
    """A JSON-RPC request, with the id that its response repeats."""

    id: str | int | None
    method: str
    params: object = field(default_factory=dict)


def read_rpc(table: Wire) -> RpcRequest:
    """Parse a JSON-RPC request.

    Raises:
        RequestRefusedError: The request does not conform to JSON-RPC 2.0.
    """
    identity, method, params = table.get("id"), table.get("method"), table.get("params", {})
    if table.get("jsonrpc") != "2.0":
        raise RequestRefusedError('jsonrpc must be "2.0"')
    if isinstance(identity, bool) or not isinstance(identity, str | int):
        raise RequestRefusedError("id must be a string or an integer: notifications are not supported")
    if not isinstance(method, str):
        raise RequestRefusedError("method must be a string")
    return RpcRequest(id=identity, method=method, params=params)


def read_params(request: RpcRequest, message: Params) -> Params:
    """Parse a request's parameters into a protobuf message. Unknown fields are ignored, as A2A requires.

    Raises:
        RequestRefusedError: A parameter is invalid or missing.
    """
    if not isinstance(request.params, dict):
        raise invalid_params("params must be an object")
    try:
        ParseDict(request.params, message, ignore_unknown_fields=True)
        validate_proto_required_fields(message)
    except InvalidParamsError as error:
        details = (error.data or {}).get("errors") or [{"field": "params", "message": error.message}]
        reasons = "; ".join(f"{one['field']}: {one['message']}" for one in details)
        raise invalid_params(reasons) from None
    except (
        ProtobufError,
        ValueError,
        TypeError,
        AttributeError,
        SystemError,
    ) as error:  # SystemError: a lone surrogate
        raise invalid_params(f"invalid params: {str(error)[:300]}") from None
    if getattr(message, "tenant", ""):
        raise invalid_params("tenant is not supported: each agent has its own URL")
    return message


def invalid_params(message: str) -> RequestRefusedError:
    """Return the error for invalid parameters."""
    return RequestRefusedError(message, code="invalid_params")


def result_of(request: RpcRequest, result: Wire) -> Wire:
    """Return a success response."""
    return {"jsonrpc": "2.0", "id": request.id, "result": result}


def error_of(refusal: Refusal, identity: str | int | None = None) -> Wire:
    """Return an error response."""
    code, reason = _ERRORS.get(refusal.code, (-32600, "INVALID_REQUEST"))
    if refusal.code not in _ERRORS and (refusal.status >= 500 or refusal.status == 429):
        code, reason = -32603, "INTERNAL_ERROR"
    metadata = {"code": refusal.code}
    if refusal.retry_after_s is not None:
        metadata["retryAfterSeconds"] = f"{refusal.retry_after_s:g}"
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": _DOMAIN}
    error = {"code": code, "message": refusal.message, "data": [{**info, "metadata": metadata}]}
    return {"jsonrpc": "2.0", "id": identity, "error": error}
