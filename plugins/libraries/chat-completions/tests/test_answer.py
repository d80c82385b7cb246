"""Chunks become events, also those that servers should not send."""

from __future__ import annotations

import base64
import io
import json
import wave
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield.errors import (
    ContentFilterError,
    ContextLengthError,
    ModelOverloadedError,
    ModelResponseError,
    RateLimitedError,
)
from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    ReasoningDelta,
    TextDelta,
    UsageReported,
)
from jackfield.messages import ModelResponse, Usage
from jackfield.models import fold
from jackfield.quoting import SentSecrets
from jackfield_chat_completions.answer import ChatReader, usage_of
from jackfield_chat_completions.sound import joined, sound_uri
from jackfield_http import Failures

Chunk = dict[str, Any]
END: Chunk = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def delta(**fields: Any) -> Chunk:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def call(index: int | None = None, id: str | None = None, name: str | None = None, arguments: Any = None) -> Chunk:  # noqa: A002
    function = {"name": name, "arguments": arguments}
    return delta(tool_calls=[{"index": index, "id": id, "function": function}])


def stream_of(chunks: Sequence[Chunk], *, done: bool = True) -> bytes:
    lines = [json.dumps(chunk, ensure_ascii=False) for chunk in chunks] + ["[DONE]"] * done
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def read(body: bytes, *, size: int = 1 << 20, key: str = "") -> list[ModelEvent]:
    reader = ChatReader(Failures("openai", SentSecrets(key)))
    events: list[ModelEvent] = []
    for start in range(0, len(body), size):
        events += reader.feed(body[start : start + size])
    return [*events, *reader.finish()]


def answer(*chunks: Chunk) -> ModelResponse:
    return fold(read(stream_of([*chunks, END])))


def calls_of(response: ModelResponse) -> list[tuple[str, str]]:
    return [(call.name, call.arguments) for call in response.get_function_calls()]


# --- the law ---

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
chunks_of_any_kind = st.lists(
    st.one_of(
        texts.map(lambda text: delta(content=text)),
        texts.map(lambda text: delta(reasoning_content=text)),
        texts.map(lambda text: delta(reasoning=text)),
        st.builds(call, st.integers(0, 2), st.sampled_from([None, "", "a"]), st.sampled_from([None, "f"]), texts),
        st.just({"choices": []}),
        st.just(delta(audio={"data": "AAAA", "transcript": "a"})),
        st.just(delta(images=[{"image_url": {"url": "http://h/i.png"}}])),
        st.just({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}),
    ),
    max_size=8,
)


@given(chunks_of_any_kind, st.integers(1, 40))
def test_cutting_the_bytes_elsewhere_never_changes_the_events(chunks: list[Chunk], size: int) -> None:
    body = stream_of([*chunks, END])
    events = read(body)
    assert read(body, size=size) == events
    assert [isinstance(event, ModelFinished) for event in events] == [False] * (len(events) - 1) + [True]


# --- text and reasoning ---


def test_reasoning_is_read_under_both_names_and_once_if_both_are_there() -> None:
    events = read(
        stream_of(
            [delta(reasoning_content="a"), delta(reasoning="b"), delta(reasoning="c", reasoning_content="c"), END]
        )
    )
    assert [event.text for event in events if isinstance(event, ReasoningDelta)] == ["a", "b", "c"]


def test_a_refusal_is_text() -> None:
    assert answer(delta(refusal="I cannot.")).get_content() == "I cannot."


def test_content_in_parts_is_text() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert answer(delta(content=parts)).get_content() == "ab"


def test_half_a_surrogate_pair_is_replaced_and_not_an_error() -> None:
    body = rb'data: {"choices": [{"delta": {"content": "a\ud83d"}, "finish_reason": "stop"}]}' + b"\n\n"
    assert fold(read(body)).get_content() == "a\ufffd"


def test_only_the_first_of_several_choices_is_read() -> None:
    both = {"choices": [{"index": 1, "delta": {"content": "other"}}]}
    assert answer(delta(content="mine"), both).get_content() == "mine"


def test_nothing_after_the_end_is_read() -> None:
    body = stream_of([delta(content="a"), END]) + b"data: {broken\n\n"
    assert fold(read(body)).get_content() == "a"


# --- calls ---


def test_interleaved_calls_are_told_apart_by_index() -> None:
    response = answer(
        call(0, "a", "f", ""),
        call(1, "b", "g", ""),
        call(0, None, None, '{"x":'),
        call(1, None, None, "{}"),
        call(0, None, None, "1}"),
    )
    assert calls_of(response) == [("f", '{"x":1}'), ("g", "{}")]


def test_calls_without_indices_are_told_apart_by_id() -> None:
    response = answer(
        call(None, "a", "f", "{"), call(None, "b", "g", "{"), call(None, "a", None, "}"), call(None, "b", None, "}")
    )
    assert calls_of(response) == [("f", "{}"), ("g", "{}")]


def test_deltas_without_index_and_id_belong_to_the_last_call() -> None:
    response = answer(call(None, None, "f", "{"), call(None, None, None, "}"), call(None, None, "g", "{}"))
    assert calls_of(response) == [("f", "{}"), ("g", "{}")]


def test_another_id_and_name_at_the_same_index_is_another_call() -> None:
    response = answer(call(0, "a", "f", '{"x":1}'), call(0, "b", "f", '{"x":2}'))
    assert calls_of(response) == [("f", '{"x":1}'), ("f", '{"x":2}')]
    assert [message.function_id for message in response.messages] == ["a", "b"]


def test_whole_calls_at_one_index_without_ids_are_each_a_call() -> None:
    assert calls_of(answer(call(0, None, "f", '{"x":1}'), call(0, None, "f", '{"x":2}'))) == [
        ("f", '{"x":1}'),
        ("f", '{"x":2}'),
    ]


def test_a_name_repeated_in_every_delta_is_one_call() -> None:
    assert calls_of(answer(call(0, "a", "f", '{"x"'), call(0, "a", "f", ":1}"))) == [("f", '{"x":1}')]
    assert calls_of(answer(call(0, None, "f", '{"x"'), call(0, None, "f", ":1}"))) == [("f", '{"x":1}')]


def test_an_id_made_up_anew_for_every_delta_is_one_call() -> None:
    response = answer(call(0, "a", "f", "{"), call(0, "b", None, "}"))
    assert calls_of(response) == [("f", "{}")]


def test_an_id_that_comes_late_is_the_calls_id() -> None:
    assert answer(call(0, None, "f", "{}"), call(0, "late", None, "")).messages[0].function_id == "late"


@pytest.mark.parametrize(("arguments", "read_as"), [(None, ""), ({"x": 1}, '{"x": 1}'), ("{}", "{}")])
def test_arguments_may_be_null_an_object_or_text(arguments: Any, read_as: str) -> None:
    assert calls_of(answer(call(0, "a", "f", arguments))) == [("f", read_as)]


# --- one object ---


def test_an_answer_in_one_object_gives_what_a_stream_gives() -> None:
    calls = [{"id": f"c{n}", "function": {"name": f"f{n}", "arguments": "{}"}} for n in range(2)]
    message = {"role": "assistant", "content": "text", "reasoning": "why", "tool_calls": calls}
    usage = {"prompt_tokens": 1, "completion_tokens": 2}
    body = {
        "id": "r",
        "model": "m",
        "created": 5,
        "choices": [{"message": message, "finish_reason": "tool_calls"}],
        "usage": usage,
    }
    reader = ChatReader(Failures("openai"))
    response = fold([*reader.whole(json.dumps(body).encode()), *reader.finish()])
    assert response.get_content() == "text"
    assert calls_of(response) == [("f0", "{}"), ("f1", "{}")]
    assert (response.finish_reason, response.response_id, response.model, response.created) == (
        "tool_calls",
        "r",
        "m",
        5,
    )
    assert response.usage.total_tokens == 3


def whole(body: Chunk) -> ModelResponse:
    reader = ChatReader(Failures("openai"))
    return fold([*reader.whole(json.dumps(body).encode()), *reader.finish()])


def test_one_object_is_complete_without_a_reason_unless_it_says_nothing() -> None:
    response = whole({"choices": [{"message": {"content": "a"}}]})
    assert (response.get_content(), response.finish_reason) == ("a", "stop")
    for empty in ({}, {"choices": []}, {"choices": [{"message": {}}], "usage": {"prompt_tokens": 1}}):
        with pytest.raises(ModelResponseError, match="ended before the response was complete"):
            whole(empty)


def test_calls_without_arguments_in_one_object_are_each_a_call() -> None:
    calls = [{"index": 0, "function": {"name": "f"}}] * 2
    assert calls_of(whole({"choices": [{"message": {"tool_calls": calls}}]})) == [("f", ""), ("f", "")]


def test_a_part_that_is_null_is_one_that_is_left_out() -> None:
    keys = ("reasoning_content", "reasoning", "refusal", "audio", "images", "tool_calls")
    nothing = {**delta(content="a", **dict.fromkeys(keys)), "usage": None, "error": None}
    assert read(stream_of([nothing, END])) == read(stream_of([delta(content="a"), END]))
    assert whole({"choices": [{"message": {"content": "a", **dict.fromkeys(keys)}}]}).get_content() == "a"


def test_a_call_without_a_function_is_a_call_without_a_name() -> None:
    events = read(stream_of([delta(tool_calls=[{"index": 0, "id": "c", "function": None}]), END]))
    assert events[0] == FunctionCallDelta(0, "c", "", "")


def test_calls_without_ids_in_one_object_are_each_a_call() -> None:
    calls = [{"function": {"name": "f", "arguments": "{}"}}, {"function": {"name": "f", "arguments": "{}"}}]
    reader = ChatReader(Failures("openai"))
    body = json.dumps({"choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}).encode()
    assert len(fold([*reader.whole(body), *reader.finish()]).get_function_calls()) == 2


# --- usage and the end ---


def test_usage_is_reported_once_even_if_every_chunk_has_it() -> None:
    chunks = [{**delta(content="a"), "usage": {"prompt_tokens": 1, "completion_tokens": n}} for n in range(1, 4)]
    reported = [event for event in read(stream_of([*chunks, END])) if isinstance(event, UsageReported)]
    assert [event.usage.completion_tokens for event in reported] == [3]


def test_usage_has_cached_and_reasoning_tokens() -> None:
    usage = usage_of(
        {
            "prompt_tokens": 10,
            "completion_tokens": 7,
            "total_tokens": 17,
            "prompt_tokens_details": {"cached_tokens": 4},
            "completion_tokens_details": {"reasoning_tokens": 5},
        }
    )
    assert (usage.cached_tokens, usage.reasoning_tokens, usage.total_tokens) == (4, 5, 17)


@pytest.mark.parametrize(
    "wire",
    [{"prompt_tokens_details": {"cached_tokens": 4}}, {"prompt_cache_hit_tokens": 4}, {"cached_tokens": 4}],
    ids=["OpenAI", "DeepSeek", "Moonshot"],
)
def test_cached_tokens_are_counted_under_each_name_that_servers_have_for_them(wire: dict[str, Any]) -> None:
    assert usage_of({"prompt_tokens": 9, "completion_tokens": 1, **wire}).cached_tokens == 4


def test_usage_with_holes_is_counted_as_far_as_it_goes() -> None:
    usage = usage_of(
        {"prompt_tokens": 1e999, "completion_tokens": -1, "prompt_tokens_details": None, "prompt_cache_hit_tokens": 2}
    )
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (0, 0, 2)


def test_a_stream_without_done_is_complete_if_it_gave_a_reason() -> None:
    assert fold(read(stream_of([delta(content="a"), END], done=False))).finish_reason == "stop"


def test_a_stream_without_a_reason_is_complete_if_it_said_done() -> None:
    assert fold(read(stream_of([delta(content="a")]))).finish_reason == "stop"
    assert fold(read(stream_of([call(0, "a", "f", "{}")]))).finish_reason == "tool_calls"


def test_a_stream_that_just_ends_is_an_error_after_its_events() -> None:
    reader = ChatReader(Failures("openai"))
    assert list(reader.feed(stream_of([delta(content="half")], done=False))) == [TextDelta("half")]
    with pytest.raises(ModelResponseError, match="ended before the response was complete"):
        list(reader.finish())


@pytest.mark.parametrize("body", [b"", b"<html>hello</html>"])
def test_what_is_no_stream_at_all_says_to_check_the_address(body: bytes) -> None:
    with pytest.raises(ModelResponseError, match="base_url"):
        read(body)


@pytest.mark.parametrize(
    ("reason", "read_as"),
    [
        *((word, "stop") for word in ("stop", "eos", "eos_token", "end_turn", "stop_sequence")),
        *((word, "length") for word in ("length", "max_tokens", "model_length")),
        *((word, "tool_calls") for word in ("tool_calls", "tool_call", "tool_use", "function_call")),
        ("content_filter", "content_filter"),
        ("odd", "other"),
    ],
)
def test_a_reason_is_read_whatever_word_a_server_has_for_it(reason: str, read_as: str) -> None:
    end = {"choices": [{"delta": {"content": "a"}, "finish_reason": reason}]}
    finished = read(stream_of([end]))[-1]
    assert isinstance(finished, ModelFinished)
    assert (finished.reason, finished.provider_reason) == (read_as, reason)


def test_the_id_the_model_and_the_time_are_those_of_the_first_chunk_that_has_an_id() -> None:
    chunks = [
        {"model": "early", "created": 0, "choices": []},
        {"id": 7, "model": None, "created": 5, "choices": []},
        {"id": "r", "model": "m", "created": 6, "choices": []},
        {"id": "s", "model": "n", "created": 8, "choices": []},
    ]
    finished = read(stream_of([*chunks, END]))[-1]
    assert finished == ModelFinished("stop", "m", "r", 5, provider_reason="stop")
    unnamed = read(stream_of([chunks[0], {"id": "r", "model": None, "choices": []}, END]))[-1]
    assert unnamed == ModelFinished("stop", "early", "r", provider_reason="stop")


def test_a_message_beside_a_delta_repeats_what_came_before() -> None:
    repeated = {"message": {"content": "ab", "reasoning": "hm"}, "finish_reason": "stop"}
    events = read(
        stream_of(
            [
                delta(content="a"),
                {"choices": [{**repeated, "delta": {"reasoning": "hm"}, "finish_reason": None}]},
                {"choices": [{**repeated, "delta": {"content": "b"}}]},
            ]
        )
    )
    assert events[:-1] == [TextDelta("a"), ReasoningDelta("hm"), TextDelta("b")]


def test_every_count_is_read_from_its_place() -> None:
    usage = usage_of(
        {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "total_tokens": 130,
            "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 4},
            "completion_tokens_details": {"reasoning_tokens": 5},
            "prompt_cache_hit_tokens": 6,
            "cached_tokens": 7,
        }
    )
    assert usage == Usage(
        prompt_tokens=100,
        completion_tokens=20,
        total_tokens=130,
        cached_tokens=3,
        cache_write_tokens=4,
        reasoning_tokens=5,
    )
    assert usage_of({"prompt_cache_hit_tokens": 6, "cached_tokens": 7}).cached_tokens == 6


def test_usage_and_sound_come_before_the_end_in_this_order() -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    events = read(stream_of([usage, *sounds("AAAA"), delta(content="a"), END]))
    assert [type(event) for event in events] == [TextDelta, MediaDelta, UsageReported, ModelFinished]


def test_what_a_chunk_says_at_once_comes_in_a_fixed_order() -> None:
    said = {
        "tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}],
        "images": [{"image_url": {"url": "http://h/i.png"}}],
        "refusal": "no",
        "content": "yes",
        "reasoning": "hm",
    }
    events = read(stream_of([delta(**said), END]))
    assert [type(event) for event in events[:-1]] == [
        ReasoningDelta,
        TextDelta,
        TextDelta,
        MediaDelta,
        FunctionCallDelta,
    ]
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["yes", "no"]


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "refusal", "tool_calls", "audio", "images"])
def test_text_beside_another_part_hides_neither(key: str) -> None:
    parts: dict[str, Any] = {
        "tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}],
        "audio": {"data": base64.b64encode(b"RIFF").decode()},
        "images": [{"image_url": {"url": "data:image/png;base64,AA=="}}],
    }
    alone = read(stream_of([delta(**{key: parts.get(key, "other")}), END]))
    both = read(stream_of([delta(role="assistant", content="text", **{key: parts.get(key, "other")}), END]))
    assert [event for event in both if event != TextDelta("text")] == alone
    assert TextDelta("text") in both


@pytest.mark.parametrize(
    ("reasoning", "text"),
    [
        ([{"type": "thinking", "thinking": "a"}, {"text": "b"}], "ab"),
        ("a", "a"),
        ([{"thinking": [{"text": "c"}]}], "c"),
    ],
)
def test_reasoning_in_parts_is_text(reasoning: Any, text: str) -> None:
    assert [event.text for event in read(stream_of([delta(reasoning=reasoning), END]))[:-1]] == [text]  # type: ignore[union-attr]


@pytest.mark.parametrize("data", [5, ["AAAA"], {"a": 1}, "A", "\u00e9"], ids=str)
def test_sound_that_is_no_base64_is_an_error_of_the_server(data: object) -> None:
    with pytest.raises(ModelResponseError, match="sent audio that is not valid base64; try again"):
        read(stream_of([delta(audio={"data": data}), END]))


def test_halves_of_a_character_are_joined_in_every_text_that_continues() -> None:
    for key in ("content", "reasoning_content", "reasoning", "refusal"):
        pieces = [rf'{{"choices": [{{"delta": {{"{key}": "{half}"}}}}]}}' for half in (r"\ud83d", r"\ude00")]
        body = "".join(f"data: {piece}\n\n" for piece in [*pieces, json.dumps(END)]).encode()
        assert "\U0001f600" in [getattr(event, "text", "") for event in read(body)], key
    calls = [rf'{{"choices": [{{"delta": {{"tool_calls": [{{"index": 0, "function": {{"name": "f", "arguments": "{half}"}}}}]}}}}]}}' for half in (r"\ud83d", r"\ude00")]  # fmt: skip # noqa: E501
    body = "".join(f"data: {piece}\n\n" for piece in [*calls, json.dumps(END)]).encode()
    assert calls_of(fold(read(body))) == [("f", "\U0001f600")]


# --- errors in a stream ---


@pytest.mark.parametrize(
    ("error", "error_class"),
    [
        ({"message": "slow down", "code": "rate_limit_exceeded"}, RateLimitedError),
        ({"message": "slow down", "code": 429}, RateLimitedError),
        ({"message": "This model's maximum context length is 5", "code": 400}, ContextLengthError),
        ({"message": "boom", "type": "server_error"}, ModelOverloadedError),
        ("boom", ModelOverloadedError),
    ],
)
def test_an_error_in_a_stream_has_its_class(error: Any, error_class: type[Exception]) -> None:
    with pytest.raises(error_class):
        read(stream_of([delta(content="a"), {"error": error}]))


def test_an_error_in_a_stream_may_have_no_wrapping() -> None:
    with pytest.raises(ContextLengthError, match="maximum context length"):
        read(stream_of([{"object": "error", "message": "the maximum context length is 5", "code": 400}]))


def test_the_events_before_an_error_come_first() -> None:
    events = ChatReader(Failures("openai")).feed(stream_of([delta(content="a"), {"error": {"message": "boom"}}]))
    assert next(events) == TextDelta("a")
    with pytest.raises(ModelOverloadedError, match="boom"):
        next(events)


def test_json_that_is_nested_too_deeply_is_an_error() -> None:
    with pytest.raises(ModelResponseError):
        read(b"data: " + b"[" * 100_000 + b"]" * 100_000 + b"\n\n")


@pytest.mark.parametrize(
    "data", ["[1]", "{broken", '"text"', '{"choices": 1}', '{"choices": [1]}', '{"usage": "much"}']
)
def test_what_is_no_chunk_is_an_error_that_shows_it_without_the_key(data: str) -> None:
    with pytest.raises(ModelResponseError) as caught:
        read(f"data: {data} sk-secret-key\n\n".encode(), key="sk-secret-key")
    assert "sk-secret-key" not in str(caught.value)
    with pytest.raises(ModelResponseError):
        read(f"data: {data}\n\n".encode())


# --- sound and images ---

PCM = bytes(range(256)) * 4


def media_of(response: ModelResponse) -> list[tuple[str, Any]]:
    return [(item.type, item.value) for message in response.messages for item in message.items if item.text is None]


def content_of(uri: str, media_type: str) -> bytes:
    head, _, data = uri.partition(",")
    assert head == f"data:{media_type};base64"
    return base64.b64decode(data)


def sounds(*pieces: str, **fields: Any) -> list[Chunk]:
    return [delta(audio={"data": piece, **fields}) for piece in pieces]


@given(st.binary(max_size=200), st.lists(st.integers(0, 300), max_size=6), st.booleans())
@example(content=b"\0", places=[3], padded=False)
@example(content=bytes(range(6)), places=[2, 5], padded=False)
def test_sound_is_joined_however_its_base64_is_cut(content: bytes, places: list[int], padded: bool) -> None:
    if padded:  # each piece is base64 of its own
        cuts = sorted({min(place, len(content)) for place in places})
        parts = [content[a:b] for a, b in zip([0, *cuts], [*cuts, len(content)], strict=True)]
        pieces = [base64.b64encode(part).decode() for part in parts]
    else:
        whole = base64.b64encode(content).decode()
        cuts = sorted({min(place, len(whole)) for place in places})
        pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
        pieces = [piece for piece in pieces if piece]
    assert joined(pieces) == content


def test_raw_sound_becomes_one_wav_file_before_the_end() -> None:
    encoded = base64.b64encode(PCM).decode()
    events = read(stream_of([*sounds(encoded[:10], encoded[10:]), delta(audio={"expires_at": 7}), END]))
    assert [type(event) for event in events] == [MediaDelta, ModelFinished]
    ((kind, uri),) = media_of(fold(events))
    content = content_of(uri, "audio/wav")
    assert int.from_bytes(content[4:8], "little") == len(content) - 8
    with wave.open(io.BytesIO(content)) as file:
        assert kind == "audio"
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 24_000)
        assert file.readframes(10_000) == PCM


@pytest.mark.parametrize(
    ("content", "named", "media_type"),
    [
        (b"RIFF\xff\xff\xff\xffWAVEfmt ", "wav", "audio/wav"),
        (b"OggS...", "", "audio/ogg"),
        (b"fLaC...", "flac", "audio/flac"),
        (b"fLaC...", "", "audio/flac"),
        (b"OggS...", "pcm16", "audio/ogg"),
        (b"ID3\x04...", "", "audio/mpeg"),
        (b"\xff\xfb\x90...", "mp3", "audio/mpeg"),
    ],
)
def test_sound_that_is_a_file_already_is_left_as_it_is(content: bytes, named: str, media_type: str) -> None:
    assert content_of(sound_uri([base64.b64encode(content).decode()], named=named), media_type) == content


@pytest.mark.parametrize(
    ("named", "media_type"),
    [("mp3", "audio/mpeg"), ("opus", "audio/ogg"), ("flac", "audio/flac"), ("aac", "audio/aac")],
)
def test_sound_in_the_format_that_was_asked_for_is_left_as_it_is(named: str, media_type: str) -> None:
    assert content_of(sound_uri(["AAAA"], named=named), media_type) == bytes(3)
    assert content_of(sound_uri(["AAAA"], named="wav"), "audio/wav").endswith(bytes(3))


def test_the_format_that_was_asked_for_counts_more_than_what_the_sound_begins_like() -> None:
    frames = b"\xff\xfb\x90..."
    assert content_of(sound_uri([base64.b64encode(frames).decode()], named="aac"), "audio/aac") == frames


@pytest.mark.parametrize("pieces", [["QQ"], ["Q", "Q"], ["QUE"], ["QUFB", "QQ"], ["QUFBQ", "UE"]])
def test_the_padding_at_the_end_may_be_missing(pieces: list[str]) -> None:
    length = len("".join(pieces)) * 3 // 4
    assert joined(pieces) == b"A" * length


def test_raw_sound_that_begins_like_a_file_of_frames_is_still_raw() -> None:
    uri = sound_uri([base64.b64encode(b"\xff\xfb\x00\x01").decode()], named="pcm16")
    assert content_of(uri, "audio/wav").endswith(b"\xff\xfb\x00\x01")


def test_what_is_said_in_sound_is_text_if_there_is_no_other() -> None:
    spoken = [delta(audio={"transcript": "Hel"}), delta(audio={"transcript": "lo", "data": "AAAA"})]
    assert answer(*spoken).get_content() == "Hello"
    written = [delta(content="Hello"), *spoken, delta(content="!", audio={"transcript": "!"})]
    assert answer(*written).get_content() == "Hello!"


def test_sound_that_is_no_base64_is_an_error() -> None:
    with pytest.raises(ModelResponseError, match="base64"):
        answer(*sounds("A"))


def test_images_come_where_they_stand_in_the_answer() -> None:
    images = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]
    events = read(stream_of([delta(content="look"), delta(content="", images=images), END]))
    assert [type(event) for event in events] == [TextDelta, MediaDelta, ModelFinished]
    assert media_of(fold(events)) == [("image", "data:image/png;base64,AA==")]


def test_an_image_among_the_parts_of_a_content_is_an_image() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "http://h/i.png"}}]
    response = answer(delta(content=parts))
    assert (response.get_content(), media_of(response)) == ("a", [("image", "http://h/i.png")])
    events = read(stream_of([delta(content=[*parts[::-1], *parts[::-1]]), END]))
    assert [type(event) for event in events[:-1]] == [MediaDelta, TextDelta] * 2


def test_media_in_one_object_are_what_a_stream_gives() -> None:
    message = {
        "content": None,
        "audio": {"id": "a", "data": "AAAA", "transcript": "hi"},
        "images": [{"image_url": {"url": "http://h/i.png"}}],
    }
    reader = ChatReader(Failures("openai"))
    body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
    response = fold([*reader.whole(body), *reader.finish()])
    assert response.get_content() == "hi"
    assert [kind for kind, _ in media_of(response)] == ["image", "audio"]


# --- filters ---

FILTERED = {"violence": {"filtered": True, "severity": "high"}, "hate": {"filtered": False}}


def ended_by_a_filter(**fields: Any) -> Chunk:
    choice = {"index": 0, "delta": fields, "finish_reason": "content_filter", "content_filter_results": FILTERED}
    return {"choices": [choice]}


def test_an_answer_that_a_filter_cut_off_is_kept_and_says_so() -> None:
    events = read(stream_of([delta(content="a"), ended_by_a_filter()]))
    assert [event.reason for event in events if isinstance(event, ModelFinished)] == ["content_filter"]
    assert fold(events).get_content() == "a"


def test_an_answer_of_which_a_filter_left_nothing_is_an_error_that_says_what_it_found() -> None:
    reader = ChatReader(Failures("openai", headers={"x-request-id": "r"}))
    list(reader.feed(stream_of([{"choices": [], "prompt_filter_results": []}, ended_by_a_filter()])))
    with pytest.raises(ContentFilterError, match=r"\[violence\]") as caught:
        list(reader.finish())
    assert not caught.value.retryable
    assert caught.value.request_id == "r"
    assert (caught.value.code, caught.value.backend) == ("content_filter", "openai")
    assert str(caught.value) == (
        "openai: the provider's filter withheld the entire response [violence]: change the request"
    )


@pytest.mark.parametrize(
    "said",
    [
        delta(content="a"),
        delta(refusal="no"),
        delta(images=[{"image_url": "http://h/i.png"}]),
        delta(audio={"data": "AAAA"}),
        delta(audio={"transcript": "a"}),
        call(0, "a", "f", "{}"),
    ],
    ids=["text", "refusal", "image", "sound", "transcript", "call"],
)
def test_an_answer_of_any_kind_before_a_filter_is_kept(said: Chunk) -> None:
    finished = read(stream_of([said, ended_by_a_filter()]))[-1]
    assert isinstance(finished, ModelFinished)
    assert finished.reason == "content_filter"


def test_reasoning_alone_is_no_answer_to_keep() -> None:
    with pytest.raises(ContentFilterError):
        read(stream_of([delta(reasoning="hm"), ended_by_a_filter()]))


# --- cost ---


def test_a_cost_is_read_to_its_last_digit_where_the_currency_is_known() -> None:
    wire = {"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.1}
    usage = usage_of(wire, cost_currency="USD")
    assert (usage.cost, usage.currency) == (Decimal("0.1"), "USD")
    assert usage_of(wire).cost is None
    assert usage_of({"cost": 0}, cost_currency="EUR").cost == 0
    assert usage_of({"cost": 0}, cost_currency="EUR").currency == "EUR"


@pytest.mark.parametrize("cost", [None, True, "0.1", -1, float("inf"), float("nan"), 1e9, {}])
def test_what_is_no_cost_is_none(cost: Any) -> None:
    assert usage_of({"cost": cost}, cost_currency="USD").cost is None
