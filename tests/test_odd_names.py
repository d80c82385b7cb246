"""Halves of surrogate pairs, NUL and the like, in everything that has a name: an error of ours, or it works."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jackfield import Message, create_agent, get_chat_model, sync
from jackfield.errors import JackfieldError
from jackfield.messages import ContentItem
from jackfield_agent_files.files import load_agent_config
from jackfield_manage.judging.python_files import read_python_uses
from jackfield_testkit import replies
from jackfield_testkit.server import FakeOpenAI

ODD = st.text(st.sampled_from("ab:/.\\\0\ud800\udcff\ue000\u202e\x1b\n é"), min_size=1, max_size=8)
FEW = settings(max_examples=settings().max_examples // 2, suppress_health_check=[HealthCheck.function_scoped_fixture])
OFFLINE = "offline:extractive"


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(default=replies.text("ok")) as server:
        yield server


def ours_or_fine(work: Callable[[], Any]) -> None:
    with suppress(JackfieldError):
        work()


@pytest.mark.parametrize("backend", ["openai", "openai_responses", "azure", "qwen_dashscope"])
@FEW
@given(odd=ODD)
def test_what_is_sent_may_be_odd(server: FakeOpenAI, backend: str, odd: str) -> None:
    def ask(content: Any, model: str = "m", options: dict[str, Any] | None = None, **more: Any) -> None:
        # Not repeated: what odd words do to an address may be a server that fails, and each pause would be a real one.
        config = {"max_retries": 0, **(options or {})}
        given = {"model_type": backend, "model": model, "base_url": server.url, "api_key": "k" * 9, **more}
        given["generate_cfg"] = config
        sync.run(get_chat_model(given).acomplete([Message("user", content)]))

    ours_or_fine(lambda: ask(odd))
    ours_or_fine(lambda: ask("hello", model=odd))
    ours_or_fine(lambda: ask([ContentItem(file=odd)]))
    ours_or_fine(lambda: ask([ContentItem(image=odd)], images=True))
    ours_or_fine(lambda: ask("hello", api_key=odd))
    ours_or_fine(lambda: ask("hello", base_url=server.url + odd))
    ours_or_fine(lambda: ask("hello", options={"stop": [odd], "extra_body": {odd: odd}}))


@FEW
@given(odd=ODD)
def test_what_is_named_may_be_odd(tmp_path: Path, odd: str) -> None:
    ours_or_fine(lambda: get_chat_model(odd))
    ours_or_fine(lambda: get_chat_model(f"{odd}:m"))
    ours_or_fine(lambda: create_agent(odd))
    ours_or_fine(lambda: create_agent({odd: 1}))
    ours_or_fine(lambda: create_agent("fncall", llm=OFFLINE, function_list=[odd]))
    ours_or_fine(lambda: create_agent("fncall", llm=OFFLINE, observers=[odd]))
    ours_or_fine(lambda: load_agent_config(tmp_path / f"{odd}.yaml"))
    ours_or_fine(lambda: read_python_uses(tmp_path / f"{odd}.py"))


@FEW
@given(odd=ODD)
def test_an_agents_file_may_be_odd(tmp_path: Path, odd: str) -> None:
    table = {"llm": {"model_type": odd, "model": odd}, "function_list": [odd], "files": [odd]}
    texts = {
        "json": json.dumps(table),
        "yaml": f'llm: "{odd}"\n',
        "toml": f'llm = "{odd}"\n',
    }
    for kind, text in texts.items():
        file = tmp_path / f"agent.{kind}"
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        ours_or_fine(lambda file=file: create_agent(load_agent_config(file)))
