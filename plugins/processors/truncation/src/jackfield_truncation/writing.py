"""Ask a model for a summary, either the conversation's own model or another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from jackfield.config import Lang
from jackfield.errors import ModelResponseError
from jackfield.events import PluginEvent
from jackfield.messages import Message, Usage
from jackfield.models import BaseChatModel, Fold
from jackfield.processors import CallNext
from jackfield.request import ChatRequest
from jackfield.streams import closing

FAILED_EVENT = "jackfield-truncation.summary_failed"

_FAILED = {"en": "the dropped part could not be summarised ({why})", "zh": "省略的内容未能写成摘要（{why}）"}
_ANSWER_TOKENS = 2048  # enough for a model that reasons before it writes


@dataclass(slots=True)
class Spent:
    """The usage of summaries, including failed attempts."""

    usage: Usage = field(default_factory=Usage)


def sizes_of_question(llm: BaseChatModel | None, limit: int, room: int) -> tuple[int, int]:
    """Return the maximum tokens for a summary request including its answer, and for the answer alone.

    Args:
        llm: The model that writes the summary, or None for the conversation's own model.
        limit: The maximum length of a request in the conversation.
        room: The maximum length of the summary.
    """
    if llm and llm.facts.context_tokens:
        limit = min(limit, llm.facts.context_tokens * 9 // 10)
    return limit, min(max(_ANSWER_TOKENS, 4 * room), limit // 4)


def request_for(request: ChatRequest, messages: Sequence[Message], answer_tokens: int) -> ChatRequest:
    """Return a request for a summary, based on the original request."""
    changes = {
        "max_tokens": answer_tokens,
        "max_input_tokens": None,
        "stop": (),
        "response_format": None,
        "function_choice": "auto",
    }
    return replace(request, messages=tuple(messages), functions=(), config=request.config.model_copy(update=changes))


async def summary_from(llm: BaseChatModel | None, request: ChatRequest, call_next: CallNext, spent: Spent) -> str:
    """Ask a model for a summary, and add the usage to `spent`.

    Raises:
        ModelResponseError: The answer has no text.
        ModelServiceError: The model failed.
    """
    if llm is None:
        events = call_next(request)
    else:
        events = llm.astream(request.messages, config={"max_tokens": request.config.max_tokens, "lang": request.lang})
    answer = Fold()
    try:
        async with closing(events):
            async for event in events:
                answer.feed(event)
    finally:
        spent.usage += answer.usage
    text = answer.text.strip()
    if answer.finished is None or not text:
        raise ModelResponseError("the model that writes summaries returned no text", partial_text=text)
    return text


def failed(error: Exception, lang: Lang) -> PluginEvent:
    """Return an event that reports a failed summary."""
    why = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return PluginEvent(FAILED_EVENT, {"error": type(error).__name__, "note": _FAILED[lang].format(why=why)})
