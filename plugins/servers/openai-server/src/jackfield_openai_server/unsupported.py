"""Refuse unsupported routes of OpenAI's API with a reason and a next step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from jackfield.servers import RequestRefusedError

Handler = Callable[[Request], Awaitable[Response]]

UNSAVED = "chat completions are not stored: use /v1/responses, whose responses can be read and deleted"
MODELS = "agents are configured at the server: they cannot be deleted here"
_FILES = "files are not uploaded: send them in the request, as image_url or file_data"
ITEMS = "items of a conversation come from its responses: send them as input of /v1/responses"
_BATCHES = "there are no batches: send each request with background=true"
ROUTES: dict[str, dict[str, str]] = {
    "/v1/chat/completions/{completion_id}": {"GET": UNSAVED, "POST": UNSAVED, "DELETE": UNSAVED},
    "/v1/chat/completions/{completion_id}/messages": {"GET": UNSAVED},
    "/v1/responses/input_tokens": {
        "POST": "tokens are counted by the agent's model: read usage of a response, which has input_tokens"
    },
    "/v1/files": {"GET": _FILES, "POST": _FILES},
    "/v1/files/{path:path}": {"GET": _FILES, "POST": _FILES, "DELETE": _FILES},
    "/v1/uploads": {"POST": _FILES},
    "/v1/uploads/{path:path}": {"POST": _FILES},
    "/v1/completions": {"POST": "agents have conversations: use /v1/chat/completions or /v1/responses"},
    "/v1/moderations": {"POST": "there is no moderation model: add a guardrail to the agent"},
    "/v1/images/{path:path}": {"POST": "agents make images by their tools: ask one in /v1/responses"},
    "/v1/audio/{path:path}": {"POST": "agents take audio as input_audio of /v1/chat/completions, and make none"},
    "/v1/batches": {"GET": _BATCHES, "POST": _BATCHES},
}
UPDATE = "conversations have no metadata: send metadata with each response"


def refuse(reason: str) -> Handler:
    """Return a handler that refuses requests for the given reason."""

    async def handle(request: Request) -> Response:
        message = f"{request.method} {request.url.path[:100]} is not supported: {reason}"
        raise RequestRefusedError(message, status=404, code="unsupported_endpoint")

    return handle
