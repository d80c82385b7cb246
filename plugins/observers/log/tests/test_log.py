"""Steps of real runs as lines of a log."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType, SimpleNamespace
from typing import Any, Literal

import pytest

from jackfield import FnCallAgent, tool
from jackfield.errors import ConfigError, ModelRequestError
from jackfield.events import (
    ApprovalDecided,
    ApprovalNeeded,
    HandedOff,
    HistoryTrimmed,
    ModelFinished,
    PluginEvent,
    PreparationProgress,
    RetryScheduled,
    RunEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    StreamReset,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from jackfield.messages import FunctionCall, Message, Usage
from jackfield.plugins import PluginHost
from jackfield.settings import load_settings
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import ToolContext
from jackfield_log.config import LogConfig
from jackfield_log.observer import LOGGER, LogObserver
from tests.support.promises import check_limit, defaults_of

KEY = "sk-live-Q7rT2mZx9LpW4vNc8KdB"


@tool
def look_up(word: str) -> str:
    """Look a word up."""
    return f"{word} is a tree"


@tool
def burn(word: str) -> str:
    """Fail with a secret in the error."""
    raise RuntimeError(f"GET https://api.example.org/x?api_key={KEY}&q={word} failed")


@pytest.fixture(autouse=True)
def _levels(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in (LOGGER, "jackfield")]
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


def _agent(*script: Any, observer: LogObserver | str = "log", **options: Any) -> FnCallAgent:
    return FnCallAgent([look_up, burn], ScriptedModel(list(script)), name="helper", observers=[observer], **options)


def _facts(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [vars(record)["jackfield"] for record in caplog.records if record.name == LOGGER]


def _lines(caplog: pytest.LogCaptureFixture) -> str:
    return "\n".join(record.getMessage() for record in caplog.records if record.name == LOGGER)


def test_a_run_is_a_line_per_step_with_the_same_run_id(caplog: pytest.LogCaptureFixture) -> None:
    result = _agent(calls(("look_up", {"word": "oak"})), answer("A tree.")).ask("What is an oak?")
    facts = _facts(caplog)
    assert [one["step"] for one in facts] == ["run started", "turn", "tool", "turn", "run finished"]
    assert {(one["run"], one["agent"]) for one in facts} == {(result.run_id, "helper")}
    last = facts[-1]
    assert (last["stop_reason"], last["turns"], last["tool_calls"]) == ("finished", 2, 1)
    assert (last["prompt_tokens"], last["completion_tokens"]) == (
        result.usage.prompt_tokens,
        result.usage.completion_tokens,
    )
    assert all("seconds" in one for one in facts[1:])


def test_texts_of_the_conversation_are_shown_at_debug_only(caplog: pytest.LogCaptureFixture) -> None:
    script = (calls(("look_up", {"word": "zelkova"})), answer("A zelkova is a tree."))
    _agent(*script).ask("What is a zelkova?")
    assert "zelkova" not in _lines(caplog)
    caplog.clear()
    _agent(*script, observer=LogObserver("debug", max_chars=20)).ask("What is a zelkova?" + "?" * 500)
    starts = {one["step"]: one for one in _facts(caplog)}
    assert starts["tool started"]["arguments"] == '{"word": "zelkova"}'
    assert starts["tool"]["result"] == "zelkova is a tree"
    assert starts["run started"]["question"] == "What is a zelkova??? …"


def test_a_level_that_the_program_sets_wins(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("jackfield").setLevel("DEBUG")
    _agent(calls(("look_up", {"word": "oak"})), answer("A tree.")).ask("Hi")
    assert "arguments=" in _lines(caplog)
    caplog.clear()
    logging.getLogger(LOGGER).setLevel("WARNING")
    _agent(answer("Hello.")).ask("Hi")
    assert not _facts(caplog)


def test_failed_calls_and_retries_are_warnings_and_a_failed_run_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    _agent(calls(("burn", {"word": "oak"})), answer("No.")).ask("Hi")
    assert [record.levelname for record in caplog.records if record.name == LOGGER] == [
        "INFO", "INFO", "WARNING", "INFO", "INFO",
    ]  # fmt: skip
    caplog.clear()
    with pytest.raises(ModelRequestError):
        _agent([ModelRequestError("no such model")]).ask("Hi")
    last = caplog.records[-1]
    assert (last.levelname, vars(last)["jackfield"]["error"]) == ("ERROR", "no such model")
    caplog.clear()
    LogObserver().observe(RunEvent("r", 1, "a", 0, RetryScheduled(1, 0.5, "busy")))
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("WARNING", "retry: run=r agent=a attempt=1 delay_s=0.5 error=busy")
    ]


def test_approvals_and_their_answers_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    asks = {"ask": "read_only", "by": lambda call, context: False}
    _agent(calls(("look_up", {"word": "oak"})), answer("No."), approve=asks).ask("Hi")
    approval = next(one for one in _facts(caplog) if one["step"] == "approval")
    assert (approval["tool"], approval["allowed"]) == ("look_up", "no")


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_line_has_a_secret(form: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", KEY)
    own = "pw-9Zk3Qm7Lx2Vt5Rb8"  # only the agent's model knows it
    address = "https://bob:hunter2-Kq8z@db.example.org/x?token=Zm9vYmFyYmF6cXV4MTIz"
    script = (
        calls(("look_up", {"word": f"{KEY} {own} {address}"}), ("burn", {"word": f'"{KEY}"\n'})),
        answer(f"{KEY} {own} {address}"),
    )
    model = ScriptedModel([*script])
    model.config = model.config.model_copy(update={"api_key": own})
    observer = LogObserver("debug", form)
    agent = FnCallAgent([look_up, burn], model, name="helper", observers=[observer])
    agent.ask(f"{'x' * 290}{KEY} {own}")
    observer.observe(RunEvent("r", 1, "a", 0, RunFailed(f"{address} refused {KEY}", "ModelRequestError")))
    whole = _lines(caplog) + repr(_facts(caplog))
    assert whole.count("[secret") > 10
    for secret in (KEY, KEY[:14], own, "hunter2-Kq8z", "Zm9vYmFyYmF6cXV4MTIz"):
        assert secret not in whole


def test_a_line_of_json_is_one_object(caplog: pytest.LogCaptureFixture) -> None:
    odd = "line\nline \x1b[31m \x9b \ud83d 树"
    for form in ("json", "text"):
        caplog.clear()
        _agent(calls(("look_up", {"word": "树"})), answer("树\n\x9b"), observer=LogObserver("debug", form)).ask("Hi\n")
        LogObserver("debug", form).observe(RunEvent("r", 1, odd, 0, RunFailed(odd, "E")))
        for record in caplog.records:
            line = record.getMessage()
            assert line.isprintable(), line
            line.encode()
            if form == "json":
                values = json.loads(line)
                assert {"time", "level", "step", "run", "agent"} <= values.keys()
                assert re.fullmatch(r"[-0-9]{10}T[0-9:]{8}\.[0-9]{3}\+00:00", values["time"]), "milliseconds in UTC"
                assert abs(datetime.fromisoformat(values["time"]).timestamp() - record.created) < 0.002


def test_runs_in_several_threads_are_apart(caplog: pytest.LogCaptureFixture) -> None:
    observer = LogObserver()

    @tool
    def who(context: ToolContext[str]) -> str:
        """Say who asks."""
        return context.deps

    def serve(number: int) -> str:
        script = [*[calls(("who", {}))] * (number % 3), answer("done")]
        agent = FnCallAgent([who], ScriptedModel(script), name=f"agent{number}", observers=[observer])
        return agent.ask("Hi", deps=str(number)).run_id

    with ThreadPoolExecutor(4) as pool:
        run_ids = list(pool.map(serve, range(12)))
    by_run = {one["run"]: one for one in _facts(caplog) if one["step"] == "run finished"}
    assert [(by_run[run_id]["agent"], by_run[run_id]["tool_calls"]) for run_id in run_ids] == [
        (f"agent{number}", number % 3) for number in range(12)
    ]


def test_lines_that_no_handler_takes_go_to_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    _agent(answer("Hello.")).ask("Hi")
    text = capsys.readouterr().err
    assert "info run started: run=" in text
    assert "info run finished: run=" in text
    _agent(answer("Hello."), observer=LogObserver(format="json")).ask("Hi")
    assert [json.loads(line)["step"] for line in capsys.readouterr().err.splitlines()] == [
        "run started", "turn", "run finished",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "options"),
    [
        ("info", {"level": "info", "format": "text"}),
        ("debug,json", {"level": "debug", "format": "json"}),
        ("INFO", {"level": "info", "format": "text"}),
        ("", None),
        ("0", None),
        ("off", None),
    ],
)
def test_the_variable_enables_the_log(value: str, options: object, tmp_path: Any) -> None:
    settings = load_settings({"JACKFIELD_LOG": value}, project_dir=tmp_path, user_file=tmp_path / "config.toml")
    assert settings.options.get("observer.jackfield-log/log") == options
    assert ("observer.jackfield-log/log" in settings.enabled) == (options is not None)


def test_a_wrong_value_of_the_variable_is_an_error(tmp_path: Any) -> None:
    with pytest.raises(ConfigError, match=r"JACKFIELD_LOG must be info or debug"):
        load_settings({"JACKFIELD_LOG": "verbose"}, project_dir=tmp_path, user_file=tmp_path / "config.toml")


def test_the_variable_logs_runs_of_any_agent(caplog: pytest.LogCaptureFixture, tmp_path: Any) -> None:
    settings = load_settings({"JACKFIELD_LOG": "debug"}, project_dir=tmp_path, user_file=tmp_path / "config.toml")
    FnCallAgent(llm=ScriptedModel([answer("Hello.")]), host=PluginHost(settings=settings)).ask("Hi")
    assert [one["step"] for one in _facts(caplog)] == ["run started", "turn", "run finished"]
    assert "text=Hello." in _lines(caplog)


def test_each_step_of_a_preparation_is_logged_once_and_its_parts_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    def observe(level: Literal["info", "debug"]) -> list[str]:
        caplog.clear()
        observer = LogObserver(level=level)
        observer.observe(RunEvent("r", 1, "a", 0, RunStarted(())))
        for number, event in enumerate(
            (
                PreparationProgress("reading files", 0, 2, "a.md"),
                PreparationProgress("reading files", 2, 2, "b.md"),
                PreparationProgress("splitting texts"),
            ),
            start=2,
        ):
            observer.observe(RunEvent("r", number, "a", 0, event))
        return [line for line in caplog.messages if line.startswith("preparation")]

    first, splitting = observe("info")
    assert first.endswith('work="reading files" item=a.md done=0 total=2')
    assert splitting.endswith('work="splitting texts"')
    assert len(observe("debug")) == 3


@pytest.mark.parametrize(("length", "shown"), [(20, "x" * 20), (21, f"{'x' * 20} …")])
def test_a_quotation_is_cut_only_if_it_is_longer_than_allowed(
    length: int, shown: str, caplog: pytest.LogCaptureFixture
) -> None:
    LogObserver(max_chars=20).observe(RunEvent("r", 1, "a", 0, RetryScheduled(1, 0.5, "x" * length)))
    assert _facts(caplog)[-1]["error"] == shown


@pytest.mark.parametrize("propagates", [True, False])
def test_a_line_that_no_handler_takes_goes_to_the_terminal(
    propagates: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A handler above takes it only if the loggers pass it on."""
    monkeypatch.setattr(logging.getLogger("jackfield"), "propagate", propagates)
    # Not a warning: `logging` itself writes those to the terminal if no handler takes them.
    LogObserver().observe(RunEvent("r", 1, "a", 0, RunStarted(())))
    assert ("run started: run=r agent=a" in capsys.readouterr().err) == (not propagates)


@pytest.mark.parametrize(("level", "takes"), [(logging.DEBUG, True), (logging.INFO, True), (logging.WARNING, False)])
def test_a_handler_takes_lines_of_its_level_and_above(
    level: int, takes: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = logging.NullHandler(level)
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    observer = LogObserver()
    observer.observe(RunEvent("r", 1, "a", 0, RunStarted(())))
    assert ("run started" in capsys.readouterr().err) == (not takes)
    observer.observe(RunEvent("r", 2, "a", 0, RunFailed("no", "StoreError")))
    assert capsys.readouterr().err == "", "each of these handlers takes errors"


def test_the_settings_have_these_defaults_and_limits() -> None:
    defaults = {"level": "info", "format": "text", "max_chars": 300}
    assert defaults_of(LogConfig, defaults, {}) == defaults
    check_limit(LogConfig, "max_chars", 10, 9, {})


CALL = FunctionCall("pay", "5")
STEPS: list[tuple[Any, str, str]] = [
    (RunStarted((Message("user", "No"), Message("user", "Hi"))), "INFO run started: {} messages=2", "question=Hi"),
    (TurnStarted(1), "", ""),
    (TextDelta("Yes"), "", ""),
    (ModelFinished("stop", "m"), "", ""),
    (
        TurnFinished(1, (Message("assistant", "Yes"), Message("assistant", "."), Message("assistant", "")), Usage()),
        "INFO turn: {} turn=1 model=m prompt_tokens=0 completion_tokens=0 cost=unknown seconds=0.25",
        "text=Yes.",
    ),
    (TurnStarted(2), "", ""),
    (
        TurnFinished(2, (), Usage(prompt_tokens=3, completion_tokens=5, cost=Decimal("0.5"), currency="EUR")),
        'INFO turn: {} turn=2 model=m prompt_tokens=3 completion_tokens=5 cost="0.5 EUR" seconds=0.25',
        "",
    ),
    (ModelFinished("stop", "n"), "", ""),  # a fallback answers
    (
        TurnFinished(3, (), Usage(cost=Decimal("0.5"))),
        "INFO turn: {} turn=3 model=n prompt_tokens=0 completion_tokens=0 cost=0.5 seconds=0.5",
        "",
    ),
    (
        TurnFinished(4, (), Usage(cost=Decimal(0))),
        "INFO turn: {} turn=4 model=n prompt_tokens=0 completion_tokens=0 cost=0 seconds=0.75",
        "",
    ),
    (ToolStarted(0, "c1", CALL), "DEBUG tool started: {} tool=pay call=c1", "arguments=5"),
    (
        ToolFinished(0, "c1", Message("function", "paid", name="pay"), 0.12345),
        "INFO tool: {} tool=pay call=c1 seconds=0.123",
        "result=paid",
    ),
    (
        ToolFinished(0, "c2", Message("function", "no", name="pay"), 2, "KeyError"),
        "WARNING tool: {} tool=pay call=c2 seconds=2 error=KeyError",
        "result=no",
    ),
    (
        ApprovalNeeded((CALL, FunctionCall("send", "x")), ("c1", "c2")),
        'INFO approval needed: {} tools="pay,send"',
        "arguments_1=5 arguments_2=x",
    ),
    (
        ApprovalDecided("c1", CALL, True, "person"),
        "INFO approval: {} tool=pay call=c1 allowed=yes by=person",
        "arguments=5",
    ),
    (
        ApprovalDecided("c1", CALL, False, "rule"),
        "INFO approval: {} tool=pay call=c1 allowed=no by=rule",
        "arguments=5",
    ),
    (HandedOff("a", "b"), "INFO hand-off: {} by=a to=b", ""),
    (RetryScheduled(2, 0.12345, "busy"), "WARNING retry: {} attempt=2 delay_s=0.123 error=busy", ""),
    (StreamReset("broken"), "WARNING answer restarted: {} reason=broken", ""),
    (
        HistoryTrimmed(3, 1, 900, 400),
        "INFO history trimmed: {} dropped=3 shortened=1 tokens_before=900 tokens_after=400",
        "",
    ),
    (PluginEvent("n", {}), "DEBUG report: {} name=n", 'data="{}"'),
    (PluginEvent("n", MappingProxyType({1: 2})), "DEBUG report: {} name=n", 'data="{1: 2}"'),
    (
        RunFinished("finished", (Message("assistant", "Yes"), Message("assistant", "Last")), Usage(prompt_tokens=7)),
        "INFO run finished: {} stop_reason=finished turns=4 tool_calls=2 prompt_tokens=7 completion_tokens=0 "
        "cost=unknown seconds=2.5",
        "text=Last",
    ),
]


@pytest.mark.parametrize("level", ["info", "debug"])
@pytest.mark.parametrize("depth", [0, 1])
def test_each_step_is_a_line_of_its_facts_and_its_texts_at_debug(
    level: Literal["info", "debug"], depth: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("jackfield_log.observer.time", SimpleNamespace(monotonic=lambda: now[0]))
    observer, expected = LogObserver(level), []
    for event, line, details in STEPS:
        observer.observe(RunEvent("r", 1, "a", depth, event))
        now[0] += 0 if isinstance(event, TextDelta | ModelFinished | ToolStarted | ToolFinished) else 0.25
        now[0] -= 0.25 if isinstance(event, ApprovalNeeded | ApprovalDecided | HandedOff | PluginEvent) else 0
        if line and (level == "debug" or not line.startswith("DEBUG")):
            shown = line.replace("{}", f"run=r agent=a{f' depth={depth}' if depth else ''}", 1)
            expected.append(f"{shown} {details}" if level == "debug" and details else shown)
    assert [f"{one.levelname} {one.getMessage()}" for one in caplog.records] == expected
    assert observer._runs == {}


def test_a_failed_run_is_logged_with_its_time_and_forgotten(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("jackfield_log.observer.time", SimpleNamespace(monotonic=lambda: now[0]))
    observer = LogObserver()
    observer.observe(RunEvent("r", 1, "a", 0, RunStarted(())))
    now[0] += 0.12345
    observer.observe(RunEvent("r", 2, "a", 0, RunFailed("no", "StoreError")))
    # A run whose beginning is unseen may have no end either.
    observer.observe(RunEvent("unseen", 3, "a", 0, TurnStarted(1)))
    assert caplog.messages == [
        "run started: run=r agent=a messages=0",
        "run failed: run=r agent=a kind=StoreError error=no seconds=0.123",
    ]
    assert observer._runs == {}
