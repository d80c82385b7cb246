"""`jackfield web`, and `agent.web()`, as people start them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from jackfield import FnCallAgent
from jackfield.errors import ConfigError
from jackfield.testing import ScriptedModel
from jackfield_web.command import main

SCRIPT = """
from jackfield import FnCallAgent
from jackfield.testing import ScriptedModel, answer
agent = FnCallAgent(llm=ScriptedModel(lambda request: answer("hello")), name="潮汐 helper")
"""
NOTEBOOK = f"""{SCRIPT}
import asyncio
async def cell():
    agent.web(port=0, open_browser=False)
    print("the cell has ended")
asyncio.run(cell())
"""
Run = Callable[..., AbstractContextManager[tuple[subprocess.Popen[str], str]]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that starts a program with an empty home, and the address that it prints."""

    @contextmanager
    def start(*words: str, **variables: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
        home = {"HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"}
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "DISPLAY", "WAYLAND"))
        }
        pipe = subprocess.PIPE
        with subprocess.Popen(
            [sys.executable, *words],
            cwd=tmp_path,
            stdout=pipe,
            stderr=pipe,
            text=True,
            env={**kept, **home, **variables},
        ) as process:
            try:
                assert process.stdout is not None
                line = " "
                while line and "http://" not in line:
                    line = process.stdout.readline()
                assert line, process.communicate()[1]
                yield process, line.split()[-1]
            finally:
                process.kill()

    return start


def ask(url: str, agent: str, text: str) -> list[dict[str, Any]]:
    body = json.dumps({"agent": agent, "text": text, "conversation": "c"}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{url}/api/runs?follow", body), timeout=60) as reply:
        return [json.loads(line[6:]) for line in reply.read().decode().splitlines() if line.startswith("data: ")]


def text_in(events: list[dict[str, Any]]) -> str:
    return "".join(event["text"] for event in events if event["type"] == "text")


def test_without_an_agent_a_demonstration_answers_from_its_documents_and_asks_before_it_acts(run: Run) -> None:
    with run("-m", "jackfield", "web", "--port", "0") as (_, url):
        assert "4 pounds" in text_in(ask(url, "mill-guide", "What does a bag of flour cost?"))
        assert "1741年" in text_in(ask(url, "mill-guide", "磨坊建于哪一年？"))
        with urllib.request.urlopen(f"{url}/api/agents", timeout=60) as reply:
            suggestions = json.load(reply)["agents"][0]["suggestions"]
        assert "From the documents" in text_in(ask(url, "mill-guide", suggestions[0])), "what is suggested is answered"
        end = ask(url, "mill-guide", 'call book_tour {"day": "Sunday", "people": 4}')[-1]
        assert [call["name"] for call in end["waiting"]] == ["book_tour"]


def test_the_browser_opens_the_page(run: Run, tmp_path: Path) -> None:
    (tmp_path / "browser").write_text('#!/bin/sh\necho "$1" > visited\n')
    (tmp_path / "browser").chmod(0o755)
    (tmp_path / "ours.py").write_text(SCRIPT)
    browser = f"{tmp_path / 'browser'} %s"
    with run("-m", "jackfield", "web", "helper=ours:agent", "--port", "0", BROWSER=browser) as (process, url):
        assert text_in(ask(url, "helper", "Hi")) == "hello"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert (tmp_path / "visited").read_text().strip() == url


def test_an_agent_serves_its_own_page_until_it_is_interrupted(run: Run) -> None:
    program = f"{SCRIPT}\nagent.web(port=0, open_browser=False)\nprint('stopped')"
    with run("-c", program) as (process, url):
        assert text_in(ask(url, "潮汐 helper", "Hi")) == "hello"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        assert output.endswith("stopped\n")
        assert errors == ""


def test_in_a_notebook_the_cell_ends_when_it_is_interrupted(run: Run) -> None:
    with run("-c", NOTEBOOK) as (process, url):
        assert text_in(ask(url, "潮汐 helper", "Hi")) == "hello"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[0].endswith("the cell has ended\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "0.0.0.0"], "pass --token-file"),
        (["none.yaml"], "no agent file 'none.yaml'"),
        (["--workers", "2", "--store", "sqlite"], "need an agent file or module:agent"),
    ],
)
def test_what_cannot_be_served_is_an_error_with_the_next_step(arguments: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        main([*arguments, "--port", "0"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"address": 5}, "address must be a host address"),
        ({"port": "8000"}, "port must be a number from 0 to 65535"),
        ({"port": 65536}, "port must be between 0 and 65535, got 65536"),
        ({"store": 7}, "store must be the name of a store"),
        ({"token_file": 3}, "token_file must be a path"),
        ({"open_browser": "no"}, "open_browser must be True or False"),
        ({"address": "0.0.0.0"}, "pass --token-file"),
    ],
)
def test_the_page_of_an_agent_names_a_wrong_argument(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        FnCallAgent(llm=ScriptedModel([])).web(**arguments)
