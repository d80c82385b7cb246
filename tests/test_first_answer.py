"""What a program loads up to its first answer: the time that takes is nearly all spent on imports."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from jackfield_testkit import replies
from jackfield_testkit.anthropic import AnthropicMessages
from jackfield_testkit.dashscope import FakeDashScope
from jackfield_testkit.embeddings import embeddings_of
from jackfield_testkit.forks import Forks
from jackfield_testkit.responses import FakeResponses
from jackfield_testkit.server import FakeOpenAI

# What the core stands on, what bytes travel through, and what these need themselves. An SDK is not among them.
CORE = {"annotated_types", "pluggy", "pydantic", "pydantic_core", "typing_extensions", "typing_inspection"}
HTTP = {"anyio", "h11", "httpcore2", "msgspec", "sniffio", "truststore"}
HTTP |= {"h2", "hpack", "hyperframe"}  # httpcore2 loads them wherever somebody has installed them

ANSWER = """
from jackfield import create_agent
agent = create_agent("assistant", llm={"model": "m", "api_key": "k", **json.loads(sys.argv[1])})
assert agent.run_nonstream([{"role": "user", "content": "go"}])[-1]["content"] == "ok"
"""
VECTOR = """
from jackfield import sync
from jackfield_openai.embeddings import OpenAIEmbedder
settings = json.loads(sys.argv[1])
embedder = OpenAIEmbedder(model="m", api_key="k", base_url=settings["base_url"])
assert len(sync.run(embedder.embed(["a"])).vectors) == 1
"""
# Of the core and HTTP, what all of them import is imported once, and counts as loaded by each.
BEFORE = """
import sys
sys.modules_of_the_interpreter = set(sys.modules)
import jackfield.agents, jackfield.models, jackfield_http.transport
"""
LOADED = """
import json, sys
{}
print(json.dumps(sorted({{name.partition(".")[0] for name in set(sys.modules) - sys.modules_of_the_interpreter}})))
"""
IMPORTED = """
import json, sys
import jackfield.agents
print(json.dumps([name for name in sys.modules if name.startswith("jackfield")]))
"""
ONLY_FOR_CREATED_AGENTS = {
    "descriptors",
    "hookspecs",
    "plugins._catalog",
    "plugins._host",
    "plugins._loading",
    "secrets._hiding",
    "secrets._sources",
    "secrets._weakness",
    "settings",
}
ONLY_FOR_REQUESTS = {"attachments", "citations"}
KINDS: Mapping[str, Callable[[], FakeOpenAI]] = {
    "openai": FakeOpenAI,
    "azure": FakeOpenAI,
    "openai_responses": FakeResponses,
    "qwen_dashscope": FakeDashScope,
    "anthropic": lambda: FakeOpenAI(dialect=AnthropicMessages()),
}


def loaded(code: str, forks: Forks, env: Mapping[str, str], **settings: str) -> set[str]:
    """Runs code in a process of its own, with settings; gives the packages of others that it loaded."""
    done = forks.run(LOADED.format(code), json.dumps(settings), cwd=Path(env["HOME"]), env=env)
    assert done.returncode == 0, done.stderr
    own = sys.stdlib_module_names
    names = json.loads(done.stdout.splitlines()[-1])
    return {name for name in names if name not in own and not name.startswith(("jackfield", "_sysconfigdata"))}


def test_neither_a_first_answer_nor_a_first_vector_loads_an_sdk_or_a_second_http_client(
    clean_env: dict[str, str],
) -> None:
    found = {}
    with Forks(BEFORE) as forks:
        for name, kind in KINDS.items():
            with kind() as server:
                server.default = replies.text("ok")
                found[name] = loaded(ANSWER, forks, clean_env, model_type=name, base_url=server.url)
        with FakeOpenAI() as server:
            server.respond(embeddings_of)
            found["a vector"] = loaded(VECTOR, forks, clean_env, base_url=server.url)
    assert all("httpcore2" in names for names in found.values())
    assert {name: names - CORE - HTTP for name, names in found.items() if names - CORE - HTTP} == {}


def test_importing_agents_loads_few_modules_and_none_that_looks_for_plugins(clean_env: dict[str, str]) -> None:
    with Forks("import json, sys") as forks:
        done = forks.run(IMPORTED, cwd=Path(clean_env["HOME"]), env=clean_env)
    names = {name.removeprefix("jackfield.") for name in json.loads(done.stdout)}
    assert "agents" in names
    assert names & (ONLY_FOR_CREATED_AGENTS | ONLY_FOR_REQUESTS) == set()
    assert len(names) <= 80  # raise it only for a module that every agent needs: each takes part of a millisecond
