"""Common mistakes of newcomers: each error names the thing and the next step."""

from __future__ import annotations

import inspect
import json
import math
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import jackfield
from jackfield import (
    Agent,
    BaseChatModel,
    BaseTool,
    BasicAgent,
    ContentItem,
    FnCallAgent,
    FunctionCall,
    GenerateConfig,
    Limits,
    Message,
    PluginHost,
    acall_tool,
    call_tool,
    create_agent,
    get_chat_model,
    sync,
    tool,
)
from jackfield.agents import Handoff
from jackfield.errors import InvalidMessageError, JackfieldError
from jackfield.models import BatchRequest
from jackfield.stores import load_store
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import Workspace, toolset

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
    "a number as model": (lambda: get_chat_model(3), ("a model must be", "got int")),  # type: ignore[arg-type]
    "a misspelt setting": (
        lambda: get_chat_model({"model": "m", "model_type": "openai", "temprature": 0}),
        ("'temprature'", "'temperature' in generate_cfg"),
    ),
    "a setting in the wrong place": (
        lambda: get_chat_model({"model": "m", "model_type": "openai", "temperature": 0}),
        ("'temperature'", "put it in generate_cfg"),
    ),
    "an address without a scheme": (
        lambda: get_chat_model({"model": "m", "model_server": "localhost:8000/v1"}),
        ("model_server", "http://"),
    ),
    "an address as model": (
        lambda: get_chat_model("http://localhost:8000/v1"),
        ("does not specify the model", "'base_url'"),
    ),
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
    "a list as system message": (lambda: agent(system_message=["x"]), ("system_message must be a string", "list")),
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
    "no question": (lambda: agent().ask(None), ("a string, a message", "got NoneType")),
    "an empty question": (lambda: agent().ask(""), ("the question is empty", "pass some text")),
    "nothing at all": (lambda: agent().ask([]), ("messages cannot be empty", "pass at least one question")),
    "a text as history": (lambda: agent().ask(ASK, history="Hello"), ("history", "result of an earlier", "got str")),
    "a misspelt role": (lambda: agent().ask({"role": "usr", "content": "x"}), ("'usr'", "use one of system, user")),
    "a message without role": (lambda: agent().ask({"content": "x"}), ("needs 'role'", "user")),
    "an unknown key of a message": (lambda: agent().ask({"role": "user", "contnt": "x"}), ("contnt", "content")),
    "an answer to a call that does not wait": (
        lambda: deleting().ask([], history=paused_history(), resume={"nope": True}),
        ("'nope'", "pending calls: ", "(delete)"),
    ),
    "a text as answer to a call": (
        lambda: deleting().ask([], history=paused_history(), resume="yes"),
        ("resume", "call_id: True or False"),
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
        ("Image", "typed function", "BaseTool"),
    ),
    "a name that no tool can have": (lambda: tool("a b")(twice), ("'a b'", "letters, digits")),
    "a misspelt option of a tool": (lambda: tool(read_olny=True)(twice), ("'read_olny'", "'read_only'")),  # type: ignore[call-overload]
    "a misspelt argument of a tool": (
        lambda: call_tool(twice, {"txt": "a"}),
        ("unknown argument 'txt'; did you mean 'text'?",),
    ),
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
    assert "must return a string, JSON values" in message.get_text_content()
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
    "nothing": "",
    "minus": -1.0,
    "nan": math.nan,
    "infinite": math.inf,
}
"""Values of each type, and numbers and texts that rarely make sense; `ALLOWED` lists those that a parameter takes."""

ANY = tuple(VALUES)
TEXT = ("text", "nothing")
WIRE_TEXT = (*TEXT, "bytes")  # messages of other libraries may hold bytes
SECONDS = ("number", "infinite")
CALLED = ("function", "class")

ALLOWED: dict[str, tuple[str, ...]] = {
    # of every callable with such a parameter
    **dict.fromkeys(("approve", "ask"), CALLED),
    "attempts": (),
    "deps": ANY,
    "description": TEXT,
    "name": TEXT,
    "output": ("dict", "class"),
    "resume": ("true",),
    "session": TEXT,
    "system_message": TEXT,
    "timeout_s": SECONDS,
    "tool_timeout_s": SECONDS,
    "wanted": ("dict", "class"),
    "workspace": TEXT,
    "lang": ("nothing",),
    "messages": ("text",),
    "prompt": ("text",),
    "content": WIRE_TEXT,
    "requests": ("list", "set"),  # a request that cannot be sent has its error as its answer
    **dict.fromkeys(("read_only", "concurrent", "needs_approval", "file_access", "idempotent"), ("true",)),
    **dict.fromkeys(("resumable", "cacheable", "send_stop", "parallel_function_calls"), ("true",)),
    **dict.fromkeys(("thought_in_content", "use_raw_api"), ("true",)),
    # switches, for which any value will do
    **dict.fromkeys(("add", "stream", "delta_stream"), ANY),
    # of one callable
    "run.config": CALLED,
    "call_tool.entry": ("function",),
    "acall_tool.entry": ("function",),
    "tool.function": ("text", "function"),
    "toolset.function": CALLED,
    "tool.raw_argument": TEXT,
    "Workspace.root": TEXT,
    "Handoff.tool_name": TEXT,
    "Handoff.history": CALLED,
    "Message.name": WIRE_TEXT,
    "Message.reasoning_content": WIRE_TEXT,
    "Message.extra": ("dict",),
    **dict.fromkeys(("ContentItem.image", "ContentItem.file", "ContentItem.video"), ("text", "bytes")),
    "FunctionCall.name": ("text", "bytes"),
    "ContentItem.text": WIRE_TEXT,
    "ContentItem.audio": ("text", "bytes", "dict"),
    "FunctionCall.arguments": WIRE_TEXT,
    "Limits.seconds": ("number",),
    "Limits.cost": ("number",),
    "Limits.currency": WIRE_TEXT,
    **{f"GenerateConfig.{name}": ("number",) for name in ("temperature", "repetition_penalty", "max_retry_delay")},
    **{f"GenerateConfig.{name}": ("number",) for name in ("request_timeout", "event_timeout", "deadline")},
    **{f"GenerateConfig.{name}": ("number", "minus") for name in ("presence_penalty", "frequency_penalty")},
    **{f"GenerateConfig.{name}": ("minus",) for name in ("seed", "max_input_tokens")},
    **{f"GenerateConfig.{name}": WIRE_TEXT for name in ("function_choice", "fncall_prompt_type", "reasoning_effort")},
    **{f"GenerateConfig.{name}": ("dict",) for name in ("extra_body", "response_format")},
    "GenerateConfig.stop": TEXT,
}
WORDS = {
    "function_list": "function_list|tool",
    "handoffs": "handoffs|agents",
    "kind": "kind|agent",
    "cfg": "model",
    "llm": "model",
    "messages": "message|question",
    "prompt": "message|question",
    "requests": "requests|message|question",
    "output": "output|type that",
    "wanted": "output|type that",
    "extra_generate_cfg": "generate_cfg",
    "config": "config|generate_cfg",
    "entry": "tool|store",
    "functions": "function",
    "tools": "tools|function",
    "arguments": "arguments|JSON",
    "run_id": "run_id|not recorded",
    "approvals": "resume|not recorded",
    "text": "text|item",
    "function": "tool",
    "tool_name": "tool",
    "agent": "agents",
}
"""Words of errors about parameters, if they are not the name."""

CODE_OF_OTHERS = (TypeError,)
"""The errors of functions that a caller passes, if they do not fit: `config=int` cannot take a turn."""


def scripted_forever() -> ScriptedModel:
    return ScriptedModel(lambda _: answer("4"))


def asking(method: str) -> Callable[..., object]:
    """Call a method of an agent or a model to its end, in an event loop if it waits."""

    def act(owner: Any, **options: Any) -> object:
        async def finish() -> object:
            outcome = getattr(owner, method)(**options)
            return [event async for event in outcome] if hasattr(outcome, "__aiter__") else await outcome

        if method.startswith("a") and method not in ("as_tool", "ask"):
            return sync.run(finish())
        outcome = getattr(owner, method)(**options)
        return list(outcome) if method in ("stream", "run", "chat", "raw_chat", "quick_chat_oai") else outcome

    return act


def of_agent(method: str) -> Callable[..., object]:
    owner: dict[str, Any] = {"name": "helper", "description": "Helps.", "llm": scripted_forever()}
    return lambda **options: asking(method)(agent(**owner), **options)


def of_model(method: str) -> Callable[..., object]:
    return lambda **options: asking(method)(scripted_forever(), **options)


def first_error(**fields: Any) -> object:
    """Answer a batch of one request, and raise its error."""
    (outcome,) = scripted_forever().batch([BatchRequest(**fields)])
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


ASKED: dict[str, object] = {"messages": ASK}
RUNNING = ("ask", "aask", "stream", "astream", "run", "arun", "run_nonstream")

CALLABLES: dict[str, tuple[Callable[..., object], Callable[..., object], dict[str, object]]] = {
    "FnCallAgent": (FnCallAgent, agent, {}),
    "BasicAgent": (BasicAgent, lambda **options: BasicAgent(**{"llm": scripted(), **options}), {}),
    **{f"agent.{name}": (getattr(Agent, name), of_agent(name), ASKED) for name in RUNNING},
    "agent.resume": (Agent.resume, lambda run_id, **options: agent().resume(run_id, **options), {"run_id": "x"}),
    "agent.aresume": (
        Agent.aresume,
        lambda run_id, **options: sync.run(agent().aresume(run_id, **options)),
        {"run_id": "x"},
    ),
    "agent.as_tool": (Agent.as_tool, of_agent("as_tool"), {}),
    **{f"model.{name}": (getattr(BaseChatModel, name), of_model(name), ASKED) for name in ("ask", "aask", "chat")},
    **{f"model.{name}": (getattr(BaseChatModel, name), of_model(name), ASKED) for name in ("acomplete", "raw_chat")},
    **{
        f"model.{name}": (getattr(BaseChatModel, name), of_model(name), {**ASKED, "wanted": int})
        for name in ("parse", "aparse")
    },
    **{
        f"model.{name}": (getattr(BaseChatModel, name), of_model(name), {"requests": [ASK]})
        for name in ("batch", "abatch", "abatch_as_completed")
    },
    "model.quick_chat": (BaseChatModel.quick_chat, of_model("quick_chat"), {"prompt": ASK}),
    "model.quick_chat_oai": (BaseChatModel.quick_chat_oai, of_model("quick_chat_oai"), ASKED),
    "BatchRequest": (BatchRequest, first_error, ASKED),
    "create_agent": (create_agent, create_agent, {"kind": "fncall", "llm": scripted()}),
    "get_chat_model": (get_chat_model, get_chat_model, {"cfg": scripted()}),
    "load_store": (load_store, load_store, {"entry": "sqlite", "host": None}),
    "Handoff": (
        Handoff,
        lambda **fields: agent(handoffs=[Handoff(**fields)]),
        {"agent": agent(name="other", description="Helps.")},
    ),
    "tool": (
        tool,
        lambda function=twice, **options: tool(function, **options),
        {},
    ),
    "toolset": (toolset, toolset, {}),
    "call_tool": (call_tool, call_tool, {"entry": twice, "arguments": {"text": "a"}}),
    "acall_tool": (
        acall_tool,
        lambda **options: sync.run(acall_tool(**options)),
        {"entry": twice, "arguments": {"text": "a"}},
    ),
    "Workspace": (Workspace, Workspace, {}),
    "PluginHost": (PluginHost, PluginHost, {}),
    "Message": (Message, Message, {"role": "user", "content": "x"}),
    "ContentItem": (ContentItem, ContentItem, {}),
    "FunctionCall": (FunctionCall, FunctionCall, {"name": "x", "arguments": "{}"}),
    "GenerateConfig": (GenerateConfig, lambda **options: GenerateConfig.parse(options), {}),
    "Limits": (Limits, lambda **options: Limits.parse(options), {}),
}
"""Public callables by name: the one whose signature lists the parameters, how to call it, and valid arguments."""

NOT_CALLED_BY_USERS: dict[str, str] = {
    "Agent": "an abstract class, whose parameters are those of FnCallAgent",
    "AgentConfig": "a file, tested where files are read",
    "BaseChatModel": "a base of backends",
    "BaseTool": "a base of tools",
    "ChatRequest": "made by models, for processors",
    "JackfieldError": "an error",
    "LLMConfig": "settings of backends, which have suites",
    "ModelFacts": "stated by backends",
    "ModelResponse": "a result",
    "RunResult": "a result",
    "ToolContext": "made by runs, for tools",
    "ToolResult": "of tools, which may return anything",
    "Usage": "reported by backends",
    # methods
    "web": "it serves until it is stopped; jackfield-web tests it",
    **dict.fromkeys(("events", "make_loop", "make_run", "function_schemas"), "for authors of agent kinds"),
    **dict.fromkeys(("run_options", "secret_sources", "model", "config_class"), "for authors"),
    **dict.fromkeys(("make_request", "call_format_name", "processors", "aclose"), "for authors of backends"),
    "model.stream": "defined by backends",
    "model.astream": "for authors of agent kinds",
}


def parameters_of(function: Callable[..., object]) -> Iterator[str]:
    """Yield the parameters of a callable that a caller may pass, those of its `**options` included."""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is not parameter.VAR_KEYWORD:
            if parameter.name not in ("self", "parent"):
                yield parameter.name
        elif "Unpack" in str(parameter.annotation):
            module = sys.modules[inspect.unwrap(function).__module__]
            options = re.sub(r"^Unpack\[(\w+).*", r"\1", str(parameter.annotation))
            keys = getattr(module, options, None) or getattr(jackfield.agents, options)
            yield from sorted(keys.__required_keys__ | keys.__optional_keys__)


def entry_points() -> Iterator[tuple[str, Callable[[Any], object]]]:
    """Yield each parameter of a public callable, with a function that passes it a value."""
    for name, (signature, act, valid) in CALLABLES.items():
        for parameter in dict.fromkeys(parameters_of(signature)):
            if parameter != "agent" or name == "Handoff":
                yield f"{name}.{parameter}", partial(pass_value, act, parameter, valid)


def pass_value(act: Callable[..., object], parameter: str, valid: dict[str, object], value: object) -> object:
    return act(**{**valid, parameter: value})


def allowed_kinds(point: str) -> tuple[str, ...]:
    """Return the kinds of values that a parameter takes: as for this callable, else as for all of its name."""
    owner, _, parameter = point.rpartition(".")
    if parameter == "config" and owner.startswith("agent."):
        return ALLOWED["run.config"]
    return ALLOWED.get(point, ALLOWED.get(parameter, ()))


_ENTRY_POINTS = dict(entry_points())


def test_every_public_callable_is_tried_with_wrong_arguments() -> None:
    public = {name for name in jackfield.__all__ if callable(getattr(jackfield, name))}
    public |= {f"agent.{name}" for name in methods_of(FnCallAgent)}
    public |= {f"model.{name}" for name in methods_of(ScriptedModel)}
    excused = {name for name in public if {name, name.rpartition(".")[2]} & NOT_CALLED_BY_USERS.keys()}
    assert public - excused - CALLABLES.keys() == set()


def methods_of(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_") and inspect.isroutine(getattr(kind, name))]


@pytest.mark.parametrize("point", _ENTRY_POINTS)
def test_a_value_of_another_type_is_refused_by_name(
    point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    allowed = allowed_kinds(point)
    for kind, value in VALUES.items():
        try:
            _ENTRY_POINTS[point](value)
        except JackfieldError as error:
            text = str(error)
        except CODE_OF_OTHERS:
            assert kind in CALLED, f"{kind}: the error of a passed function"
            continue
        else:
            assert kind in allowed, f"{kind} is accepted"
            continue
        for bare in ("object has no attribute", "not iterable"):
            assert bare not in text
        parameter = point.rpartition(".")[2]
        known = "resume." in point and "not recorded" in text  # no store, which is said first
        assert known or kind in allowed or re.search(WORDS.get(parameter, parameter), text), (kind, text)


@pytest.mark.parametrize("content", ["", "  \n", [], None], ids=repr)
@pytest.mark.parametrize("ask", [asking("ask"), asking("aask"), asking("run_nonstream")], ids=["ask", "aask", "run"])
def test_a_question_without_content_is_refused(ask: Callable[..., object], content: Any) -> None:
    owner = agent(llm=scripted_forever())
    for question in ({"role": "user", "content": content}, [Message("user", "Hi"), Message("user", content or "")]):
        with pytest.raises(InvalidMessageError, match="the question is empty"):
            ask(owner, messages=question)
    assert agent().ask([], history=[Message("user", "Hi")]).text == "Four."


@pytest.mark.parametrize("role", ["user", "system"])
def test_a_message_of_a_person_needs_content(role: str) -> None:
    with pytest.raises(InvalidMessageError, match=f"a {role} message needs 'content'"):
        agent().ask({"role": role})


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
