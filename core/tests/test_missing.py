"""One error names everything that an agent is missing: packages with one command, and keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from jackfield import BaseChatModel, FnCallAgent, create_agent
from jackfield.agents import AgentConfig
from jackfield.agents._components import components_of, config_of, missing_components, models_in
from jackfield.agents._missing import unset_secrets
from jackfield.config import LLMConfig
from jackfield.errors import ConfigError, MissingSecretError, PluginNotFoundError
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


class Reading(FnCallAgent):
    reads_files = True


# How an agent is made → what it is missing.
AGENTS: Mapping[str, tuple[Callable[[PluginHost], object], set[str]]] = {
    "by kind": (lambda host: create_agent("fncall", host=host, **OPTIONS), PACKAGES),
    "by class": (lambda host: FnCallAgent(TOOLS, "openai:x", host=host), PACKAGES),
    "from data": (lambda host: create_agent({"agent": "fncall", **OPTIONS}, host=host), PACKAGES),
    "with objects": (
        lambda host: create_agent("fncall", llm=ScriptedModel([]), function_list=[print_it, *TOOLS], host=host),
        PACKAGES - {"jackfield-openai"},
    ),
    "with several tools of one package": (
        lambda host: FnCallAgent(["read_file", "write_file"], "openai:x", host=host),
        {"jackfield-files", "jackfield-openai"},
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
    "with files that its class reads itself": (
        lambda host: Reading(TOOLS, "openai:x", files=["a.pdf"], host=host), PACKAGES,
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
        "no llm 'openai' is installed; known: nothing. To install it, run: pip install jackfield-openai"
    )
    assert caught.value.component == "llm.openai"


def test_a_misspelt_name_of_what_is_not_installed_is_recognised(site: FakeSite) -> None:
    with pytest.raises(
        PluginNotFoundError, match=r"known: nothing\. Did you mean 'web_search'\? To install it, run: pip"
    ):
        FnCallAgent(["web_serch"], ScriptedModel([]), host=site.host())
    site.add_tools("acme", "web_sirch")
    with pytest.raises(PluginNotFoundError, match=r"installed; did you mean 'web_sirch'\?$"):
        FnCallAgent(["web_serch"], ScriptedModel([]), host=site.host())


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
        ". The agent also needs tool 'web_search', not installed: pip install jackfield-web-search"
    )


def test_a_wrong_option_does_not_hide_what_is_missing(site: FakeSite) -> None:
    with pytest.raises(PluginNotFoundError, match="pip install jackfield-openai"):
        FnCallAgent([{"name": 3}], "openai:x", host=site.host())  # type: ignore[list-item]


def test_a_wrong_option_of_an_agent_inside_does_not_hide_what_is_missing(site: FakeSite) -> None:
    with pytest.raises(PluginNotFoundError, match="pip install jackfield-assistant"):
        create_agent("assistant", agents=[{"agent": "basic", "oops": 1}], host=site.host())


def test_what_agents_inside_miss_is_told_once(site: FakeSite) -> None:
    inner = {"agent": "fncall", "name": "i", "description": "d", "function_list": ["entirely_else", "image_gen"]}
    with pytest.raises(PluginNotFoundError) as caught:
        create_agent("fncall", llm=ScriptedModel([]), function_list=["web_search"], handoffs=[inner], host=site.host())
    assert str(caught.value).startswith("no tool 'entirely_else' is installed")
    [_, also] = str(caught.value).split(". The agent also needs ")
    assert also.endswith("not installed: pip install jackfield-image-gen jackfield-web-search")


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


@pytest.mark.parametrize("variable", ["TWO_KEY", "TWO_TOKEN"])
def test_a_key_that_is_told_is_not_told_again_as_one_of_several(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    class Needs(Locked):
        async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
            raise MissingSecretError(variable, needed_by="needs")
            yield ModelFinished("stop")

    modules = {"acme_light": KEYED.replace('Spec("', 'Spec(name="')}
    site.add("acme", {"tool.two": "acme_light"}, modules=modules)
    for name in ("TWO_KEY", "TWO_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(MissingSecretError) as caught:
        FnCallAgent(["two"], Needs({"model": "x"}), host=site.host()).ask("hi")
    assert (caught.value.variable, list(caught.value.others)) == (variable, [])


@pytest.mark.parametrize(
    ("config", "unset"),
    [({"model": "x"}, ["LOCKED_KEY (llm 'locked')"]), ({"model": "x", "base_url": "http://h.example/v1"}, [])],
    ids=["the provider's own server", "a server of one's own"],
)
def test_the_key_of_a_model_is_missing_only_for_its_providers_own_server(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch, config: dict[str, str], unset: list[str]
) -> None:
    light = """
from jackfield.plugins import LLMSpec, hook

@hook.llms
def llms():
    return [LLMSpec(name="locked", target="acme:Model", secrets=("LOCKED_KEY",))]
"""
    site.add("acme", {"llm.locked": "acme_light"}, modules={"acme_light": light})
    monkeypatch.delenv("LOCKED_KEY", raising=False)
    assert unset_secrets(FnCallAgent([], Locked(config), host=site.host())) == unset


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


# --- the components of a configuration ---

COMPONENTS: Mapping[str, tuple[Mapping[str, Any], list[str]]] = {
    "nothing": ({}, []),
    "a kind of the core": ({"agent": "basic"}, []),
    "another kind": ({"agent": "acme/react"}, ["agent.acme/react"]),
    "a model": ({"llm": "openai:x"}, ["llm.openai"]),
    "models to choose": ({"llm": "openai:x", "models": ["anthropic:y"]}, ["llm.openai", "llm.anthropic"]),
    "a server of one's own": ({"llm": {"model": "x", "model_server": "http://h/v1"}}, ["llm.openai"]),
    "processors": (
        {
            "llm": {
                "model": "x",
                "model_type": "openai",
                "processors": ["cache", {"name": "fallback", "to": "anthropic:y"}],
            }
        },
        ["llm.openai", "processor.cache", "processor.fallback", "llm.anthropic"],
    ),
    "a call format": (
        {"llm": {"model": "x", "model_type": "openai", "generate_cfg": {"fncall_prompt_type": "nous"}}},
        ["llm.openai", "call_format.nous"],
    ),
    "the model's own call format": (
        {"llm": {"model": "x", "model_type": "openai", "generate_cfg": {"fncall_prompt_type": "native"}}},
        ["llm.openai"],
    ),
    "tools": ({"function_list": ["a", "acme/b", {"name": "c", "size": 3}]}, ["tool.a", "tool.acme/b", "tool.c"]),
    "models in the settings of a tool": (
        {
            "function_list": [
                {
                    "name": "judge",
                    "by": {"model": "x", "model_type": "openai"},
                    "also": ["anthropic:y", {"z": "openai:w"}],
                },
                {"name": "odd", "model": "a name of something else", "time": "12:30", "tuple": [5, None]},
            ]
        },
        ["tool.judge", "llm.openai", "llm.anthropic", "llm.openai", "tool.odd"],
    ),
    "observers and a store": (
        {"observers": ["log", "acme/trace"], "store": {"name": "sqlite", "path": "x"}},
        ["observer.log", "observer.acme/trace", "store.sqlite"],
    ),
    "files": (
        {"files": ["a.PDF", "b.png", "c.unknown"]},
        ["processor.multimodal", "parser.pdf"],
    ),
    "files and tools": ({"files": ["a.pdf"], "function_list": ["t"]}, ["tool.t", "parser.pdf"]),
    "files of another kind": ({"agent": "assistant", "files": ["a.pdf"]}, ["agent.assistant", "parser.pdf"]),
    "agents inside": (
        {"agent": "router", "agents": [{"agent": "fncall", "llm": "openai:x"}], "handoffs": [{"agent": "react"}]},
        ["agent.router", "llm.openai", "agent.react"],
    ),
    "one agent inside": ({"agent": "acme/duo", "critic": {"agent": "react"}}, ["agent.acme/duo", "agent.react"]),
    "an agent that gets the last question only": (
        {"handoffs": [{"agent": "fncall", "llm": "openai:x", "history": "question"}]},
        ["llm.openai"],
    ),
    "an agent as a tool": (
        {"function_list": [{"agent": "react", "name": "r", "description": "d"}]},
        ["agent.react"],
    ),
}


@pytest.mark.parametrize("case", COMPONENTS)
def test_the_components_of_a_configuration_are_those_that_it_names(site: FakeSite, case: str) -> None:
    settings, components = COMPONENTS[case]
    assert list(components_of(AgentConfig.parse(settings), site.host())) == components


def test_the_parsers_of_the_caller_are_those_of_agents_inside_too(site: FakeSite) -> None:
    config = AgentConfig.parse({"handoffs": [{"agent": "basic", "files": ["a.xyz"]}], "files": ["b.xyz"]})
    components = list(components_of(config, site.host(), parser_of=lambda file: f"of_{file[0]}"))
    assert [one for one in components if one.startswith("parser.")] == ["parser.of_a", "parser.of_b"]


def test_settings_of_a_tool_win_over_those_that_all_searches_share() -> None:
    config = AgentConfig.parse({
        "function_list": ["look", {"name": "retrieval", "size": 5}, {"name": "retrieval", "size": 9}],
        "rag_cfg": {"size": 1, "depth": 2},
    })  # fmt: skip
    assert config.settings_of("retrieval") == {"name": "retrieval", "size": 5, "depth": 2}
    assert config.settings_of("look") == config.settings_of("other") == {"size": 1, "depth": 2}


def test_options_of_a_kind_are_at_the_top_or_below_options_and_never_in_both() -> None:
    apart, inside = {"agent": "acme/duo", "size": 2}, {"agent": "acme/duo", "options": {"size": 2}}
    assert AgentConfig.parse(apart) == AgentConfig.parse(inside)
    with pytest.raises(ConfigError, match="size"):
        AgentConfig.parse({**inside, "size": 3})


def test_an_installed_backend_that_we_do_not_publish_counts(site: FakeSite) -> None:
    site.add("acme", {"llm.acme": "acme_light"})
    assert list(models_in(["acme:x", "other:x", "acme:", 5], site.host())) == ["llm.acme"]


def test_what_is_missing_includes_what_the_missing_ones_need(site: FakeSite) -> None:
    config = AgentConfig.parse({"agent": "assistant", "files": ["a.pdf"], "observers": ["acme/log"]})
    assert missing_components(config, site.host()) == {
        "agent.assistant": "jackfield-assistant", "parser.pdf": "jackfield-pdf",
        "tool.retrieval": "jackfield-retrieval", "searcher.keyword_search": "jackfield-keyword-search",
    }  # fmt: skip
    site.add("jackfield-pdf", {"parser.pdf": "p"})
    assert "parser.pdf" not in missing_components(config, site.host())


def test_options_that_are_objects_are_no_data() -> None:
    config = config_of(
        "fncall",
        {
            "llm": ScriptedModel([]), "store": object(), "function_list": [print_it, "a", {"name": "b"}],
            "observers": ["log", object()], "handoffs": [{"agent": "react"}, object()],
            "files": ["a.pdf", "a.txt", "a.png"],
        },
    )  # fmt: skip
    assert (config.llm, config.store, config.observers, config.files) == (None, None, ("log",), ("a.pdf",))
    assert config.function_list == ("a", {"name": "b"})
    assert [entry["agent"] for entry in config.handoffs] == ["react"]
    other = config_of(
        "router", {"agents": [{"agent": "react"}], "one": {"agent": "basic"}, "size": 3, "files": ["a.txt"]}
    )
    assert other.options == {"agents": [{"agent": "react"}], "one": {"agent": "basic"}}
    assert other.files == ("a.txt",)
    whole = config_of(
        "fncall", {"llm": LLMConfig(model="x", model_type="openai"), "rag_cfg": {"a": 1}, "store": "sqlite"}
    )
    assert (whole.llm, whole.rag_cfg, whole.store) == ({"model": "x", "model_type": "openai"}, {"a": 1}, "sqlite")
