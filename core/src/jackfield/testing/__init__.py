"""A scripted model for testing code that uses models. The model follows the protocol and needs no network."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from jackfield.config import LLMConfig
from jackfield.errors import ConfigError
from jackfield.events import (
    FunctionCallDelta,
    ModelEvent,
    ModelFinished,
    ReasoningDelta,
    TextDelta,
    UsageReported,
)
from jackfield.jsontext import dumps
from jackfield.messages import Usage
from jackfield.models._base import BaseChatModel
from jackfield.plugins._protocol import Plugins
from jackfield.plurals import format_count
from jackfield.processors import Processor
from jackfield.request import ChatRequest, ModelFacts

__all__ = ["Script", "ScriptedModel", "Step", "answer", "calls"]

Step = Sequence[ModelEvent | Exception]
Script = Sequence[Step] | Callable[[ChatRequest], Step]


def answer(text: str, *, reasoning: str = "", usage: Usage | None = None) -> list[ModelEvent]:
    """Return the events of a text answer. Each event contains a few characters."""
    events: list[ModelEvent] = [ReasoningDelta(reasoning)] if reasoning else []
    events += [TextDelta(text[start : start + 7]) for start in range(0, len(text), 7)]
    return [*events, UsageReported(usage or Usage(prompt_tokens=1, completion_tokens=1)), ModelFinished("stop")]


def calls(*wanted: tuple[str, dict[str, object]], text: str = "") -> list[ModelEvent]:
    """Return the events of an answer with tool calls. Each call is a (name, arguments) pair. The ids are `call_1`, …"""
    events: list[ModelEvent] = [TextDelta(text)] if text else []
    for index, (name, arguments) in enumerate(wanted):
        events.append(FunctionCallDelta(index, id=f"call_{index + 1}", name=name, arguments=dumps(arguments)))
    return [*events, UsageReported(Usage(prompt_tokens=1, completion_tokens=1)), ModelFinished("tool_calls")]


class ScriptedModel(BaseChatModel):
    """Model that answers with the steps of a script, in order.

    An exception in a step is raised when the model reaches that step.

    Args:
        script: The events of each answer, or a function from the request to the events.
        facts: The capabilities that the model declares.
        config: As for any model. Defaults to `{"model": "scripted"}`.
        processors, host: As for any model.

    The requests that the model received, after all processors, are in `requests`.
    """

    backend = "scripted"

    def __init__(
        self,
        script: Script,
        *,
        facts: ModelFacts | None = None,
        config: LLMConfig | Mapping[str, object] | None = None,
        processors: Sequence[Processor] | None = None,
        host: Plugins | None = None,
    ) -> None:
        super().__init__(config or LLMConfig(model="scripted"), processors=processors, host=host)
        given = self.config.generate_cfg
        if "max_retries" not in given.model_fields_set:  # retries would consume the script's answers
            self.config = self.config.model_copy(update={"generate_cfg": given.merged({"max_retries": 0})})
        self._script = script
        self._facts = facts or ModelFacts()
        self.requests: list[ChatRequest] = []

    @property
    def facts(self) -> ModelFacts:
        """The capabilities passed to the constructor."""
        return self._facts

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        """Yield the events of the next step."""
        self.requests.append(request)
        for event in self._next_step(request):
            if isinstance(event, Exception):
                raise event
            yield event

    def _next_step(self, request: ChatRequest) -> Step:
        if callable(self._script):
            return self._script(request)
        if len(self.requests) > len(self._script):
            raise ConfigError(
                f"the script has only {format_count(len(self._script), 'answer')}, but another was requested"
            )
        return self._script[len(self.requests) - 1]
