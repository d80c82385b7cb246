"""One error names everything that an agent is missing: packages with one command, and keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from jackfield import BaseChatModel, FnCallAgent, create_agent
from jackfield.config import LLMConfig
from jackfield.errors import MissingSecretError, PluginNotFoundError
from jackfield.events import ModelEvent, ModelFinished
from jackfield.plugins import PluginHost
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel
from jackfield_testkit.forks import Forks
from tests.support.site import FakeSite

TOOLS = ["code_interpreter", "web_search", "image_gen"]
PACKAGES = {"jackfield-openai", "jackfield-code-interpreter", "jackfield-web-search", "jackfield-image-gen"}
SEARCH = {"jackfield-assistant", "jackfield-retrieval", "jackfield-pdf"}
OPTIONS: Mapping[str, Any] = {"llm": "openai:x", "function_list": TOOLS}
INNER = {"agent": "fncall", **OPTIONS, "name": "inner"}

# How an agent is made → what it is missing.
AGENTS: Mapping[str, tuple[Callable[[PluginHost], object], set[str]]] = {
    "by kind": (lambda host: create_agent("fncall", host=host, **OPTIONS), PACKAGES),
    "by class": (lambda host: FnCallAgent(TOOLS, "openai:x", host=host), PACKAGES),
    "from data": (lambda host: create_agent({"agent": "fncall", **OPTIONS}, host=host), PACKAGES),
    "with objects": (
        lambda host: create_agent("fncall", llm=ScriptedModel([]), function_list=[print_it, *TOOLS], host=host),
        PACKAGES - {"jackfield-openai"},
    ),
    "with a configuration of a model": (
        lambda host: FnCallAgent(TOOLS, LLMConfig(model="x", model_type="openai"), host=host), PACKAGES,
    ),
    "with processors and a call format": (
        lambda host: FnCallAgent(
            [],
            {
                "model": "x", "model_type": "openai", "processors": ["cache"],
                "generate_cfg": {"fncall_prompt_type": "nous"},
            },
            host=host,
        ),
        {"jackfield-openai", "jackfield-cache", "jackfield-call-formats"},
    ),
    "with observers and a store": (
        lambda host: FnCallAgent(TOOLS, "openai:x", observers=["log"], store="sqlite", host=host),
        PACKAGES | {"jackfield-log", "jackfield-sqlite-store"},
    ),
    "with files to send": (
        lambda host: FnCallAgent([], "openai:x", files=["a.pdf", "b.txt", "c.png"], host=host),
        {"jackfield-openai", "jackfield-multimodal", "jackfield-pdf"},
    ),
    "with documents": (
        lambda host: create_agent(
            "assistant", **OPTIONS, files=["a.pdf"], rag_cfg={"rag_searchers": ["hybrid_search"]}, host=host
        ),
        PACKAGES | SEARCH | {"jackfield-hybrid-search"},
    ),
    "with agents inside": (
        lambda host: create_agent("router", llm="openai:x", agents=[INNER, {"agent": "assistant"}], host=host),
        PACKAGES | SEARCH - {"jackfield-pdf"} | {"jackfield-multi-agent", "jackfield-keyword-search"},
    ),
    "with hand-offs": (
        lambda host: create_agent({"llm": "anthropic:x", "handoffs": [INNER]}, host=host),
        PACKAGES | {"jackfield-anthropic"},
    ),
}  # fmt: skip


def print_it(text: str) -> str:
    """Print a text."""
    return text


@pytest.mark.parametrize("way", AGENTS)
def test_everything_that_is_not_installed_is_in_one_command(site: FakeSite, way: str) -> None:
    make, packages = AGENTS[way]
    with pytest.raises(PluginNotFoundError) as caught:
        make(site.host())
    text = str(caught.value)
    assert text.count("pip install") == 1
    assert text.endswith(f". Install everything that this agent is missing: pip install {' '.join(sorted(packages))}")
    assert text.startswith("not installed: ")
    assert caught.value.component


def test_a_single_missing_part_is_told_alone(site: FakeSite) -> None:
    with pytest.raises(PluginNotFoundError) as caught:
        FnCallAgent([], "openai:x", host=site.host())
    assert str(caught.value).endswith(
        "no llm 'openai' is installed; known: nothing. Install it: pip install jackfield-openai"
    )
    assert caught.value.component == "llm.openai"


def test_what_is_installed_is_not_in_the_command(site: FakeSite) -> None:
    site.add_tools("acme", "web_search", "image_gen")
    host = site.host(allow=("acme",), prefer={"tool.web_search": "acme", "tool.image_gen": "acme"})
    with pytest.raises(PluginNotFoundError, match=r"pip install jackfield-code-interpreter jackfield-openai$"):
        FnCallAgent(TOOLS, "openai:x", host=host)


def test_an_unknown_name_is_told_first_and_then_what_can_be_installed(site: FakeSite) -> None:
    with pytest.raises(PluginNotFoundError) as caught:
        FnCallAgent(["code_interpretr", "web_search"], ScriptedModel([]), host=site.host())
    assert str(caught.value).startswith("no tool 'code_interpretr' is installed")
    assert str(caught.value).endswith(
        ". It also needs tool 'web_search', not installed: pip install jackfield-web-search"
    )


def test_a_wrong_option_does_not_hide_what_is_missing(site: FakeSite) -> None:
    with pytest.raises(PluginNotFoundError, match="pip install jackfield-openai"):
        FnCallAgent([{"name": 3}], "openai:x", host=site.host())  # type: ignore[list-item]


# --- keys ---


class Locked(BaseChatModel):
    """A model whose key is missing."""

    backend: ClassVar[str] = "locked"

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        raise MissingSecretError("LOCKED_KEY", needed_by="locked")
        yield ModelFinished("stop")


KEYED = """
from jackfield.plugins import ToolSpec, hook

@hook.tools
def tools():
    said = {"target": "acme:Tool", "description": "Does it."}
    return [
        ToolSpec("one", secrets=("ONE_KEY",), **said),
        ToolSpec("two", secrets=("TWO_KEY", "TWO_TOKEN"), **said),
        ToolSpec("set", secrets=("SET_KEY",), **said),
        ToolSpec("either", secrets=("EITHER_KEY", "SET_KEY"), **said),
        ToolSpec("same", secrets=("LOCKED_KEY",), **said),
        ToolSpec("plain", **said),
        ToolSpec("given", secrets=("GIVEN_KEY",), **said),
    ]
"""


def test_all_keys_that_are_not_set_are_in_one_error(site: FakeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("one", "two", "set", "either", "same", "plain", "given")
    site.add(
        "acme",
        {f"tool.{name}": "acme_light" for name in names},
        modules={"acme_light": KEYED.replace('Spec("', 'Spec(name="')},
    )
    for name in ("ONE_KEY", "TWO_KEY", "TWO_TOKEN", "EITHER_KEY", "GIVEN_KEY", "LOCKED_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SET_KEY", "s3cret")
    host = site.host()
    inner = FnCallAgent(["two"], Locked({"model": "x"}), name="inner", description="Helps.", host=host)
    tools = [
        *(name for name in names if name not in ("two", "given")),
        {"name": "given", "api_key": "k3y"},
        inner.as_tool(),
    ]
    with pytest.raises(MissingSecretError) as caught:
        FnCallAgent(tools, Locked({"model": "x"}), host=host).ask("hi")
    assert str(caught.value).endswith(". Also not set: ONE_KEY (tool 'one'), TWO_KEY or TWO_TOKEN (tool 'two')")
    assert caught.value.variable == "LOCKED_KEY"
    assert len(caught.value.others) == 2
    with pytest.raises(MissingSecretError) as alone:
        FnCallAgent([], Locked({"model": "x"}), host=host).ask("hi")
    assert "Also not set" not in str(alone.value)


def test_a_part_that_a_run_finds_missing_is_told_with_the_others(site: FakeSite, tmp_path: Path) -> None:
    (tmp_path / "a.pdf").touch()
    host = site.host()

    class Searching(FnCallAgent):
        reads_files = True

        async def events(self, run: Any) -> AsyncIterator[Any]:
            host.find("searcher", "keyword_search")
            yield

    agent = Searching([], ScriptedModel([]), files=[str(tmp_path / "a.pdf")], host=host)
    agent.kind = "doc_qa"
    with pytest.raises(PluginNotFoundError) as caught:
        agent.ask("hi")
    assert {"jackfield-keyword-search", "jackfield-retrieval", "jackfield-pdf"} <= set(str(caught.value).split())


def test_importing_a_submodule_from_the_package_looks_for_no_similar_names(tmp_path: Path) -> None:
    program = "import sys\nfrom jackfield import sync\nprint('difflib' in sys.modules)"
    with Forks("import sys") as forks:
        done = forks.run(program, cwd=tmp_path, env={"HOME": str(tmp_path)})
    assert (done.stdout.strip(), done.stderr) == ("False", "")
