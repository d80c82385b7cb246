"""Compact conversations to a summary that later requests send instead: `/v1/responses/compact`."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from jackfield.messages import Message
from jackfield.servers import RequestRefusedError, read_object, write_json
from jackfield_openai_server.errors import ParameterError
from jackfield_openai_server.response_request import read_response_request, seal_summary
from jackfield_openai_server.responses import Responses

_KNOWN = ("model", "input", "instructions", "previous_response_id", "prompt_cache_key")
_TASK = (
    "Summarise the conversation above for a reader who continues it: the wishes of the user, decisions, facts, results "
    "of tools and open questions. Write the summary only."
)


class Compaction:
    """Request handler for compacting conversations.

    Args:
        responses: The Responses API.
    """

    def __init__(self, responses: Responses) -> None:
        self._responses = responses

    async def create(self, request: Request) -> Response:
        """Have the agent's model summarise a conversation, without tools and in a temporary run."""
        table = read_object(await request.body())
        for name in table:
            if name not in _KNOWN:
                raise ParameterError(f"Unknown parameter: {name[:60]!r}.", param=name[:60], code="unknown_parameter")
        question = read_response_request({name: value for name, value in table.items() if value is not None})
        if not question.messages and not question.previous:
            raise ParameterError("Nothing to compact: send input or previous_response_id.", param="input")
        answer = await self._responses.complete(
            replace(
                question,
                messages=[*question.messages, Message("user", _TASK)],
                config={"function_choice": "none"},
                answers={},
            ),
            request,
        )
        texts = [part["text"] for item in answer["output"] if item["type"] == "message" for part in item["content"]]
        if answer["status"] != "completed" or not texts:
            reason = (answer["error"] or {}).get("message", "the model returned no summary")
            raise RequestRefusedError(f"cannot compact the conversation: {reason}", status=500, code="server_error")
        identity = uuid.uuid4().hex
        item: dict[str, Any] = {
            "type": "compaction",
            "id": f"cmp_{identity}",
            "encrypted_content": seal_summary("\n".join(texts)),
        }
        compacted = {
            "id": f"resp_{identity}",
            "object": "response.compaction",
            "created_at": int(time.time()),
            "output": [item],
            "usage": answer["usage"],
        }
        return Response(write_json(compacted), media_type="application/json")
