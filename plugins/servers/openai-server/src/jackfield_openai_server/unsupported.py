"""Refuse unsupported routes of OpenAI's API with a reason and a next step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from jackfield.servers import RequestRefusedError

Handler = Callable[[Request], Awaitable[Response]]

UNSAVED = "chat completions are not stored: use /v1/responses to read or delete responses later"
MODELS = "agents are configured on the server and cannot be deleted here"
_FILES = "files cannot be uploaded: send them in the request, as image_url or file_data"
ITEMS = "items cannot be added to a conversation directly: send them as input to /v1/responses"
_BATCHES = "batches are not available: send each request with background=true"
ROUTES: dict[str, dict[str, str]] = {
    "/v1/chat/completions/{completion_id}": {"GET": UNSAVED, "POST": UNSAVED, "DELETE": UNSAVED},
    "/v1/chat/completions/{completion_id}/messages": {"GET": UNSAVED},
    "/v1/responses/input_tokens": {
        "POST": "tokens are counted by the agent's model: read usage.input_tokens of a response"
    },
    "/v1/files": {"GET": _FILES, "POST": _FILES},
    "/v1/files/{path:path}": {"GET": _FILES, "POST": _FILES, "DELETE": _FILES},
    "/v1/uploads": {"POST": _FILES},
    "/v1/uploads/{path:path}": {"POST": _FILES},
    "/v1/completions": {"POST": "agents expect messages: use /v1/chat/completions or /v1/responses"},
    "/v1/moderations": {"POST": "no moderation model is available: add a guardrail to the agent"},
    "/v1/images/{path:path}": {"POST": "agents generate images with their tools: ask for an image in /v1/responses"},
    "/v1/audio/{path:path}": {"POST": "agents accept audio as input_audio in /v1/chat/completions, but generate none"},
    "/v1/batches": {"GET": _BATCHES, "POST": _BATCHES},
}
UPDATE = "conversations store no metadata: send metadata with each response"


def refuse(reason: str) -> Handler:
    """Return a handler that refuses requests for the given reason."""

    async def handle(request: Request) -> Response:
        message = f"{request.method} {request.url.path[:100]} is not supported: {reason}"
        raise RequestRefusedError(message, status=404, code="unsupported_endpoint")

    return handle
