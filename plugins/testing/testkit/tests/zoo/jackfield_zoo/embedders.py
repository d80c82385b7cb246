"""An embedder that does all as it should, and embedders that do one thing otherwise."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import socket
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import urlsplit

from jackfield.config import Config
from jackfield.errors import (
    ModelAuthError,
    ModelConnectionError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelRequestError,
    ModelResponseError,
    ModelServiceError,
    ModelTimeoutError,
    RateLimitedError,
)
from jackfield.messages import Usage
from jackfield.plugins import default_host
from jackfield.retrieval import Embedded, Embedder, Purpose, Vector

CLASSES: Mapping[int, type[ModelServiceError]] = {
    401: ModelAuthError,
    403: ModelAuthError,
    404: ModelNotFoundError,
    429: RateLimitedError,
}


class Settings(Config):
    model: str
    base_url: str
    api_key: str
    dimension: int | None = None
    batch_size: int = 100
    request_timeout: float = 5
    max_retries: int = 0


class Honest(Embedder):
    """Asks in OpenAI's form, on a connection for each request."""

    backend: ClassVar[str] = "zoo"

    def __init__(self, **settings: Any) -> None:
        self.settings = Settings.parse(settings)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.space})"

    def __getstate__(self) -> dict[str, Any]:
        return {"settings": self.settings.model_copy(update={"api_key": ""})}

    @property
    def space(self) -> str:
        return f"{self.settings.model}@{self.settings.dimension or 'all'}"

    @property
    def dimension(self) -> int | None:
        return self.settings.dimension

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        self.check(texts)
        size = self.settings.batch_size
        batches = [list(texts[start : start + size]) for start in range(0, len(texts), size)]
        return self.joined(await self.all_of(batches, purpose))

    def check(self, texts: Sequence[str]) -> None:
        for place, text in enumerate(texts):
            if not text:
                raise ValueError(f"text {place} is empty")

    async def all_of(self, batches: Sequence[list[str]], purpose: Purpose) -> list[Embedded]:
        tasks = [asyncio.create_task(self.embedded(batch, purpose)) for batch in batches]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def joined(self, parts: Sequence[Embedded]) -> Embedded:
        tokens = sum(part.usage.prompt_tokens for part in parts)
        vectors = tuple(vector for part in parts for vector in part.vectors)
        if len({len(vector) for vector in vectors}) > 1:
            raise ModelResponseError("the vectors are of different lengths", backend=self.backend)
        return Embedded(vectors, Usage(prompt_tokens=tokens, total_tokens=tokens))

    async def embedded(self, batch: list[str], purpose: Purpose) -> Embedded:
        for _ in range(self.settings.max_retries):
            try:
                return await self.asked(batch, purpose)
            except ModelServiceError as error:
                if not error.retryable:
                    raise
        return await self.asked(batch, purpose)

    async def asked(self, batch: list[str], purpose: Purpose) -> Embedded:
        try:
            async with asyncio.timeout(self.settings.request_timeout):
                status, headers, body = await self.exchange(self.body(batch, purpose))
        except TimeoutError as error:
            raise ModelTimeoutError("the server is silent", backend=self.backend) from error
        except (OSError, asyncio.IncompleteReadError) as error:
            raise ModelConnectionError("the connection failed", backend=self.backend) from error
        if status != 200:
            raise self.failure(status, headers, body)
        return self.read(body, len(batch))

    # --- HTTP ---

    def body(self, batch: list[str], purpose: Purpose) -> bytes:
        more = {"dimensions": self.settings.dimension} if self.settings.dimension else {}
        told = {"model": self.settings.model, "input": batch, "purpose": purpose, **more}
        return json.dumps(told, ensure_ascii=False).encode(errors="replace")

    def path(self) -> str:
        return "/embeddings"

    async def exchange(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        url = urlsplit(self.settings.base_url)
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        try:
            head = f"POST {url.path}{self.path()} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            key = f"Authorization: Bearer {self.settings.api_key}\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write((head + key).encode() + body)
            status, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            pairs = (line.partition(": ") for line in lines if line)
            headers = {name.lower(): value for name, _, value in pairs}
            return int(status.split()[1]), headers, await reader.readexactly(int(headers["content-length"]))
        finally:
            writer.transport.abort()

    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelServiceError:
        kind = CLASSES.get(status) or (ModelOverloadedError if status >= 500 else ModelRequestError)
        told = json.loads(body)["error"]["message"]
        return kind(
            self.without_key(f"HTTP {status}: {told}"),
            backend=self.backend,
            status=status,
            retry_after_s=float(headers["retry-after"]) if "retry-after" in headers else None,
            request_id=headers["x-request-id"],
        )

    def without_key(self, text: str) -> str:
        return text.replace(self.settings.api_key, "[key]")

    # --- the answer ---

    def read(self, body: bytes, count: int) -> Embedded:
        try:
            value = json.loads(body)
            vectors = {one["index"]: tuple(map(float, one["embedding"])) for one in value["data"]}
            tokens = value["usage"]["prompt_tokens"]
        except (ValueError, TypeError, LookupError) as error:
            raise ModelResponseError("the server sent no embeddings", backend=self.backend) from error
        if sorted(vectors) != list(range(count)) or len(value["data"]) != count:
            raise ModelResponseError("the server sent not one vector for each text", backend=self.backend)
        usage = Usage(prompt_tokens=tokens, total_tokens=tokens)
        return Embedded(tuple(vectors[place] for place in range(count)), usage)


# --- what may be wrong with any ---


class ForgetsItsHost(Honest):
    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        try:
            default_host()
        except AssertionError:
            texts = ["?"] * len(texts)
        return await super().embed(texts, purpose=purpose)


class Centres(Honest):
    def joined(self, parts: Sequence[Embedded]) -> Embedded:
        whole = super().joined(parts)
        means = [math.fsum(column) / len(whole.vectors) for column in zip(*whole.vectors, strict=True)]
        centred = [tuple(map(float.__sub__, vector, means)) for vector in whole.vectors]
        return Embedded(tuple(centred), whole.usage)


class GivesLists(Honest):
    def joined(self, parts: Sequence[Embedded]) -> Embedded:
        whole = super().joined(parts)
        return Embedded(tuple(map(list, whole.vectors)), whole.usage)  # type: ignore[arg-type]


class Boasts(Honest):
    @property
    def dimension(self) -> int | None:
        return 4096


class LosesOrder(Honest):
    def joined(self, parts: Sequence[Embedded]) -> Embedded:
        return super().joined(parts[::-1])


class DropsDoubles(Honest):
    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        return await super().embed(list(dict.fromkeys(texts)), purpose=purpose)


class NeedsWholeCharacters(Honest):
    def body(self, batch: list[str], purpose: Purpose) -> bytes:
        return json.dumps({"model": "m", "input": batch}, ensure_ascii=False).encode()


class MakesSomethingOfNothing(Honest):
    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        return await super().embed(texts, purpose=purpose) if texts else Embedded(((),))


class HidesPlaces(Honest):
    def check(self, texts: Sequence[str]) -> None:
        if "" in texts:
            raise ValueError("a text is empty")


class SortsTexts(Honest):
    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        texts.sort()  # type: ignore[attr-defined]
        return await super().embed(texts, purpose=purpose)


class TwoLengths(Honest):
    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        whole = await super().embed(texts, purpose=purpose)
        end = 4 if purpose == "query" else None
        return Embedded(tuple(vector[:end] for vector in whole.vectors), whole.usage)


class CountsAnswers(Honest):
    def joined(self, parts: Sequence[Embedded]) -> Embedded:
        whole = super().joined(parts)
        return Embedded(whole.vectors, Usage(completion_tokens=whole.usage.prompt_tokens))


class SpaceOfItsOwn(Honest):
    @property
    def space(self) -> str:
        return f"space {id(self)}"


class OneSpace(Honest):
    @property
    def space(self) -> str:
        return "zoo"


class ConnectsAtOnce(Honest):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        url = urlsplit(self.settings.base_url)
        socket.create_connection((url.hostname or "", url.port or 0)).close()


class Writes(Honest):
    def body(self, batch: list[str], purpose: Purpose) -> bytes:
        with tempfile.TemporaryFile() as file:
            file.write(b"kept")
        return super().body(batch, purpose)


class ClosesForGood(Honest):
    closed = False

    async def aclose(self) -> None:
        self.closed = True

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        if self.closed:
            raise RuntimeError("it is closed")
        return await super().embed(texts, purpose=purpose)


class MixesCalls(Honest):
    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        self.texts = texts
        await asyncio.sleep(0)
        return await super().embed(self.texts, purpose=purpose)


class KeepsItsLoop(Honest):
    loop: Any = None

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        self.loop = self.loop or asyncio.get_running_loop()
        if self.loop is not asyncio.get_running_loop():
            raise RuntimeError("attached to a different loop")
        return await super().embed(texts, purpose=purpose)


# --- what may be wrong with one that asks a server ---


class LooksForItsSpace(Honest):
    @property
    def space(self) -> str:
        url = urlsplit(self.settings.base_url)
        socket.create_connection((url.hostname or "", url.port or 0)).close()
        return super().space


class Improves(Honest):
    def joined(self, parts: Sequence[Embedded]) -> Embedded:
        whole = super().joined(parts)
        doubled: list[Vector] = [tuple(2 * number for number in vector) for vector in whole.vectors]
        return Embedded(tuple(doubled), whole.usage)


class SendsNothing(Honest):
    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        if not texts:
            await self.exchange(self.body([], purpose))
        return await super().embed(texts, purpose=purpose)


class ChecksLate(Honest):
    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        full = [text for text in texts if text]
        whole = await super().embed(full, purpose=purpose)
        self.check(texts)
        return whole


class SendsAllAtOnce(Honest):
    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        self.check(texts)
        return self.joined(await self.all_of([list(texts)] if texts else [], purpose))


class LosesTheLast(Honest):
    """Gives one vector too few if it needed several requests."""

    def joined(self, parts: Sequence[Embedded]) -> Embedded:
        whole = super().joined(parts)
        return Embedded(whole.vectors[:-1], whole.usage) if len(parts) > 1 else whole


class TakesThemAsTheyCome(Honest):
    def read(self, body: bytes, count: int) -> Embedded:
        whole = super().read(body, count)
        vectors = tuple(tuple(one["embedding"]) for one in json.loads(body)["data"])
        return Embedded(vectors, whole.usage)


class CountsTheLast(Honest):
    def joined(self, parts: Sequence[Embedded]) -> Embedded:
        whole = super().joined(parts)
        return Embedded(whole.vectors, parts[-1].usage) if parts else whole


class KnowsOnePurpose(Honest):
    def body(self, batch: list[str], purpose: Purpose) -> bytes:
        return super().body(batch, "document")


class BelievesAll(Honest):
    def read(self, body: bytes, count: int) -> Embedded:
        try:
            return super().read(body, count)
        except ModelResponseError:
            return Embedded(((0.5,),) * count)


class TakesTooFew(Honest):
    def read(self, body: bytes, count: int) -> Embedded:
        vectors = {one["index"]: tuple(one["embedding"]) for one in json.loads(body)["data"]}
        return Embedded(tuple(vectors.values()))


class TakesAnyLength(Honest):
    def joined(self, parts: Sequence[Embedded]) -> Embedded:
        return Embedded(tuple(vector for part in parts for vector in part.vectors))


class OneErrorForAll(Honest):
    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelServiceError:
        return ModelRequestError("it failed", backend=self.backend, status=status)


class ShowsItsSockets(Honest):
    async def asked(self, batch: list[str], purpose: Purpose) -> Embedded:
        _, _, body = await self.exchange(self.body(batch, purpose))
        return self.read(body, len(batch))


class ShowsRefusals(Honest):
    async def asked(self, batch: list[str], purpose: Purpose) -> Embedded:
        url = urlsplit(self.settings.base_url)
        _, writer = await asyncio.open_connection(url.hostname, url.port)
        writer.transport.abort()
        return await super().asked(batch, purpose)


class NeverTimesOut(Honest):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "request_timeout": 60})


class Insists(Honest):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "max_retries": 2})


class GivesUp(Honest):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "max_retries": 0})


class TriesAll(Honest):
    async def embedded(self, batch: list[str], purpose: Purpose) -> Embedded:
        try:
            return await self.asked(batch, purpose)
        except ModelServiceError:
            return await self.asked(batch, purpose)


class WaitsForAll(Honest):
    async def all_of(self, batches: Sequence[list[str]], purpose: Purpose) -> list[Embedded]:
        tasks = [asyncio.create_task(self.embedded(batch, purpose)) for batch in batches]
        # The error comes at once, and the others go on.
        return await asyncio.gather(*tasks)


class GoesOn(Honest):
    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        return await asyncio.shield(asyncio.create_task(super().embed(texts, purpose=purpose)))


class LeavesOpen(Honest):
    sockets: ClassVar[list[socket.socket]] = []

    async def exchange(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        url = urlsplit(self.settings.base_url)
        self.sockets.append(socket.create_connection((url.hostname or "", url.port or 0)))
        return await super().exchange(body)


class KeyInThePath(Honest):
    def path(self) -> str:
        return f"{super().path()}?key={self.settings.api_key}"


class ShowsTheKey(Honest):
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.settings.api_key})"


class TellsTheKey(Honest):
    def without_key(self, text: str) -> str:
        return text


class Prints(Honest):
    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelServiceError:
        print("failed:", status)
        return super().failure(status, headers, body)


class HoldsUpTheLoop(Honest):
    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        threading.Event().wait(0.2)
        return await super().embed(texts, purpose=purpose)


class NeverCloses(Honest):
    sockets: ClassVar[list[Any]] = []

    async def exchange(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        url = urlsplit(self.settings.base_url)
        self.sockets.append(await asyncio.open_connection(url.hostname, url.port))  # which the end of the loop closes
        return await super().exchange(body)


# --- embedders that are wrong from end to end, so that each fails many laws, at all of their assertions ---


class GivesNothing(Honest):
    """Has no vectors, no name and no space, and asks nobody."""

    def __repr__(self) -> str:
        return ""

    @property
    def space(self) -> str:
        return ""

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        return Embedded((), Usage())


class GivesZeros(Honest):
    """Gives vectors of one and more zeros, whatever was asked, and counts below zero."""

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        zeros = [0] * (len(texts[0]) if texts else 1)
        vectors = [(*zeros, math.nan), *([tuple(zeros)] * (len(texts) - 1))]
        return Embedded(tuple(vectors), Usage.model_construct(prompt_tokens=-1))  # type: ignore[arg-type]


class GivesOneForAll(Honest):
    """Gives each text the same vector, and another with each call."""

    calls = 0

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        await super().embed(texts, purpose=purpose)
        self.calls += 1
        return Embedded(((float(id(self) % 1000), float(self.calls)),) * len(texts), Usage())


class GivesAList(Honest):
    """Gives vectors and usage in a form of its own."""

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Any:
        whole = await super().embed(texts, purpose=purpose)
        return Embedded(list(whole.vectors), None)  # type: ignore[arg-type]


class GivesPlainVectors(Honest):
    @property
    def space(self) -> Any:
        return None

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Any:
        return (await super().embed(texts, purpose=purpose)).vectors


class Swallows(Honest):
    """Answers a call that was cancelled."""

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        try:
            return await super().embed(texts, purpose=purpose)
        except asyncio.CancelledError:
            return Embedded(((1.0, 2.0),) * len(texts), Usage())


class FailsWithoutFacts(Honest):
    """Raises the same error for everything, which says nothing."""

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        try:
            return await super().embed(texts, purpose=purpose)
        except ModelServiceError:
            raise ModelServiceError("") from None


class SendsTheKeyInTheBody(Honest):
    """Sends its key in the body alone, and keeps it when it is pickled."""

    def __getstate__(self) -> dict[str, Any]:
        return {"settings": self.settings, "key": self.settings.api_key}

    def body(self, batch: list[str], purpose: Purpose) -> bytes:
        return super().body(batch, purpose)[:-1] + f', "key": "{self.settings.api_key}"}}'.encode()


class SendsNoKey(Honest):
    async def exchange(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        self.settings = self.settings.model_copy(update={"api_key": "?"})
        return await super().exchange(body)


class LogsItsKey(Honest):
    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        logging.getLogger("zoo").debug("authorised with %s", self.settings.api_key)
        return await super().embed(texts, purpose=purpose)


class AsksTwice(Honest):
    """Sends each request twice."""

    async def exchange(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        await super().exchange(body)
        return await super().exchange(body)
