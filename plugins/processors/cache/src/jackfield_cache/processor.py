"""Processor that returns a cached answer, or asks the model and stores the answer."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

from jackfield import sync
from jackfield.config import GenerateConfig
from jackfield.errors import ConfigError
from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    PreparationProgress,
    ReasoningDelta,
    RetryScheduled,
    StreamReset,
    TextDelta,
    UsageReported,
)
from jackfield.messages import FinishReason, Usage
from jackfield.processors import CallNext, Phase, Processor
from jackfield.request import ChatRequest
from jackfield.secrets import secrets_of
from jackfield.streams import closing
from jackfield_cache.codec import decode, encode
from jackfield_cache.config import CacheConfig
from jackfield_cache.flight import Flight
from jackfield_cache.key import NotHashable, key_of
from jackfield_cache.store import Store

METADATA = "jackfield-cache"
"""Metadata key for `bypass` (ask, and store nothing) or `refresh` (ask, and store the new answer)."""
HIT_EVENT = "jackfield-cache.hit"
SHARED_EVENT = "jackfield-cache.shared"

# Another attempt may give a different answer, because providers report aborted answers as `other`.
_BROKEN_OFF: frozenset[FinishReason] = frozenset({"content_filter", "other"})

_log = logging.getLogger(__name__)


class Cache(Processor):
    """Replays the answer that a model gave to an identical request.

    Only complete answers are stored, not those that failed, were abandoned or cut off, are empty, or contain a secret
    from the environment. A cached answer is replayed as the same events after a `jackfield-cache.hit` event, and costs
    nothing: its usage is zero, and the event's `saved` field has the original usage. Identical concurrent requests on
    one event loop share a single request to the model.

    Args:
        cfg, settings: The keys of `CacheConfig`.
        clock: Returns the current time in seconds since 1970, UTC.

    Raises:
        ConfigError: A setting is invalid.
    """

    name: ClassVar[str] = "cache"
    config_class = CacheConfig
    config: CacheConfig
    phase: ClassVar[Phase] = "transport"
    # Outside retries: a cached answer needs none, and only the successful attempt is stored.
    before: ClassVar[tuple[str, ...]] = ("retry",)

    def __init__(
        self,
        cfg: CacheConfig | Mapping[str, object] | None = None,
        *,
        clock: Callable[[], float] = time.time,
        **settings: Any,
    ) -> None:
        super().__init__(cfg, **settings)
        self._clock = clock
        self._store = Store(_path(self.config), ttl_s=self.config.ttl_s, max_bytes=self.config.max_bytes, clock=clock)
        self._flights: dict[tuple[asyncio.AbstractEventLoop, bytes], tuple[ChatRequest, Flight]] = {}

    def __repr__(self) -> str:
        return f"<Cache {self._store.path}>"

    @property
    def waiting(self) -> int:
        """The number of requests in flight."""
        return len(self._flights)

    def close(self) -> None:
        """Close the file. The next request reopens it."""
        self._store.close()

    async def aclose(self) -> None:
        """Async version of `close`."""
        await sync.in_worker(self.close)

    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        """Return the cached answer, or ask the model and store its answer."""
        wish = request.metadata.get(METADATA)
        if wish not in (None, "bypass", "refresh"):
            raise ConfigError(f"metadata[{METADATA!r}] must be 'bypass' or 'refresh', got {wish!r}")
        if wish == "bypass" or (self.config.only_deterministic and not _is_deterministic(request.config)):
            return call_next(request)
        return self._answer(request, call_next)

    async def _answer(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        try:
            key = await self._key(request)
        except (NotHashable, OSError) as error:
            _log.warning("the answer was not cached: %s", error)
            events = call_next(request)
        else:
            events = self._join(key, request, call_next)
        async with closing(events):
            async for event in events:
                yield event

    async def _key(self, request: ChatRequest) -> bytes:
        if any(message.is_multimodal() for message in request.messages):  # computing the key may read large files
            return await sync.in_worker(key_of, request, self.config.scope)
        return key_of(request, self.config.scope)

    # --- the same question at the same time ---

    def _join(self, key: bytes, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        place = (asyncio.get_running_loop(), key)
        if place in self._flights:
            asked, flight = self._flights[place]
            if _same_terms(asked, request):
                return _shared(flight.follow())
        flight = Flight(self._found_or_asked(key, request, call_next), lambda over: self._take_off(place, over))
        self._flights.setdefault(place, (request, flight))
        return flight.follow()

    def _take_off(self, place: tuple[asyncio.AbstractEventLoop, bytes], over: Flight) -> None:
        _, flight = self._flights.get(place, (None, None))
        if flight is over:  # and not a later one
            del self._flights[place]

    # --- one question ---

    async def _found_or_asked(
        self, key: bytes, request: ChatRequest, call_next: CallNext
    ) -> AsyncIterator[list[ModelEvent]]:
        found = None if request.metadata.get(METADATA) == "refresh" else await sync.in_worker(self._find, key)
        if found is not None:
            yield found
            return
        recording = _Recording()
        async with closing(call_next(request)) as events:
            async for event in events:
                recording.feed(event)
                if not isinstance(event, ModelFinished):
                    yield [event]
        if recording.end is None:
            return
        yield []  # if all followers have left, the answer is not stored, even if its end was read ahead
        if recording.is_an_answer:
            # Before the end is forwarded, because the caller may then leave or end the process.
            await sync.in_worker(self._keep, key, recording.events)
        yield [recording.end]

    def _find(self, key: bytes) -> list[ModelEvent] | None:
        kept = self._store.get(key)
        if kept is None:
            return None
        try:
            events = decode(kept.content)
        except ValueError as error:
            _log.warning(
                "cannot read an answer from the cache %s, so the model is called again: %s", self._store.path, error
            )
            return None
        age_s = max(0.0, self._clock() - kept.made_at)
        return [PluginEvent(HIT_EVENT, {"age_s": round(age_s, 3), "saved": _saved(events)}), *map(_free, events)]

    def _keep(self, key: bytes, events: list[ModelEvent]) -> None:
        try:
            content = encode(events)
        except ValueError as error:
            _log.warning("the answer was not cached: %s", error)
            return
        secrets = secrets_of(self)
        if any(map(secrets.are_in, (content.decode(), *_joined_texts(events)))):
            # Hiding the secret would change the answer.
            _log.warning("the answer was not cached: it contains a secret")
            return
        self._store.put(key, content)


def _joined_texts(events: list[ModelEvent]) -> list[str]:
    """Join the text deltas of an answer, because a secret may be split across two of them."""
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    reasoning = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    arguments = dict[int, str]()
    for event in events:
        if isinstance(event, FunctionCallDelta):
            arguments[event.index] = arguments.get(event.index, "") + event.arguments
    return [text, reasoning, *arguments.values()]


class _Recording:
    """Records the last attempt of a stream and its finish event."""

    def __init__(self) -> None:
        self.events: list[ModelEvent] = []
        self.end: ModelFinished | None = None
        self._said_something = False

    def feed(self, event: ModelEvent) -> None:
        """Record one event."""
        match event:
            case StreamReset():
                self.events.clear()
                self._said_something = False
                return
            case RetryScheduled() | PreparationProgress():
                return
            case ModelFinished():
                self.end = event
            case TextDelta(text):
                self._said_something = self._said_something or bool(text)
            case FunctionCallDelta() | MediaDelta():
                self._said_something = True
        self.events.append(event)

    @property
    def is_an_answer(self) -> bool:
        """True if the answer is complete and not empty. Empty answers are often errors."""
        return self.end is not None and self.end.reason not in _BROKEN_OFF and self._said_something


async def _shared(events: AsyncIterator[ModelEvent]) -> AsyncIterator[ModelEvent]:
    """Yield the events of a request that another caller made and is charged for."""
    async with closing(events):
        yield PluginEvent(SHARED_EVENT)
        async for event in events:
            yield _free(event)


def _free(event: ModelEvent) -> ModelEvent:
    """Return an event with its usage set to zero and without a warning about an unknown price."""
    if not isinstance(event, UsageReported):
        return event
    if event.usage.cost is None:
        return UsageReported(Usage())
    return UsageReported(Usage(cost=Decimal(0), currency=event.usage.currency))


def _saved(events: list[ModelEvent]) -> dict[str, object]:
    """Return the original cost of the answer, or an empty dict if unknown."""
    reports = [event.usage for event in events if isinstance(event, UsageReported)]
    return reports[-1].model_dump(mode="json") if reports else {}


def _same_terms(one: ChatRequest, other: ChatRequest) -> bool:
    """Return True if two equal requests also share their timeouts, retries and credentials."""
    return one.config == other.config and one.metadata == other.metadata


def _is_deterministic(config: GenerateConfig) -> bool:
    """Return True if the caller expects the same answer each time. Values in `extra_body` win, as in the request."""
    temperature = config.extra_body.get("temperature", config.temperature)
    seed = config.extra_body.get("seed", config.seed)
    return temperature == 0 or seed is not None


def _path(config: CacheConfig) -> Path:
    """Return the file's absolute path, so that changing the working directory has no effect."""
    if config.path is not None:
        return Path(config.path).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "jackfield" / "answers.sqlite"
