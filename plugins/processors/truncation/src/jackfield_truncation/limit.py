"""How long a request may be."""

from __future__ import annotations

from jackfield.request import ChatRequest
from jackfield_truncation.config import TruncationConfig

ESTIMATE_MARGIN = 0.1
EXACT_MARGIN = 0.02  # what a server writes around messages and schemas is not counted exactly

_MOST_ANSWER_TOKENS = 4096


def tokens_allowed(request: ChatRequest, config: TruncationConfig, *, exact: bool) -> int | None:
    """The most tokens of a request; None if there is no limit.

    Args:
        request: The request.
        config: What holds where it has no `max_input_tokens`.
        exact: Whether its tokens are counted with the model's vocabulary.
    """
    wanted = request.config.max_input_tokens
    if wanted is not None:
        return wanted if wanted > 0 else None
    context = config.context_tokens or request.facts.context_tokens
    if context is None:
        return None
    answer = request.config.max_tokens
    if answer is None:
        answer = config.answer_tokens
    if answer is None or answer >= context:
        # One that leaves no room is "as long as it can be", or the context is longer than it is known to be.
        answer = min(context // 4, _MOST_ANSWER_TOKENS)
    margin = config.margin
    if margin is None:
        margin = EXACT_MARGIN if exact else ESTIMATE_MARGIN
    return int((context - answer) * (1 - margin))
