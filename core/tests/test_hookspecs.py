"""Every hook is one function that says all about its kind, and what cannot answer a hook is refused with the reason."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from jackfield import BaseChatModel, ChatRequest, descriptors
from jackfield._hooks import Hook
from jackfield.errors import BrokenPluginError
from jackfield.events import ModelEvent
from jackfield.hookspecs import HOOKS, KINDS, hooks_of
from jackfield.plugins import ToolSpec
from jackfield.plugins import _registration as registration
from jackfield.plugins._faults import fault_of
from jackfield.request import ModelFacts
from jackfield.testing import answer

MARKER = "import pluggy\nfrom jackfield.plugins import ToolSpec, hook\nmarker = pluggy.HookimplMarker('jackfield')\n"
SPECS = "[ToolSpec(name='x', target='m:T', description='x')]"


@pytest.mark.parametrize("name", HOOKS)
def test_the_example_of_a_hook_is_true(name: str) -> None:
    one: Hook[Any] = HOOKS[name]
    (spec,) = FunctionType(one.specification.__code__, vars(descriptors))()  # type: ignore[attr-defined]
    assert type(spec) is one.spec_class
    assert fault_of(spec) == ""


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_target_must_be_is_there(kind: str) -> None:
    module, _, name = KINDS[kind].base.partition(":")
    if kind == "command":
        assert not module
    else:
        assert isinstance(getattr(importlib.import_module(module), name), type)


def test_the_kinds_follow_from_the_hooks() -> None:
    assert list(KINDS) == [
        "llm", "tool", "searcher", "processor", "agent",
        "parser", "call_format", "tokenizer", "embedder", "sandbox", "observer", "store", "server",
        "command",
    ]  # fmt: skip
    assert [kind for kind, one in KINDS.items() if one.is_stable] == ["llm", "tool", "searcher", "processor", "agent"]
    assert [one.name for one in hooks_of("processor")] == ["processors", "preprocessors", "postprocessors"]


def test_pluggy_is_asked_in_one_module_only() -> None:
    asking = [
        path.name
        for path in Path(registration.__file__).parents[1].rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        and any(name.split(".")[0] == "pluggy" for name in [*(one.name for one in node.names), _module_of(node)])
    ]
    assert sorted(asking) == ["_hooks.py", "_registration.py"]  # _hooks.py takes the marker of answers from it


def _module_of(node: ast.Import | ast.ImportFrom) -> str:
    return (node.module or "") if isinstance(node, ast.ImportFrom) else ""


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            "@marker(wrapper=True)\ndef tools():\n    return (yield)",
            "wrapper=True, which is not supported: the hook would wrap other",
        ),
        (
            "@marker(hookwrapper=True)\ndef tools():\n    yield",
            "hookwrapper=True, which is not supported: the hook would wrap other",
        ),
        (
            f"@marker(tryfirst=True)\ndef tools(): return {SPECS}",
            "tryfirst=True, which is not supported: the hook would be called first",
        ),
        (
            f"@marker(trylast=True)\ndef tools(): return {SPECS}",
            "trylast=True, which is not supported: the hook would be called last",
        ),
        (f"@hook.tools\nasync def tools(): return {SPECS}", "is async, but hooks must be plain functions"),
        (f"@hook.tools\ndef tools(): yield from {SPECS}", "is a generator, but hooks must return a list"),
        (f"@hook.tools\ndef tools(host): return {SPECS}", r"Argument\(s\) \{'host'\} are declared"),
        (f"@hook.tools\ndef tools(*, lang): return {SPECS}", "missing 1 required keyword-only argument: 'lang'"),
        (f"@marker\ndef tolls(): return {SPECS}", "unknown hook 'tolls': did you mean 'tools'"),
        ("@hook.tools\ndef tools(): return None", "must return a list of ToolSpec"),
        ("@hook.tools\ndef tools(): return [1]", "must return a list of ToolSpec"),
        (f"@hook.tools\ndef tools(): return {SPECS} * 2", r"declares tool\.x 2 times"),
    ],
    ids=lambda value: re.sub(r"\W+", "-", value)[:60],
)
def test_what_cannot_answer_a_hook_is_refused_with_the_reason_and_harms_nobody(
    site: Any, source: str, reason: str
) -> None:
    site.add("acme", {"tool.x": "acme_light"}, modules={"acme_light": MARKER + source})
    site.add_tools("sound", "good")
    host = site.host()
    with pytest.raises(BrokenPluginError, match=reason):
        host.spec("tool", "x", ToolSpec)
    assert host.spec("tool", "good", ToolSpec).name == "good"


@pytest.mark.parametrize(
    "source",
    [
        f"@hook.tools\ndef whatever(lang='en', *more, **others): return {SPECS}",
        f"@marker(specname='tools')\ndef whatever(): return tuple({SPECS})",
        f"@marker(optionalhook=True)\ndef holograms(): return 1\n@hook.tools\ndef tools(): return {SPECS}",
        f"@hook.tools\ndef none(): return []\n@hook.tools\ndef tools(): return {SPECS}",
    ],
)
def test_what_can_answer_a_hook_may_be_written_freely(site: Any, source: str) -> None:
    site.add("acme", {"tool.x": "acme_light"}, modules={"acme_light": MARKER + source})
    assert site.host().spec("tool", "x", ToolSpec).name == "x"


def test_a_hook_is_asked_once_for_all_that_it_offers(site: Any) -> None:
    asked = site.folder / "asked"
    source = (
        f"{MARKER}@hook.tools\ndef tools():\n    with open({str(asked)!r}, 'a') as file: file.write('x')\n"
        "    return [ToolSpec(name=name, target='m:T', description='x') for name in 'abc']"
    )
    site.add("acme", {f"tool.{name}": "acme_light" for name in "abc"}, modules={"acme_light": source})
    host = site.host()
    for name in "abc":
        host.spec("tool", name, ToolSpec)
    assert asked.read_text() == "x"


# --- the easy forms of a processor ---

EASY = """
from jackfield.plugins import PostprocessorSpec, PreprocessorSpec, hook


@hook.preprocessors
def preprocessors():
    return [PreprocessorSpec(name="twice", target="acme_easy:twice", phase="input")]


@hook.postprocessors
def postprocessors():
    return [PostprocessorSpec(name="upper", target="acme_easy:Upper")]
"""
EASY_CODE = """
from dataclasses import replace
from jackfield.events import TextDelta


def twice(request):
    return replace(request, messages=(*request.messages, *request.messages))


class Upper:
    def __init__(self, request):
        self.asked = len(request.messages)

    def feed(self, event):
        return [TextDelta(f"{event.text.upper()}{self.asked}") if isinstance(event, TextDelta) else event]
"""


def test_a_function_and_a_transform_are_processors_without_a_class_of_their_own(site: Any) -> None:
    entries = {"processor.twice": "acme_light", "processor.upper": "acme_light"}
    site.add("acme", entries, modules={"acme_light": EASY, "acme_easy": EASY_CODE})
    seen: list[int] = []

    class Hosted(BaseChatModel):
        backend = "hosted"
        facts = ModelFacts(native_tools=True)

        async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
            seen.append(len(request.messages))
            for event in answer("hello"):
                yield event

    model = Hosted({"model": "m", "processors": ["twice", "upper"]}, host=site.host())
    assert [(one.name, one.phase) for one in model.processors()[:2]] == [("upper", "output"), ("twice", "input")]
    assert model.quick_chat("q") == "HELLO1"
    assert model.quick_chat("q") == "HELLO1"
    assert seen == [2, 2]
