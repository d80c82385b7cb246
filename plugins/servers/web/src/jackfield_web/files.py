"""Serve the page's static files."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable

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
}
_FOREVER = "public, max-age=31536000, immutable"
_EACH_TIME = "no-cache"  # the browser revalidates it


@dataclass(frozen=True)
class _File:
    """A file, ready to be sent."""

    body: bytes
    zipped: bytes
    media_type: str
    etag: str


async def page(request: Request) -> Response:
    """Return the page. The URLs of its files include a version, so browsers can cache them indefinitely."""
    return _respond(request, _read_page(), _EACH_TIME)


async def static_file(request: Request) -> Response:
    """Return a static file, whose path may start with a version."""
    first, _, rest = request.path_params["path"].partition("/")
    if _VERSION.fullmatch(first):
        # A page of an earlier version gets the current file, but must not cache it.
        return _respond(request, _read_file(rest), _FOREVER if first == _version() else "no-store")
    return _respond(request, _read_file(request.path_params["path"]), _EACH_TIME)


_VERSION = re.compile("v-[0-9a-f]{16}")


@cache
def _version() -> str:
    """Return a hash of all static files."""
    digest = hashlib.sha256()
    for path in sorted(_paths_below(_STATIC)):
        digest.update(path.encode() + b"\0" + _STATIC.joinpath(path).read_bytes())
    return f"v-{digest.hexdigest()[:16]}"


def _paths_below(folder: Traversable, before: str = "") -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _paths_below(entry, f"{before}{entry.name}/")
        else:
            yield f"{before}{entry.name}"


@cache
def _read_page() -> _File:
    text = _STATIC.joinpath("index.html").read_text(encoding="utf-8")
    return _make_file(text.replace('"static/', f'"static/{_version()}/').encode(), "html")


@lru_cache(maxsize=200)
def _read_file(path: str) -> _File:
    parts = path.split("/")
    suffix = parts[-1].rpartition(".")[2]
    if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts) or suffix not in _TYPES:
        raise HTTPException(404)
    source = _STATIC.joinpath(*parts)
    if not source.is_file():
        raise HTTPException(404)
    return _make_file(source.read_bytes(), suffix)


def _make_file(body: bytes, suffix: str) -> _File:
    etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    return _File(body, gzip.compress(body, 9, mtime=0), _TYPES[suffix], etag)


def _respond(request: Request, file: _File, caching: str) -> Response:
    headers = {**_HEADERS, "cache-control": caching, "etag": file.etag, "vary": "accept-encoding"}
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", "") and len(file.zipped) < len(file.body):
        return Response(file.zipped, media_type=file.media_type, headers={**headers, "content-encoding": "gzip"})
    return Response(file.body, media_type=file.media_type, headers=headers)
