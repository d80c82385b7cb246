"""The fold of a model's events: an answer in progress, a finished one, and one that failed."""

from __future__ import annotations

import pytest

from jackfield.errors import ConfigError, ModelResponseError, ModelServiceError
from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    ReasoningDelta,
    StreamReset,
    TextDelta,
    UsageReported,
)
from jackfield.messages import ContentItem, Message, Usage
from jackfield.models import Fold
from jackfield.testing import ScriptedModel, answer, calls


def test_a_reset_withdraws_all_of_an_answer_but_not_the_warnings_about_its_files() -> None:
    warning = PluginEvent("files", {"warnings": ["only the name of a.pdf was sent"]})
    begun = [
        TextDelta("Hel"), ReasoningDelta("Hm."), FunctionCallDelta(0, "c", "look", "{}"),
        MediaDelta(ContentItem(image="https://h/a.png")), UsageReported(Usage(prompt_tokens=3)),
        ModelFinished("length"),
    ]  # fmt: skip
    fold = Fold("b")
    for event in (warning, *begun, StreamReset("again")):
        fold.feed(event)
    early = fold.response()
    assert (early.messages, early.usage, early.finish_reason) == ([], Usage(), None)
    assert early.warnings == ("only the name of a.pdf was sent",)
    for event in (TextDelta("Yes."), ModelFinished("stop")):
        fold.feed(event)
    assert fold.response().warnings == ("only the name of a.pdf was sent",)
    assert [message.content for message in fold.response().messages] == ["Yes."]


def test_an_answer_in_progress_and_a_finished_one_as_one_object() -> None:
    fold = Fold("b", name="clerk")
    for event in (TextDelta("Hel"), UsageReported(Usage(prompt_tokens=3)), ReasoningDelta("Hm.")):
        fold.feed(event)
    early = fold.response()
    assert (early.finish_reason, early.usage.prompt_tokens, fold.is_empty) == (None, 3, False)
    assert [one.name for one in early.messages] == ["clerk", "clerk"]
    with pytest.raises(ModelResponseError) as caught:
        fold.check_complete("b:m")
    assert (str(caught.value), caught.value.partial_text, caught.value.backend) == (
        "the response from b:m was cut off", "Hel", "b",
    )  # fmt: skip
    fold.feed(ModelFinished("length", model="m-1", response_id="r", created=7, data={"k": 1}, provider_reason="max"))
    fold.check_complete("b:m")
    end = fold.response()
    assert (end.model, end.finish_reason, end.response_id, end.created, end.provider_reason) == (
        "m-1", "length", "r", 7, "max",
    )  # fmt: skip
    assert end.usage.prompt_tokens == 3
    origin = end.messages[0].origin
    assert origin is not None
    assert (origin.backend, origin.id, origin.data) == ("b", "r", {"k": 1})


@pytest.mark.parametrize(
    "event",
    [ReasoningDelta("Hm."), FunctionCallDelta(0, "c", "look", "{"), MediaDelta(ContentItem(image="https://h/a.png"))],
    ids=["reasoning", "a call", "media"],
)
def test_an_answer_without_text_that_breaks_off_is_an_error(event: ModelEvent) -> None:
    fold = Fold("b")
    with pytest.raises(ModelResponseError, match="the response from b:m was cut off"), fold.reading_from("b:m"):
        fold.feed(event)


@pytest.mark.parametrize(("name", "kept"), [("天气", "天气"), ("a\ud800é", "a?é")])
def test_the_name_of_a_call_loses_only_what_no_message_can_have(name: str, kept: str) -> None:
    fold = Fold("b")
    fold.feed(FunctionCallDelta(0, "c", name, "{}"))
    [call] = fold.messages()
    assert call.function_call is not None
    assert call.function_call.name == kept


@pytest.mark.parametrize(("own", "kept"), [("", "Hel"), ("own", "own")])
def test_an_error_has_what_had_arrived_unless_it_says_it_itself(own: str, kept: str) -> None:
    fold = Fold("b")
    fold.feed(TextDelta("Hel"))
    with pytest.raises(ModelServiceError) as caught, fold.reading_from("b:m"):
        raise ModelResponseError("no", backend="b", partial_text=own)
    assert caught.value.partial_text == kept
    with pytest.raises(KeyError), fold.reading_from("b:m"):
        raise KeyError("foreign")


def test_an_answer_without_anything_is_empty_once_it_has_ended() -> None:
    fold = Fold("b")
    assert (fold.is_empty, fold.messages(), fold.usage) == (False, [], Usage())
    fold.feed(ModelFinished("stop"))
    assert (fold.is_empty, [one.content for one in fold.messages()]) == (True, [""])


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([ModelFinished("stop")], "empty_reply"),
        ([ReasoningDelta("Hm."), ModelFinished("stop")], "empty_reply"),
        ([ReasoningDelta("Hm."), TextDelta("Yes."), ModelFinished("length")], "finished"),
    ],
)
def test_a_result_of_a_model_says_how_it_ended(events: list[ModelEvent], reason: str) -> None:
    warning = PluginEvent("acme/warning", {"note": "w"})
    result = ScriptedModel([[warning, *events]]).ask("Hi", history=[Message("user", "a"), Message("assistant", "b")])
    assert result.stop_reason == reason
    assert result.finish_reason == events[-1].reason  # type: ignore[union-attr]
    assert [one.content for one in result.history][:3] == ["a", "b", "Hi"]
    assert result.seconds > 0
    assert ScriptedModel([answer("5")]).ask("Hi", output=int).output == 5
    with pytest.raises(ConfigError, match="attempts must be at least 1"):
        ScriptedModel([]).ask("Hi", attempts=0)


def test_data_in_a_call_without_text_is_an_answer() -> None:
    warning = PluginEvent("files", {"warnings": ["only the name of a.pdf was sent"]})
    result = ScriptedModel([[warning, *calls(("answer", {"value": 0}))]]).ask("Hi", output=int)
    assert (result.output, result.stop_reason) == (0, "finished")
    assert result.warnings == ("only the name of a.pdf was sent",)


def test_the_last_end_of_an_answer_counts() -> None:
    fold = Fold()
    for event in (TextDelta("Hi"), ModelFinished("stop"), ModelFinished("length", response_id="r2")):
        fold.feed(event)
    assert (fold.response().finish_reason, fold.response().response_id) == ("length", "r2")
