"""What an agent needs: the exact list of distributions, from data or from Python that is not run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from jackfield import AgentConfig, create_agent
from jackfield.errors import AmbiguousPluginError, ConfigError, PluginNotFoundError
from jackfield.plugins import PluginHost
from jackfield.settings import Settings
from jackfield_agent_files.files import load_agent_config
from jackfield_manage.cli import requirements
from jackfield_manage.cli.requirements import requirement_lines
from jackfield_manage.distributions import Distribution
from jackfield_manage.judging.python_files import read_python_uses
from jackfield_manage.judging.requirements import Needs, needs_of, needs_of_python

OPENAI = "jackfield-openai"
RAG = {"jackfield-assistant", "jackfield-retrieval", "jackfield-keyword-search"}


@pytest.fixture
def nothing(tmp_path: Path) -> PluginHost:
    """A host that sees no plugin at all."""
    folder = tmp_path / "empty"
    folder.mkdir()
    return PluginHost(Settings(), paths=[str(folder)])


def needed(needs: Needs) -> set[str]:
    return set(needs.distributions) - {"jackfield"}


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        ({}, set()),
        ({"llm": "openai:m"}, {OPENAI}),
        ({"llm": {"model": "m", "base_url": "http://127.0.0.1:1/v1"}}, {OPENAI}),
        ({"llm": {"model": "m", "model_type": "oai"}}, {OPENAI}),
        ({"llm": "offline:extractive"}, {"jackfield-offline"}),
        (
            {"llm": {"model": "m", "model_type": "openai", "generate_cfg": {"fncall_prompt_type": "nous"}}},
            {OPENAI, "jackfield-call-formats"},
        ),
        ({"llm": {"model": "m", "model_type": "openai", "generate_cfg": {"fncall_prompt_type": "native"}}}, {OPENAI}),
        ({"function_list": ["code_interpreter"]}, {"jackfield-code-interpreter"}),
        ({"function_list": [{"name": "code_interpreter", "needs_approval": True}]}, {"jackfield-code-interpreter"}),
        ({"agent": "assistant"}, RAG),
        ({"agent": "jackfield-assistant/assistant"}, RAG),
        ({"function_list": ["retrieval"]}, RAG - {"jackfield-assistant"}),
        ({"agent": "assistant", "files": ["a.PDF", "b.md"]}, RAG | {"jackfield-pdf", "jackfield-text"}),
        ({"agent": "basic", "files": ["a.PDF"]}, {"jackfield-multimodal", "jackfield-pdf"}),
        ({"llm": "acme-llm/acme:m"}, {"acme-llm"}),
        ({"llm": "Acme_LLM/openai:m"}, {"acme-llm"}),
        (
            {"llm": {"model": "m", "model_type": "openai", "processors": [{"name": "fallback", "any": "offline:x"}]}},
            {OPENAI, "jackfield-fallback", "jackfield-offline"},
        ),
        (
            {
                "llm": {
                    "model": "m",
                    "model_type": "offline",
                    "processors": [{"name": "fallback", "context": [{"model": "qwen-long"}, {"model": "no such"}]}],
                }
            },
            {"jackfield-fallback", "jackfield-offline", "jackfield-dashscope"},
        ),
        (
            {
                "function_list": [{"agent": "basic", "llm": "offline:m", "name": "a", "description": "A."}],
                "handoffs": [{"function_list": ["storage"], "name": "b", "description": "B.", "history": "question"}],
            },
            {"jackfield-offline", "jackfield-storage"},
        ),
    ],
    ids=lambda value: "" if isinstance(value, set) else str(value),  # sets have another order in each worker
)
def test_nothing_is_needed_but_what_is_named_and_what_that_asks_for(
    nothing: PluginHost, config: dict[str, Any], wanted: set[str]
) -> None:
    needs = needs_of(AgentConfig.parse(config), nothing)
    assert needed(needs) == wanted
    assert set(needs.missing) == wanted
    assert needs.unknown == ()
    assert next(iter(needs.distributions)) == "jackfield"


def test_a_searcher_that_is_configured_takes_the_place_of_the_usual_one(nothing: PluginHost) -> None:
    config = AgentConfig.parse({"agent": "assistant", "rag_cfg": {"rag_searchers": ["front_page_search"]}})
    needs = needs_of(config, nothing)
    assert "jackfield-keyword-search" not in needed(needs)
    assert [line.split(":")[0] for line in needs.unknown] in (["searcher.front_page_search"], [])


def test_what_is_enabled_is_needed_by_every_agent(site: Any) -> None:
    site.add("acme", {"processor.guard": "acme_light"}, modules={"acme_light": ""})
    assert needed(needs_of(AgentConfig(), site.host(enabled=("processor.guard",)))) == {"acme"}


def test_what_is_installed_is_not_missing_and_a_strangers_plugin_is_as_good_as_ours(site: Any) -> None:
    site.add_tools("acme-tools", "weather")
    needs = needs_of(AgentConfig.parse({"function_list": ["weather", "retrieval"]}), site.host())
    assert needs.distributions["acme-tools"] == ("tool.weather",)
    assert needs.install_line == "pip install jackfield-keyword-search jackfield-retrieval"
    assert site.times_imported("acme-tools") == 0


def test_what_nobody_is_known_to_offer_is_named_with_what_is_close(nothing: PluginHost) -> None:
    needs = needs_of(AgentConfig.parse({"function_list": ["code_interpretr"]}), nothing)
    assert needed(needs) == set()
    assert needs.unknown[0].startswith("tool.code_interpretr: no tool 'code_interpretr' is installed")
    assert "did you mean 'tool.code_interpreter'" in needs.unknown[0]


def test_a_name_that_is_close_to_nothing_suggests_nothing(nothing: PluginHost) -> None:
    needs = needs_of(AgentConfig.parse({"function_list": ["zzqqzz"]}), nothing)
    assert needs.unknown == ("tool.zzqqzz: no tool 'zzqqzz' is installed; known: nothing",)


def test_each_component_is_listed_once_below_its_package_and_in_order(nothing: PluginHost) -> None:
    other = {"function_list": ["storage", "code_interpreter"], "name": "b", "description": "B.", "history": "question"}
    needs = needs_of(
        AgentConfig.parse(
            {"function_list": ["write_file", "storage", "read_file"], "handoffs": [other], "agent": "assistant"}
        ),
        nothing,
    )
    assert list(needs.distributions)[1:] == sorted(needed(needs))
    assert needs.distributions["jackfield-storage"] == ("tool.storage",)
    assert needs.distributions["jackfield-files"] == ("tool.read_file", "tool.write_file")


def test_the_models_of_an_enabled_component_are_needed(site: Any) -> None:
    site.add("acme", {"processor.relay": "acme_light"}, modules={"acme_light": ""})
    host = site.host(enabled=("processor.relay",), options={"processor.relay": {"any": "offline:m"}})
    assert needed(needs_of(AgentConfig(), host)) == {"acme", "jackfield-offline"}


ACME = """
ParserSpec(name="acme", target="m:P", extensions=("acme", "pdf"))
ToolSpec(name="x", target="m:T", requires=("tool.storage",), required_by={"deep": {True: ("tool.code_interpreter",)}})
"""


@pytest.mark.parametrize(
    ("config", "block", "wanted"),
    [
        ({"agent": "basic", "files": ["a.acme"]}, (), {"acme", "jackfield-multimodal"}),
        ({"agent": "basic", "files": ["a.pdf"]}, (), {"acme", "jackfield-multimodal"}),
        ({"agent": "basic", "files": ["a.pdf"]}, ("acme",), {"jackfield-pdf", "jackfield-multimodal"}),
        ({"function_list": ["x"]}, (), {"acme", "jackfield-storage"}),
    ],
)
def test_an_installed_plugin_tells_by_its_source_which_files_it_reads_and_what_it_requires(
    site: Any, config: dict[str, Any], block: tuple[str, ...], wanted: set[str]
) -> None:
    site.add("acme", {"parser.acme": "acme_light", "tool.x": "acme_light"}, modules={"acme_light": ACME})
    host = site.host(block=frozenset(block), enabled=() if block else ("parser.acme",))
    needs = needs_of(AgentConfig.parse(config), host)
    assert (needed(needs), needs.unknown) == (wanted, ())


@pytest.mark.parametrize("source", ["import (", "ParserSpec(name='acme', target='m:P', extensions=find())"])
def test_a_plugin_whose_source_tells_nothing_does_not_hide_who_else_reads_a_file(site: Any, source: str) -> None:
    site.add("acme", {"parser.acme": "acme_light"}, modules={"acme_light": source})
    host = site.host(enabled=("parser.acme",))
    needs = needs_of(AgentConfig.parse({"agent": "basic", "files": ["a.PDF"]}), host)
    assert needed(needs) == {"acme", "jackfield-pdf", "jackfield-multimodal"}


def test_a_file_that_no_parser_is_known_for_is_named_by_its_extension(nothing: PluginHost) -> None:
    needs = needs_of(AgentConfig.parse({"agent": "basic", "files": ["a.xyz"]}), nothing)
    assert [line.partition(":")[0] for line in needs.unknown] == ["parser.xyz"]


def test_a_name_that_two_offer_is_ambiguous_here_too(site: Any) -> None:
    site.add_tools("one", "search")
    site.add_tools("two", "search")
    with pytest.raises(AmbiguousPluginError):
        needs_of(AgentConfig.parse({"function_list": ["search"]}), site.host())


def test_every_line_is_one_that_pip_reads(nothing: PluginHost) -> None:
    needs = needs_of(AgentConfig.parse({"agent": "assistant", "llm": "openai:m", "files": ["a.pdf"]}), nothing)
    lines = requirement_lines(needs)
    assert {Requirement(line.partition(" #")[0]).name for line in lines} == set(needs.distributions)
    assert any(line.endswith("# llm.openai") for line in lines)


def test_packages_that_an_index_may_not_have_are_named_when_they_are_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    packages = {
        "indexed": Distribution("indexed", "1.0", ""),
        "linked": Distribution("linked", "2.0", "", direct={"url": "file:///a", "dir_info": {"editable": True}}),
        "fetched": Distribution("fetched", "3.0", "", direct={"url": "https://acme.example/a.whl"}),
    }
    monkeypatch.setattr(requirements, "installed", lambda: packages)
    needs = Needs({name: (f"tool.{name}",) for name in (*packages, "absent")}, ("absent",))
    assert requirement_lines(needs, pin=True) == [
        "indexed==1.0  # tool.indexed",
        "linked==2.0   # tool.linked",
        "fetched==3.0  # tool.fetched",
        "absent        # tool.absent",
    ]
    assert list(requirements._pin_problems(needs)) == [
        "linked was installed from a folder: its version 2.0 may not be on an index",
        "fetched was installed from a URL or file: its version 3.0 may not be on an index",
        "absent is not installed here, so it is not pinned",
    ]


def test_an_agent_that_lacks_plugins_is_told_the_whole_line_at_once(nothing: PluginHost) -> None:
    with pytest.raises(PluginNotFoundError) as caught:
        create_agent({"agent": "assistant", "llm": "openai:m", "function_list": ["code_interpreter"]}, host=nothing)
    assert str(caught.value).endswith(
        "Install everything that this agent is missing: pip install jackfield-assistant jackfield-code-interpreter "
        "jackfield-keyword-search jackfield-openai jackfield-retrieval"
    )


# --- files ---

SPEC = {"agent": "assistant", "llm": {"model": "m", "model_type": "openai"}, "function_list": ["code_interpreter"]}
YAML = """
agent: assistant
llm: {model: m, model_type: openai}
function_list:
  - code_interpreter
"""
TOML = 'agent = "assistant"\nfunction_list = ["code_interpreter"]\n[llm]\nmodel = "m"\nmodel_type = "openai"\n'


@pytest.mark.parametrize(("name", "text"), [("a.yaml", YAML), ("a.yml", YAML), ("a.toml", TOML), ("a.json", None)])
def test_a_file_says_the_same_in_every_form(tmp_path: Path, name: str, text: str | None) -> None:
    file = tmp_path / name
    file.write_text(json.dumps(SPEC) if text is None else text)
    assert load_agent_config(file) == AgentConfig.parse(SPEC)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.yaml", b"llm: [", "not valid YAML"),
        ("a.yaml", b"!!python/object/apply:os.system ['true']", "not valid YAML"),
        ("a.yaml", b"- a", "must be a table"),
        ("a.yaml", b"", "must be a table"),
        ("a.yaml", b"lllm: x", "unknown setting 'lllm'; did you mean 'llm'"),
        ("a.json", b"{", "cannot be read"),
        ("a.json", b"[" * 100_000, "cannot be read"),
        ("a.toml", b"=", "cannot be read"),
        ("a.yaml", b"\xff", "is not UTF-8"),
        ("a.txt", b"x", "an agent file must be .yaml, .toml or .json"),
        ("a.yaml", b"#" * (2 << 20), "exceeds the 1 MiB limit"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_file_that_is_no_agent_is_an_error_that_names_it(
    tmp_path: Path, name: str, content: bytes, told: str
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=told) as caught:
        load_agent_config(file)
    assert name in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml cannot be read: No such file"):
        load_agent_config(tmp_path / "none.yaml")


# --- Python ---

PROGRAM = """
import sys
sys.exit("it ran")
from jackfield import Agent, create_agent, tool
from jackfield_acme.things import Thing

LLM = {"model": os.environ["MODEL"], "model_type": "openai", "api_key": key()}
TOOLS = ["code_interpreter"]

@tool
def mine(x: int) -> int:
    "Mine."
    return x

agent = create_agent("assistant", llm={"model": "m", "model_type": "offline"}, function_list=[*[], mine, "retrieval"])
other = Agent(TOOLS, llm="openai:x", files=["a.pdf"])
third = Agent([mine], llm=LLM)
fourth = Agent(tools(), llm={"model": "m", "base_url": address()})
"""


def test_a_program_is_read_and_not_run(tmp_path: Path, nothing: PluginHost) -> None:
    file = tmp_path / "main.py"
    file.write_text(PROGRAM)
    uses = read_python_uses(file)
    needs = needs_of_python(uses, nothing)
    assert needed(needs) == RAG | {
        "jackfield-acme", "jackfield-offline", "jackfield-code-interpreter", "jackfield-pdf", OPENAI,
    }  # fmt: skip
    assert uses.unknown == (f"{file}:18: function_list is computed at run time",)


def test_every_agent_of_a_program_counts_with_its_own_settings(tmp_path: Path, nothing: PluginHost) -> None:
    file = tmp_path / "main.py"
    file.write_text(
        "from jackfield_storage.storage import Storage\nfrom jackfield_acme import Thing\n"
        "first = create_agent({'llm': 'openai:m'}, llm='offline:m', function_list=['storage'])\n"
        "second = create_agent('assistant', rag_cfg={'rag_searchers': ['tantivy_search']})\n"
        "third = create_agent({'agent': 'basic', 'observers': ['log']})\n"
        "fourth = create_agent(llm={**BASE, 'model': model(), 'model_type': 'anthropic'})\n"
        "fifth = create_agent(ROUND)\n"
        "BASE = {'base_url': 'http://127.0.0.1:1'}\nROUND = ROUND2\nROUND2 = ROUND\n"
    )
    uses = read_python_uses(file)
    assert uses.unknown == (f"{file}:7: agent is computed at run time",)
    needs = needs_of_python(uses, nothing)
    assert {"jackfield-offline", "jackfield-tantivy-search", "jackfield-log", "jackfield-anthropic"} < needed(needs)
    assert OPENAI not in needed(needs)
    assert set(needs.missing) == needed(needs)
    assert needs.distributions["jackfield-storage"] == ("tool.storage",)
    assert needs.distributions["jackfield-acme"] == ("imported",)


def test_a_program_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("def (")
    with pytest.raises(ConfigError, match=r"main\.py is not valid Python"):
        read_python_uses(tmp_path / "main.py")
