"""Processor that waits for a free slot, makes the call, and records its actual usage."""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from jackfield import sync
from jackfield.errors import LimitReachedError, RateLimitedError
from jackfield.events import ModelEvent, ModelFinished, PluginEvent, UsageReported
from jackfield.messages import Usage
from jackfield.models import ONLY_BEFORE_OUTPUT
from jackfield.processors import CallNext, Phase, Processor
from jackfield.request import ChatRequest
from jackfield.streams import closing
from jackfield_counting.estimating import estimate_tokens
from jackfield_counting.requests import Counts, RequestCounter
from jackfield_rate_limits.config import RateLimitsConfig
from jackfield_rate_limits.gate import Clock, Gate, Sleep, TooLongError
from jackfield_rate_limits.owners import owner
from jackfield_rate_limits.shared import gates
from jackfield_rate_limits.state import Entry, Limits, Wait, Wanted

WAITING_EVENT = "jackfield-rate-limits.waiting"
_WORTH_TELLING_S = 1.0
_WHY = {
    "requests": ("the limit requests_per_minute is used up", "本分钟的请求数已用完"),
    "tokens": ("the limit tokens_per_minute is used up", "本分钟的 token 数已用完"),
    "concurrency": ("max_concurrency requests are already running", "同时进行的请求数已达上限"),
    "pause": ("the server asked for a pause", "服务器要求暂停"),
    "turn": ("other requests came first", "前面还有其他请求"),
}


class RateLimits(Processor):
    """Delays requests, first come, first served, to stay within the server's limits.

    All agents in a process that use the same model on the same server share the limits. With `path`, all processes that
    name the same file share them. Every retry counts as a request. An HTTP 429 response pauses all requests.

    Args:
        cfg, settings: The keys of `RateLimitsConfig`.
        clock: A clock in seconds. Defaults to `time.monotonic`, or to `time.time` if processes share a file.
        sleep: Sleeps for the given number of seconds.

    Raises:
        ConfigError: A setting is invalid.
    """

    name: ClassVar[str] = "rate_limits"
    config_class = RateLimitsConfig
    config: RateLimitsConfig
    phase: ClassVar[Phase] = "transport"
    after: ClassVar[tuple[str, ...]] = ("retry",)

    def __init__(
        self,
        cfg: RateLimitsConfig | Mapping[str, object] | None = None,
        *,
        clock: Clock | None = None,
        sleep: Sleep = asyncio.sleep,
        **settings: Any,
    ) -> None:
        super().__init__(cfg, **settings)
        self._path = None if self.config.path is None else Path(self.config.path).expanduser().absolute()
        self._clock = clock or (time.time if self._path else time.monotonic)
        self._sleep = sleep
        self._limits = Limits(
            self.config.requests_per_minute, self.config.tokens_per_minute, self.config.max_concurrency
        )
        self._counter = RequestCounter(Counts(estimate_tokens), self.config.media_tokens)

    def __repr__(self) -> str:
        return f"<RateLimits {self._limits} {self._path or 'of this process'}>"

    async def aclose(self) -> None:
        """Close the file. The next request reopens it."""
        if self._path is not None:
            await sync.in_worker(gates().close, self._path)

    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        """Wait for a slot, make the call, and free the slot."""
        return self._limited(request, call_next)

    async def _limited(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        gate = gates().gate(self._scope(request), path=self._path, clock=self._clock)
        question_tokens, wanted = self._wanted(request, gate)
        entry = await gate.look(wanted)
        if isinstance(entry, Wait):
            if _is_worth_telling(entry, request):
                yield _note(entry, request)
            entry = await self._wait(request, gate, wanted)
        call = _Call(gate, entry, question_tokens, self._next_sign())
        try:
            async with closing(call_next(request)) as events:
                async for event in events:
                    call.see(event)
                    if self._path is not None and self._clock() >= call.renew_at:
                        call.renew_at = self._next_sign()
                        await gate.renew(entry, self.config.lease_s)
                    yield event
        except RateLimitedError as error:
            call.refused = True
            # Bounded, because the server does not know about other waiting requests.
            asked_for_s = self.config.pause_s if error.retry_after_s is None else error.retry_after_s
            await gate.pause(asked_for_s, max_pause_s=self.config.max_pause_s)
            raise
        finally:
            await call.settle()

    def _next_sign(self) -> float:
        """The time, by the clock, of the next lease renewal."""
        return self._clock() + self.config.lease_s / 3

    async def _wait(self, request: ChatRequest, gate: Gate, wanted: Wanted) -> Entry:
        try:
            return await gate.enter(wanted, max_wait_s=self.config.max_wait_s, sleep=self._sleep)
        except TooLongError as error:
            raise RateLimitedError(
                f"{self._scope(request)}: request not started within max_wait_s={self.config.max_wait_s:g}, because "
                f"{_WHY[error.wait.why][0]}; raise max_wait_s, raise that limit if the server allows it, or "
                "send fewer requests",
                backend=request.server,
                retry_after_s=error.wait.seconds,
            ) from None

    def _scope(self, request: ChatRequest) -> str:
        return self.config.scope or f"{request.server}:{request.model}"

    def _wanted(self, request: ChatRequest, gate: Gate) -> tuple[int, Wanted]:
        """Return the prompt's token count, and the reservation for the prompt and its answer.

        Raises:
            LimitReachedError: The request exceeds the limit on its own.
        """
        question = answer = 0
        if self._limits.tokens is not None:
            question = self._counter.request(request)
            # The server reserves `max_tokens` itself, while an estimate may be reduced to the available tokens.
            answer = request.config.max_tokens or max(0, min(round(gate.answer_tokens), self._limits.tokens - question))
            if question + answer > self._limits.tokens:
                raise LimitReachedError(
                    f"{self._scope(request)}: a request of about {question} tokens and an answer of up to {answer} "
                    f"cannot fit into tokens_per_minute={self._limits.tokens}: shorten the history, lower max_tokens, "
                    f"or raise the limit",
                    limit="tokens_per_minute",
                )
        shared = self._path is not None
        return question, Wanted(
            uuid.uuid4().hex,
            self._limits,
            question + answer,
            self.config.lease_s if shared else math.inf,
            owner() if shared else "",
            self.config.max_pause_s,
        )


@dataclass(slots=True)
class _Call:
    """An admitted request and its outcome.

    Attributes:
        gate: The gate that admitted the request.
        entry: The request's entry in the gate.
        question_tokens: The estimated number of prompt tokens.
        renew_at: The time of the next lease renewal, by the clock.
        refused: True if the server rejected the request as rate limited.
    """

    gate: Gate
    entry: Entry
    question_tokens: int
    renew_at: float
    refused: bool = False
    _began: bool = False
    _complete: bool = False
    _usage: Usage | None = None

    def see(self, event: ModelEvent) -> None:
        """Update the outcome from an event."""
        self._began = True
        if isinstance(event, UsageReported):
            self._usage = event.usage
        elif isinstance(event, ModelFinished):
            self._complete = True

    async def settle(self) -> None:
        """Free the slot and record the actual usage, as far as it is known."""
        if self._usage is not None and self._complete:
            self.gate.learn(self._usage.completion_tokens)
        await self.gate.leave(self.entry, self._tokens())

    def _tokens(self) -> int:
        if self._usage is not None and self._usage.total_tokens:
            return self._usage.total_tokens
        if self.refused:
            return 0
        return self.entry.tokens if self._began else self.question_tokens


def _is_worth_telling(wait: Wait, request: ChatRequest) -> bool:
    # A consumer that cannot handle a reset is only retried before it has received any output.
    if request.metadata.get(ONLY_BEFORE_OUTPUT):
        return False
    return wait.seconds is None or wait.seconds >= _WORTH_TELLING_S


def _note(wait: Wait, request: ChatRequest) -> PluginEvent:
    why_en, why_zh = _WHY[wait.why]
    if request.lang == "zh":
        note = f"{request.model} 正在等待：{why_zh}" + ("" if wait.seconds is None else f"，约 {wait.seconds:.0f} 秒")
    else:
        note = f"{request.model} waits: {why_en}" + ("" if wait.seconds is None else f", about {wait.seconds:.0f} s")
    seconds = None if wait.seconds is None else round(wait.seconds, 3)
    return PluginEvent(WAITING_EVENT, {"why": wait.why, "seconds": seconds, "note": note})
