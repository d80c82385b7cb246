"""The face `openai`: agents as models of OpenAI's APIs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router

from jackfield.config import Config
from jackfield.servers import ASGIApp, HttpServer, Refusal, ServingLike, write_json
from jackfield_openai_server.chat import ChatCompletions
from jackfield_openai_server.conversations import Conversations
from jackfield_openai_server.errors import ParameterError, error_object
from jackfield_openai_server.models import Models
from jackfield_openai_server.responses import Responses
from jackfield_openai_server.sse import ClientLeftError
from jackfield_serving import Serving


class OpenAIServerConfig(Config):
    """The settings of the face."""


class OpenAIServer(HttpServer):
    """Serves agents to every OpenAI client: each agent is a model."""

    name: ClassVar[str] = "openai"
    config_class = OpenAIServerConfig
    paths = ("/v1",)

    def app(self, serving: ServingLike) -> ASGIApp:
        """Return the application."""
        service = cast(Serving, serving)
        chat, models, conversations = ChatCompletions(service), Models(service), Conversations(service)
        responses = Responses(service, conversations)
        routes = [
            _route("/v1/chat/completions", POST=chat.create),
            _route("/v1/responses", POST=responses.create),
            _route("/v1/responses/{response_id}", GET=responses.retrieve, DELETE=responses.delete),
            _route("/v1/responses/{response_id}/cancel", POST=responses.cancel),
            _route("/v1/responses/{response_id}/input_items", GET=responses.input_items),
            _route("/v1/conversations", POST=conversations.create),
            _route("/v1/conversations/{conversation_id}", GET=conversations.retrieve, DELETE=conversations.delete),
            _route("/v1/conversations/{conversation_id}/items", GET=conversations.items),
            _route("/v1/conversations/{conversation_id}/items/{item_id}", GET=conversations.item),
            _route("/v1/models", GET=models.list_all),
            _route("/v1/models/{name:path}", GET=models.retrieve),
        ]
        return Router(routes, redirect_slashes=False)

    def refusal(self, refusal: Refusal) -> tuple[str, bytes]:
        """Return an error in OpenAI's form."""
        return "application/json", write_json({"error": error_object(refusal)})


_Handler = Callable[[Request], Awaitable[Response]]


def _route(path: str, **handlers: _Handler) -> Route:
    async def handle(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        try:
            return await handlers[method](request)
        except ParameterError as error:
            return JSONResponse({"error": error_object(error.refusal, error.param)}, error.status)
        except ClientLeftError:
            return Response()

    return Route(path, handle, methods=list(handlers))
