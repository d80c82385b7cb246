"""The files of the page."""

from __future__ import annotations

from importlib.resources import files

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

_STATIC = files("jackfield_web") / "static"
_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "media-src data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",  # the browser asks whether a file has changed
}


async def page(_: Request) -> Response:
    """Return the page."""
    return _file("index.html")


async def static_file(request: Request) -> Response:
    """Return a file that the page loads."""
    return _file(request.path_params["path"])


def _file(path: str) -> Response:
    parts = path.split("/")
    suffix = parts[-1].rpartition(".")[2]
    if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts) or suffix not in _TYPES:
        raise HTTPException(404)
    source = _STATIC.joinpath(*parts)
    if not source.is_file():
        raise HTTPException(404)
    return Response(source.read_bytes(), media_type=_TYPES[suffix], headers=_HEADERS)
