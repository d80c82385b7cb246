"""Errors in OpenAI's form."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from jackfield.servers import Refusal, RequestRefusedError

Body = TypeVar("Body", bound=BaseModel)
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_CODES = {"unauthorized": "invalid_api_key", "internal": "server_error", "busy": "rate_limit_exceeded"}


class ParameterError(RequestRefusedError):
    """A parameter of a request is unknown, not valid or not supported; `param` names it."""

    def __init__(self, message: str, *, param: str, code: str = "invalid_value", status: int = 400) -> None:
        super().__init__(message, status=status, code=code)
        self.param = param


def error_object(refusal: Refusal, param: str | None = None) -> dict[str, Any]:
    """Return the value of `error` in an answer."""
    kind = _TYPES.get(refusal.status, "server_error" if refusal.status >= 500 else "invalid_request_error")
    return {
        "message": refusal.message,
        "type": kind,
        "param": param,
        "code": _CODES.get(refusal.code, refusal.code),
    }


def refuse_parameter(param: str, reason: str, code: str = "unsupported_parameter") -> NoReturn:
    """Refuse a request because of a parameter that the face does not support.

    Raises:
        ParameterError: Always.
    """
    raise ParameterError(f"{param}: {reason}", param=param, code=code)


def parse_body(kind: type[Body], table: dict[str, Any]) -> Body:
    """Return a request as a model.

    Raises:
        ParameterError: A parameter is unknown or not valid.
    """
    try:
        return kind.model_validate(table)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False, include_context=False)
        problem = max(problems, key=lambda one: len(one["loc"]))
        param = ".".join(str(part) for part in problem["loc"] if not _is_alternative(part))
        if problem["type"] == "extra_forbidden":
            raise ParameterError(f"Unknown parameter: {param!r}.", param=param, code="unknown_parameter") from None
        if problem["type"] == "missing":
            raise ParameterError(
                f"Missing required parameter: {param!r}.", param=param, code="missing_required_parameter"
            ) from None
        reason = problem["msg"].removeprefix("Value error, ")
        raise ParameterError(f"Invalid value for {param!r}: {reason}.", param=param) from None


def _is_alternative(part: object) -> bool:
    """Return True for a name that pydantic gives an alternative of a union, which is no part of the request."""
    return isinstance(part, str) and (part != part.lower() or "[" in part or part in ("str", "int", "float", "bool"))
