"""Compute the maximum length of a request."""

from __future__ import annotations

from typing import TypeVar

from jackfield.request import ChatRequest
from jackfield_truncation.config import TruncationConfig

ESTIMATE_MARGIN = 0.1
EXACT_MARGIN = 0.02  # the server's own text around messages and schemas cannot be counted exactly

_MOST_ANSWER_TOKENS = 4096

T = TypeVar("T")


def tokens_allowed(request: ChatRequest, config: TruncationConfig, *, exact: bool) -> int | None:
    """Return the maximum number of tokens in a request, or None if there is no limit.

    Args:
        request: The request.
        config: The limits to apply if the request does not set `max_input_tokens`.
        exact: True if tokens are counted with the model's own vocabulary.
    """
    limit = request.config.max_input_tokens
    if limit is not None:
        return limit if limit > 0 else None
    context = config.context_tokens or request.facts.context_tokens
    if context is None:
        return None
    answer = _first_given(request.config.max_tokens, config.answer_tokens, default=context)
    if answer >= context:
        # An answer limit that leaves no room means "as long as possible", or the context is longer than known.
        answer = min(context // 4, _MOST_ANSWER_TOKENS)
    margin = _first_given(config.margin, default=EXACT_MARGIN if exact else ESTIMATE_MARGIN)
    return int((context - answer) * (1 - margin))


def _first_given(*values: T | None, default: T) -> T:
    return next((value for value in values if value is not None), default)
