"""Questions of running calls, such as those of MCP servers, that a client of the run answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from jackfield.messages import FunctionCall
from jackfield.tools import ToolContext
from jackfield_serving.views import WaitingCall

QUESTION = "jackfield-serving.question"
"""The name of the `PluginEvent` for a question; its data has `call_id` (the key of the answer), `name`, `arguments`."""
_MOST = 100


class Questions:
    """The questions of one run.

    Args:
        publish: Gets each question.
    """

    def __init__(self, publish: Callable[[WaitingCall], None]) -> None:
        self._publish = publish
        self._waiting: dict[str, tuple[WaitingCall, asyncio.Future[bool]]] = {}
        self._count = 0

    async def ask(self, call: FunctionCall, context: ToolContext[Any]) -> bool:
        """Wait for the answer to a question of a call; see `Agent.astream`."""
        if len(self._waiting) >= _MOST:
            return False
        self._count += 1
        question = WaitingCall(call_id=f"{context.call_id}?{self._count}", call=call, kind="question")
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[question.call_id] = (question, future)
        try:
            self._publish(question)
            return await future
        finally:
            del self._waiting[question.call_id]

    def waiting(self) -> tuple[WaitingCall, ...]:
        """Return the questions without an answer."""
        return tuple(question for question, future in self._waiting.values() if not future.done())

    def answer(self, answers: Mapping[str, Any]) -> bool:
        """Answer questions; return False, and answer none, if one of the ids or answers does not fit."""
        open_ids = {question.call_id for question in self.waiting()}
        if not open_ids.issuperset(answers) or not all(isinstance(answer, bool) for answer in answers.values()):
            return False
        for call_id, answer in answers.items():
            self._waiting[call_id][1].set_result(answer)
        return True
