"""Create tools from typed functions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypedDict, get_args, get_origin, get_type_hints, overload

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model
from typing_extensions import ParamSpec, TypeVar, Unpack

from jackfield._fitting import check_argument, check_seconds
from jackfield.config import checked_list
from jackfield.errors import ConfigError, ToolArgumentError
from jackfield.suggestions import suggest
from jackfield.tools._base import BaseTool, ToolContext, ToolOutput
from jackfield.tools._schema import check_tool_name

if TYPE_CHECKING:
    from jackfield.descriptors import Texts

P = ParamSpec("P", default=...)
R = TypeVar("R", default=Any)

_FIELD = "argument_"
# Compiled on first use, because not every program creates tools.
_SECTION = r"\n(?:Args|Returns|Raises|Yields|Examples?|Note|Source):"
_ARGUMENTS = r"\nArgs:((?:\n(?: .*)?)*)"  # including all indented lines below
_ARGUMENT = r"(?m)^ {1,4}(\w+)(?:\s*\([^)]*\))?:"


class ToolOptions(TypedDict, total=False):
    """Options for creating a tool from a function; see `tool`."""

    name: str | None
    description: Texts | None
    read_only: bool
    concurrent: bool
    timeout_s: float | None
    needs_approval: bool
    effects: Iterable[str]
    file_access: bool
    idempotent: bool
    resumable: bool
    cacheable: bool
    raw_argument: str


class FunctionTool(BaseTool, Generic[P, R]):
    """A tool created from a function by `tool`. Type checkers see the function's signature.

    The schema comes from the signature. Descriptions come from the docstring: the text before `Args:` describes the
    tool, and the lines after `Args:` describe the arguments. A parameter annotated with `ToolContext` receives the
    call's context and is omitted from the schema. Without such a parameter, a function cannot access the conversation's
    files.
    """

    params_as_text = False
    matches_patterns = True

    def __init__(self, function: Callable[P, R], **options: Unpack[ToolOptions]) -> None:
        super().__init__()
        _check_options(options, "a tool made from a function")
        vars(self).update(options)
        self.name = options.get("name") or function.__name__
        check_tool_name(self.name)
        description, arguments = _read_docstring(inspect.getdoc(function) or "")
        self.description = options.get("description") or description
        if not self.description:
            raise ConfigError(f"tool {self.name!r} needs a docstring: it tells the model what the tool does")
        self.effects = frozenset(options.get("effects", ()))
        self.function_called = function
        self._context_parameter, self._model = _arguments_model(self.name, function, arguments)
        self.parameters = _schema_of(self._model)
        self.file_access = options.get("file_access", True) and bool(self._context_parameter)

    def call(
        self, params: str | Mapping[str, Any], *, context: ToolContext | None = None
    ) -> ToolOutput | Awaitable[ToolOutput]:
        """Call the function, converting the arguments to the annotated types."""
        model = self._validate(params)
        arguments = {str(field.alias): getattr(model, name) for name, field in type(model).model_fields.items()}
        if self._context_parameter:
            arguments[self._context_parameter] = context or ToolContext()
        function: Callable[..., Any] = self.function_called
        return function(**arguments)

    def parse_arguments(self, params: str | Mapping[str, object]) -> dict[str, Any]:
        """Validate the arguments against the function's types, which are stricter than the schema."""
        self._validate(params)
        return self._as_object(params)

    def _validate(self, params: str | Mapping[str, object]) -> BaseModel:
        try:
            return self._model.model_validate(self._as_object(params))
        except ValidationError as error:
            problems = error.errors(include_url=False, include_context=False)[:5]
            lines = [self._explain(problem) for problem in problems]
            raise ToolArgumentError(f"invalid arguments for {self.name!r}: {'; '.join(lines)}") from None

    def _explain(self, problem: Mapping[str, Any]) -> str:
        path = ".".join(str(key) for key in problem["loc"])
        if problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1:
            names = [str(field.alias) for field in self._model.model_fields.values()]
            return f"unknown argument {path!r}{suggest(path, names)}"
        return f"{path}: {problem['msg']}"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the underlying function."""
        return self.function_called(*args, **kwargs)


_ToolClass = TypeVar("_ToolClass", bound=type[BaseTool])


class _Decorator(Protocol):
    """The decorator that `tool(…)` returns. Functions become tools, and classes are returned as they are."""

    @overload  # a class is also a callable, and the first match wins
    def __call__(self, function: _ToolClass, /) -> _ToolClass: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(function: _ToolClass, /) -> _ToolClass: ...  # type: ignore[overload-overlap]
@overload
def tool(function: Callable[P, R], /, **options: Unpack[ToolOptions]) -> FunctionTool[P, R]: ...


@overload
def tool(name: str | None = None, /, **options: Unpack[ToolOptions]) -> _Decorator: ...


def tool(function: Any = None, /, **options: Unpack[ToolOptions]) -> Any:
    """Create a tool from a typed function. To use the tool, pass it to an agent or publish it in a plugin.

    On a subclass of `BaseTool`, the decorator sets the options as class attributes and returns the class.

    Args:
        function: The function or class, or the tool's name, as in `@tool("name")`.
        name: The tool's name for the model. Defaults to the function's name.
        description: The tool's description for the model, or a dict from language to description. Defaults to the
            docstring.
        read_only, concurrent, timeout_s, needs_approval, effects, idempotent, resumable, cacheable, raw_argument: See
            `BaseTool`.
        file_access: True to include the conversation's files in the `ToolContext`. Defaults to True for functions.

    Raises:
        ConfigError: A parameter's type is missing or cannot be resolved, the function has no docstring, or `function`
            is neither a function nor a subclass of `BaseTool`.
    """
    if isinstance(function, str):
        check_tool_name(function)
        options, function = {**options, "name": function}, None
    _check_options(options, "@tool")
    return partial(_make_tool, options) if function is None else _make_tool(options, function)


def _check_options(options: Mapping[str, object], what: str) -> None:
    for name, value in options.items():
        if name not in ToolOptions.__annotations__:
            raise TypeError(f"{what} has no option {name!r}{suggest(name, ToolOptions.__annotations__)}")
        match name:
            case "name":
                check_argument(name, value, str | None, "a string")
            case "description":
                check_argument(name, value, str | Mapping[str, str] | None, "a string, or strings by language")
            case "raw_argument":
                check_argument(name, value, str, "an argument name")
            case "timeout_s":
                check_seconds(name, value, optional=True)
            case "effects":
                effects: Iterable[object] = checked_list(value, "effects", "effects")  # type: ignore[arg-type]
                for effect in effects:
                    check_argument("each of effects", effect, str, "a string")
            case _:
                check_argument(name, value, bool, "True or False")


def _make_tool(options: ToolOptions, function: Any) -> Any:
    if isinstance(function, type) and issubclass(function, BaseTool):
        for name, value in options.items():
            setattr(function, name, value)
        return function
    # Partials and callable objects have no name, no types, and the docstring of their class.
    if isinstance(function, type) or not callable(function) or not hasattr(function, "__name__"):
        got = function.__name__ if isinstance(function, type) else type(function).__name__
        advice = ": decorate a function that calls this object" if callable(function) else ""
        raise ConfigError(f"@tool can only decorate a typed function or a subclass of BaseTool, got {got}{advice}")
    return FunctionTool(function, **options)


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return a function's description, and its arguments' descriptions by name."""
    section = re.search(_ARGUMENTS, text)
    _, *parts = re.split(_ARGUMENT, section[1]) if section else [""]
    arguments = {name: " ".join(lines.split()) for name, lines in zip(parts[::2], parts[1::2], strict=True)}
    return " ".join(re.split(_SECTION, text)[0].split()), arguments


def _arguments_model(
    name: str, function: Callable[..., Any], descriptions: Mapping[str, str]
) -> tuple[str, type[BaseModel]]:
    """Return the context parameter's name, or '' if there is none, and a model of all other parameters."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except Exception as error:  # evaluating an annotation may raise anything
        raise ConfigError(
            f"tool {name!r}: its type annotations cannot be resolved ({type(error).__name__}: {error}): define or "
            "import the types at module level, outside TYPE_CHECKING"
        ) from error
    context_parameter = ""
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        _check_parameter(name, parameter, hints)
        hint = hints[parameter.name]
        if _is_context(hint):
            context_parameter = parameter.name
            continue
        options: dict[str, Any] = {}
        if parameter.name in descriptions:
            options["description"] = descriptions[parameter.name]
        default: Any = ... if parameter.default is parameter.empty else parameter.default
        # Generate the field names, because a parameter may share its name with a model method or setting.
        fields[f"{_FIELD}{len(fields)}"] = (hint, Field(default, alias=parameter.name, **options))
    try:
        model = _make_model(name, fields)
    except PydanticUserError as error:
        parameter_name = _culprit(fields)
        raise ConfigError(
            f"tool {name!r}: parameter {parameter_name!r} must have a type that can be read from JSON, such as str, a "
            f"dataclass or a pydantic model: {str(error).splitlines()[0]}"
        ) from error
    except Exception as error:  # pydantic has no public error class for a bad pattern
        reason = str(error).splitlines()[-1].strip().removeprefix("SchemaError: ")
        raise ConfigError(
            f"tool {name!r}: pydantic does not support the type of parameter {_culprit(fields)!r}: {reason}"
        ) from error
    return context_parameter, model


def _make_model(name: str, fields: Mapping[str, Any]) -> type[BaseModel]:
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=False, allow_inf_nan=False)
    model: type[BaseModel] = create_model(f"{name}_arguments", __config__=config, **fields)
    return model


def _culprit(fields: Mapping[str, Any]) -> str:
    """Return the first parameter for which pydantic cannot create a field, or '' if each one works on its own."""
    for name, (hint, field) in fields.items():
        try:
            _make_model(name, {name: (hint, field)})
        except Exception:  # noqa: BLE001 - as in the caller
            return str(field.alias)
    return ""


def _check_parameter(tool_name: str, parameter: inspect.Parameter, hints: Mapping[str, object]) -> None:
    name = parameter.name
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
        raise ConfigError(f"tool {tool_name!r}: parameter {name!r} cannot be positional-only")
    if name not in hints and name in ("self", "cls"):
        raise ConfigError(
            f"tool {tool_name!r} is a method: create the tool from the bound method, tool(an_object.{tool_name})"
        )
    if name not in hints:
        raise ConfigError(f"tool {tool_name!r}: parameter {name!r} needs a type, which tells the model what to pass")


def _is_context(hint: object) -> bool:
    """Return True if a type is `ToolContext`, `ToolContext[Deps]`, or a union that contains either."""
    return hint is ToolContext or get_origin(hint) is ToolContext or any(_is_context(one) for one in get_args(hint))


def _schema_of(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema()
    schema.setdefault("properties", {})
    schema.setdefault("required", [])
    for entry in (schema, *schema["properties"].values()):
        entry.pop("title", None)
    return schema
