"""The number of tokens that a request may have."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.config import GenerateConfig
from jackfield.request import ChatRequest, ModelFacts
from jackfield_truncation.config import TruncationConfig
from jackfield_truncation.limit import tokens_allowed


@pytest.mark.parametrize(
    ("options", "settings", "facts", "exact", "limit"),
    [
        ({}, {}, {}, False, None),
        ({"max_input_tokens": 7}, {"context_tokens": 100}, {}, False, 7),
        ({"max_input_tokens": 0}, {"context_tokens": 100}, {}, False, None),
        ({"max_input_tokens": -1}, {}, {"context_tokens": 100}, False, None),
        ({}, {"context_tokens": 1000}, {}, False, 675),  # a quarter for the answer, then a tenth
        ({}, {"context_tokens": 1000}, {}, True, 735),
        ({}, {}, {"context_tokens": 1000}, True, 735),
        ({}, {"context_tokens": 1000}, {"context_tokens": 5}, True, 735),
        ({}, {"context_tokens": 100_000, "margin": 0}, {}, False, 95_904),  # at most 4096 for the answer
        ({}, {"context_tokens": 16_384, "margin": 0}, {}, False, 12_288),
        ({}, {"context_tokens": 16_388, "margin": 0}, {}, False, 12_292),
        ({}, {"context_tokens": 1000, "margin": 0.5}, {}, True, 375),
        ({}, {"context_tokens": 1000, "margin": 0, "answer_tokens": 10}, {}, False, 990),
        ({}, {"context_tokens": 1000, "margin": 0, "answer_tokens": 0}, {}, False, 1000),
        ({"max_tokens": 20}, {"context_tokens": 1000, "margin": 0, "answer_tokens": 10}, {}, False, 980),
        ({"max_tokens": 999}, {"context_tokens": 1000, "margin": 0}, {}, False, 1),
        ({"max_tokens": 1000}, {"context_tokens": 1000, "margin": 0}, {}, False, 750),
    ],
)
def test_a_request_has_the_context_without_the_answer_and_a_margin(
    options: dict[str, Any], settings: dict[str, Any], facts: dict[str, Any], exact: bool, limit: int | None
) -> None:
    request = ChatRequest("m", (), config=GenerateConfig(**options), facts=ModelFacts(**facts))
    assert tokens_allowed(request, TruncationConfig(**settings), exact=exact) == limit
