"""Errors: they keep their facts on the way to another process."""

from __future__ import annotations

import copy
import pickle

import pytest

from jackfield.errors import (
    AmbiguousPluginError,
    JackfieldError,
    LimitReachedError,
    MissingSecretError,
    RateLimitedError,
    ToolServiceError,
)

ERRORS = [
    MissingSecretError("SOME_KEY", needed_by="the search"),
    LimitReachedError("too many turns", limit="turns"),
    AmbiguousPluginError("two"),
    RateLimitedError("slow", backend="b", status=429, retry_after_s=3.5, request_id="r", partial_text="so far"),
    ToolServiceError("no such page", code="404"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_keeps_its_text_and_its_facts_when_pickled_or_copied(error: JackfieldError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)


def test_the_error_of_a_missing_key_names_the_variable_to_set() -> None:
    assert "SOME_KEY" in str(MissingSecretError("SOME_KEY", needed_by="the search"))
