"""An answer is read from any stream of the API, however its events arrive."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain, pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import (
    ContentFilterError,
    ModelAuthError,
    ModelOverloadedError,
    ModelRequestError,
    ModelResponseError,
    ModelServiceError,
    RateLimitedError,
)
from jackfield.events import FunctionCallDelta, MediaDelta, ModelEvent, ModelFinished, ReasoningDelta, TextDelta
from jackfield.messages import ModelResponse, Usage
from jackfield.models import fold
from jackfield.quoting import SentSecrets
from jackfield_http import Failures
from jackfield_openai.responses.answer import ResponsesReader
from jackfield_openai.responses.growing import Items
from jackfield_openai.responses.items import content_of_items, content_of_messages

Wire = dict[str, Any]
Told = Any  # of conftest.py, which tests cannot import

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


def parts(kind: str, texts: Sequence[str]) -> list[Wire]:
    return [{"type": kind, "text": text} for text in texts]


ITEMS = st.one_of(
    st.lists(WORDS, max_size=2).map(
        lambda texts: {"type": "message", "role": "assistant", "content": parts("output_text", texts)}
    ),
    st.builds(
        lambda summary, content: {
            "type": "reasoning",
            "summary": parts("summary_text", summary),
            "content": parts("reasoning_text", content),
            "encrypted_content": "gAAAA",
        },
        st.lists(WORDS, max_size=2),
        st.lists(WORDS, max_size=1),
    ),
    st.dictionaries(WORDS, WORDS, max_size=2).map(
        lambda arguments: {"type": "function_call", "name": "f", "arguments": json.dumps(arguments)}
    ),
    st.just({"type": "web_search_call", "status": "completed", "action": {"query": "x"}}),
    st.just({"type": "image_generation_call", "result": "iVBORw0KGgo=", "output_format": "webp"}),
)


@st.composite
def outputs(draw: st.DrawFn) -> list[Wire]:
    """The items of an answer, each with ids of its own."""
    items = draw(st.lists(ITEMS, max_size=5))
    ids: list[Wire] = [{"id": f"it_{index}", "call_id": f"call_{index}"} for index in range(len(items))]
    return [
        {"id": own["id"], **item, **({"call_id": own["call_id"]} if item["type"] == "function_call" else {})}
        for own, item in zip(ids, items, strict=True)
    ]


def read(data: bytes, *cuts: int) -> list[ModelEvent]:
    reader = ResponsesReader(Failures("openai_responses"), server="here")
    places = [0, *sorted(cut for cut in cuts if 0 < cut < len(data)), len(data)]
    pieces = [data[start:end] for start, end in pairwise(places)]
    return [*(event for piece in pieces for event in reader.feed(piece)), *reader.finish()]


def answer(data: bytes, *cuts: int) -> ModelResponse:
    return fold(read(data, *cuts), "openai_responses")


def failure(data: bytes) -> tuple[ModelServiceError, str]:
    """The error that reading ends with, and the text before it."""
    reader = ResponsesReader(Failures("openai_responses", SentSecrets("sk-SECRET")))
    seen: list[ModelEvent] = []
    with pytest.raises(ModelServiceError) as caught:
        seen.extend(chain(reader.feed(data), reader.finish()))  # which keeps what came before the error
    return caught.value, "".join(event.text for event in seen if isinstance(event, TextDelta))


def output_of(response: ModelResponse) -> Any:
    origin = response.messages[0].origin
    assert origin is not None
    assert origin.data is not None
    return origin.data["output"]


# --- what holds for all answers ---


@given(output=outputs(), cuts=st.lists(st.integers(1, 6000), max_size=8))
def test_cutting_the_bytes_anywhere_changes_nothing(told: Told, output: list[Wire], cuts: list[int]) -> None:
    data = told.bytes_of(told.all(output))
    assert answer(data, *cuts) == answer(data)


@given(output=outputs(), size=st.integers(1, 20))
def test_what_is_seen_of_an_answer_is_what_its_items_say(told: Told, output: list[Wire], size: int) -> None:
    events = read(told.bytes_of(told.all(output, size)))
    assert content_of_messages(fold(events).messages) == content_of_items(output)
    finished = events[-1]
    assert isinstance(finished, ModelFinished)
    assert finished.data == ({"server": "here", "output": output} if output else None)


@given(output=outputs(), choice=st.randoms(use_true_random=False))
def test_items_that_arrive_interleaved_are_told_apart_and_stay_in_order(
    told: Told, output: list[Wire], choice: Random
) -> None:
    waiting = [
        [told.added(item, index), *told.deltas(item, index), told.done(item, index)]
        for index, item in enumerate(output)
    ]
    events = [told.created()]
    begun = 0
    while any(waiting):
        # Any item that was announced, or the next one to be announced: servers announce them in order.
        open_ones = [index for index in range(min(begun + 1, len(waiting))) if waiting[index]]
        index = choice.choice(open_ones)
        begun = max(begun, index + 1)
        events.append(waiting[index].pop(0))
    events.append(told.completed(output))
    assert answer(told.bytes_of(events)).messages == answer(told.bytes_of(told.all(output))).messages


@given(output=outputs(), announced=st.booleans(), complete=st.integers(0, 5), rest=st.sampled_from(["pieces", "none"]))
def test_what_is_not_told_in_pieces_is_taken_from_the_whole(
    told: Told, output: list[Wire], announced: bool, complete: int, rest: str
) -> None:
    events = [told.created()]
    for index, item in enumerate(output):
        if announced and (index < complete or rest == "pieces"):
            events.append(told.added(item, index))
        if index < complete:
            events.append(told.done(item, index))
        elif rest == "pieces":
            events += told.deltas(item, index)
    data = told.bytes_of([*events, told.completed(output)])
    assert answer(data).messages == answer(told.bytes_of(told.all(output))).messages


@given(output=outputs(), told_until=st.integers(0, 30))
def test_a_tale_that_stops_short_is_completed_from_the_whole_item(
    told: Told, output: list[Wire], told_until: int
) -> None:
    events = [told.created()]
    for index, item in enumerate(output):
        events += [told.added(item, index), *told.deltas(item, index, 1)[:told_until], told.done(item, index)]
    data = told.bytes_of([*events, told.completed([])])
    assert content_of_messages(answer(data).messages) == content_of_items(output)


@given(output=outputs())
def test_a_server_that_does_not_stream_gives_the_same_answer(told: Told, output: list[Wire]) -> None:
    usage = {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}
    reader = ResponsesReader(Failures("openai_responses"), server="here")
    whole = [*reader.whole(json.dumps(told.response(output, usage=usage)).encode()), *reader.finish()]
    assert reader.done
    assert fold(whole, "openai_responses") == answer(told.bytes_of(told.all(output, usage=usage)))


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 1e99, "", "x", [], [1], {}, {"type": "message"}, {"type": [], "id": {}}, {"a": 1}]
)
KINDS = (
    "response.created", "response.output_text.delta", "response.reasoning_text.delta", "response.output_item.added",
    "response.output_item.done", "response.function_call_arguments.delta", "response.completed", "response.failed",
    "error", "response.something.new",
)  # fmt: skip
KEYS = ("response", "item", "delta", "item_id", "output_index", "error", "code", "message")
EVENTS = st.builds(
    lambda kind, more: {**more, "type": kind}, st.sampled_from(KINDS), st.dictionaries(st.sampled_from(KEYS), ODD)
)


@given(
    events=st.lists(EVENTS, max_size=4), response=st.dictionaries(st.sampled_from(["output", "usage", "status"]), ODD)
)
def test_nothing_that_a_server_sends_is_more_than_an_error_of_the_service(events: list[Wire], response: Wire) -> None:
    data = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    with suppress(ModelServiceError):
        answer(data)
    with suppress(ModelServiceError):
        fold(ResponsesReader(Failures("openai_responses")).whole(json.dumps(response).encode()))


# --- one by one ---


def test_text_reasoning_and_calls_are_events_as_they_arrive(told: Told) -> None:
    output = [
        told.reasoning("think"),
        told.message("hello"),
        told.call("f", '{"a":1}', call_id="c1"),
    ]
    events = read(told.bytes_of(told.all(output, size=5)))
    assert events[:-1] == [
        ReasoningDelta("think"),
        TextDelta("hello"),
        FunctionCallDelta(0, "c1", "f", ""),
        FunctionCallDelta(0, arguments='{"a":'),
        FunctionCallDelta(0, arguments="1}"),
    ]
    data = {"server": "here", "output": output}
    assert events[-1] == ModelFinished("tool_calls", "m", "resp_1", 1767225600, data, "completed")


def test_between_two_messages_and_two_pieces_of_reasoning_is_an_empty_line(told: Told) -> None:
    output = [
        told.reasoning("first", "second"),
        told.message("I shall look.", id="m1"),
        told.reasoning("third", id="rs2"),
        told.message("Found it:", " here.", id="m2"),
    ]
    response = answer(told.bytes_of(told.all(output)))
    assert response.messages[0].reasoning_content == "first\n\nsecond\n\nthird"
    assert response.get_content() == "I shall look.\n\nFound it: here."


@pytest.mark.parametrize("kind", ["output_text", "refusal"])
def test_words_are_passed_on_as_they_arrive(kind: str) -> None:
    reader = ResponsesReader(Failures("openai_responses"))
    item = {"id": "m1", "type": "message", "role": "assistant", "content": []}
    where = {"item_id": "m1", "output_index": 0, "content_index": 0}

    def feed(event: Wire) -> list[ModelEvent]:
        return list(reader.feed(b"data: " + json.dumps(event).encode() + b"\n\n"))

    assert feed({"type": "response.output_item.added", "output_index": 0, "item": item}) == []
    for word in ("I ", "cannot."):
        assert feed({"type": f"response.{kind}.delta", **where, "delta": word}) == [TextDelta(word)]


def test_a_refusal_is_text(told: Told) -> None:
    assert answer(told.bytes_of(told.all([told.message(refusal="I cannot do that.")]))).get_content() == (
        "I cannot do that."
    )


def test_text_is_passed_on_before_its_item_is_complete(told: Told) -> None:
    item = told.message("hello")
    reader = ResponsesReader(Failures("openai_responses"))
    events = [told.created(), told.added(item, 0), *told.deltas(item, 0, 5)]
    assert list(reader.feed(told.bytes_of(events))) == [TextDelta("hello")]


def test_a_picture_is_given_whole_with_its_type(told: Told) -> None:
    output = [told.image(id="a"), told.image(id="b", output_format="jpeg"), told.image(id="c", output_format="svg")]
    given_parts = {"type": "response.image_generation_call.partial_image", "item_id": "a", "partial_image_b64": "AA"}
    events = read(told.bytes_of([told.created(), given_parts, *told.all(output)[1:]]))
    images = [event.item.image for event in events if isinstance(event, MediaDelta)]
    assert images == [f"data:image/{kind};base64,iVBORw0KGgo=" for kind in ("png", "jpeg", "svg+xml")]


def test_a_picture_that_failed_is_none(told: Told) -> None:
    output = [told.image(result=None, status="failed"), told.message("sorry")]
    response = answer(told.bytes_of(told.all(output)))
    assert [message.content for message in response.messages] == ["sorry"]


def test_unknown_events_and_items_are_passed_over_and_the_items_are_kept(told: Told) -> None:
    search = {"id": "ws", "type": "web_search_call", "status": "completed", "action": {"type": "search"}}
    output = [search, told.message("found"), {"type": "of_tomorrow", "payload": [1, {"x": None}]}]
    events = told.all(output)
    events[2:2] = [{"type": "response.web_search_call.searching", "item_id": "ws", "output_index": 0}, {"type": "x.y"}]
    response = answer(told.bytes_of(events))
    assert response.get_content() == "found"
    assert output_of(response) == output


def test_usage_is_read_with_its_details(told: Told) -> None:
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 3},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 12},
        "total_tokens": 120,
    }
    response = answer(told.bytes_of(told.all([told.message("hi")], usage=usage)))
    assert response.usage == Usage(
        prompt_tokens=100,
        completion_tokens=20,
        total_tokens=120,
        cached_tokens=64,
        cache_write_tokens=3,
        reasoning_tokens=12,
    )


@pytest.mark.parametrize(
    ("reason", "finish_reason"),
    [
        ("max_output_tokens", "length"),
        ("content_filter", "content_filter"),
        ("of_tomorrow", "other"),
        (None, "other"),
    ],
)
def test_an_incomplete_answer_says_why(told: Told, reason: str | None, finish_reason: str) -> None:
    output = [told.message("half an")]
    events = told.all(output, status="incomplete", incomplete_details={"reason": reason})
    response = answer(told.bytes_of(events))
    assert (response.finish_reason, response.get_content()) == (finish_reason, "half an")
    assert response.provider_reason == (reason or "incomplete")


def test_an_incomplete_answer_is_completed_from_its_output_as_well(told: Told) -> None:
    output = [told.reasoning("hm"), told.message("half an"), told.call("f", '{"a": 1}', call_id="c1")]
    (*_, end) = told.all(output, status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    response = answer(told.bytes_of([told.created(), told.added(output[0], 0), end]))
    assert (response.finish_reason, response.get_content()) == ("length", "half an")
    assert [call.arguments for call in response.get_function_calls()] == ['{"a": 1}']
    assert output_of(response) == output


def test_what_is_missing_at_the_end_is_that_of_the_beginning(told: Told) -> None:
    end = told.completed([told.message("hi")])
    for key in ("id", "model", "created_at"):
        del end["response"][key]
    finished = read(told.bytes_of([told.created(), end]))[-1]
    assert isinstance(finished, ModelFinished)
    assert (finished.response_id, finished.model, finished.created) == ("resp_1", "m", 1767225600)
    nameless = read(told.bytes_of([end]))[-1]
    assert isinstance(nameless, ModelFinished)
    assert (nameless.response_id, nameless.model, nameless.created) == (None, "", None)


def test_a_call_may_be_named_after_it_has_begun(told: Told) -> None:
    call = told.call("f", '{"a": 1}', call_id="c1")
    begun = {**told.added(call, 0), "item": {**call, "name": "", "arguments": ""}}
    events = [told.created(), begun, *told.deltas(call, 0), told.done(call, 0), told.completed([call])]
    (made,) = answer(told.bytes_of(events)).get_function_calls()
    assert (made.name, made.arguments) == ("f", '{"a": 1}')


# --- what servers do otherwise ---


def test_an_item_whose_events_have_another_index_is_known_by_its_id(told: Told) -> None:
    item = told.reasoning(content=["so be it"], encrypted=None)
    deltas = [{**event, "output_index": 7, "content_index": 4} for event in told.deltas(item, 0)]
    events = [told.created(), told.added(item, 7), *deltas, told.done(item, 8), told.completed([])]
    response = answer(told.bytes_of(events))
    assert [message.reasoning_content for message in response.messages] == ["so be it"]
    assert output_of(response) == [item]


def test_an_item_with_a_new_id_in_each_event_is_known_by_its_index(told: Told) -> None:
    items = [told.message("one", id="a"), told.call("f", '{"x": 1}', id="b")]
    events = told.all(items)
    for number, event in enumerate(events):
        if "item_id" in event:
            event["item_id"] = f"random_{number}"
        if event["type"] == "response.output_item.done":
            event["item"] = {**event["item"], "id": f"random_{number}"}
    response = answer(told.bytes_of(events))
    assert response.get_content() == "one"
    assert [call.arguments for call in response.get_function_calls()] == ['{"x": 1}']


def test_items_without_ids_and_indices_are_not_told_twice(told: Told) -> None:
    def bare(event: Wire) -> Wire:
        kept = {key: value for key, value in event.items() if key not in ("item_id", "output_index")}
        return {**kept, "item": {k: v for k, v in kept["item"].items() if k != "id"}} if "item" in kept else kept

    output = [told.message("one"), told.call("f")]
    done_only = [event for event in told.all(output) if ".delta" not in event["type"]]
    response = answer(told.bytes_of([bare(event) for event in done_only if "added" not in event["type"]]))
    assert response.get_content() == "one"
    assert len(response.get_function_calls()) == 1


def test_two_items_under_one_index_are_two(told: Told) -> None:
    one, two = told.message("one", id="a"), told.message("two", id="b")
    events = [
        told.created(),
        *(event for item in (one, two) for event in (told.added(item, 0), *told.deltas(item, 0), told.done(item, 0))),
        told.completed([]),
    ]
    response = answer(told.bytes_of(events))
    assert response.get_content() == "one\n\ntwo"
    assert output_of(response) == [one, two]


def test_items_are_kept_in_the_order_of_their_places_not_of_their_arrival(told: Told) -> None:
    search, message = {"id": "ws", "type": "web_search_call"}, told.message("found")
    events = [told.created(), told.done(message, 1), told.done(search, 0), told.completed([])]
    assert output_of(answer(told.bytes_of(events))) == [search, message]


def test_items_that_speak_interleaved_speak_in_the_order_in_which_they_began(told: Told) -> None:
    texts = ("one", "two", "three")
    items = [told.message(said, id=f"m{number}") for number, said in enumerate(texts)]
    begun = [told.added(item, number) for number, item in enumerate(items)]
    backwards = list(enumerate(items))[::-1]
    said = [event for number, item in backwards for event in told.deltas(item, number)]
    done = [told.done(item, number) for number, item in backwards]
    events = [told.created(), *begun, *said, *done, told.completed(items)]
    assert answer(told.bytes_of(events)).get_content() == "one\n\ntwo\n\nthree"


def test_more_of_a_part_that_has_no_number_is_no_part_of_its_own(told: Told) -> None:
    item = told.reasoning("so be it")
    (delta,) = told.deltas(item, 0, 8)
    del delta["summary_index"]
    delta["delta"] = "so be"
    events = [told.created(), told.added(item, 0), delta, told.done(item, 0), told.completed([item])]
    (message,) = answer(told.bytes_of(events)).messages
    assert message.reasoning_content == "so be it"


def test_an_item_that_never_ends_holds_the_others_back_no_longer_than_the_answer(told: Told) -> None:
    one, two = told.message("one", id="a"), told.message("two", id="b")
    events = [told.created(), told.added(one, 0), *told.deltas(one, 0), *told.deltas(two, 1), told.completed([])]
    assert answer(told.bytes_of(events)).get_content() == "one\n\ntwo"


def test_arguments_that_are_an_object_become_their_text(told: Told) -> None:
    call = {**told.call("f"), "arguments": {"a": [1]}}
    events = [told.created(), told.done(call, 0), told.completed([call])]
    (made,) = answer(told.bytes_of(events)).get_function_calls()
    assert made.get_parsed_arguments() == {"a": [1]}


def test_arguments_that_are_announced_whole_are_told_once(told: Told) -> None:
    call = told.call("f", '{"a": 1}')
    added = {**told.added(call, 0), "item": call}
    events = [told.created(), added, *told.deltas(call, 0), told.done(call, 0), told.completed([call])]
    assert [made.arguments for made in answer(told.bytes_of(events)).get_function_calls()] == ['{"a": 1}']


def test_a_call_without_an_id_of_its_own_has_that_of_its_item(told: Told) -> None:
    call = {key: value for key, value in told.call("f", id="fc_9").items() if key != "call_id"}
    response = answer(told.bytes_of(told.all([call])))
    assert [message.function_id for message in response.messages] == ["fc_9"]


def test_what_follows_the_end_is_not_read(told: Told) -> None:
    data = told.bytes_of([*told.all([told.message("hi")]), "nonsense", "[DONE]"])
    assert answer(data).get_content() == "hi"


def test_half_a_surrogate_pair_costs_no_answer(told: Told) -> None:
    data = told.bytes_of(told.all([told.message("x")])).replace(b'"x"', rb'"\ud83d"')
    assert answer(data).get_content() == "\ufffd"


# --- errors ---


def test_a_stream_without_an_end_is_an_error_after_all_of_its_text(told: Told) -> None:
    one, two = told.message("one", id="a"), told.message("two", id="b")
    events = [told.created(), told.added(one, 0), *told.deltas(one, 0), *told.deltas(two, 1)]
    error, text = failure(told.bytes_of(events))
    assert isinstance(error, ModelResponseError)
    assert "before the response was complete" in str(error)
    assert text == "one\n\ntwo", "what was held back for an item that never ended is lost"


def test_done_is_no_end_by_itself(told: Told) -> None:
    error, _ = failure(told.bytes_of([told.created(), "[DONE]"]))
    assert "before the response was complete" in str(error)


@pytest.mark.parametrize(
    ("code", "error_class", "retryable"),
    [
        ("server_error", ModelOverloadedError, True),
        ("vector_store_timeout", ModelOverloadedError, True),
        ("rate_limit_exceeded", RateLimitedError, True),
        ("insufficient_quota", ModelAuthError, False),
        ("bio_policy", ContentFilterError, False),
        ("image_content_policy_violation", ContentFilterError, False),
        ("invalid_prompt", ModelRequestError, False),
        ("image_file_not_found", ModelRequestError, False),
        ("failed_to_download_image", ModelRequestError, False),
        ("data_residency_mismatch", ModelRequestError, False),
        (None, ModelOverloadedError, True),
    ],
)
@pytest.mark.parametrize("form", ["failed", "event", "nested", "bare", "whole"])
def test_a_failure_has_its_class_by_its_code(
    told: Told, code: str | None, error_class: type[ModelServiceError], retryable: bool, form: str
) -> None:
    problem = {"code": code, "message": "because sk-SECRET is\nwrong"}
    failed = told.response([], "failed", error=problem)
    if form == "whole":
        reader = ResponsesReader(Failures("openai_responses", SentSecrets("sk-SECRET")))
        with pytest.raises(ModelServiceError) as caught:
            reader.whole(json.dumps(failed).encode())
        error = caught.value
    else:
        forms: dict[str, Wire | str] = {
            "failed": {"type": "response.failed", "response": failed},
            "event": {"type": "error", **problem, "param": None},
            "nested": {"type": "error", "error": problem},
            "bare": json.dumps({"error": problem}),
        }
        error, _ = failure(told.bytes_of([told.created(), forms[form]]))
    assert type(error) is error_class
    assert (error.code, error.retryable) == (code, retryable)
    assert "because [key] is wrong" in str(error)


@pytest.mark.parametrize("status", ["queued", "in_progress", "cancelled"])
def test_an_answer_that_is_not_there_is_an_error(told: Told, status: str) -> None:
    reader = ResponsesReader(Failures("openai_responses"))
    with pytest.raises(ModelResponseError, match=status):
        reader.whole(json.dumps(told.response([], status)).encode())


def test_the_stream_of_another_protocol_is_named() -> None:
    error, _ = failure(b'data: {"choices": [{"delta": {"content": "hi"}}]}\n\n')
    assert isinstance(error, ModelResponseError)
    assert "Responses API" in str(error)


def test_an_item_of_the_whole_answer_is_the_announced_one_of_its_id_wherever_it_is() -> None:
    items = Items()
    begun = items.begin("m1", 5)
    whole = [{"id": "m1", "type": "message"}, {"id": "m2", "type": "message"}]
    (first, _), (second, _) = items.missing(whole)
    assert first is begun
    assert (second is begun, second.index) == (False, 1)
    assert items.missing([]) == []
