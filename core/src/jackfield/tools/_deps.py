"""Find tools that need a run's `deps`, based on the annotations of their context parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from jackfield.tools._base import BaseTool, ToolContext
from jackfield.tools._function_tool import FunctionTool


def needed_deps(tools: Iterable[BaseTool]) -> dict[str, str]:
    """Map the name of each tool that requires `deps` to the name of the expected type.

    A tool requires `deps` if its context is annotated with a type such as `ToolContext[User]`, but not with plain
    `ToolContext` or a type that allows None. Tools whose annotations cannot be resolved are skipped.
    """
    needs: dict[str, str] = {}
    for tool in tools:
        function = tool.function_called if isinstance(tool, FunctionTool) else type(tool).call
        for hint in _hints_of(function).values():
            deps = _deps_of(hint)
            if deps is not None and not _admits_none(deps):
                needs[tool.name] = getattr(deps, "__name__", str(deps))
    return needs


def _hints_of(function: Callable[..., Any]) -> Mapping[str, object]:
    # The text of most annotations already shows that they specify no type for `deps`.
    written = getattr(function, "__annotations__", {}).values()
    if not any("ToolContext[" in str(annotation) for annotation in written):
        return {}
    try:
        return get_type_hints(function)
    except NameError:  # the type is imported only under TYPE_CHECKING
        return {}


def _deps_of(hint: object) -> object:
    """Return the type of `deps` in `ToolContext[…]` or in a union that contains `ToolContext[…]`, or None."""
    if get_origin(hint) is ToolContext:
        return get_args(hint)[0]
    if get_origin(hint) in (Union, UnionType):
        for one in get_args(hint):
            if (deps := _deps_of(one)) is not None:
                return deps
    return None


def _admits_none(hint: object) -> bool:
    if hint in (Any, object, None, NoneType) or isinstance(hint, TypeVar):
        return True
    return get_origin(hint) in (Union, UnionType) and any(_admits_none(one) for one in get_args(hint))
