"""A call is made again if that does no harm, and the error may pass."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from pydantic import Field

from jackfield import FnCallAgent, tool
from jackfield.errors import ConfigError, ModelConnectionError, RunBusyError, ToolArgumentError, ToolServiceError
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import BaseTool, ToolContext, toolset
from jackfield_testkit.records import MemoryStore
from jackfield_tool_results import retried
from jackfield_tool_results.retried import RetriedCalls, RetriedCallsConfig


class Naps:
    def __init__(self) -> None:
        self.slept_s: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept_s.append(seconds)


def failing(*errors: Exception, **options: Any) -> Any:
    left = list(errors)

    @tool(**{"name": "fetch", "idempotent": True, **options})
    def fetch() -> str:
        """Fetch."""
        if left:
            raise left.pop(0)
        return "there"

    return fetch


class WaitsError(ToolServiceError):
    retryable = True
    retry_after_s = 7.0


def from_cause(cause: Exception) -> ToolServiceError:
    error = ToolServiceError("the server does not answer")
    error.__cause__ = cause
    return error


PASS = {
    "connection": ConnectionResetError(),
    "time": TimeoutError(),
    "code": ToolServiceError("busy", code="503"),
    "says so": WaitsError("later"),
    "cause": from_cause(ConnectionRefusedError()),
}


@pytest.mark.parametrize("error", PASS.values(), ids=PASS)
def test_a_call_that_may_pass_is_made_again_after_a_pause(finish: Any, error: Exception) -> None:
    naps = Naps()
    entry = RetriedCalls(tools=[failing(error, error)], delay_s=1.0, sleep=naps)
    (result,) = finish([entry], ("fetch", {}))
    assert (result.message.content, result.metadata["attempts"]) == ("there", 3)
    if isinstance(error, WaitsError):
        assert naps.slept_s == [7.0, 7.0]
    else:
        assert 0.5 <= naps.slept_s[0] <= 1.0 <= naps.slept_s[1] <= 2.0


def test_only_the_codes_of_the_settings_are_temporary_and_each_attempt_is_counted(finish: Any) -> None:
    for code, attempts in (("locked", 2), ("503", None)):
        error = ToolServiceError("busy", code=code)
        entry = RetriedCalls(tools=[failing(error)], codes=("locked",), sleep=Naps())
        (result,) = finish([entry], ("fetch", {}))
        assert result.metadata.get("attempts") == attempts
        assert (result.message.content == "there") is (attempts is not None)


def test_a_pause_is_never_longer_than_the_longest_even_if_the_error_asks_for_more(finish: Any) -> None:
    naps = Naps()
    finish([RetriedCalls(tools=[failing(WaitsError("later"))], max_delay_s=3.0, sleep=naps)], ("fetch", {}))
    assert naps.slept_s == [3.0]


STAY = {
    "a fault": ValueError("wrong"),
    "for the model": ToolServiceError("there is no such page"),
    "its arguments": ToolArgumentError("no"),
    "code": ToolServiceError("not found", code="404"),
    "cause": from_cause(ValueError("wrong")),
}


@pytest.mark.parametrize("error", STAY.values(), ids=STAY)
def test_an_error_that_stays_is_given_to_the_model_at_once(finish: Any, error: Exception) -> None:
    naps = Naps()
    (result,) = finish([RetriedCalls(tools=[failing(error)], sleep=naps)], ("fetch", {}))
    assert result.error == type(error).__name__
    assert naps.slept_s == []


def test_after_the_last_attempt_the_error_is_the_result(finish: Any) -> None:
    naps = Naps()
    errors = [ConnectionResetError("reset")] * 5
    (result,) = finish([RetriedCalls(tools=[failing(*errors)], attempts=2, sleep=naps)], ("fetch", {}))
    assert result.error == "ConnectionResetError"
    assert len(naps.slept_s) == 1


def test_a_tool_that_may_do_something_twice_is_refused(finish: Any) -> None:
    with pytest.raises(ConfigError, match="'fetch', which is not declared read-only or idempotent"):
        finish([RetriedCalls(tools=[failing(idempotent=False)])])
    (result,) = finish([RetriedCalls(tools=[failing(idempotent=False, read_only=True)])], ("fetch", {}))
    assert result.message.content == "there"


def test_no_attempt_begins_after_the_run_was_taken_over(finish: Any) -> None:
    store, attempts = MemoryStore(), []

    @tool(idempotent=True)
    def fetch() -> str:
        """Fetch."""
        attempts.append(1)
        raise ConnectionResetError

    async def take_over(_: float) -> None:
        for kept in store.kept.values():
            kept.hold += 1
        await asyncio.sleep(0.05)  # longer than a write counts as a confirmation

    with pytest.raises(RunBusyError):
        finish([RetriedCalls(tools=[fetch], sleep=take_over)], ("fetch", {}), store=store)
    assert len(attempts) == 1


def test_all_attempts_together_have_the_time_of_the_call(finish: Any) -> None:
    errors = [ConnectionResetError()] * 5
    entry = RetriedCalls(tools=[failing(*errors, timeout_s=0.2)], delay_s=60, max_delay_s=60)
    (result,) = finish([entry], ("fetch", {}))
    assert result.error == "ToolTimeoutError"


def test_an_agent_as_a_tool_is_asked_once_whatever_its_record_is_good_for() -> None:
    paid: list[str] = []

    @tool
    def pay() -> str:
        """Pay."""
        paid.append("Ada")
        return "paid"

    script = [calls(("pay", {})), [ModelConnectionError("the server is away")]] * 3
    helper = FnCallAgent([pay], ScriptedModel(script), name="helper", description="Pays.").as_tool()
    assert helper.safety().resumable
    assert not RetriedCalls(tools=[failing()]).applies_to(helper.safety())
    with pytest.raises(ConfigError, match="'helper', which is not declared read-only or idempotent"):
        FnCallAgent([RetriedCalls(tools=[helper])], ScriptedModel([]))

    @toolset
    def both(_context: ToolContext) -> list[BaseTool]:
        return [helper, failing()]

    boss = ScriptedModel([calls(("helper", {"request": "Pay."})), answer("So.")])
    FnCallAgent([RetriedCalls(tools=[both], delay_s=0.0)], boss).ask("Go.")
    assert paid == ["Ada"]


def test_a_function_keeps_its_patterns_when_it_is_retried(finish: Any) -> None:
    @tool(idempotent=True)
    def greet(name: Annotated[str, Field(pattern=r"(?x)^ \w+ $")]) -> str:
        """Greet a person."""
        return f"Hello {name}"

    (result,) = finish([RetriedCalls(tools=[greet])], ("greet", {"name": "Müller"}))
    assert result.message.content == "Hello Müller"


def test_the_settings_have_the_defaults_of_the_readme() -> None:
    config = RetriedCalls(tools=[failing()]).config
    assert (config.attempts, config.delay_s, config.max_delay_s) == (3, 0.5, 20)
    assert {*config.codes} == {
        *("timeout", "unavailable", "rate_limited"), *("408", "425", "429", "500", "502", "503", "504")
    }  # fmt: skip


class SaysError(ConnectionError):
    """A broken connection that says whether another attempt may succeed, and when."""

    def __init__(self, retryable: object, retry_after_s: object = None) -> None:
        super().__init__("broken")
        self.retryable, self.retry_after_s = retryable, retry_after_s


@pytest.mark.parametrize(("retryable", "may_pass"), [(True, True), (False, False), (None, True), ("no", True)])
def test_what_an_error_says_of_itself_goes_before_its_kind(retryable: object, may_pass: bool) -> None:
    assert retried._may_pass(SaysError(retryable), ()) is may_pass


def test_a_cause_is_looked_at_however_deep_it_is() -> None:
    assert retried._may_pass(from_cause(from_cause(TimeoutError())), ())
    assert not retried._may_pass(from_cause(from_cause(SaysError(False))), ())
    assert not retried._may_pass(ToolArgumentError("no", code="503"), ("503",))


@pytest.mark.parametrize(
    ("says", "attempt", "least", "most"),
    [
        (None, 1, 1, 2), (None, 2, 2, 4), (None, 3, 4, 8), (None, 4, 5, 10), (None, 9, 5, 10), (0, 1, 0, 0),
        (3, 1, 3, 3), (3.5, 2, 3.5, 3.5), (11, 1, 10, 10), (-1, 1, 1, 2), ("soon", 1, 1, 2),
    ],
)  # fmt: skip
def test_a_pause_is_what_the_error_asks_for_or_doubles_up_to_the_longest(
    says: object, attempt: int, least: float, most: float
) -> None:
    config = RetriedCallsConfig(tools=("x",), delay_s=2, max_delay_s=10)
    pauses = [retried._delay(SaysError(None, says), attempt, config) for _ in range(50)]
    assert all(least <= pause <= most for pause in pauses)
    assert least == most or len({*pauses}) > 1, "many that failed together would come back together"


def test_a_call_with_one_attempt_is_made_once_and_people_hear_of_the_others(finish: Any) -> None:
    naps = Naps()
    (result,) = finish([RetriedCalls(tools=[failing(TimeoutError())], attempts=1, sleep=naps)], ("fetch", {}))
    assert (result.error, naps.slept_s) == ("TimeoutError", [])
    told: list[str] = []
    entry = RetriedCalls(tools=[failing(WaitsError("later"))], sleep=naps)
    tool: Any = entry.fixed_tools()[0]
    asyncio.run(tool.call({}, context=ToolContext(report=told.append)))
    assert told == ["WaitsError; trying again in 7.0 s"]


def test_a_run_that_was_taken_over_is_noted_on_the_error() -> None:
    async def before_call() -> str:
        return "the run continues elsewhere"

    naps = Naps()
    made: Any = RetriedCalls(tools=[failing(TimeoutError("late"))], sleep=naps).fixed_tools()[0]
    run: Any = SimpleNamespace(before_call=before_call)
    with pytest.raises(TimeoutError, match="late") as caught:
        asyncio.run(made.around({}, ToolContext(run=run)))
    assert caught.value.__notes__ == ["the run continues elsewhere"]
    assert len(naps.slept_s) == 1
