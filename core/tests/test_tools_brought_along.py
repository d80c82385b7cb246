"""Tools as people bring them along: lists of parameters, arguments as text."""

from __future__ import annotations

import asyncio
import inspect
import json
from typing import Any

import pytest

from jackfield import BaseTool, FnCallAgent, sync
from jackfield.errors import ConfigError
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import ToolContext, run_tool, says_if_not_awaited

ASK = [{"role": "user", "content": "go"}]


class Paint(BaseTool):
    name = "paint"
    description = "Paints."
    parameters: Any = [  # noqa: RUF012 - as people write it
        {"name": "prompt", "type": "string", "description": "What to paint", "required": True},
        {"name": "width", "type": "int", "description": "In pixels", "enum": [1, 2]},
        {"name": "sketch", "type": "file", "required": False},
    ]

    def call(self, params: str, **kwargs: Any) -> str:  # type: ignore[override]
        return f"painted {json.loads(params)['prompt']}"


class PaintAndCheck(Paint):
    def call(self, params: str, **kwargs: Any) -> str:  # type: ignore[override]
        return f"painted {self._verify_json_format_args(params)['prompt']}"


class PaintLater(Paint):
    async def call(self, params: str, **kwargs: Any) -> str:  # type: ignore[override]
        return f"painted {json.loads(params)['prompt']}"


def results_of(entry: Any, arguments: dict[str, object]) -> list[Any]:
    model = ScriptedModel([calls(("paint", arguments)), answer("done")])
    response = FnCallAgent([entry], model).run_nonstream(ASK)
    return [message["content"] for message in response if message["role"] == "function"]


@pytest.mark.parametrize("made", [Paint, PaintAndCheck, PaintLater])
@pytest.mark.parametrize("as_class", [True, False])
def test_a_tool_with_a_list_of_parameters_that_reads_text_works_as_a_class_and_as_an_instance(
    made: type[BaseTool], as_class: bool
) -> None:
    assert results_of(made if as_class else made(), {"prompt": '数据 a "dog"'}) == ['painted 数据 a "dog"']


def test_a_list_of_parameters_is_shown_as_json_schema() -> None:
    assert Paint().schema()["parameters"] == {
        "type": "object",
        "properties": {
            "prompt": {"type": "string", "description": "What to paint"},
            "width": {"type": "integer", "description": "In pixels", "enum": [1, 2]},
            "sketch": {},
        },
        "required": ["prompt"],
    }


def test_arguments_that_a_list_does_not_allow_are_refused() -> None:
    (missing,) = results_of(Paint, {"width": 1})
    assert "'prompt'" in missing
    (wrong,) = results_of(Paint, {"prompt": "x", "width": 3})
    assert "width" in wrong


@pytest.mark.parametrize("parameters", [[{"type": "string"}], ["prompt"], "prompt", None])
def test_parameters_that_are_neither_are_refused_when_the_agent_is_made(parameters: Any) -> None:
    class Odd(Paint):
        pass

    Odd.parameters = parameters
    with pytest.raises(ConfigError, match="the parameters of tool 'paint'"):
        FnCallAgent([Odd], ScriptedModel([]))


def test_a_class_that_needs_arguments_is_refused_with_what_to_do() -> None:
    class Needy(Paint):
        def __init__(self, brush: str) -> None:
            super().__init__()

    with pytest.raises(ConfigError, match="pass an instance"):
        FnCallAgent([Needy], ScriptedModel([]))


@pytest.mark.parametrize(("declared", "kind"), [(True, str), (False, dict), (None, dict)])
def test_who_declares_it_gets_text(declared: bool | None, kind: type) -> None:
    got: list[Any] = []

    class Look(BaseTool):
        name = "paint"
        description = "Looks."
        params_as_text = declared

        def call(self, params: Any, *, context: ToolContext | None = None) -> str:
            got.append(params)
            return "seen"

    assert results_of(Look, {}) == ["seen"]
    assert [type(params) for params in got] == [kind]


# --- a call that is not awaited ---


class Later(BaseTool):
    name = "later"
    description = "Later."

    @says_if_not_awaited
    async def call(self, params: Any, *, context: ToolContext | None = None) -> str:
        await asyncio.sleep(0)
        return "now"


def test_a_call_that_nobody_awaits_says_what_to_do() -> None:
    call = Later().call("{}")
    for told in (str(call), repr(call), f"{call}"):
        assert "await tool.call" in told
        assert "jackfield.sync.run(tool.call" in told
    with pytest.raises(TypeError, match="NotAwaited"):
        json.loads(call)  # type: ignore[arg-type]
    call.close()


def test_awaiting_it_gives_what_it_gave_before() -> None:
    async def both() -> list[Any]:
        task = asyncio.create_task(Later().call("{}"))
        return [await Later().call("{}"), await task, *await asyncio.gather(Later().call("{}"))]

    assert asyncio.run(both()) == ["now"] * 3
    assert asyncio.run(Later().call("{}")) == "now"
    assert sync.run(Later().call("{}")) == "now"
    assert sync.run(run_tool(Later(), {}, ToolContext())) == "now"
    assert inspect.signature(Later.call) == inspect.signature(Later.call.__wrapped__)  # type: ignore[attr-defined]


def test_an_error_and_a_cancellation_reach_who_awaits_it() -> None:
    class Fails(Later):
        @says_if_not_awaited
        async def call(self, params: Any, *, context: ToolContext | None = None) -> str:
            await asyncio.sleep(3600 if params == "wait" else 0)
            raise ZeroDivisionError

    async def cancelled() -> None:
        task = asyncio.create_task(Fails().call("wait"))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(ZeroDivisionError):
        asyncio.run(Fails().call("{}"))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
