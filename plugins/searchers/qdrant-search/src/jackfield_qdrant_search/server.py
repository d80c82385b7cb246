"""Access a collection in a Qdrant server. All failures are raised as a `ToolServiceError` without the API key."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import NAMESPACE_URL, UUID, uuid5

from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from jackfield import sync
from jackfield.errors import ToolServiceError
from jackfield.quoting import SentSecrets, quote_text
from jackfield.retrieval import Vector
from jackfield.secrets import ForgetLocals

T = TypeVar("T")

_VECTOR = "text"
_MOST_SHOWN = 200
_MANIFESTS_AT_ONCE = 1000
_REFUSED = (401, 403)


@dataclass(frozen=True, slots=True)
class Address:
    """The address of the server and its API key.

    Attributes:
        url: The URL of the server, or '' for Qdrant's local mode.
        local_path: The folder for the local mode, or `:memory:`.
        key: The API key, or '' if there is none.
        withheld: The reason why a configured key is not sent.
        timeout_s: The time limit for a request.
    """

    url: str
    local_path: str
    key: str
    withheld: str
    timeout_s: float

    def __repr__(self) -> str:
        return f"Address({self.url or self.local_path!r})"


class Collection:
    """A collection of points with one vector each.

    The payload of a point has a true field for each corpus that the point belongs to. All methods block and are
    thread-safe; requests are sent from a single event loop.

    Args:
        address: The address of the server.
        name: The name of the collection.
    """

    def __init__(self, address: Address, name: str) -> None:
        self._address = address
        self._name = name
        self._secrets = SentSecrets(address.key) if address.key else SentSecrets()
        self._client: AsyncQdrantClient | None = None

    # --- reading ---

    def exists(self) -> bool:
        """Return True if the collection exists."""
        return self._ask(lambda client: client.collection_exists(self._name))

    def is_whole(self, corpus: str) -> bool:
        """Return True if the corpus has been stored completely."""
        if not self.exists():
            return False
        found = self._ask(lambda client: client.retrieve(self._name, [_manifest_id(corpus)]))
        return bool(found and (found[0].payload or {}).get("whole"))

    def known(self, points: Sequence[UUID]) -> set[UUID]:
        """Return those of the points that are stored, in any corpus."""
        ids = [str(point) for point in points]
        found = self._ask(lambda client: client.retrieve(self._name, ids, with_payload=False))
        return {UUID(str(record.id)) for record in found}

    def count(self, corpus: str) -> int:
        """Return the number of points in a corpus."""
        return self._ask(lambda client: client.count(self._name, count_filter=_of(corpus), exact=True)).count

    def nearest(
        self, corpus: str, vector: Vector, limit: int, named: Sequence[str] | None = None
    ) -> list[tuple[str, float]]:
        """Return the points of a corpus nearest to a vector with their cosines, best first.

        Args:
            corpus: The key of the corpus.
            vector: The query vector.
            limit: The maximum number of points.
            named: The ids of the points to consider. If None, all points in the corpus are searched.
        """
        is_named = [] if named is None else [models.HasIdCondition(has_id=list(named))]
        query_filter = models.Filter(must=[_belongs_to(corpus), *is_named])
        answer = self._ask(
            lambda client: client.query_points(
                self._name,
                query=list(vector),
                using=_VECTOR,
                query_filter=query_filter,
                limit=limit,
                with_payload=False,
            )
        )
        return [(str(point.id), point.score) for point in answer.points if math.isfinite(point.score)]

    # --- changes ---

    def make(self, dimension: int) -> None:
        """Create the collection if it does not exist."""
        if self.exists():
            return
        space = models.VectorParams(size=dimension, distance=models.Distance.COSINE)
        try:
            self._ask(lambda client: client.create_collection(self._name, vectors_config={_VECTOR: space}))
        except ToolServiceError:
            if not self.exists():  # another process was quicker
                raise

    def announce(self, corpus: str, index: str) -> None:
        """Register a corpus before its points are added, so that no cleanup deletes them."""
        self._put_manifest(corpus, index, whole=False)
        if self._address.url:  # the local mode would warn that it has no payload index
            self._ask(
                lambda client: client.create_payload_index(
                    self._name, corpus, field_schema=models.PayloadSchemaType.BOOL
                )
            )

    def put(self, corpus: str, vectors: Mapping[UUID, Vector]) -> None:
        """Add new points to a corpus."""
        points = [
            models.PointStruct(id=str(point), vector={_VECTOR: list(vector)}, payload={corpus: True})
            for point, vector in vectors.items()
        ]
        self._ask(lambda client: client.upsert(self._name, points))

    def mark(self, corpus: str, points: Sequence[UUID]) -> None:
        """Add existing points to a corpus."""
        ids: list[Any] = [str(point) for point in points]
        self._ask(lambda client: client.set_payload(self._name, payload={corpus: True}, points=ids))

    def finish(self, corpus: str, index: str, *, keep: int) -> None:
        """Mark a corpus as complete, and delete all but the latest `keep` corpora of the same index."""
        self._put_manifest(corpus, index, whole=True)
        manifests = self._manifests()
        same = sorted((one for one in manifests if one["index"] == index), key=lambda one: -float(one["at"]))
        for old in same[keep:]:
            manifests.remove(old)
            self._remove(str(old["manifest"]), alive=[str(one["manifest"]) for one in manifests])

    def _remove(self, corpus: str, *, alive: Sequence[str]) -> None:
        only_its_own = models.Filter(must=[_belongs_to(corpus)], must_not=[_belongs_to(other) for other in alive])
        self._ask(lambda client: client.delete(self._name, models.FilterSelector(filter=only_its_own)))
        self._ask(lambda client: client.delete_payload(self._name, keys=[corpus], points=_of(corpus)))
        if self._address.url:
            self._ask(lambda client: client.delete_payload_index(self._name, corpus))
        self._ask(lambda client: client.delete(self._name, models.PointIdsList(points=[_manifest_id(corpus)])))

    def _manifests(self) -> list[dict[str, Any]]:
        is_one = models.Filter(must=[models.FieldCondition(key="is_manifest", match=models.MatchValue(value=True))])
        records, _ = self._ask(lambda client: client.scroll(self._name, scroll_filter=is_one, limit=_MANIFESTS_AT_ONCE))
        return [record.payload for record in records if record.payload]

    def _put_manifest(self, corpus: str, index: str, *, whole: bool) -> None:
        said = {"is_manifest": True, "manifest": corpus, "index": index, "whole": whole, "at": time.time()}
        point = models.PointStruct(id=_manifest_id(corpus), vector={}, payload=said)
        self._ask(lambda client: client.upsert(self._name, [point]))

    # --- the wire ---

    def close(self) -> None:
        """Close the connections. The next request reopens them. In-memory local mode loses its data."""
        client, self._client = self._client, None
        if client is not None:
            sync.run(client.close())

    def _ask(self, request: Callable[[AsyncQdrantClient], Awaitable[T]]) -> T:
        return sync.run(self._answer(request))

    async def _answer(self, request: Callable[[AsyncQdrantClient], Awaitable[T]]) -> T:
        try:
            with ForgetLocals():  # they include the key
                if self._client is None:
                    self._client = self._opened()
                # The client's own limit applies to each chunk of a response, so a slow trickle would never time out.
                async with asyncio.timeout(self._address.timeout_s):
                    return await request(self._client)
        # `from None`, because the server's answer and the request may contain the key.
        except TimeoutError:
            raise self._error(
                f"did not respond within {self._address.timeout_s:g} s: try again, or increase timeout_s"
            ) from None
        except UnexpectedResponse as error:
            raise self._refused(error) from None
        except (ApiException, QdrantException, ValueError, KeyError, OSError, RuntimeError) as error:
            cause = error.source if isinstance(error, ResponseHandlingException) else error
            said = quote_text(str(cause) or type(cause).__name__, self._secrets, _MOST_SHOWN)
            raise self._error(
                f"cannot be used ({said}): check that Qdrant is running and that `url` is correct, then try again"
            ) from None

    def _refused(self, error: UnexpectedResponse) -> ToolServiceError:
        if error.status_code in _REFUSED:
            step = self._address.withheld or "set QDRANT_API_KEY, or api_key next to url, to a valid key"
            return self._error(f"rejected the API key (status {error.status_code}): {step}", error.status_code)
        said = quote_text(error.content.decode("utf-8", "replace"), self._secrets, _MOST_SHOWN)
        return self._error(f"returned status {error.status_code}: {said}", error.status_code)

    def _error(self, what: str, status: int | None = None) -> ToolServiceError:
        where = self._address.url or f"in {self._address.local_path}"
        return ToolServiceError(f"Qdrant at {where} {what}", code=str(status) if status else None)

    def _opened(self) -> AsyncQdrantClient:
        address = self._address
        if not address.url:
            is_memory = address.local_path == ":memory:"
            return AsyncQdrantClient(
                location=":memory:" if is_memory else None, path=None if is_memory else address.local_path
            )
        return AsyncQdrantClient(
            url=address.url,
            api_key=address.key or None,
            timeout=math.ceil(address.timeout_s),
            check_compatibility=False,  # otherwise it would check the version, and warn, before the first request
        )


def _manifest_id(corpus: str) -> str:
    return str(uuid5(NAMESPACE_URL, f"jackfield-manifest:{corpus}"))


def _belongs_to(corpus: str) -> models.FieldCondition:
    return models.FieldCondition(key=corpus, match=models.MatchValue(value=True))


def _of(corpus: str) -> models.Filter:
    return models.Filter(must=[_belongs_to(corpus)])
