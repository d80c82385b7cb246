"""Tools: schemas from functions, arguments that are checked, and calls that always end with a result."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from jackfield import FnCallAgent, tool
from jackfield.errors import BrokenPluginError, ConfigError, ToolArgumentError, ToolServiceError
from jackfield.events import ToolFinished, ToolProgress, ToolStarted
from jackfield.messages import ContentItem, FunctionCall, Message
from jackfield.tools import (
    ArgumentChecker,
    BaseTool,
    FunctionTool,
    PlannedCall,
    ToolContext,
    ToolExecutor,
    ToolResult,
    Workspace,
    check_tool_name,
    check_tool_schema,
    cut_middle,
    cut_text,
    find_tool,
)

Event = ToolStarted | ToolProgress | ToolFinished


def run(
    tools: Sequence[BaseTool],
    *calls: tuple[str, str],
    context: ToolContext | None = None,
    timeout_s: float = 30.0,
    max_result_chars: int = 60_000,
    seen: Callable[[Event], object] = lambda _: None,
) -> list[Event]:
    """All events of a turn with these calls; each is `seen` when it comes."""

    async def collect() -> list[Event]:
        executor = ToolExecutor(
            {made.name: made for made in tools}, timeout_s=timeout_s, max_result_chars=max_result_chars
        )
        planned = [
            PlannedCall(index, f"c{index}", FunctionCall(name, arguments))
            for index, (name, arguments) in enumerate(calls)
        ]
        # No tool here takes long: the time-out only turns a hang into a failure.
        async with asyncio.timeout(40):
            events = []
            async for event in executor.run(await executor.plan(planned), context or ToolContext()):
                events.append(event)
                seen(event)
            return events

    return asyncio.run(collect())


def finished(events: Sequence[Event]) -> list[ToolFinished]:
    return sorted((event for event in events if isinstance(event, ToolFinished)), key=lambda event: event.index)


def result(made: BaseTool, arguments: str = "{}", **options: Any) -> ToolFinished:
    (only,) = finished(run([made], (made.name, arguments), **options))
    return only


def text(made: BaseTool, arguments: str = "{}", **options: Any) -> str:
    content = result(made, arguments, **options).message.content
    assert isinstance(content, str)
    return content


# --- schemas from signatures ---


class Unit(Enum):
    KM = "km"
    MILES = "miles"


class Place(BaseModel):
    city: str
    zip: int | None = None


@tool
def route(start: Place, legs: list[int], unit: Unit = Unit.KM, mode: Literal["car", "foot"] = "car") -> str:
    """Find a way.

    It is the shortest.

    Args:
        start: Where to begin,
            in one town.
        legs (list[int]): How long each part may be.
        unit: Of the legs.

    Returns:
        The way.
    """
    return f"{start.city} {sum(legs)} {unit.name} {mode}"


def test_a_schema_comes_from_the_signature_and_its_texts_from_the_docstring() -> None:
    schema = route.schema()
    parameters = schema["parameters"]
    assert schema["name"] == "route"
    assert schema["description"] == "Find a way. It is the shortest."
    assert parameters["type"] == "object"
    assert parameters["required"] == ["start", "legs"]
    assert parameters["additionalProperties"] is False
    assert parameters["properties"]["start"]["description"] == "Where to begin, in one town."
    assert parameters["properties"]["legs"] == {
        "type": "array",
        "items": {"type": "integer"},
        "description": "How long each part may be.",
    }
    assert parameters["properties"]["mode"] == {"enum": ["car", "foot"], "default": "car", "type": "string"}
    check_tool_schema("route", parameters)


def test_arguments_arrive_in_the_types_of_the_signature() -> None:
    assert text(route, '{"start": {"city": "Ulm"}, "legs": ["1", 2], "unit": "miles"}') == "Ulm 3 MILES car"


def test_a_tool_can_still_be_called_as_the_function_it_is() -> None:
    assert route(Place(city="Ulm"), [1], mode="foot") == "Ulm 1 KM foot"


def test_the_description_of_an_annotation_reaches_the_model() -> None:
    @tool
    def f(
        a: Annotated[int, Field(description="How many.", ge=1)], b: Annotated[int, Field(description="x")] = 1
    ) -> int:
        """Count.

        Args:
            b: What the docstring says.
        """
        return a

    properties = f.parameters["properties"]
    assert properties["a"] == {"description": "How many.", "minimum": 1, "type": "integer"}
    assert properties["b"]["description"] == "What the docstring says."


@pytest.mark.parametrize(
    "name", ["schema", "copy", "json", "model_config", "model_name", "validate", "_private", "cls"]
)
@pytest.mark.filterwarnings("error")
def test_a_parameter_may_have_any_name(name: str) -> None:
    namespace: dict[str, Any] = {}
    exec(f"def f({name}: int) -> int:\n    'Doc.'\n    return {name} + 1", namespace)
    made = tool(namespace["f"])
    assert made.parameters["required"] == [name]
    assert text(made, f'{{"{name}": 1}}') == "2"


def test_a_function_without_parameters_has_an_empty_schema() -> None:
    @tool
    def now() -> str:
        """Tell the time."""
        return "noon"

    assert now.parameters["properties"] == {}
    assert text(now) == text(now, "") == "noon"


def test_a_tool_may_have_another_name_and_text() -> None:
    def f(a: int) -> int:
        return a

    made = tool(name="other", description={"en": "Same.", "zh": "一样。"}, read_only=True, timeout_s=3)(f)
    assert made.schema("zh")["description"] == "一样。"
    assert (made.function["name"], made.function["description"], made.read_only, made.timeout_s) == (
        "other",
        "Same.",
        True,
        3,
    )


def _untyped(a) -> int:  # type: ignore[no-untyped-def]
    """Doc."""
    return a


def _undocumented(a: int) -> int:
    return a


def _starred(*a: int) -> int:
    """Doc."""
    return 0


def _positional(a: int, /) -> int:
    """Doc."""
    return a


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (_untyped, "parameter 'a' needs a type"),
        (_undocumented, "needs a docstring"),
        (_starred, "'a' cannot be positional-only"),
        (_positional, "'a' cannot be positional-only"),
        (lambda: 1, "is not a valid tool name"),
    ],
)
def test_a_function_that_makes_no_tool_is_an_error_that_says_why(function: Callable[..., Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        tool(function)


@pytest.mark.parametrize("name", ["", "a b", "a.b", "ä", "x" * 65, "abc\n", "a\nb"])
def test_a_name_that_some_provider_refuses_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="is not a valid tool name"):
        check_tool_name(name)


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "array"}, "type 'object'"),
        ({"type": "object", "properties": {"a": {"type": "whole"}}}, "not a valid JSON Schema"),
        ({"type": "object", "properties": {}, "required": ["a"]}, "requires 'a'"),
    ],
)
def test_what_is_no_schema_of_an_object_is_refused(schema: Mapping[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        check_tool_schema("f", schema)


# --- the context ---


def test_a_context_is_given_and_is_not_in_the_schema() -> None:
    @tool
    def who(context: ToolContext, greeting: str = "hi") -> str:
        """Greet."""
        return f"{greeting} {context.agent} {context.call_id}"

    assert list(who.parameters["properties"]) == ["greeting"]
    assert text(who, context=ToolContext(agent="Bob")) == "hi Bob c0"
    assert who.call({"greeting": "ho"}) == "ho  "


def test_a_context_that_may_be_missing_is_a_context_too() -> None:
    def who(context: ToolContext | None = None) -> str:
        """Greet."""
        return context.agent if context else "nobody"

    made = tool(who)
    assert made.parameters["properties"] == {}
    assert text(made, context=ToolContext(agent="Bob")) == "Bob"


def test_a_model_cannot_give_the_context() -> None:
    @tool
    def who(context: ToolContext) -> str:
        """Greet."""
        return context.agent

    assert result(who, '{"context": {"agent": "root"}}').error == "ToolArgumentError"


@pytest.mark.parametrize("blocking", [True, False])
def test_progress_comes_before_the_end_of_its_call(blocking: bool) -> None:
    def plain(context: ToolContext) -> str:
        """Work."""
        context.report("half")
        return "done"

    async def waiting(context: ToolContext) -> str:
        """Work."""
        context.report("half")
        return "done"

    events = run([tool(name="work")(plain if blocking else waiting)], ("work", "{}"))
    assert [type(event) for event in events] == [ToolStarted, ToolProgress, ToolFinished]


# --- arguments ---


@tool
def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


class AddByHand(BaseTool):
    """The same with a schema written by hand."""

    name = "add"
    description = "Add."
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }

    def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> Any:
        arguments = self.parse_arguments(params)
        return arguments["a"] + arguments.get("b", 1)


BOTH = pytest.mark.parametrize("adder", [add, AddByHand()], ids=["function", "class"])


@BOTH
@pytest.mark.parametrize(
    "arguments", ['{"a": 2}', "{'a': 2,}", '```json\n{"a": 2}\n```', ' {"a": 2}\n', '{"a": 2, }', "{a: 2}"]
)
def test_arguments_as_models_write_them_are_read(adder: BaseTool, arguments: str) -> None:
    assert text(adder, arguments) == "3"


@BOTH
@pytest.mark.parametrize(
    ("arguments", "named"),
    [('{"b": 1}', "a"), ('{"a": "two"}', "a"), ('{"a": 1, "c": 1}', "c"), ('{"a": 1, "b": [1]}', "b")],
)
def test_arguments_that_do_not_fit_are_told_by_name_and_nothing_is_done(
    adder: BaseTool, arguments: str, named: str
) -> None:
    failed = result(adder, arguments)
    assert failed.error == "ToolArgumentError"
    told = failed.message.get_text_content()
    assert "'add'" in told
    assert f"{named}: " in told or f"'{named}'" in told


@BOTH
@pytest.mark.parametrize("arguments", ["[1]", '"a"', "3", "not json", '{"a": ' * 5000])
def test_arguments_that_are_no_object_are_told_as_such(adder: BaseTool, arguments: str) -> None:
    failed = result(adder, arguments)
    assert failed.error == "ToolArgumentError"
    assert "JSON object" in failed.message.get_text_content()


def test_a_long_misfit_is_told_short() -> None:
    assert len(text(AddByHand(), '{"a": "' + "x" * 10_000 + '"}')) < 1_000


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers() | st.text(max_size=3)))
def test_a_schema_by_hand_and_one_of_a_function_agree_on_numbers(arguments: dict[str, Any]) -> None:
    def accepts(adder: BaseTool) -> bool:
        try:
            adder.parse_arguments(arguments)
        except ToolArgumentError:
            return False
        return True

    if not any(isinstance(value, str) for value in arguments.values()):
        assert accepts(add) == accepts(AddByHand())


class Server:
    """An HTTP server that notes what it was asked."""

    def __init__(self) -> None:
        asked = self.asked = []  # type: list[str]

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b'{"type": "string"}')

            def log_message(self, *args: Any) -> None:
                pass

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.http.serve_forever)
    thread.start()
    yield made
    made.http.shutdown()
    thread.join()
    made.http.server_close()


@pytest.mark.filterwarnings("ignore:Automatically retrieving:DeprecationWarning")
def test_checking_arguments_fetches_nothing_whatever_the_schema_refers_to(server: Server) -> None:
    remote = AddByHand()
    remote.parameters = {"type": "object", "properties": {"a": {"$ref": f"{server.url}/schema.json"}}, "required": []}
    result(remote, '{"a": 1}')
    assert server.asked == []


def test_references_inside_a_schema_are_followed() -> None:
    checker = ArgumentChecker(
        "f",
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/small"}}, "$defs": {"small": {"maximum": 3}}},
    )
    checker.check({"a": 3})
    with pytest.raises(ToolArgumentError, match="a: 4 is greater"):
        checker.check({"a": 4})


# --- results ---


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a text", "a text"),
        (None, "null"),
        (3, "3"),
        (True, "true"),
        ({"ü": [1]}, '{\n    "ü": [\n        1\n    ]\n}'),
        ((1, 2), "[\n    1,\n    2\n]"),
        ([Place(city="Ulm")], '[\n    {\n        "city": "Ulm",\n        "zip": null\n    }\n]'),
        ({"at": Path("a")}, '{\n    "at": "a"\n}'),
    ],
    ids=str,
)
def test_a_result_is_a_text_or_becomes_json(value: Any, expected: str) -> None:
    @tool
    def give() -> Any:
        """Give."""
        return value

    assert text(give) == expected


@pytest.mark.parametrize("items", [[], [ContentItem(text="a"), ContentItem(image="http://x/a.png")]])
def test_content_items_stay_content_items(items: list[ContentItem]) -> None:
    @tool
    def give() -> list[Any]:
        """Give."""
        return items

    assert result(give).message.content == items


def test_what_is_for_people_is_not_in_the_message() -> None:
    @tool
    def give() -> ToolResult:
        """Give."""
        return ToolResult("for the model", {"sandbox": "none"})

    done = result(give)
    assert (done.message.content, done.metadata, done.error) == ("for the model", {"sandbox": "none"}, "")


def test_a_result_names_its_tool_and_its_call() -> None:
    assert result(add, '{"a": 1}').message == Message("function", "2", name="add", extra={"function_id": "c0"})


@given(st.text(max_size=300) | st.text("ab\n", max_size=300), st.integers(10, 200))
def test_a_cut_text_keeps_both_its_ends_and_says_how_much_is_missing(whole: str, limit: int) -> None:
    cut = cut_middle(whole, limit)
    if len(whole) <= limit:
        assert cut == whole
    else:
        head, _, rest = cut.partition("\n[… ")
        number, _, tail = rest.partition(" characters omitted …]\n")
        assert whole.startswith(head)
        assert whole.endswith(tail)
        assert len(head) + len(tail) <= limit
        assert int(number) in (len(whole) - len(head) - len(tail), len(whole) - len(head) - len(tail) - 1)


def test_a_text_of_short_lines_is_cut_between_them() -> None:
    lines = [f"line {number}" for number in range(1000)]
    cut = cut_text("\n".join(lines), 500).split("\n")
    note = next(line for line in cut if "omitted" in line)
    assert set(cut) - {note} <= set(lines)
    assert len(cut) > 40


def test_an_oversized_result_of_a_tool_is_json_as_before() -> None:
    @tool
    def give() -> list[dict[str, str]]:
        """Give."""
        return [{"text": "x" * 50}] * 1000

    content = result(give, "{}", max_result_chars=1000).message.get_text_content()
    assert len(content) <= 1000
    assert json.loads(content)[:3] == [{"text": "x" * 50}] * 3


def test_an_oversized_result_is_cut() -> None:
    @tool
    def give(items: bool) -> Any:
        """Give."""
        return [ContentItem(text="x" * 1000)] if items else "x" * 1000

    for arguments in ('{"items": false}', '{"items": true}'):
        content = result(give, arguments, max_result_chars=100).message.get_text_content()
        assert len(content) < 200
        assert "900 characters omitted" in content


@pytest.mark.parametrize("as_item", [True, False])
def test_a_result_can_be_written_as_utf_8_whatever_the_tool_read(as_item: bool) -> None:
    @tool
    def give() -> Any:
        """Give the name of a file that is not UTF-8, as Python reads it from a folder."""
        name = b"caf\xe9.txt".decode(errors="surrogateescape")
        return [ContentItem(text=name)] if as_item else name

    message = result(give).message
    assert message.get_text_content() == "caf?.txt"
    assert "caf?.txt" in message.model_dump_json()


# --- what goes wrong ---


def test_an_unknown_tool_is_a_result_that_names_what_is_close() -> None:
    (failed,) = finished(run([add], ("ad", "{}")))
    assert failed.message.content == "Tool ad does not exist; did you mean 'add'?"
    assert failed.error == "ToolServiceError"
    assert failed.message.name == "ad"


def test_an_exception_is_told_by_type_and_text_without_traceback_or_path(tmp_path: Path) -> None:
    @tool
    def read() -> str:
        """Read."""
        return (tmp_path / "secret-place" / "file.txt").read_text()

    failed = result(read)
    told = failed.message.get_text_content()
    assert failed.error == "FileNotFoundError"
    assert told.startswith("An error occurred when calling tool read: FileNotFoundError: ")
    assert "secret-place" not in told
    assert str(tmp_path) not in told
    assert "Traceback" not in told
    assert "line" not in told


def test_the_exception_is_in_the_log_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    def fail() -> str:
        """Fail."""
        raise KeyError("nothing there")

    result(fail)
    (record,) = [record for record in caplog.records if record.name == "jackfield.tools._executor"]
    assert record.exc_info is not None
    assert record.exc_info[0] is KeyError


def test_what_a_tool_says_to_the_model_arrives_as_it_is() -> None:
    @tool
    def fail() -> str:
        """Fail."""
        raise ToolServiceError("no page 7; there are 3 in /data/report/file.pdf")

    assert text(fail) == "no page 7; there are 3 in /data/report/file.pdf"


@pytest.mark.parametrize("blocking", [True, False], ids=["plain", "async"])
@pytest.mark.parametrize("error", [SystemExit(3), StopIteration(), TimeoutError("the socket timed out")], ids=repr)
def test_whatever_a_tool_raises_is_a_result(error: BaseException, blocking: bool) -> None:
    def plain() -> str:
        """Fail."""
        raise error

    async def waiting() -> str:
        """Fail."""
        raise error

    failed = result(tool(name="fail")(plain if blocking else waiting))
    assert failed.message.get_text_content().startswith("An error occurred when calling tool fail: ")
    assert failed.error not in ("", "ToolTimeoutError")


@pytest.mark.parametrize("blocking", [True, False], ids=["plain", "async"])
def test_a_tool_that_takes_too_long_is_a_result(blocking: bool) -> None:
    let_go = threading.Event()

    def plain() -> str:
        """Wait."""
        let_go.wait(30)
        return "late"

    async def waiting() -> str:
        """Wait."""
        await asyncio.Event().wait()
        return "never"

    try:
        failed = result(tool(name="wait", timeout_s=0.05)(plain if blocking else waiting))
    finally:
        let_go.set()
    assert failed.error == "ToolTimeoutError"
    said = "Tool wait did not finish within 0.05 s; request less at once"
    left = ". It could not be stopped and may still complete"
    stopped = ". It was stopped and may have partly completed"
    assert failed.message.content == said + (left if blocking else stopped)
    assert failed.metadata["in_doubt"] is True


def test_a_result_that_cannot_become_json_is_a_result_too() -> None:
    circle: list[Any] = []
    circle.append(circle)

    @tool
    def give() -> Any:
        """Give."""
        return circle

    assert result(give).error == "ValueError"


# --- several calls ---


def test_eight_plain_tools_run_at_once() -> None:
    barrier = threading.Barrier(8)

    @tool
    def meet(number: int) -> int:
        """Meet the others."""
        barrier.wait(20)  # passes only if all eight are inside together
        return number

    done = finished(run([meet], *(("meet", f'{{"number": {number}}}') for number in range(8))))
    assert [event.message.content for event in done] == [str(number) for number in range(8)]


def test_eight_async_tools_run_at_once() -> None:
    inside = 0
    all_here = asyncio.Event()

    @tool
    async def meet() -> str:
        """Meet the others."""
        nonlocal inside
        inside += 1
        if inside == 8:
            all_here.set()
        await all_here.wait()
        return "met"

    assert [event.error for event in finished(run([meet], *([("meet", "{}")] * 8)))] == [""] * 8


def test_each_call_has_one_result_with_its_own_index_whoever_is_first() -> None:
    second_is_done = threading.Event()

    @tool
    def work(number: int) -> int:
        """Work."""
        if number == 0:
            second_is_done.wait(20)
        return number

    def seen(event: Event) -> None:
        if isinstance(event, ToolFinished):
            second_is_done.set()

    events = run([work], ("work", '{"number": 0}'), ("work", '{"number": 1}'), seen=seen)
    in_time = [event for event in events if isinstance(event, ToolFinished)]
    assert [event.index for event in in_time] == [1, 0]
    assert [event.message.function_id for event in finished(events)] == ["c0", "c1"]
    assert [event.message.content for event in finished(events)] == ["0", "1"]


def test_tools_that_may_not_run_beside_others_take_turns_in_call_order() -> None:
    log: list[str] = []

    def work(number: int) -> int:
        """Work."""
        log.append(f"{number} in")
        threading.Event().wait(0.005)
        log.append(f"{number} out")
        return number

    made = tool(concurrent=False)(work)
    events = run([made], *(("work", f'{{"number": {number}}}') for number in range(4)))
    assert log == [line for number in range(4) for line in (f"{number} in", f"{number} out")]
    kinds = [type(event) for event in events]
    assert kinds == [ToolStarted, ToolFinished] * 4


def test_one_failing_call_leaves_the_others_alone() -> None:
    events = run([add], ("add", '{"a": 1}'), ("nope", "{}"), ("add", "broken"), ("add", '{"a": 2}'))
    assert [event.error for event in finished(events)] == ["", "ToolServiceError", "ToolArgumentError", ""]


def test_leaving_early_cancels_what_still_runs() -> None:
    ended: list[str] = []

    @tool
    async def forever(context: ToolContext) -> str:
        """Wait."""
        context.report("begun")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")
        return "never"

    async def leave_early() -> None:
        executor = ToolExecutor({"forever": forever})
        plan = await executor.plan([PlannedCall(0, "c0", FunctionCall("forever", "{}"))])
        events = executor.run(plan, ToolContext())
        assert isinstance(await anext(events), ToolStarted)
        assert isinstance(await anext(events), ToolProgress)
        await events.aclose()  # type: ignore[attr-defined]

    asyncio.run(leave_early())
    assert ended == ["cancelled"]


def test_a_call_whose_start_is_the_last_that_is_read_never_begins() -> None:
    called: list[str] = []

    @tool
    async def act() -> str:
        """Act."""
        called.append("act")
        return "done"

    async def leave_at_the_start() -> None:
        left: list[ToolFinished] = []
        planned = PlannedCall(0, "c0", FunctionCall("act", "{}"))
        executor = ToolExecutor({"act": act})
        events = executor.run(await executor.plan([planned]), ToolContext(), left=left)
        assert isinstance(await anext(events), ToolStarted)
        await events.aclose()  # type: ignore[attr-defined]
        for _ in range(10):
            await asyncio.sleep(0)
        assert [(one.error, one.message.content) for one in left] == [
            ("Cancelled", "The call was cancelled before it started. Nothing was done.")
        ]

    asyncio.run(leave_at_the_start())
    assert called == []


# --- tools of plugins ---

TOOL_PLUGIN = {
    "acme_light": (
        "from jackfield.plugins import ToolSpec, hook\n@hook.tools\ndef tools():\n"
        "    return [ToolSpec(name='greet', target='acme_heavy:Greet', description={'en': 'Greet.', 'zh': '问候。'},\n"
        "        parameters={'type': 'object', 'properties': {'who': {'type': 'string'}}, 'required': ['who']},\n"
        "        concurrent=False, timeout_s=7.0)]\n"
    ),
    "acme_heavy": (
        "from jackfield import BaseTool\nclass Greet(BaseTool):\n    def call(self, params, *, context=None):\n"
        "        return self.cfg.get('word', 'hello') + ' ' + params['who']\n"
    ),
}


def test_a_tool_of_a_plugin_is_described_without_its_module_and_loaded_at_its_first_call(site: Any) -> None:
    site.add("acme", {"tool.greet": "acme_light"}, modules=TOOL_PLUGIN)
    made = find_tool({"name": "greet", "word": "good day"}, site.host())
    assert made.schema("zh")["description"] == "问候。"
    assert (made.concurrent, made.timeout_s) == (False, 7.0)
    assert result(made, '{"whom": 1}').error == "ToolArgumentError"
    assert "acme_heavy" not in sys.modules
    assert text(made, '{"who": "Bob"}') == "good day Bob"
    assert made.load() is made.load()


@pytest.mark.parametrize(
    "heavy", ["raise RuntimeError('no licence')", "class Greet:\n    def __init__(self, cfg): pass"]
)
def test_a_tool_that_cannot_be_loaded_is_a_result_that_names_the_distribution(site: Any, heavy: str) -> None:
    site.add("acme", {"tool.greet": "acme_light"}, modules={**TOOL_PLUGIN, "acme_heavy": heavy})
    failed = result(find_tool("greet", site.host()), '{"who": "Bob"}')
    assert failed.error == BrokenPluginError.__name__
    assert failed.message.get_text_content().startswith("Tool greet cannot be used: acme")


def test_an_installed_tool_previews_its_calls_itself(site: Any, tmp_path: Path) -> None:
    heavy = (
        TOOL_PLUGIN["acme_heavy"]
        + "    def preview(self, arguments, *, workspace):\n"
        + "        return f\"greet {arguments['who']} from {workspace.root.name}\"\n"
    )
    site.add("acme", {"tool.greet": "acme_light"}, modules={**TOOL_PLUGIN, "acme_heavy": heavy})
    greet = find_tool("greet", site.host())
    assert greet.preview({"who": "Bob"}, workspace=Workspace(tmp_path)) == f"greet Bob from {tmp_path.name}"


def test_an_installed_function_has_the_host_of_each_agent_that_uses_it(site: Any) -> None:
    heavy = "from jackfield import tool\n@tool\ndef Greet(who: str) -> str:\n    'Greet.'\n    return who\n"
    site.add("acme", {"tool.greet": "acme_light"}, modules={**TOOL_PLUGIN, "acme_heavy": heavy})
    hosts = [site.host(), site.host()]
    assert [one.host for one in [find_tool("greet", host).load() for host in hosts]] == hosts


def test_a_tool_that_hangs_while_it_is_loaded_is_given_up_after_the_time_for_tools(site: Any) -> None:
    heavy = "import sys\nsys.modules['acme_light'].LOADING.wait(60)\nraise RuntimeError('late')"
    light = "import threading\nLOADING = threading.Event()\n" + TOOL_PLUGIN["acme_light"]
    site.add("acme", {"tool.greet": "acme_light"}, modules={"acme_light": light, "acme_heavy": heavy})
    host = site.host()
    try:
        assert result(find_tool("greet", host), '{"who": "Bob"}', timeout_s=0.05).error == "ToolTimeoutError"
    finally:
        sys.modules["acme_light"].LOADING.set()
    with pytest.raises(BrokenPluginError, match="late"):  # after the thread that loads it
        find_tool("greet", host).load()


def test_a_decorated_function_registers_nothing() -> None:
    assert isinstance(add, FunctionTool)
    (failed,) = finished(run([], ("add", '{"a": 1}')))
    assert failed.error == "ToolServiceError"


# --- patterns of functions ---


def _greet(pattern: str) -> FunctionTool:
    def greet(name: str) -> str:
        """Greet a person."""
        return f"Hello {name}"

    greet.__annotations__["name"] = Annotated[str, Field(pattern=pattern)]
    return tool(greet)


@pytest.mark.parametrize("name", ["Müller", "北京"])
@pytest.mark.parametrize("pattern", [r"^\w+$", r"^\p{L}+\b$", r"^[^\W\d_]+\z", r"(?x)^ \w+ $  # a word"])
def test_the_patterns_of_a_function_mean_what_pydantic_means(name: str, pattern: str) -> None:
    greet = _greet(pattern)
    FnCallAgent([greet])
    assert result(greet, json.dumps({"name": name})).message.content == f"Hello {name}"
    assert result(greet, '{"name": "a b"}').error == "ToolArgumentError"


class Person(BaseModel, regex_engine="python-re"):
    name: str = Field(pattern=r"^\w+(?<!x)$")


def test_a_function_may_use_an_engine_of_its_own_for_patterns() -> None:
    @tool
    def greet(person: Person) -> str:
        """Greet a person."""
        return f"Hello {person.name}"

    FnCallAgent([greet])
    assert result(greet, '{"person": {"name": "Müller"}}').message.content == "Hello Müller"
    assert result(greet, '{"person": {"name": "Max"}}').error == "ToolArgumentError"


@pytest.mark.parametrize("pattern", ["(", r"^(?=a)b", r"\w{5000}"])
def test_a_pattern_that_pydantic_cannot_use_is_named_with_its_tool(pattern: str) -> None:
    with pytest.raises(ConfigError, match=r"tool 'greet': pydantic does not support the type of parameter '\w+': .+"):
        _greet(pattern)


def test_a_tool_without_code_for_its_patterns_is_refused_with_those_it_cannot_use() -> None:
    class Greet(BaseTool):
        name = "greet"
        description = "Greet a person."
        parameters: ClassVar = {"type": "object", "properties": {"name": {"pattern": "(?<!x)$"}}, "required": []}

        def call(self, params: Any, *, context: Any = None) -> str:
            return "Hello"

    with pytest.raises(ConfigError, match="lookaround"):
        FnCallAgent([Greet()])


@pytest.mark.parametrize("pattern", [r"^\w+$", r"(?x)^ \w+ $"])
def test_an_installed_function_takes_what_its_own_patterns_take(site: Any, pattern: str) -> None:
    light = f"""
from jackfield.plugins import ToolSpec, hook

NAME = {{"type": "string", "pattern": {pattern!r}}}

@hook.tools
def tools():
    schema = {{"type": "object", "properties": {{"name": NAME}}, "required": ["name"]}}
    return [ToolSpec(name="greet", target="acme_heavy:greet", description="Greet.", parameters=schema)]
"""
    heavy = f"""
from typing import Annotated
from pydantic import Field
from jackfield import tool

@tool
def greet(name: Annotated[str, Field(pattern={pattern!r})]) -> str:
    "Greet."
    return f"Hello {{name}}"
"""
    site.add("acme", {"tool.greet": "acme_light"}, modules={"acme_light": light, "acme_heavy": heavy})
    greet = find_tool("greet", site.host())
    assert result(greet, '{"name": "Müller"}').message.content == "Hello Müller"
    assert result(greet, '{"name": "a b"}').error == "ToolArgumentError"
