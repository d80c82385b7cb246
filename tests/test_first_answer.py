"""What a program loads up to its first answer: the time that takes is nearly all spent on imports."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield_testkit import replies
from jackfield_testkit.anthropic import AnthropicMessages
from jackfield_testkit.dashscope import FakeDashScope
from jackfield_testkit.embeddings import embeddings_of
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
LOADED = """
import json, sys
before = set(sys.modules)
{}
print(json.dumps(sorted({{name.partition(".")[0] for name in set(sys.modules) - before}})))
"""

Loaded = Callable[[str, dict[str, str]], set[str]]


@pytest.fixture
def loaded(execute: Callable[..., Any], clean_env: dict[str, str], tmp_path: Path) -> Loaded:
    """Runs code in a fresh interpreter, with settings; gives the packages of others that it loaded."""

    def others(code: str, settings: dict[str, str]) -> set[str]:
        command = [sys.executable, "-c", LOADED.format(code), json.dumps(settings)]
        names = json.loads(execute(command, cwd=tmp_path, env=clean_env).stdout.splitlines()[-1])
        own = sys.stdlib_module_names
        return {name for name in names if name not in own and not name.startswith(("jackfield", "_sysconfigdata"))}

    return others


@pytest.mark.parametrize("backend", ["openai", "azure", "openai_responses", "qwen_dashscope", "anthropic"])
def test_a_first_answer_loads_no_sdk_and_no_second_http_client(loaded: Loaded, backend: str) -> None:
    kinds: dict[str, Callable[[], FakeOpenAI]] = {
        "openai_responses": FakeResponses,
        "qwen_dashscope": FakeDashScope,
        "anthropic": lambda: FakeOpenAI(dialect=AnthropicMessages()),
    }
    with kinds.get(backend, FakeOpenAI)() as server:
        server.default = replies.text("ok")
        assert loaded(ANSWER, {"model_type": backend, "base_url": server.url}) <= CORE | HTTP


def test_a_first_vector_loads_no_sdk_and_no_second_http_client(loaded: Loaded) -> None:
    with FakeOpenAI() as server:
        server.respond(embeddings_of)
        assert loaded(VECTOR, {"base_url": server.url}) <= CORE | HTTP
