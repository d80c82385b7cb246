"""Serve agents as models over OpenAI's APIs: the face `openai`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, cast

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router, WebSocketRoute
from starlette.types import Receive, Scope, Send

from jackfield.config import Config
from jackfield.errors import ConfigError
from jackfield.plugins import Plugins, default_host
from jackfield.retrieval import Embedder, make_embedder
from jackfield.servers import ASGIApp, HttpServer, Refusal, ServingLike, write_json
from jackfield_openai_server.chat import ChatCompletions
from jackfield_openai_server.compaction import Compaction
from jackfield_openai_server.conversations import Conversations
from jackfield_openai_server.embeddings import Embeddings
from jackfield_openai_server.errors import ParameterError, error_object
from jackfield_openai_server.models import Models
from jackfield_openai_server.responses import Responses
from jackfield_openai_server.socket import ResponseSocket, refuse_plain_request
from jackfield_openai_server.unsupported import ITEMS, MODELS, ROUTES, UNSAVED, UPDATE, refuse
from jackfield_serving import ClientLeftError, EventStream, Serving


class OpenAIServerConfig(Config):
    """Settings of the face `openai`."""

    embedders: tuple[str | dict[str, Any], ...] = Field(
        default=(),
        description="Embedders that clients may use as models, each a name or a dict with `name` and settings. The "
        "model name is `model` if set, otherwise the name of the embedder",
    )


class OpenAIServer(HttpServer):
    """Face that serves each agent as a model to OpenAI clients."""

    name: ClassVar[str] = "openai"
    config_class = OpenAIServerConfig
    config: OpenAIServerConfig
    paths = ("/v1",)

    def __init__(
        self, cfg: Config | Mapping[str, object] | None = None, *, host: Plugins | None = None, **settings: Any
    ) -> None:
        super().__init__(cfg, **settings)
        plugins = default_host() if host is None else host
        self._embedders = dict(_make_embedder(entry, plugins) for entry in self.config.embedders)

    def app(self, serving: ServingLike) -> ASGIApp:
        """Return the ASGI application."""
        service = cast(Serving, serving)
        chat, conversations = ChatCompletions(service), Conversations(service)
        models, embeddings = Models(service, list(self._embedders)), Embeddings(self._embedders)
        responses = Responses(service, conversations)
        routes = [
            _route("/v1/chat/completions", POST=chat.create, GET=refuse(UNSAVED)),
            _route("/v1/responses", POST=responses.create, GET=refuse_plain_request),
            WebSocketRoute("/v1/responses", ResponseSocket(responses)),
            _route("/v1/responses/compact", POST=Compaction(responses).create),
            *(_route(path, **_refusals(reasons)) for path, reasons in ROUTES.items()),
            _route("/v1/responses/{response_id}", GET=responses.retrieve, DELETE=responses.delete),
            _route("/v1/responses/{response_id}/cancel", POST=responses.cancel),
            _route("/v1/responses/{response_id}/input_items", GET=responses.input_items),
            _route("/v1/conversations", POST=conversations.create),
            _route(
                "/v1/conversations/{conversation_id}",
                GET=conversations.retrieve,
                DELETE=conversations.delete,
                POST=refuse(UPDATE),
            ),
            _route("/v1/conversations/{conversation_id}/items", GET=conversations.items, POST=refuse(ITEMS)),
            _route("/v1/conversations/{conversation_id}/items/{item_id}", GET=conversations.item, DELETE=refuse(ITEMS)),
            _route("/v1/embeddings", POST=embeddings.create),
            _route("/v1/models", GET=models.list_all),
            _route("/v1/models/{name:path}", GET=models.retrieve, DELETE=refuse(MODELS)),
        ]
        return Router(routes, redirect_slashes=False)

    async def aclose(self) -> None:
        """Close the embedders."""
        for embedder in self._embedders.values():
            await embedder.aclose()

    def refusal(self, refusal: Refusal) -> tuple[str, bytes]:
        """Return an error in OpenAI's format as a content type and a body."""
        return "application/json", write_json({"error": error_object(refusal)})


def _make_embedder(entry: str | Mapping[str, Any], host: Plugins) -> tuple[str, Embedder]:
    """Create an embedder, and return its model name and the embedder."""
    settings = {"name": entry} if isinstance(entry, str) else dict(entry)
    name = settings.pop("name", None)
    if not isinstance(name, str):
        raise ConfigError("each entry in embedders must have a `name` that matches an installed embedder")
    model = settings.get("model")
    return model if isinstance(model, str) else name, make_embedder(name, settings, host=host)


_Handler = Callable[[Request], Awaitable[Response | EventStream]]


def _refusals(reasons: Mapping[str, str]) -> dict[str, _Handler]:
    return {method: refuse(reason) for method, reason in reasons.items()}


class _Endpoint:
    """ASGI endpoint for one path, without the layers that Starlette wraps around function endpoints."""

    def __init__(self, handlers: Mapping[str, _Handler]) -> None:
        self._handlers = handlers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        method = "GET" if request.method == "HEAD" else request.method
        try:
            response: Response | EventStream = await self._handlers[method](request)
        except ParameterError as error:
            response = JSONResponse({"error": error_object(error.refusal, error.param)}, error.status)
        except ClientLeftError:
            response = Response()
        await response(scope, receive, send)


def _route(path: str, **handlers: _Handler) -> Route:
    return Route(path, _Endpoint(handlers), methods=list(handlers))
