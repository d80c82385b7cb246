"""Implement Embeddings: `POST /v1/embeddings`."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from jackfield.retrieval import Embedder
from jackfield.servers import RequestRefusedError, read_object, write_json
from jackfield_openai_server.errors import ParameterError, parse_body
from jackfield_serving import while_connected

_MOST_TEXTS = 2048


class _EmbeddingsBody(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    model: str
    input: str | list[str]
    encoding_format: Literal["float", "base64"] = "float"
    user: str | None = None
    dimensions: None = Field(default=None)


class Embeddings:
    """Request handler for embeddings.

    Args:
        embedders: The embedders, by model name.
    """

    def __init__(self, embedders: Mapping[str, Embedder]) -> None:
        self._embedders = embedders

    async def create(self, request: Request) -> Response:
        """Return one vector per text."""
        body = parse_body(_EmbeddingsBody, read_object(await request.body()))
        embedder = self._embedders.get(body.model)
        if embedder is None:
            raise RequestRefusedError(
                f"no embedding model named {body.model[:100]!r}", status=404, code="model_not_found"
            )
        texts = [body.input] if isinstance(body.input, str) else body.input
        if not texts or len(texts) > _MOST_TEXTS or not all(texts):
            raise ParameterError(f"input must contain 1 to {_MOST_TEXTS} non-empty texts.", param="input")
        embedded = await while_connected(request.receive, embedder.embed(texts))
        encode = _as_base64 if body.encoding_format == "base64" else list
        data = [
            {"object": "embedding", "index": index, "embedding": encode(vector)}
            for index, vector in enumerate(embedded.vectors)
        ]
        tokens = embedded.usage.prompt_tokens
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        table: dict[str, Any] = {"object": "list", "data": data, "model": body.model, "usage": usage}
        return Response(write_json(table), media_type="application/json")


def _as_base64(vector: Sequence[float]) -> str:
    """Encode a vector as little-endian 32-bit floats in base64, the format that OpenAI's client requests."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
