"""Serve the web page, its files and its API: the face `web`."""

from __future__ import annotations

from typing import ClassVar, cast

from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Mount, Route, Router

from jackfield.servers import ASGIApp, HttpServer, ServingLike
from jackfield_serving import Serving
from jackfield_web.api import Api
from jackfield_web.files import page, static_file


class WebServer(HttpServer):
    """Face that serves a web page for talking to agents. The page needs no token, but its API requests do."""

    name: ClassVar[str] = "web"
    paths = ("/",)
    open_paths = ("/", "/static/*")

    def app(self, serving: ServingLike) -> ASGIApp:
        """Return the ASGI application."""
        api = Api(cast(Serving, serving))
        files = Router([Route("/{path:path}", static_file)])
        routes = [
            Route("/", page),
            Mount("/static", files),
            Route("/api/agents", api.agents),
            Route("/api/search", api.search),
            Route("/api/conversations", api.conversations, methods=["GET"]),
            Route("/api/conversations", api.import_conversation, methods=["POST"]),
            Route(
                "/api/conversations/{conversation}",
                api.conversation,
                methods=["GET"],
                middleware=[Middleware(GZipMiddleware, minimum_size=1000, compresslevel=4)],
            ),
            Route("/api/conversations/{conversation}", api.rename_conversation, methods=["PATCH"]),
            Route("/api/conversations/{conversation}", api.delete_conversation, methods=["DELETE"]),
            Route("/api/conversations/{conversation}/export", api.export_conversation),
            Route("/api/runs", api.start, methods=["POST"]),
            Route("/api/runs/{run_id}", api.run),
            Route("/api/runs/{run_id}/record", api.record),
            Route("/api/runs/{run_id}/events", api.events),
            Route("/api/runs/{run_id}/citations/{number:int}/{place:int}", api.citation_page),
            Route("/api/runs/{run_id}/answers", api.answer, methods=["POST"]),
            Route("/api/runs/{run_id}/cancel", api.cancel, methods=["POST"]),
        ]
        return Router(routes, redirect_slashes=False)
