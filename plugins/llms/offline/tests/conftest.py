"""A studio's two documents, and how to ask the model about them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from jackfield import get_chat_model
from jackfield.messages import ModelResponse

_ENGLISH = """[page: 1]
The studio has 3 rooms. Each panel has 48 sockets and 12 lamps.

[page: 2]
Version 1.2.3 of the desk was bought for 60,000 francs in May. Its lamps are green, and
burn for 2.5 million hours."""
_CHINESE = """# 手册

每条线缆长 300 厘米。录音室每年接待 3 万名听众。

| 设备 | 数量 | 单位 |
|---|---|---|
| 麦克风 | 25 | 支 |

- 休息时间是 15 分钟，不得打扰。"""


def _fenced(text: str) -> str:
    return f"```\n{text}\n```"


@pytest.fixture(scope="session")
def knowledge() -> str:
    """An English and a Chinese document, as an assistant shows them."""
    return (
        "Answer from what you know.\n\n# Knowledge Base\n\n"
        f"## The content from [file](studio.pdf):\n\n{_fenced(_ENGLISH)}\n\n"
        f"## The content from [file](手册.md):\n\n{_fenced(_CHINESE)}"
    )


@pytest.fixture(scope="session")
def schemas() -> list[dict[str, Any]]:
    """Three tools: one text, one text of two, and a number."""

    def schema(name: str, required: Sequence[str], **types: str) -> dict[str, Any]:
        properties = {key: {"type": value} for key, value in types.items()}
        parameters = {"type": "object", "properties": properties, "required": list(required)}
        return {"name": name, "description": "", "parameters": parameters}

    return [
        schema("code_interpreter", ["code"], code="string"),
        schema("web_search", ["query"], query="string", limit="integer"),
        schema("wait", ["minutes"], minutes="integer"),
    ]


@pytest.fixture(scope="session")
def ask(knowledge: str, schemas: list[dict[str, Any]]) -> Callable[..., ModelResponse]:
    """Ask the model: with the documents as system message unless told otherwise, and with the tools."""
    model = get_chat_model("offline:extractive")

    def ask(*messages: Any, system: str | None = None, functions: Any = None, **config: Any) -> ModelResponse:
        from jackfield import sync

        head = {"role": "system", "content": knowledge if system is None else system}
        asked = [{"role": "user", "content": entry} if isinstance(entry, str) else entry for entry in messages]
        offered = schemas if functions is None else functions
        return sync.run(model.acomplete([head, *asked], offered, config={"lang": "en", **config}))

    return ask


@pytest.fixture(scope="session")
def made() -> Callable[[ModelResponse], list[tuple[str, Any]]]:
    """The calls of an answer, arguments parsed."""
    return lambda response: [(call.name, json.loads(call.arguments)) for call in response.get_function_calls()]
