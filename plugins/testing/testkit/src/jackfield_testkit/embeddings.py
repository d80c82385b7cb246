"""Answer embedding requests to the fake server, in OpenAI's format. A vector depends only on its text.

```python
with FakeOpenAI() as server:
    server.respond(embeddings_of)
    ...  # ask server.url + "/embeddings"
    assert texts_in(server.requests[0]) == ["hello"]
```
"""

from __future__ import annotations

import array
import base64
import hashlib
import json
import math
import sys
from collections.abc import Sequence

from jackfield_testkit.replies import Reply, error, raw
from jackfield_testkit.server import RecordedRequest

DIMENSION = 8
"""The default length of a vector."""


def vector_of(text: str, dimension: int = DIMENSION) -> tuple[float, ...]:
    """Return a text's vector: 32-bit floats with unit length, far from the vectors of other texts."""
    noise = hashlib.shake_256(text.encode("utf-8", "replace")).digest(2 * dimension)
    numbers = [int.from_bytes(noise[place : place + 2]) - 32767.5 for place in range(0, 2 * dimension, 2)]
    length = math.sqrt(sum(number * number for number in numbers))
    return tuple(array.array("f", [number / length for number in numbers]))


def tokens_in(texts: Sequence[str]) -> int:
    """Return the token count of the texts: one per four bytes, rounded up."""
    return sum(-(-len(text.encode("utf-8", "replace")) // 4) for text in texts)


def texts_in(request: RecordedRequest) -> list[str]:
    """Return the texts in a request, or an empty list if it is not in OpenAI's format."""
    given = request.json.get("input") if isinstance(request.json, dict) else None
    return [given] if isinstance(given, str) else list(given or ())


def dimension_in(request: RecordedRequest) -> int | None:
    """Return the dimension requested in OpenAI's format, or None if the request does not specify one."""
    wanted = request.json.get("dimensions") if isinstance(request.json, dict) else None
    return wanted if isinstance(wanted, int) else None


def embeddings_of(request: RecordedRequest) -> Reply:
    """Answer an embedding request; pass this function to `FakeOpenAI.respond`."""
    texts = texts_in(request)
    if not texts:
        return error(400, "'$.input' is invalid")
    dimension = dimension_in(request) or DIMENSION
    return embeddings(request, [vector_of(text, dimension) for text in texts], tokens=tokens_in(texts))


def embeddings(
    request: RecordedRequest,
    vectors: Sequence[Sequence[float]],
    *,
    tokens: int,
    order: Sequence[int] | None = None,
    knows_base64: bool = True,
) -> Reply:
    """Return an answer with the given vectors.

    Args:
        request: The request to answer, which may ask for Base64.
        vectors: One vector per text.
        tokens: The token count to report.
        order: The indices of the vectors to list, in this order. If None, all vectors are listed in their own order.
        knows_base64: True if the server supports Base64. Many compatible servers always send numbers.
    """
    wants_base64 = isinstance(request.json, dict) and request.json.get("encoding_format") == "base64"
    listed = [
        {
            "object": "embedding",
            "index": index,
            "embedding": _base64(vectors[index]) if wants_base64 and knows_base64 else list(vectors[index]),
        }
        for index in (range(len(vectors)) if order is None else order)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return raw(json.dumps({"object": "list", "data": listed, "model": request.model, "usage": usage}).encode())


def _base64(vector: Sequence[float]) -> str:
    """Encode a vector as Base64, with little-endian 32-bit floats."""
    numbers = array.array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return base64.b64encode(numbers.tobytes()).decode()
