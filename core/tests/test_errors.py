"""Errors: they keep their facts on the way to another process."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from jackfield.errors import (
    AmbiguousPluginError,
    InDoubtError,
    JackfieldError,
    LimitReachedError,
    MissingSecretError,
    ModelServiceError,
    RateLimitedError,
    ToolServiceError,
    ToolTimeoutError,
)
from jackfield.secrets import forget_locals
from jackfield.settings import config_path
from jackfield.suggestions import close_names, suggest

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


def test_a_missing_key_is_reported_with_the_file_it_can_be_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert str(config_path()) == f"{tmp_path}/jackfield/config.toml"
    assert str(MissingSecretError("SOME_KEY", needed_by="the search")).endswith(f"under [secrets] in {config_path()}")


@pytest.mark.parametrize("count", [1, 8, 9, 100])
def test_an_error_names_eight_known_names_at_most(count: int) -> None:
    names = [f"{number:03}" for number in range(count)]
    told = suggest("entirely different", names)
    assert told.count(", ") == min(count, 8) - 1
    assert (f"and {count - 8} more" in told) == (count > 8)


def test_an_error_names_three_close_names_at_most() -> None:
    names = ["names", "named", "namer", "namet", "namex"]
    assert len(close_names("name", names)) == 3
    assert suggest("name", names).count(" or ") == 2


def raised(work: Callable[[], object]) -> BaseException:
    try:
        work()
    except BaseException as error:
        return error
    raise AssertionError("it did not fail")


def fails(key: str) -> None:
    raise ValueError(f"{len(key)} characters")


def local_variables(error: BaseException) -> list[str]:
    trace, names = error.__traceback__, list[str]()
    while trace is not None:
        names += trace.tb_frame.f_locals if trace.tb_frame.f_code is fails.__code__ else ()
        trace = trace.tb_next
    return names


def test_errors_in_a_group_lose_their_local_variables_as_well() -> None:
    inner = raised(lambda: fails("sk-secret"))
    assert local_variables(inner) == ["key"]
    forget_locals(ExceptionGroup("both", [ExceptionGroup("one", [inner])]))  # type: ignore[list-item]
    assert local_variables(inner) == []


def test_an_error_that_was_being_handled_outside_keeps_its_local_variables() -> None:
    outside = raised(lambda: fails("mine"))
    error = raised(lambda: fails("sk-secret"))
    error.__context__ = outside
    forget_locals(error, outside=outside)
    assert (local_variables(error), local_variables(outside)) == ([], ["key"])


def test_errors_have_their_facts() -> None:
    model = ModelServiceError("m", backend="b", code="c", status=5, retry_after_s=1.5, request_id="r", partial_text="p")
    facts = (model.message, model.backend, model.code, model.status, model.retry_after_s, model.request_id)
    assert (*facts, model.partial_text) == ("m", "b", "c", 5, 1.5, "r", "p")
    tool = ToolServiceError("m", code="c", may_be_done=True)
    assert (tool.message, tool.code, tool.may_be_done) == ("m", "c", True)
    late = ToolTimeoutError("m", code="c", still_running=True, may_be_done=True)
    assert (late.code, late.still_running, late.may_be_done) == ("c", True, True)
    doubt = InDoubtError("m", agent="a", call_id="c", place="p", question="q", is_denied=True)
    assert (doubt.agent, doubt.call_id, doubt.place, doubt.question, doubt.is_denied) == ("a", "c", "p", "q", True)
    assert LimitReachedError("m", limit="runs").limit == "runs"
