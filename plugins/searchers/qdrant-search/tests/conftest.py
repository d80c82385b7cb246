"""A server of embeddings without a model (words and their beginnings, hashed), and one that speaks as Qdrant does."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from jackfield.retrieval import Searcher, make_searcher
from jackfield_testkit.embeddings import embeddings, texts_in, tokens_in
from jackfield_testkit.installed import plain_host
from jackfield_testkit.replies import Reply
from jackfield_testkit.server import FakeOpenAI, RecordedRequest

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

DIMENSION = 256
MakeSearcher = Callable[..., Searcher]


def vector_of(text: str) -> list[float]:
    """The vector of a text, of length 1."""
    numbers = [0.0] * DIMENSION
    for word in re.findall(r"\w+", text.lower()):
        for piece in (word, word[:4], *re.findall(r"[\u4e00-\u9fff]", word)):
            digest = hashlib.blake2b(piece.encode(errors="replace"), digest_size=2).digest()
            numbers[int.from_bytes(digest) % DIMENSION] += 1
    length = math.sqrt(sum(number * number for number in numbers)) or 1.0
    return [number / length for number in numbers]


def of_words(request: RecordedRequest) -> Reply:
    """The answer to a request for embeddings."""
    texts = texts_in(request)
    return embeddings(request, [vector_of(text) for text in texts], tokens=tokens_in(texts))


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    """The server of embeddings."""
    with FakeOpenAI() as server:
        server.respond(of_words)
        yield server


@pytest.fixture
def make(server: FakeOpenAI) -> MakeSearcher:
    """Makes a searcher with Qdrant's local mode in memory, unless a `url` is given."""

    def made(**settings: Any) -> Searcher:
        of_the_embedder = {"base_url": server.url, "api_key": "sk-test", **settings.pop("embedder_settings", {})}
        where = {} if "url" in settings else {"local_path": ":memory:"}
        cfg = {"embedding_model": "openai:words", "embedder_settings": of_the_embedder, **where, **settings}
        return make_searcher("jackfield-qdrant-search/qdrant_search", cfg, host=plain_host())

    return made


class FakeQdrant:
    """An HTTP server that answers as Qdrant does, with its client's local mode behind it, and fails as it is told.

    Attributes:
        requests: Method and path of each, and its body.
        keys: The API key of each.
        fail: Is asked before each request with its method and path; what it gives is sent, and closes the connection.
    """

    def __init__(self, local: QdrantClient) -> None:
        self.local = local
        self.requests: list[tuple[str, str, Any]] = []
        self.keys: list[str | None] = []
        self.fail: Callable[[str, str], Iterable[bytes] | None] = lambda _method, _path: None
        self._lock = threading.Lock()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                body = json.loads(self.rfile.read(length) or b"null")
                path = urlsplit(self.path).path
                with fake._lock:
                    fake.requests.append((self.command, path, body))
                    fake.keys.append(self.headers.get("api-key"))
                    failure = fake.fail(self.command, path)
                    status, result = (0, None) if failure is not None else fake._result(self.command, path, body)
                if failure is not None:
                    self.close_connection = True
                    with contextlib.suppress(OSError):  # the client has given up
                        for piece in failure:
                            self.wfile.write(piece)
                            self.wfile.flush()
                    return
                content = json.dumps({"result": result, "status": "ok", "time": 0.0}).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def upserts(self) -> list[list[str]]:
        """The ids of the points of each upload."""
        sent = [body["points"] for method, path, body in self.requests if (method, path[-7:]) == ("PUT", "/points")]
        return [[point["id"] for point in points if point["vector"]] for points in sent if points[0]["vector"]]

    def points(self) -> int:
        """How many points with a vector there are, in all collections."""
        names = [one.name for one in self.local.get_collections().collections]
        records = [record for name in names for record in self.local.scroll(name, limit=9999, with_vectors=True)[0]]
        return sum(bool(record.vector) for record in records)

    def _result(self, method: str, path: str, body: Any) -> tuple[int, Any]:  # noqa: C901 - a case for each request
        _, _, name, *rest = path.split("/")
        if not self.local.collection_exists(name):
            if rest == ["exists"]:
                return 200, {"exists": False}
            if (method, rest) != ("PUT", []):
                return 404, None
        from qdrant_client import models  # takes a second, which collecting all tests need not spend

        done = {"operation_id": 0, "status": "completed"}
        match method, rest:
            case "GET", ["exists"]:
                return 200, {"exists": True}
            case "PUT", []:
                return 200, self.local.create_collection(name, models.CreateCollection(**body).vectors)
            case "PUT" | "DELETE", ["index", *_]:
                return 200, done
            case "PUT", ["points"]:
                self.local.upsert(name, models.PointsList(**body).points)
                return 200, done
            case "POST", ["points"]:
                found = self.local.retrieve(name, body["ids"], with_payload=body["with_payload"])
                return 200, [record.model_dump(mode="json") for record in found]
            case "POST", ["points", "payload"]:
                self.local.set_payload(name, body["payload"], body["points"])
                return 200, done
            case "POST", ["points", "payload", "delete"]:
                self.local.delete_payload(name, body["keys"], models.Filter(**body["filter"]))
                return 200, done
            case "POST", ["points", "delete"]:
                by_filter = models.FilterSelector(filter=body["filter"]) if "filter" in body else None
                self.local.delete(name, by_filter or models.PointIdsList(points=body["points"]))
                return 200, done
            case "POST", ["points", "count"]:
                return 200, {"count": self.local.count(name, models.Filter(**body["filter"])).count}
            case "POST", ["points", "scroll"]:
                records, _ = self.local.scroll(name, models.Filter(**body["filter"]), limit=body["limit"])
                return 200, {"points": [record.model_dump(mode="json") for record in records], "next_page_offset": None}
            case "POST", ["points", "query"]:
                asked = models.QueryRequest(**body)
                answer = self.local.query_points(
                    name, asked.query, using=asked.using, query_filter=asked.filter, limit=asked.limit
                )
                return 200, {"points": [point.model_dump(mode="json") for point in answer.points]}
        return 501, None


@pytest.fixture(scope="session")
def _local() -> QdrantClient:
    """The local mode; making one takes a twentieth of a second."""
    from qdrant_client import QdrantClient

    return QdrantClient(":memory:")


@pytest.fixture
def qdrant(_local: QdrantClient) -> Iterator[FakeQdrant]:
    """A server without a collection."""
    for collection in _local.get_collections().collections:
        _local.delete_collection(collection.name)
    server = FakeQdrant(_local)
    yield server
    server.close()
