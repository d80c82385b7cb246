"""What the tests share: a clock, models that follow a script, and what comes out of a call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from jackfield.events import ModelEvent
from jackfield.models import BaseChatModel
from jackfield.request import ModelFacts
from jackfield.testing import ScriptedModel
from jackfield_fallback.processor import Fallback
from jackfield_testkit.streams import gathered

Step = Sequence[ModelEvent | Exception]


class Clock:
    """Seconds, which pass when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def scripted() -> Callable[..., ScriptedModel]:
    """A model by its name, its steps, and what else a model takes; a fallback is its only processor."""

    def scripted(name: str, *steps: Step, fallback: Fallback | None = None, **config: Any) -> ScriptedModel:
        facts = config.pop("facts", ModelFacts(images=True))
        processors = config.pop("processors", [fallback] if fallback else [])
        return ScriptedModel(steps, facts=facts, config={"model": name, **config}, processors=processors)

    return scripted


@pytest.fixture(scope="session")
def ask() -> Callable[..., list[ModelEvent]]:
    """The events that a model gives for a text."""

    def ask(model: BaseChatModel, said: Any = "hello", *functions: Any, **options: Any) -> list[ModelEvent]:
        return asyncio.run(gathered(model.astream([{"role": "user", "content": said}], functions, **options)))

    return ask
