"""A result is the fold of a run's events: which of them count, and how it is passed on, shown and written."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from jackfield import Message
from jackfield.errors import ConfigError, InvalidAnswerError, InvalidMessageError
from jackfield.events import (
    ApprovalNeeded,
    HandedOff,
    HistoryTrimmed,
    ModelFinished,
    PluginEvent,
    RunEvent,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolFinished,
    TurnFinished,
)
from jackfield.messages import FunctionCall, Usage
from jackfield.results import WAY_EVENT, ResultFold, RunResult, messages_so_far, text_of_answer

ASKED = (Message("user", "q"),)
USED = Usage(prompt_tokens=3, completion_tokens=1)


def said(text: str, name: str | None = None, **more: Any) -> Message:
    return Message("assistant", text, name=name, **more)


def fold_of(*events: Any, asked: Any = ASKED, **options: Any) -> ResultFold:
    fold = ResultFold(asked, **options)
    for event in events:
        fold.feed(event)
    return fold


def result_of(*events: Any, read: Any = str, asked: Any = ASKED, **options: Any) -> RunResult[Any]:
    return fold_of(*events, asked=asked, **options).result(read)


END = RunFinished("finished", (said("A."),), USED)


def test_a_result_has_what_the_events_said() -> None:
    trimmed = HistoryTrimmed(dropped=3, shortened=2, tokens_before=900, tokens_after=500)
    result = result_of(
        RunStarted(ASKED),
        PluginEvent(WAY_EVENT, {"way": "tool", "sources": ["not one"]}),
        ModelFinished("tool_calls"),
        ToolFinished(0, "c", Message("function", "r", name="t"), 0.0, "", {"sources": ["a", "b"], "warnings": ["w"]}),
        PluginEvent("x", {"sources": ["b", "c"], "warnings": ["v", "w"]}),
        trimmed,
        ModelFinished("length"),
        TurnFinished(1, (said("A."),), USED),
        END,
    )
    assert (result.text, result.messages, result.history) == ("A.", END.messages, (*ASKED, *END.messages))
    assert (result.usage, result.stop_reason, result.finish_reason, result.way) == (USED, "finished", "length", "tool")
    assert [source.location for source in result.sources] == ["a", "b", "c"]
    assert result.warnings == (
        "w", "v",
        "the conversation is too long for the model: 3 messages dropped, 2 shortened (about 900 → 500 tokens)",
    )  # fmt: skip
    assert (result.run_id, result.path, result.usage_by_agent, result.waiting) == ("", (), {}, {})
    assert (result.output, str(result)) == ("A.", "A.")


def placed(event: Any, run_id: str = "r", agent: str = "boss", depth: int = 0) -> RunEvent:
    return RunEvent(run_id, 1, agent, depth, event)


def test_the_reports_of_a_run_below_count_and_nothing_else_of_it() -> None:
    below = {"run_id": "s", "agent": "helper", "depth": 1}
    result = result_of(
        placed(RunStarted(ASKED)),
        placed(TextDelta("x"), **below),
        placed(ModelFinished("length"), **below),
        placed(PluginEvent("x", {"sources": ["a"]}), **below),
        placed(ToolFinished(0, "c", Message("function", "r", name="t"), 0.0, "", {"warnings": ["w"]}), **below),
        placed(TurnFinished(1, (said("B."),), USED), **below),
        placed(ApprovalNeeded((FunctionCall("f", "{}"),), ("c",)), **below),
        placed(RunFinished("token_limit", (said("B."),), USED), **below),
        placed(TurnFinished(1, (said("A."),), USED)),
        placed(TurnFinished(2, (said("A."),), USED)),
        placed(HandedOff("boss", "clerk")),
        placed(RunFinished("finished", (said("A."),), USED + USED)),
    )
    assert (result.text, result.stop_reason, result.finish_reason, result.waiting) == ("A.", "finished", None, {})
    assert ([source.location for source in result.sources], result.warnings) == (["a"], ("w",))
    assert (result.run_id, result.path) == ("r", ("boss", "clerk"))
    assert result.usage_by_agent == {"helper": USED, "boss": USED + USED}


def test_one_agent_alone_has_used_all_of_it() -> None:
    whole = Usage(prompt_tokens=9, cost=Decimal("0.5"), currency="USD")
    alone = result_of(placed(TurnFinished(1, (), USED)), placed(RunFinished("finished", (), whole)))
    assert alone.usage_by_agent == {"boss": whole}


def test_messages_that_a_run_began_with_lose_the_text_of_the_agent() -> None:
    began = (Message("system", "Be brief.\n\nRhyme."), *ASKED)
    result = result_of(RunStarted(began), END, asked=None, system_text="Be brief.")
    assert [message.get_text_content() for message in result.history] == ["Rhyme.", "q", "A."]
    assert result_of(RunStarted(began), END).history == (*ASKED, *END.messages)
    assert result_of(END, asked=None).history == END.messages


@pytest.mark.parametrize(
    ("reason", "read", "output"),
    [("finished", str, "7"), ("turn_limit", str, "7"), ("finished", int, 7), ("turn_limit", int, None)],
)
def test_data_is_there_only_if_the_run_has_finished(reason: Any, read: Any, output: Any) -> None:
    result = result_of(RunFinished(reason, (said("7"),), USED), read=read)
    if output is not None:
        assert result.output == output
        return
    with pytest.raises(InvalidAnswerError) as caught:
        _ = result.output
    assert str(caught.value) == "no output: the run ended with 'turn_limit' before the answer was complete"
    assert caught.value.partial_text == "7"


def test_calls_that_wait_are_there_by_their_ids() -> None:
    needed = ApprovalNeeded((FunctionCall("f", "{}"), FunctionCall("g", "{}")), ("a", "b"))
    result = result_of(needed, RunFinished("approval_needed", (), USED))
    assert {one: call.name for one, call in result.waiting.items()} == {"a": "f", "b": "g"}


def test_a_run_that_has_not_ended_has_no_result() -> None:
    with pytest.raises(RuntimeError, match="no result yet: read all events first"):
        fold_of(RunStarted(ASKED)).result(str)


# --- its text ---


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([], ""),
        ([said("a"), said("b")], "ab"),
        ([said("a", "x"), said("b", "y")], "b"),
        ([said("a"), Message("function", "r", name="t"), said("b")], "b"),
        ([said("a"), Message("function", "r", name="t")], ""),
        ([said("a"), said("", function_call=FunctionCall("f", "{}"))], ""),
        ([said("a"), said("", reasoning_content="Hm."), said("b")], "ab"),
        ([Message("user", "q")], ""),
    ],
)
def test_the_text_of_an_answer_is_what_its_last_speaker_said_at_its_end(messages: list[Message], text: str) -> None:
    assert text_of_answer(messages) == text


# --- as a history ---


def test_a_history_is_messages_or_a_result() -> None:
    result = result_of(END)
    assert messages_so_far(result) is result.history
    assert messages_so_far([{"role": "user", "content": "q"}]) == ASKED
    for wrong in ("q", b"q", 5):
        with pytest.raises(ConfigError, match="history must be a list of messages or the result of"):
            messages_so_far(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidMessageError, match=r"^history: "):
        messages_so_far([{"role": "nobody", "content": "q"}])


# --- shown and written ---


@pytest.mark.parametrize(
    ("usage", "shown"),
    [
        (USED, "unknown"),
        (Usage(prompt_tokens=4, cost=Decimal("0.5"), currency="USD"), "0.5 USD"),
        (Usage(prompt_tokens=4, cost=Decimal(0), currency="EUR"), "0 EUR"),
    ],
)
def test_a_result_is_shown_with_its_cost(usage: Usage, shown: str) -> None:
    result = result_of(RunFinished("finished", (said("A."),), usage))
    assert repr(result) == f"RunResult(text='A.', stop_reason='finished', messages=1, tokens=4, cost={shown})"
    assert result.cost == usage.cost


def test_a_result_is_written_as_plain_values() -> None:
    report = {"sources": ["a", {"location": "b", "page": 3, "part": "p"}], "warnings": ["w"]}
    needed = ApprovalNeeded((FunctionCall("f", "{}"),), ("c",))
    result = result_of(PluginEvent("x", report), needed, RunFinished("approval_needed", (said("A."),), USED))
    object.__setattr__(result, "seconds", 1.23456)
    plain = json.loads(json.dumps(result.to_dict()))
    assert plain["sources"] == [{"location": "a"}, {"location": "b", "part": "p", "page": 3}]
    assert (plain["text"], plain["stop_reason"], plain["seconds"], plain["warnings"]) == (
        "A.", "approval_needed", 1.235, ["w"],
    )  # fmt: skip
    assert plain["waiting"] == {"c": {"name": "f", "arguments": "{}"}}
    assert plain["messages"][0]["content"] == "A."
    assert None not in plain["messages"][0].values()
    assert "output" not in plain


def test_a_run_without_a_question_has_only_its_answer_in_the_history() -> None:
    assert result_of(RunStarted(ASKED), END, asked=()).history == END.messages
    assert result_of(RunStarted(ASKED), END, asked=None).history == (*ASKED, *END.messages)


def cited(mark: str, start: int) -> dict[str, Any]:
    return {"mark": mark, "location": f"{mark}.md", "answer_ranges": [[start, start + 3]]}


def test_the_citations_of_an_answer_are_those_of_the_last_report_of_a_plugin() -> None:
    end = RunFinished("finished", (said("a[1] b[2]"),), USED)
    reports = [PluginEvent("acme", {"citations": [cited("1", 1)]}), PluginEvent("acme", {"citations": [cited("2", 6)]})]
    of_a_tool = ToolFinished(0, "c", Message("function", "r", name="t"), 0.0, "", {"citations": [cited("1", 1)]})
    assert [one.mark for one in result_of(*reports, end).citations] == ["2"]
    assert [one.mark for one in result_of(*reports, of_a_tool, PluginEvent("other"), end).citations] == ["2"]
    assert result_of(of_a_tool, end).citations == ()
    earlier = PluginEvent("acme", {"citations": [cited("1", 6)]})
    assert result_of(earlier, end).citations == (), "its mark is elsewhere in this answer"
