"""A model's response: its text, its calls, and the sums of its usage."""

from __future__ import annotations

from decimal import Decimal

import pytest

from jackfield.errors import InvalidMessageError
from jackfield.messages import ContentItem, FunctionCall, Message, ModelResponse, Usage


def test_every_count_of_a_usage_is_summed() -> None:
    one = Usage(
        prompt_tokens=1, completion_tokens=2, total_tokens=4, cached_tokens=8, cache_write_tokens=16,
        long_cache_write_tokens=32, reasoning_tokens=64, cost=Decimal(1), currency="USD",
    )  # fmt: skip
    assert (one + one).model_dump() == {
        "prompt_tokens": 2, "completion_tokens": 4, "total_tokens": 8, "cached_tokens": 16, "cache_write_tokens": 32,
        "long_cache_write_tokens": 64, "reasoning_tokens": 128, "cost": Decimal(2), "currency": "USD",
    }  # fmt: skip
    assert (one + Usage(), Usage() + one) == (one, one)
    unknown = one + Usage(prompt_tokens=1)
    assert (unknown.cost, unknown.currency, unknown.total_tokens) == (None, None, 5)
    other = one + Usage(prompt_tokens=1, cost=Decimal(1), currency="EUR")
    assert (other.cost, other.currency) == (None, None)
    free = Usage(cost=Decimal(0), currency="USD")
    assert (one + free).cost == 1
    assert Usage(prompt_tokens=3, completion_tokens=4).total_tokens == 7
    for wrong in ({"prompt_tokens": -1}, {"total_tokens": -1}, {"reasoning_tokens": -1}):
        with pytest.raises(InvalidMessageError):
            Usage(**wrong)


def test_a_response_has_its_text_without_reasoning_and_its_calls() -> None:
    call = FunctionCall("f", "{}")
    response = ModelResponse(
        messages=[
            Message("assistant", "", reasoning_content="Hm."), Message("assistant", "a"),
            Message("assistant", [ContentItem(text="b"), ContentItem(image="https://h/i")]),
            Message("assistant", "", function_call=call),
        ]
    )  # fmt: skip
    assert (response.get_content(), response.get_function_calls()) == ("ab", [call])
    assert FunctionCall("f", '{"a": 1}').add_argument("b", 2).get_parsed_arguments() == {"a": 1, "b": 2}
