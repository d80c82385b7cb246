"""What the ways to ask need of a model. `BaseChatModel` is one; tests and wrappers may be others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol

from jackfield.config import Lang, LLMConfig
from jackfield.events import ModelEvent
from jackfield.messages import Messages, ModelResponse
from jackfield.request import FunctionSchema, GenerateOptions, ModelFacts


class Model(Protocol):
    """See `BaseChatModel`.

    `backend` is not among these: a subclass that sets it as a plain attribute would be no such model to pyright.
    """

    config: LLMConfig

    @property
    def address(self) -> str: ...

    @property
    def facts(self) -> ModelFacts: ...

    def astream(
        self,
        messages: Messages,
        functions: Sequence[FunctionSchema] = (),
        *,
        config: GenerateOptions = None,
        metadata: Mapping[str, Any] | None = None,
        lang: Lang | None = None,
    ) -> AsyncIterator[ModelEvent]: ...

    async def acomplete(
        self,
        messages: Messages,
        functions: Sequence[FunctionSchema] = (),
        *,
        config: GenerateOptions = None,
    ) -> ModelResponse: ...
