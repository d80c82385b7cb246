"""Report errors in OpenAI's format."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from jackfield.servers import Refusal, RequestRefusedError

Body = TypeVar("Body", bound=BaseModel)
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_CODES = {"unauthorized": "invalid_api_key", "internal": "server_error", "busy": "rate_limit_exceeded"}


class ParameterError(RequestRefusedError):
    """The request parameter `param` is unknown, invalid or unsupported."""

    def __init__(self, message: str, *, param: str, code: str = "invalid_value", status: int = 400) -> None:
        super().__init__(message, status=status, code=code)
        self.param = param


def error_object(refusal: Refusal, param: str | None = None) -> dict[str, Any]:
    """Return the `error` object of a response body."""
    kind = _TYPES.get(refusal.status, "server_error" if refusal.status >= 500 else "invalid_request_error")
    return {
        "message": refusal.message,
        "type": kind,
        "param": param,
        "code": _CODES.get(refusal.code, refusal.code),
    }


def refuse_parameter(param: str, reason: str, code: str = "unsupported_parameter") -> NoReturn:
    """Refuse a request because of an unsupported parameter.

    Raises:
        ParameterError: Always.
    """
    raise ParameterError(f"{param}: {reason}", param=param, code=code)


def parse_body(kind: type[Body], table: dict[str, Any]) -> Body:
    """Validate a request body.

    Raises:
        ParameterError: A parameter is unknown, missing or invalid.
    """
    try:
        return kind.model_validate(table)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False, include_context=False)
        problem = max(problems, key=lambda one: len(_path(one["loc"], table, one["type"])))
        param = ".".join(_path(problem["loc"], table, problem["type"]))
        if problem["type"] == "extra_forbidden":
            raise ParameterError(f"Unknown parameter: {param!r}.", param=param, code="unknown_parameter") from None
        if problem["type"] == "missing":
            raise ParameterError(
                f"Missing required parameter: {param!r}.", param=param, code="missing_required_parameter"
            ) from None
        forms = [_FORMS.get(one["type"]) for one in problems if ".".join(_path(one["loc"], table, "")) == param]
        if all(forms):
            reason = f"must be {' or '.join(dict.fromkeys(map(str, forms)))}"
        else:
            reason = problem["msg"].removeprefix("Value error, ").replace("Input should", "must")
            reason = reason.replace("List should", "must").partition(" after validation")[0]
        raise ParameterError(f"Invalid value for {param!r}: {reason}.", param=param) from None


_FORMS = {
    "string_type": "a string",
    **dict.fromkeys(("list_type", "tuple_type"), "an array"),
    **dict.fromkeys(("dict_type", "mapping_type", "model_type", "model_attributes_type"), "an object"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "an integer"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
}
"""Expected JSON type, by pydantic error type."""


def _path(place: tuple[int | str, ...], table: Any, kind: str) -> list[str]:
    """Return the path of a value in a request, without the union members that pydantic inserts."""
    path: list[str] = []
    value: Any = table
    for number, part in enumerate(place, start=1):
        match value, part:
            case dict(), str() if part in value:
                value = value[part]
            case list(), int() if part < len(value):
                value = value[part]
            case _ if not (kind == "missing" and number == len(place)):
                continue
        path.append(str(part))
    return path
