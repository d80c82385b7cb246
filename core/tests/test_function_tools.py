"""Tools made of functions: what a signature and a docstring say, options, and functions that cannot be tools."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel

from jackfield import ToolContext, call_tool, tool
from jackfield.errors import ConfigError, ToolArgumentError, ToolServiceError
from jackfield.tools._safety import Safety
from tests.support.tools import Looks, Point, Silent


class Strict(BaseModel, extra="forbid"):
    x: int


def add(a: int, b: int = 2) -> int:
    """Add two numbers.

    The sum is exact.

    Args:
        a: The first number,
            of any size.
        b: The second one.

    Returns:
        The sum.
    """
    return a + b


def test_a_function_is_a_tool_with_its_name_its_docstring_and_its_types() -> None:
    made = tool(add)
    assert made.schema() == {
        "name": "add", "description": "Add two numbers. The sum is exact.",
        "parameters": {
            "additionalProperties": False, "type": "object", "required": ["a"],
            "properties": {
                "a": {"type": "integer", "description": "The first number, of any size."},
                "b": {"type": "integer", "description": "The second one.", "default": 2},
            },
        },
    }  # fmt: skip
    assert (made(1), made.call('{"a": 3}'), made.call({"a": 3, "b": 4})) == (3, 5, 7)
    assert (made.file_access, made.effects, made.takes_text) == (False, frozenset(), False)

    def nothing() -> None:
        """Do nothing."""

    assert tool(nothing).schema()["parameters"] == {
        "additionalProperties": False, "type": "object", "properties": {}, "required": [],
    }  # fmt: skip


def test_options_of_a_function_reach_its_tool() -> None:
    options: dict[str, Any] = {
        "name": "plus", "description": {"en": "Adds.", "zh": "加。"}, "read_only": True, "concurrent": False,
        "timeout_s": 7, "needs_approval": True, "effects": ["files"], "idempotent": True, "resumable": True,
        "cacheable": True, "raw_argument": "a", "file_access": True,
    }  # fmt: skip
    made = tool(add, **options)
    assert (made.name, made.schema("zh")["description"]) == ("plus", "加。")
    assert made.safety() == Safety(
        read_only=True, concurrent=False, timeout_s=7, needs_approval=True, effects=frozenset({"files"}),
        idempotent=True, resumable=True, cacheable=True, file_access=False,
    )  # fmt: skip
    assert made.raw_argument == "a"
    assert tool("plus")(add).name == tool(name="plus")(add).name == "plus"
    assert tool(add, description=None, name=None).name == "add"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": 5}, "name must be a string, got int"),
        ({"description": 5}, "description must be a string, or strings by language, got int"),
        ({"description": {"en": 5}}, "description must be a string, or strings by language, got dict"),
        ({"raw_argument": None}, "raw_argument must be an argument name, got NoneType"),
        ({"timeout_s": 0}, "timeout_s must be a number of seconds above 0, got 0"),
        ({"effects": "files"}, "effects must be"),
        ({"effects": [5]}, "each of effects must be a string, got int"),
        ({"effects": ["files", 5]}, "each of effects must be a string, got int"),
        ({"read_only": 1}, "read_only must be True or False, got int"),
        ({"cacheable": "yes"}, "cacheable must be True or False, got str"),
        ({"name": "a b"}, "'a b' is not a valid tool name"),
    ],
    ids=str,
)
def test_a_wrong_option_of_a_function_is_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        tool(add, **options)
    assert str(caught.value).startswith(said)


def test_an_option_that_no_tool_has_is_named_with_what_is_close() -> None:
    with pytest.raises(TypeError, match="no option 'read_onli'; did you mean 'read_only'"):
        tool(add, read_onli=True)  # type: ignore[call-overload]

    class Own(Looks):
        pass

    assert tool(timeout_s=7, needs_approval=True)(Own) is Own
    assert (Own().timeout_s, Own().safety().needs_approval) == (7, True)
    for wrong in (5, int, "a b"):
        with pytest.raises(ConfigError):
            tool(wrong)  # type: ignore[call-overload]


def positional(a: int, /) -> int:
    """Take one."""
    return a


def several(*a: int) -> int:
    """Take some."""
    return len(a)


def named(**a: int) -> int:
    """Take some."""
    return len(a)


def untyped(a) -> int:  # type: ignore[no-untyped-def]
    """Take one."""
    return 1


def method(self) -> int:  # type: ignore[no-untyped-def]
    """Take one."""
    return 1


def silent(a: int) -> int:
    return a


def unreadable(a: int, b: Silent) -> int:
    """Take one."""
    return a


def imported_for_types(a: Lost) -> int:  # type: ignore[name-defined]  # noqa: F821
    """Take one."""
    return 1


def odd(a: len[int]) -> int:  # type: ignore[valid-type]
    """Take one."""
    return 1


class Doubler:
    """Double numbers."""

    def __call__(self, number: int) -> int:
        """Double a number."""
        return 2 * number


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (positional, "tool 'positional': parameter 'a' cannot be positional-only"),
        (several, "tool 'several': parameter 'a' cannot be positional-only"),
        (named, "tool 'named': parameter 'a' cannot be positional-only"),
        (untyped, "tool 'untyped': parameter 'a' needs a type, which tells the model what to pass"),
        (method, "tool 'method' is a method: create the tool from the bound method, tool(an_object.method)"),
        (silent, "tool 'silent' needs a docstring: it tells the model what the tool does"),
        (unreadable, "tool 'unreadable': parameter 'b' must have a type that can be read from JSON"),
        (5, "@tool can only decorate a typed function or a subclass of BaseTool, got int"),
        (Point, "@tool can only decorate a typed function or a subclass of BaseTool, got Point"),
        (
            partial(add, a=1),
            "@tool can only decorate a typed function or a subclass of BaseTool, got partial: decorate a function",
        ),
        (
            Doubler(),
            "@tool can only decorate a typed function or a subclass of BaseTool, got Doubler: decorate a function",
        ),
        (
            imported_for_types,
            "tool 'imported_for_types': its type annotations cannot be resolved (NameError: name 'Lost' is not",
        ),
        (odd, "tool 'odd': its type annotations cannot be resolved (TypeError: "),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused(function: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        tool(function)
    assert str(caught.value).startswith(said)


def test_arguments_that_do_not_fit_are_told_five_at_a_time() -> None:
    made = tool(add)
    with pytest.raises(ToolArgumentError) as caught:
        made.call({"a": "x", "c": 1})
    assert str(caught.value) == (
        "invalid arguments for 'add': a: Input should be a valid integer, unable to parse string as an integer; "
        "unknown argument 'c'; known: a, b"
    )
    with pytest.raises(ToolArgumentError) as caught:
        made.parse_arguments({f"x{number}": 1 for number in range(9)} | {"a": 1})
    assert str(caught.value).count("unknown argument") == 5

    @tool
    def inside(point: Point) -> int:
        """Take a point."""
        return point.x

    with pytest.raises(ToolArgumentError, match=r"invalid arguments for .*: point\.x: Input should be a valid integer"):
        inside.call({"point": {"x": "a", "day": "2026-01-02"}})
    assert inside.call({"point": {"x": 4, "day": "2026-01-02"}}) == 4

    @tool
    def half(number: float) -> float:
        """Halve a number."""
        return number / 2

    for number in (float("inf"), float("nan")):
        with pytest.raises(ToolArgumentError, match="number: Input should be a finite number"):
            half.call({"number": number})

    @tool
    def strict(point: Strict) -> int:
        """Take a point."""
        return point.x

    with pytest.raises(ToolArgumentError, match=r"point\.z: Extra inputs are not permitted$"):
        strict.call({"point": {"x": 1, "z": 2}})


def test_a_parameter_for_the_context_is_no_argument() -> None:
    @tool
    def look(a: int, where: ToolContext[Any] | None = None) -> Any:
        """Look."""
        return where

    assert [*look.schema()["parameters"]["properties"]] == ["a"]
    context = ToolContext[Any](agent="clerk")
    assert look.call({"a": 1}, context=context) is context
    assert isinstance(look.call({"a": 1}), ToolContext)
    assert (look.file_access, tool(look.function_called, file_access=False).file_access) == (True, False)


def plain_generator() -> Generator[str, None, None]:
    """Report progress."""
    yield "half"


async def async_generator() -> AsyncGenerator[str, None]:
    """Report progress."""
    yield "half"


@pytest.mark.parametrize(
    ("function", "advice"),
    [(plain_generator, "return it at the end"), (async_generator, "yield it last, as a ToolResult")],
)
def test_a_generator_without_a_result_says_how_to_give_one(function: Any, advice: str) -> None:
    with pytest.raises(ToolServiceError, match=f"it ended without a result; {advice}$"):
        call_tool(function, {})
