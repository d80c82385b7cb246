"""No agent kind drops a file in silence, however the file is handed over, and whatever it is."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from reportlab.pdfgen.canvas import Canvas

from jackfield import Message, create_agent
from jackfield.agents import Agent
from jackfield.errors import JackfieldError
from jackfield.messages import ContentItem
from jackfield.plugins import default_host
from jackfield.testing import ScriptedModel, answer

MEMBERS = [
    {"agent": "basic", "name": "bo", "description": "Paints."},
    {"agent": "basic", "name": "al", "description": "Asks."},
]
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "group_chat": {"agents": MEMBERS, "agent_selection_method": "round_robin", "max_round": 1},
    "group_chat_auto_router": {"agents": MEMBERS},
    "router": {"agents": MEMBERS},
    "dialogue_simulator": {"user_agent": MEMBERS[1], "assistant_agent": MEMBERS[0], "max_round": 1},
}
"""The options that a kind needs."""
SEES_NAMES = {"group_chat_auto_router"}
"""Kinds that only choose an agent, which then gets the file."""
NOT_ASKED = {"user"}
"""Kinds without a model."""
SECRET = "The password is marmalade."


def _pdf() -> bytes:
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.drawString(72, 700, SECRET)
    canvas.save()
    return file.getvalue()


CONTENTS: Mapping[str, Callable[[], bytes] | None] = {
    "readable.txt": SECRET.encode,
    "readable.pdf": _pdf,
    "damaged.pdf": lambda: b"%PDF-1.7",
    "unsupported.xyz": lambda: bytes(range(256)),
    "missing.txt": None,
}


def _kinds() -> list[str]:
    return sorted({"basic", "fncall", *default_host().names("agent")} - NOT_ASKED)


def _make(kind: str, model: ScriptedModel, **options: Any) -> Agent:
    return create_agent(kind, llm=model, **OPTIONS.get(kind, {}), **options)


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("way", ["files", "message"])
@pytest.mark.parametrize("kind", _kinds())
def test_a_file_reaches_the_model_or_is_named(
    kind: str, way: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some kinds keep what they know below the working directory
    path, make = tmp_path / name, CONTENTS[name]
    if make:
        path.write_bytes(make())
    model = ScriptedModel(lambda _: answer("Marmalade."))
    agent = _make(kind, model, **({"files": [str(path)]} if way == "files" else {}))
    items = [ContentItem(text="What is the password?"), *([ContentItem(file=str(path))] if way == "message" else [])]
    reports = _ask(agent, Message("user", items))
    sent = json.dumps([message.model_dump() for request in model.requests for message in request.messages])
    has_tool = any(tool.safety().file_access for tool in agent.function_map.values())
    is_named = name in sent and (has_tool or kind in SEES_NAMES)
    if name.startswith("readable"):
        assert SECRET in sent + reports or is_named, reports
    elif name.startswith("missing"):
        assert name in reports
        assert model.requests == []
    else:
        assert name in reports or is_named


def _ask(agent: Agent, question: Message) -> str:
    """Return what the caller is told: the answer and the warnings, or the error."""
    try:
        result = agent.ask(question)
    except JackfieldError as error:
        return str(error)
    return "\n".join([result.text, *result.warnings])
