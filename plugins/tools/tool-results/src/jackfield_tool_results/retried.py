"""The `retried_calls` toolset: retry a call after a temporary failure if the call is safe to repeat."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic import Field

from jackfield.errors import ToolArgumentError, ToolServiceError
from jackfield.tools import BaseTool, Safety, ToolContext, ToolResult
from jackfield_tool_results.wrapping import WrappedTool, WrappingConfig, WrappingToolset

PASSING_CODES = ("timeout", "unavailable", "rate_limited", "408", "425", "429", "500", "502", "503", "504")


class RetriedCallsConfig(WrappingConfig):
    """Settings for retries: which tools and errors, how many attempts, and how long to wait."""

    attempts: int = Field(default=3, ge=1, le=20, description="Maximum number of attempts per call")
    delay_s: float = Field(
        default=0.5, ge=0, description="Delay before the second attempt in seconds, doubled for each further attempt"
    )
    max_delay_s: float = Field(default=20.0, ge=0, description="Maximum delay between two attempts, in seconds")
    codes: tuple[str, ...] = Field(
        default=PASSING_CODES, description="Codes of ToolServiceError that count as temporary"
    )


class RetriedCalls(WrappingToolset):
    """Retries a failed call if its tool is read-only or idempotent and the error is likely temporary.

    The call's timeout covers all attempts. No further attempt is made once another process has taken over the run.
    """

    config_class = RetriedCallsConfig
    config: RetriedCallsConfig
    name = "retried_calls"
    needs = "read-only or idempotent"

    def __init__(
        self,
        cfg: RetriedCallsConfig | Mapping[str, object] | None = None,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        **settings: Any,
    ) -> None:
        super().__init__(cfg, **settings)
        self._sleep = sleep

    def applies_to(self, safety: Safety) -> bool:
        """Return True if the tool's calls are safe to repeat."""
        return safety.read_only or safety.idempotent

    def wrapped(self, tool: BaseTool) -> WrappedTool:
        """Wrap a tool so that its failed calls are retried."""
        return _RetriedTool(tool, self)


class _RetriedTool(WrappedTool):
    def __init__(self, inner: BaseTool, outer: RetriedCalls) -> None:
        super().__init__(inner)
        self._outer = outer

    async def around(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        config = self._outer.config
        attempts = config.attempts if self._outer.applies_to(self.safety()) else 1
        for attempt in range(1, attempts):
            try:
                return self._with_count(await self.call_inner(arguments, context), attempt)
            except Exception as error:
                if not _may_pass(error, config.codes):
                    raise
                delay_s = _delay(error, attempt, config)
                context.report(f"{type(error).__name__}; trying again in {delay_s:.1f} s")
                await self._outer._sleep(delay_s)
                # Another process may have taken over the run meanwhile, and may make the same call.
                if context.run is not None and (refusal := await context.run.before_call()):
                    error.add_note(refusal)
                    raise
        return self._with_count(await self.call_inner(arguments, context), attempts)

    @staticmethod
    def _with_count(result: ToolResult, attempt: int) -> ToolResult:
        return result if attempt == 1 else ToolResult(result.content, {**result.metadata, "attempts": attempt})


def _may_pass(error: Exception, codes: tuple[str, ...]) -> bool:
    """Return True if a retry may succeed: the error says so, or was caused by a connection failure or a timeout."""
    retryable = getattr(error, "retryable", None)
    if isinstance(retryable, bool):
        return retryable
    if isinstance(error, ToolArgumentError):
        return False
    if isinstance(error, ToolServiceError):
        cause = error.__cause__
        return error.code in codes or (isinstance(cause, Exception) and _may_pass(cause, codes))
    return isinstance(error, ConnectionError | TimeoutError)


def _delay(error: Exception, attempt: int, config: RetriedCallsConfig) -> float:
    delay_s: object = getattr(error, "retry_after_s", None)
    if isinstance(delay_s, int | float) and delay_s >= 0:
        return float(min(delay_s, config.max_delay_s))
    # Jitter keeps calls that failed together from being retried together.
    wait_s: float = min(config.delay_s * 2 ** (attempt - 1), config.max_delay_s)
    return wait_s * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
