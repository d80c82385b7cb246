"""Common mistakes of newcomers: each error names the thing and the next step."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import jackfield
from jackfield import (
    BaseTool,
    ContentItem,
    FnCallAgent,
    FunctionCall,
    Message,
    call_tool,
    create_agent,
    get_chat_model,
    tool,
)
from jackfield.agents import RunOptions
from jackfield.errors import JackfieldError
from jackfield.testing import ScriptedModel, answer, calls

ASK = "How many?"


def scripted() -> ScriptedModel:
    return ScriptedModel([answer("Four.")] * 3)


def agent(**options: Any) -> Any:
    return FnCallAgent(**{"llm": scripted(), **options})


@tool(needs_approval=True)
def delete(name: str) -> str:
    """Delete a file."""
    return f"deleted {name}"


def deleting(**options: Any) -> Any:
    model = ScriptedModel([calls(("delete", {"name": "a"})), answer("Done.")])
    return agent(function_list=[delete], llm=model, **options)


def paused_history() -> Any:
    return deleting().ask("Delete a").history


def run_an_import(line: str) -> None:
    exec(line, {})


def untyped(name):  # type: ignore[no-untyped-def]
    """Greet."""
    return name


def undocumented(name: str) -> str:
    return name


def repr_of_type(value: object) -> str:
    return type(value).__name__


def twice(text: str) -> str:
    """Repeat a text."""
    return text * 2


MISTAKES: dict[str, tuple[Callable[[], object], tuple[str, ...]]] = {
    # models
    "no model": (lambda: FnCallAgent().ask(ASK), ("has no model", "pass llm='backend:model'")),
    "no backend": (lambda: get_chat_model("m-1"), ("'m-1'", "backend:model", "Installed: ")),
    "a misspelt backend": (lambda: get_chat_model("opnai:m"), ("'opnai'", "'openai'")),
    "a number as model": (lambda: get_chat_model(3), ("a model must be", "not int")),  # type: ignore[arg-type]
    "a misspelt setting": (
        lambda: get_chat_model({"model": "m", "model_type": "openai", "temprature": 0}),
        ("'temprature'", "'temperature' in generate_cfg"),
    ),
    "a setting in the wrong place": (
        lambda: get_chat_model({"model": "m", "model_type": "openai", "temperature": 0}),
        ("'temperature'", "belongs in generate_cfg"),
    ),
    "an address without a scheme": (
        lambda: get_chat_model({"model": "m", "model_server": "localhost:8000/v1"}),
        ("model_server", "http://"),
    ),
    "an address as model": (lambda: get_chat_model("http://localhost:8000/v1"), ("which model", "'base_url'")),
    # agents and their options
    "a misspelt option": (lambda: agent(sytem_message="x"), ("'sytem_message'", "'system_message'")),
    "a misspelt option of a kind": (
        lambda: create_agent("fncall", sytem_message="x"),  # type: ignore[call-overload]
        ("'sytem_message'", "'system_message'"),
    ),
    "a misspelt kind": (lambda: create_agent("asistant"), ("'asistant'", "'assistant'")),
    "a file as kind": (lambda: create_agent("agent.yaml"), ("is a file", "load_agent_config")),
    "a misspelt option of a run": (lambda: agent().ask(ASK, histroy=[]), ("'histroy'", "'history'")),
    "another name for the turns": (lambda: agent(limits={"max_turns": 3}), ("'max_turns'", "'turns'")),
    "one tool in place of a list": (lambda: agent(function_list="storage"), ("function_list", "['storage']")),
    "a list as system message": (lambda: agent(system_message=["x"]), ("system_message must be a text", "list")),
    "a lost file": (lambda: agent(files=["gone.pdf"]).ask(ASK), ("gone.pdf", "correct the path")),
    "one file in place of a list": (lambda: agent(files="a.txt"), ("files", "['a.txt']")),
    "a misspelt store": (lambda: agent(store="sqlit"), ("'sqlit'", "'sqlite'")),
    "a rule that is not one": (lambda: agent(approve="always"), ("approve", "ask, read_only")),
    "an import that lives elsewhere": (
        lambda: run_an_import("from jackfield import Assistant"),
        ("'Assistant'", "from jackfield_assistant import Assistant", "pip install jackfield-assistant"),
    ),
    "an import from Qwen-Agent": (
        lambda: run_an_import("from jackfield import register_tool"),
        ("'register_tool'", "from jackfield import tool"),
    ),
    # questions
    "no question": (lambda: agent().ask(None), ("a text, a message", "not NoneType")),
    "an empty question": (lambda: agent().ask(""), ("the question is empty", "write a text")),
    "nothing at all": (lambda: agent().ask([]), ("there is nothing to ask", "pass a question")),
    "a text as history": (lambda: agent().ask(ASK, history="Hello"), ("history", "result of an earlier", "not str")),
    "a misspelt role": (lambda: agent().ask({"role": "usr", "content": "x"}), ("'usr'", "use one of system, user")),
    "a message without role": (lambda: agent().ask({"content": "x"}), ("needs 'role'", "user")),
    "an unknown key of a message": (lambda: agent().ask({"role": "user", "contnt": "x"}), ("contnt", "content")),
    "an answer to a call that does not wait": (
        lambda: deleting().ask([], history=paused_history(), resume={"nope": True}),
        ("'nope'", "waiting calls: ", "(delete)"),
    ),
    "a text as answer to a call": (
        lambda: deleting().ask([], history=paused_history(), resume="yes"),
        ("resume", "call id: True or False"),
    ),
    "a text as approval": (
        lambda: deleting(approve=lambda _call, _context: "yes").ask("Delete a"),
        ("approve returned 'yes'", "must return True"),
    ),
    "a rule as approval of a run": (lambda: agent().ask(ASK, approve="ask"), ("approve", "to the agent")),
    "a misspelt option of the model in a run": (
        lambda: agent().ask(ASK, config={"temprature": 0}),
        ("'temprature'", "'temperature'"),
    ),
    # tools
    "a misspelt tool": (lambda: agent(function_list=["storag"]), ("'storag'", "'storage'")),
    "a tool without types": (lambda: agent(function_list=[untyped]), ("'name'", "needs a type")),
    "a tool without a docstring": (
        lambda: agent(function_list=[undocumented]),
        ("'undocumented'", "needs a docstring"),
    ),
    "two tools of one name": (lambda: agent(function_list=[twice, twice]), ("twice", "two tools")),
    "the decorator on a class of another kind": (
        lambda: tool("name")(type("Image", (), {})),
        ("Image", "function with types", "BaseTool"),
    ),
    "a name that no tool can have": (lambda: tool("a b")(twice), ("'a b'", "letters, digits")),
    "a misspelt option of a tool": (lambda: tool(read_olny=True)(twice), ("'read_olny'", "'read_only'")),  # type: ignore[call-overload]
    "a misspelt argument of a tool": (lambda: call_tool(twice, {"txt": "a"}), ("txt", "text")),
    # documents
    "a searcher that needs others": (
        lambda: create_agent("assistant", llm=scripted(), rag_cfg={"rag_searchers": ["hybrid_search"]}),
        ("hybrid_search", "retrieval_type"),
    ),
    "a misspelt strategy": (
        lambda: create_agent("assistant", llm=scripted(), rag_cfg={"rag_keygen_strategy": "GenKeywords"}),
        ("rag_keygen_strategy", "GenKeyword"),
    ),
    "a misspelt setting of documents": (
        lambda: create_agent("assistant", llm=scripted(), rag_cfg={"chunk_siz": 3}),
        ("'chunk_siz'", "'chunk_size'"),
    ),
}


# --- accepted, and right ---


def test_a_result_is_a_history() -> None:
    for asked in (agent(), get_chat_model(scripted())):
        first = asked.ask(ASK)
        second = asked.ask("And now?", history=first)
        assert second.history[: len(first.history)] == first.history


def test_the_decorator_names_a_class_or_a_function() -> None:
    @tool("my_image_gen")
    class ImageGen(BaseTool):
        description = "Draws."
        parameters: Any = ({"name": "prompt", "type": "string", "description": "What", "required": True},)

        def call(self, params: Any, **_: Any) -> str:
            return f"drew {json.loads(params)['prompt'] if isinstance(params, str) else params['prompt']}"

    assert issubclass(ImageGen, BaseTool)
    for entry in (ImageGen, ImageGen()):
        assert list(agent(function_list=[entry]).function_map) == ["my_image_gen"]
    assert call_tool(ImageGen(), {"prompt": "a cat"}) == "drew a cat"
    assert tool("again")(twice).name == "again"


@pytest.mark.parametrize("value", [object(), b"x", twice, int, {"a": object()}, [object()]], ids=repr_of_type)
def test_what_no_model_can_read_is_no_result(value: Any) -> None:
    @tool
    def give() -> Any:
        """Give."""
        return value

    result = agent(function_list=[give], llm=ScriptedModel([calls(("give", {})), answer("No.")])).ask(ASK)
    (message,) = [message for message in result.messages if message.role == "function"]
    assert message.error == "ToolServiceError"
    assert "must return a text, JSON values" in message.get_text_content()
    assert " at 0x" not in message.get_text_content()


def test_dataclasses_and_sets_are_results() -> None:
    @dataclass
    class Point:
        x: int

    @tool
    def give() -> Any:
        """Give."""
        return [Point(1), {2}]

    result = agent(function_list=[give], llm=ScriptedModel([calls(("give", {})), answer("Yes.")])).ask(ASK)
    (message,) = [message for message in result.messages if message.role == "function"]
    assert json.loads(message.get_text_content()) == [{"x": 1}, [2]]


def test_no_strategy_is_the_strategy_none() -> None:
    assistant: Any = create_agent("assistant", llm=scripted(), rag_cfg={"rag_keygen_strategy": None})
    assert assistant.rag_cfg.rag_keygen_strategy == "none"


def test_names_elsewhere_are_there() -> None:
    names = json.loads(Path(jackfield.__file__).with_name("names_elsewhere.json").read_text())
    for name, text in names.items():
        assert name not in jackfield.__all__
        if line := re.search("from jackfield_.* import [A-Za-z_]+", text):
            run_an_import(line[0])


# --- values of any other type ---

VALUES = {
    "object": object(),
    "number": 3.5,
    "true": True,
    "text": "text",
    "bytes": b"x",
    "list": [1],
    "dict": {"a": 1},
    "set": {1},
    "function": twice,
    "class": int,
}
"""A value of each type; `ALLOWED` lists those that a parameter takes."""

ALLOWED: dict[str, tuple[str, ...]] = {
    "FnCallAgent.approve": ("function", "class"),
    "FnCallAgent.description": ("text",),
    "FnCallAgent.name": ("text",),
    "FnCallAgent.system_message": ("text",),
    "FnCallAgent.tool_timeout_s": ("number",),
    "FnCallAgent.workspace": ("text",),
    "ask.approve": ("function", "class"),
    "ask.deps": tuple(VALUES),
    "ask.resume": ("true",),
    "ask.session": ("text",),
    "ask.messages": ("text",),
    "as_tool.description": ("text",),
    "as_tool.name": ("text",),
    "as_tool.timeout_s": ("number",),
    "get_chat_model.add": tuple(VALUES),  # a switch
    "model.ask.messages": ("text",),
    "tool": ("text", "function"),
    "call_tool": ("function",),
    "Message.content": ("text", "bytes"),
    "Message.name": ("text", "bytes"),
    "Message.reasoning_content": ("text", "bytes"),
    "Message.extra": ("dict",),
    **dict.fromkeys(("ContentItem.text", "ContentItem.image", "ContentItem.file"), ("text", "bytes")),
    "ContentItem.audio": ("text", "bytes", "dict"),
    "ContentItem.video": ("text", "bytes"),
    "FunctionCall.name": ("text", "bytes"),
    "FunctionCall.arguments": ("text", "bytes"),
}
WORDS = {
    "function_list": "function_list|tool",
    "create_agent": "kind|agent",
    "get_chat_model": "model",
    "llm": "model",
    "messages": "message",
    "extra_generate_cfg": "generate_cfg",
    "call_tool": "tool",
    "functions": "function",
    "run_id": "run_id|not recorded",
    "config": "config|generate_cfg",
    "text": "text|item",
}
"""Words of errors about parameters, if they are not the name."""

_PARTS: dict[str, Any] = {"role": "user", "content": "x"}
_CALL: dict[str, Any] = {"name": "x", "arguments": "{}"}


def passing(act: Callable[..., object], parameter: str, **others: object) -> Callable[[Any], object]:
    return lambda value: act(**{**others, parameter: value})


def chat(**options: Any) -> object:
    return list(scripted().chat(**options))


def entry_points() -> Iterator[tuple[str, Callable[[Any], object]]]:
    """Yield each public parameter, with a function that passes it a value."""
    for name in inspect.signature(FnCallAgent).parameters:
        yield f"FnCallAgent.{name}", passing(agent, name)
    for name in (*(RunOptions.__annotations__.keys() - {"config"}), "history", "messages"):
        yield f"ask.{name}", passing(lambda **options: agent().ask(**options), name, messages=ASK)
    for name in ("name", "description", "timeout_s"):
        yield f"as_tool.{name}", passing(agent(name="helper", description="Helps.").as_tool, name)
    yield "create_agent", create_agent
    yield "create_agent.host", passing(create_agent, "host", kind="fncall")
    yield "get_chat_model", get_chat_model
    yield "get_chat_model.host", passing(get_chat_model, "host", cfg=scripted())
    for name in ("messages", "history", "config"):
        yield f"model.ask.{name}", passing(lambda **options: scripted().ask(**options), name, messages=ASK)
    for name in ("messages", "functions", "extra_generate_cfg"):
        yield f"model.chat.{name}", passing(chat, name, messages=[Message("user", "x")])
    yield "tool", tool
    yield "call_tool", lambda value: call_tool(value, {"text": "a"})
    for name in ("role", "content", "reasoning_content", "name", "function_call", "extra"):
        yield f"Message.{name}", passing(Message, name, **_PARTS)
    for name in ("text", "image", "file", "audio", "video"):
        yield f"ContentItem.{name}", passing(ContentItem, name)
    for name in ("name", "arguments"):
        yield f"FunctionCall.{name}", passing(FunctionCall, name, **_CALL)


ALLOWED["model.chat.messages"] = ("text",)
_ENTRY_POINTS = dict(sorted(entry_points()))


@pytest.mark.parametrize("point", _ENTRY_POINTS)
def test_a_value_of_another_type_is_refused_by_name(point: str) -> None:
    allowed = ALLOWED.get(point, ())
    for kind, value in VALUES.items():
        if kind in allowed:
            _ENTRY_POINTS[point](value)
            continue
        with pytest.raises(JackfieldError) as raised:
            _ENTRY_POINTS[point](value)
        text = str(raised.value)
        for bare in ("object has no attribute", "not iterable"):
            assert bare not in text
        parameter = point.rpartition(".")[2]
        assert re.search(WORDS.get(parameter, parameter), text), (kind, text)


# --- refused, with the next step ---


@pytest.mark.parametrize("mistake", MISTAKES)
def test_an_error_names_the_thing_and_the_next_step(
    mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    act, parts = MISTAKES[mistake]
    with pytest.raises((JackfieldError, TypeError, ImportError)) as raised:
        act()
    for part in parts:
        assert part in str(raised.value)
