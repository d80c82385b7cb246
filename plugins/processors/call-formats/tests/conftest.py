"""How these tests write a history and read a reply: as a list of texts and calls, however it was cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from jackfield.config import GenerateConfig
from jackfield.events import ModelEvent, ModelFinished, TextDelta
from jackfield.messages import FunctionCall, Message, ModelResponse, as_messages
from jackfield.models import fold
from jackfield.processors import CallFormat
from jackfield.request import ChatRequest
from jackfield_call_formats.nous import NousFormat
from jackfield_call_formats.qwen import QwenFormat
from jackfield_call_formats.qwen3_coder import Qwen3CoderFormat
from jackfield_call_formats.react import ReActFormat

FORMATS: dict[str, CallFormat] = {
    "nous": NousFormat(code_mode=False),
    "nous with code": NousFormat(code_mode=True),
    "qwen": QwenFormat(),
    "qwen3_coder": Qwen3CoderFormat(),
    "react": ReActFormat(),
}


def _request(*messages: Any, functions: Any = (), lang: Any = "en", **config: Any) -> ChatRequest:
    return ChatRequest("m", as_messages(messages), tuple(functions), GenerateConfig(**config), lang)


def _feed(
    events: Sequence[ModelEvent], fmt: str = "nous", *, functions: Any = (), begins_in_thought: bool = False, **cfg: Any
) -> list[ModelEvent]:
    reader = FORMATS[fmt].reader(_request(functions=functions, thought_in_content=begins_in_thought, **cfg))
    return [out for event in events for out in reader.feed(event)]


def _read(*pieces: str, reason: str = "stop", **options: Any) -> ModelResponse:
    return fold(_feed([*map(TextDelta, pieces), ModelFinished(reason)], **options))


def _write(fmt: str, *calls: tuple[str, str], functions: Any, text: str = "") -> str:
    """The assistant's text that these calls of the past become."""
    told = [Message("assistant", text)] if text else []
    told += [Message("assistant", "", function_call=FunctionCall(name, arguments)) for name, arguments in calls]
    request = _request(Message("user", "Go."), *told, functions=functions)
    return FORMATS[fmt].render(request).messages[-1].get_text_content()


@pytest.fixture(scope="session")
def request_of() -> Callable[..., ChatRequest]:
    """A request with messages, functions, a language and a configuration."""
    return _request


@pytest.fixture(scope="session")
def formats() -> dict[str, CallFormat]:
    """Every format by its name; `nous` twice."""
    return FORMATS


@pytest.fixture(scope="session")
def write() -> Callable[..., str]:
    """Calls as a format writes them."""
    return _write


@pytest.fixture(scope="session")
def feed() -> Callable[..., list[ModelEvent]]:
    """Events through a new reader."""
    return _feed


@pytest.fixture(scope="session")
def read() -> Callable[..., ModelResponse]:
    """Pieces of text through a new reader, folded."""
    return _read


@pytest.fixture(scope="session")
def told() -> Callable[[ModelResponse], list[Any]]:
    """An answer as its text (if any) and a pair for each call."""

    def tell(response: ModelResponse) -> list[Any]:
        return [
            (message.function_call.name, message.function_call.arguments) if message.function_call else message.content
            for message in response.messages
        ]

    return tell
