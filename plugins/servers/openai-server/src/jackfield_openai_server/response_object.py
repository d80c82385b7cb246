"""Build responses and their items in the format of OpenAI and Open Responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jackfield.events import RunFailed
from jackfield.media import split_data_uri, write_data_uri
from jackfield.messages import ContentItem, Message, Usage
from jackfield.servers import failure_of
from jackfield_openai_server.calls import outer_id
from jackfield_openai_server.citations import annotations_of
from jackfield_openai_server.items import AnswerEnded, CallItem, TextItem
from jackfield_serving import public_address

_DEFAULTS: Mapping[str, Any] = {
    "instructions": None,
    "previous_response_id": None,
    "tools": [],
    "tool_choice": "auto",
    "truncation": "auto",
    "parallel_tool_calls": True,
    "text": {"format": {"type": "text"}},
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "top_logprobs": 0,
    "temperature": 1.0,
    "reasoning": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "store": True,
    "background": False,
    "service_tier": "default",
    "metadata": {},
    "safety_identifier": None,
    "prompt_cache_key": None,
    "user": None,
}
_ERROR_CODES = {"rate_limit_exceeded": "rate_limit_exceeded", "server_error": "server_error"}


@dataclass(frozen=True, kw_only=True)
class ResponseHead:
    """The constant parts of a response.

    Attributes:
        id: The response id.
        run_id: The id of the response's run.
        model: The agent's name.
        created: The Unix time at which the run began.
        echo: The request fields that the response repeats.
        previous: The id of the previous response in the same run, or None.
        spent: The usage of the run before this response.
    """

    id: str
    run_id: str
    model: str
    created: int
    echo: Mapping[str, Any] = field(default_factory=dict)
    previous: str | None = None
    spent: Usage = field(default_factory=Usage)


def response_object(
    head: ResponseHead, *, status: str, output: Sequence[Mapping[str, Any]] = (), end: AnswerEnded | None = None
) -> dict[str, Any]:
    """Return a response object."""
    echo = {**_DEFAULTS, **head.echo}
    conversation = echo.pop("conversation", None)
    if head.previous is not None:
        echo["previous_response_id"] = head.previous
    incomplete = None
    error = None
    completed = None
    if end is not None:
        status, incomplete, error = _outcome(end)
        completed = int(end.ended) if status == "completed" and end.ended is not None else None
    return {
        "id": head.id,
        "object": "response",
        "created_at": head.created,
        "completed_at": completed,
        "status": status,
        "error": error,
        "incomplete_details": incomplete,
        "model": head.model,
        "output": list(output),
        **echo,
        "text": {"format": {"type": "text"}, **echo["text"]},
        "reasoning": {"effort": None, "summary": None, **echo["reasoning"]} if echo["reasoning"] else None,
        "tools": [_tool(tool) for tool in echo["tools"]],
        "usage": _usage(end.usage, head.spent) if end is not None else None,
        **({"conversation": {"id": conversation}} if conversation else {}),
    }


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": None, "parameters": None, "strict": None, **tool}


def _outcome(end: AnswerEnded) -> tuple[str, dict[str, str] | None, dict[str, str] | None]:
    """Return the values of `status`, `incomplete_details` and `error` for an ended response."""
    if isinstance(end.end, RunFailed):
        failure = failure_of(end.end)
        code = "invalid_prompt" if failure.status == 400 else _ERROR_CODES.get(failure.code, "server_error")
        return "failed", None, {"code": code, "message": str(failure)}
    stop_reason = end.end.stop_reason
    if stop_reason == "cancelled":
        return "cancelled", None, None
    if stop_reason in ("finished", "empty_reply", "approval_needed", "input_needed"):
        if end.finish_reason == "length":
            return "incomplete", {"reason": "max_output_tokens"}, None
        if end.finish_reason == "content_filter":
            return "incomplete", {"reason": "content_filter"}, None
        return "completed", None, None
    return "incomplete", {"reason": "max_output_tokens"}, None  # a limit of the run


def _usage(usage: Usage, spent: Usage) -> dict[str, Any]:
    used = {
        name: max(0, getattr(usage, name) - getattr(spent, name))
        for name in ("prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens")
    }
    return {
        "input_tokens": used["prompt_tokens"],
        "input_tokens_details": {
            "cached_tokens": used["cached_tokens"],
            "cache_write_tokens": used["cache_write_tokens"],
        },
        "output_tokens": used["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": used["reasoning_tokens"]},
        "total_tokens": used["prompt_tokens"] + used["completion_tokens"],
    }


def item_id(head: ResponseHead, item: TextItem | CallItem) -> str:
    """Return the id of an output item."""
    if isinstance(item, CallItem) and not item.is_of_client:
        return f"mcpr_{outer_id(item.call_id, head.run_id)}"
    kind = "fc" if isinstance(item, CallItem) else {"message": "msg", "reasoning": "rs"}[item.kind]
    return f"{kind}_{head.id.removeprefix('resp_')}_{item.index}"


def item_object(head: ResponseHead, item: TextItem | CallItem, *, status: str = "completed") -> dict[str, Any]:
    """Return an output item."""
    match item:
        case CallItem(is_of_client=True):
            return {
                "type": "function_call",
                "id": item_id(head, item),
                "call_id": outer_id(item.call_id, head.run_id),
                "name": item.call.name,
                "arguments": item.call.arguments if status == "completed" else "",
                "status": status,
            }
        case CallItem():
            return {
                "type": "mcp_approval_request",
                "id": item_id(head, item),
                "name": item.call.name,
                "arguments": item.call.arguments,
                "server_label": head.model,
            }
        case TextItem(kind="reasoning"):
            if status == "in_progress":
                return {"type": "reasoning", "id": item_id(head, item), "summary": []}
            # Some clients read one field, some the other.
            return {
                "type": "reasoning",
                "id": item_id(head, item),
                "summary": [{"type": "summary_text", "text": item.text}],
                "content": [{"type": "reasoning_text", "text": item.text}],
            }
    return {
        "type": "message",
        "id": item_id(head, item),
        "status": status if item.is_whole else "incomplete",
        "role": "assistant",
        "content": [text_part(item)] if status != "in_progress" else [],
    }


def text_part(item: TextItem) -> dict[str, Any]:
    """Return a message's text as a content part."""
    annotations = annotations_of(item)
    return {"type": "output_text", "text": item.text, "annotations": annotations, "logprobs": []}


def input_item(message: Message, identity: str) -> dict[str, Any] | None:
    """Convert an input message to an item, or return None if no item can represent it."""
    if message.role == "function":
        output = message.get_text_content()
        call_id = message.function_id or ""
        return {
            "type": "function_call_output",
            "id": identity,
            "call_id": call_id,
            "output": output,
            "status": "completed",
        }
    if message.function_call is not None:
        call = message.function_call
        return {
            "type": "function_call",
            "id": identity,
            "call_id": message.function_id or "",
            "name": call.name,
            "arguments": call.arguments,
            "status": "completed",
        }
    if message.role == "assistant":
        text = message.get_text_content()
        if not text:
            return None
        answer = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        return {"type": "message", "id": identity, "status": "completed", "role": "assistant", "content": [answer]}
    content = [_input_part(item) for item in message.items]
    return {"type": "message", "id": identity, "status": "completed", "role": message.role, "content": content}


def _input_part(item: ContentItem) -> dict[str, Any]:
    """Return a part of a question. Audio and video cannot be listed, so they become a text such as `[audio]`."""
    address = public_address(item)
    match item.type:
        case "text":
            return {"type": "input_text", "text": item.text}
        case "image" if address:
            return {"type": "input_image", "image_url": address, "detail": "auto"}
        case "file" if address:
            content = split_data_uri(address)
            if content is None:
                return {"type": "input_file", "file_url": address}
            media_type, data, name = content
            return {"type": "input_file", "file_data": write_data_uri(media_type, data), "filename": name or "file"}
    return {"type": "input_text", "text": f"[{item.type}]"}
