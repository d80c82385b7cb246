"""Questions raised by running calls, such as those of MCP servers, for a client of the run to answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from jackfield.messages import FunctionCall
from jackfield.tools import Decision, Denial, ToolContext
from jackfield_serving.views import WaitingCall

QUESTION = "jackfield-serving.question"
"""The name of the `PluginEvent` for a question; its data has `call_id` (the key of the answer), `name`, `arguments`."""
_MOST = 100
Answer: TypeAlias = Decision | Mapping[str, object]


class Questions:
    """The questions raised in one run.

    Args:
        publish: Called with each question.
    """

    def __init__(self, publish: Callable[[WaitingCall], None]) -> None:
        self._publish = publish
        self._waiting: dict[str, tuple[WaitingCall, asyncio.Future[Answer]]] = {}
        self._count = 0

    async def ask(self, call: FunctionCall, context: ToolContext[Any]) -> Answer:
        """Raise a call's question and wait for the answer; see `Agent.astream`."""
        if len(self._waiting) >= _MOST:
            return False
        self._count += 1
        question = WaitingCall(call_id=f"{context.call_id}?{self._count}", call=call, kind="question")
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[question.call_id] = (question, future)
        try:
            self._publish(question)
            return await future
        finally:
            del self._waiting[question.call_id]

    def waiting(self) -> tuple[WaitingCall, ...]:
        """Return the unanswered questions."""
        return tuple(question for question, future in self._waiting.values() if not future.done())

    def answer(self, answers: Mapping[str, Any]) -> bool:
        """Answer questions. If any id or answer does not fit, answer none and return False."""
        questions = {question.call_id: question for question in self.waiting()}
        if not questions.keys() >= answers.keys():
            return False
        if not all(_fits(answer, questions[call_id]) for call_id, answer in answers.items()):
            return False
        for call_id, answer in answers.items():
            self._waiting[call_id][1].set_result(answer)
        return True


def _fits(answer: object, question: WaitingCall) -> bool:
    if isinstance(answer, Mapping):
        return "form" in json.loads(question.call.arguments)
    return isinstance(answer, bool | Denial)
