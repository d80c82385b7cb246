"""A cassette plays what was recorded, to whoever asks the same, and keeps no secret."""

from __future__ import annotations

import asyncio
import contextlib
import json
import string
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield import errors
from jackfield.agents import FnCallAgent
from jackfield.errors import ModelOverloadedError, ModelServiceError, RateLimitedError
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
from jackfield.messages import FINISH_REASONS, ContentItem, Message, Usage
from jackfield.models import BaseChatModel, fold
from jackfield.prices import PriceRow, Tier
from jackfield.request import ChatRequest, ModelFacts
from jackfield.tools import tool
from jackfield_testkit.cassette import Cassette, CassetteError, Mode
from jackfield_testkit.redaction import Redaction
from jackfield_testkit.tape import error_of

KEY = "sk-live-0123456789abcdef"
Answer = Sequence[ModelEvent | ModelServiceError]


class Recorded(BaseChatModel):
    """A backend that gives the answers it was told, in turn, and counts how often it was asked."""

    backend = "recorded"

    def __init__(self, answer: Callable[[ChatRequest], Answer], config: Mapping[str, Any] | None = None) -> None:
        super().__init__({"model": "m", "api_key": KEY, "generate_cfg": {"max_retries": 0}, **(config or {})})
        self.answer = answer
        self.asked = 0

    @property
    def facts(self) -> ModelFacts:
        return ModelFacts(context_tokens=1000, images=True, reasoning=True)

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        self.asked += 1
        for event in self.answer(request):
            await asyncio.sleep(0)
            if isinstance(event, ModelServiceError):
                raise event
            yield event


def nobody(_: ChatRequest) -> Answer:
    raise AssertionError("the model was asked")


def ask(model: BaseChatModel, *messages: Message, **more: Any) -> list[ModelEvent]:
    async def gather() -> list[ModelEvent]:
        return [event async for event in model.astream(messages or (Message("user", "hi"),), **more)]

    return asyncio.run(gather())


def record(path: Path, answer: Callable[[ChatRequest], Answer], *messages: Message, **options: Any) -> list[ModelEvent]:
    with Cassette(path, "record", **options) as tape:
        return ask(tape.wrap(Recorded(answer)), *messages)


def text(words: str) -> Callable[[ChatRequest], Answer]:
    return lambda _: [TextDelta(words), ModelFinished("stop")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tapes" / "tape.json"


# --- what was recorded is played ---

words = st.text(st.characters(codec="utf-8"), max_size=12)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
calls = st.builds(FunctionCallDelta, st.integers(0, 3), id=words, name=words, arguments=words)
media = st.builds(lambda value: MediaDelta(ContentItem(image="data:image/png;base64," + value)), words)
usages = st.builds(
    lambda prompt, cost: UsageReported(Usage(prompt_tokens=prompt, completion_tokens=1, cost=cost, currency="EUR")),
    st.integers(0, 10**9),
    st.none() | st.decimals(0, 100, allow_nan=False, places=4).map(Decimal),
)
events = st.lists(
    st.builds(TextDelta, words)
    | st.builds(ReasoningDelta, words)
    | calls
    | media
    | usages
    | st.builds(StreamReset, words)
    | st.builds(PluginEvent, words, st.dictionaries(words, json_values, max_size=2)),
    max_size=8,
)
ends = st.builds(
    ModelFinished,
    st.sampled_from(FINISH_REASONS),
    model=words,
    response_id=st.none() | words.filter(bool),
    created=st.none() | st.integers(0, 2**40),
    data=st.none() | st.dictionaries(words, json_values, max_size=2),
    provider_reason=words,
)


@given(events, ends)
def test_replaying_gives_the_events_that_were_recorded(
    tmp_path_factory: pytest.TempPathFactory, body: list[ModelEvent], end: ModelFinished
) -> None:
    path = tmp_path_factory.mktemp("tape") / "tape.json"
    recorded = record(path, lambda _: [*body, end])
    with Cassette(path) as tape:
        assert ask(tape.wrap(Recorded(nobody))) == recorded


def test_a_lone_surrogate_is_played_as_it_came(path: Path) -> None:
    recorded = record(path, text("half a \ud83d"))
    with Cassette(path) as tape:
        assert ask(tape.wrap(Recorded(nobody))) == recorded


def all_error_classes() -> Iterator[type[ModelServiceError]]:
    for value in vars(errors).values():
        if isinstance(value, type) and issubclass(value, ModelServiceError):
            yield value


@pytest.mark.parametrize("error_class", list(all_error_classes()))
def test_an_error_is_raised_again_with_its_facts_after_what_came_before_it(
    path: Path, error_class: type[ModelServiceError]
) -> None:
    facts: dict[str, Any] = {"backend": "b", "code": "c", "status": 418, "retry_after_s": 0.5, "request_id": "r"}
    error = error_class("no tea", **facts, partial_text="half")
    seen: list[ModelEvent] = []

    async def listen(model: BaseChatModel) -> None:
        async for event in model.astream([Message("user", "hi")]):
            seen.append(event)  # noqa: PERF401 - they are wanted even though it fails

    with Cassette(path, "record") as tape, pytest.raises(error_class):
        asyncio.run(listen(tape.wrap(Recorded(lambda _: [TextDelta("half"), error]))))
    with Cassette(path) as tape, pytest.raises(ModelServiceError) as caught:
        asyncio.run(listen(tape.wrap(Recorded(nobody))))
    assert type(caught.value) is error_class
    assert str(caught.value) == "no tea"
    assert {name: getattr(caught.value, name) for name in facts} == facts
    assert caught.value.partial_text == "half"
    assert seen == [TextDelta("half")] * 2


def test_an_error_of_a_plugins_own_class_is_raised_as_the_class_it_extends(path: Path) -> None:
    class OutOfTeaError(RateLimitedError):
        pass

    with contextlib.suppress(OutOfTeaError):
        record(path, lambda _: [OutOfTeaError("later")])
    with Cassette(path) as tape, pytest.raises(RateLimitedError, match="later"):
        ask(tape.wrap(Recorded(nobody)))


def test_each_attempt_is_on_the_tape_so_that_retries_run_as_they_did(path: Path) -> None:
    answers = iter([[ModelOverloadedError("busy", retry_after_s=0)], [TextDelta("yes"), ModelFinished("stop")]])
    config = {"max_retries": 1}
    with Cassette(path, "record") as tape:
        recorded = ask(tape.wrap(Recorded(lambda _: next(answers))), config=config)
    with Cassette(path) as tape:
        replayed = ask(tape.wrap(Recorded(nobody)), config=config)
    assert [type(event) for event in replayed] == [type(event) for event in recorded]
    assert fold(replayed).get_content() == "yes"


def test_an_answer_that_was_left_early_can_be_left_again_but_not_read_on(path: Path) -> None:
    async def first(model: BaseChatModel) -> ModelEvent:
        stream = model.astream([Message("user", "hi")])
        event = await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]
        return event

    with Cassette(path, "record") as tape:
        asyncio.run(first(tape.wrap(Recorded(text("one")))))
    with Cassette(path) as tape:
        assert asyncio.run(first(tape.wrap(Recorded(nobody)))) == TextDelta("one")
    with pytest.raises(CassetteError, match="the caller stopped reading early"), Cassette(path) as tape:
        ask(tape.wrap(Recorded(nobody)))


def test_a_failure_that_is_no_answer_is_not_recorded(path: Path) -> None:
    def broken(_: ChatRequest) -> Answer:
        raise ZeroDivisionError

    with Cassette(path, "record") as tape, pytest.raises(ZeroDivisionError):
        ask(tape.wrap(Recorded(broken)))
    assert json.loads(path.read_text())["calls"] == []


# --- agents ---


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def two_turns(request: ChatRequest) -> Answer:
    """A backend's answers: two calls at once, then a sentence."""
    if request.messages[-1].role == "function":
        results = [message.get_text_content() for message in request.messages if message.role == "function"]
        return [TextDelta(f"{results}"), ModelFinished("stop")]
    return [
        ReasoningDelta("hm"),
        FunctionCallDelta(0, id="c1", name="add", arguments='{"a": 1,'),
        FunctionCallDelta(1, id="c2", name="add", arguments='{"a": 3, "b": 4}'),
        FunctionCallDelta(0, arguments=' "b": 2}'),
        UsageReported(Usage(prompt_tokens=3, completion_tokens=4)),
        ModelFinished("tool_calls", data={"signature": "s"}),
    ]


def test_an_agents_run_of_several_turns_with_tools_is_played(path: Path) -> None:
    question = [Message("user", "add")]
    with Cassette(path, "record") as tape:
        recorded = FnCallAgent(llm=tape.wrap(Recorded(two_turns)), function_list=[add]).run_nonstream(question)
    with Cassette(path) as tape:
        played = FnCallAgent(llm=tape.wrap(Recorded(nobody)), function_list=[add]).run_nonstream(question)
        assert (tape.unplayed, tape.asked) == (0, 0)
    assert played == recorded
    assert played[-1].content == "['3', '7']"


def test_a_model_is_played_although_its_backend_is_not_installed(path: Path) -> None:
    record(path, text("yes"))
    with Cassette(path) as tape:
        for cfg in ("recorded:m", {"model_type": "recorded", "model": "m", "api_key": "x", "region": "eu"}):
            model = tape.chat_model(cfg)
            assert model.facts == ModelFacts(context_tokens=1000, images=True, reasoning=True)
            assert (model.backend, model.config.model, model.config.api_key) == ("recorded", "m", None)
        assert fold(ask(model)).get_content() == "yes"


def test_playing_imports_no_backend(path: Path) -> None:
    record(path, text("yes"))
    program = f"""
import sys
from jackfield_testkit.cassette import Cassette
with Cassette({str(path)!r}) as tape:
    print(tape.chat_model("recorded:m").ask([dict(role="user", content="hi")]).text)
print(sorted(name for name in sys.modules if name in ("httpx", "openai", "urllib.request", "pytest")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("yes\n[]\n", "")


# --- what is the same request ---


def test_calls_at_the_same_time_get_their_own_answers_in_any_order(path: Path) -> None:
    def echo(request: ChatRequest) -> Answer:
        return [TextDelta(request.messages[-1].get_text_content()), ModelFinished("stop")]

    async def many(model: BaseChatModel, order: Sequence[int]) -> list[str]:
        answers = await asyncio.gather(*(model.acomplete([Message("user", f"q{number}")]) for number in order))
        return [answer.get_content() for answer in answers]

    with Cassette(path, "record") as tape:
        asyncio.run(many(tape.wrap(Recorded(echo)), range(20)))
    with Cassette(path) as tape:
        backwards = range(19, -1, -1)
        assert asyncio.run(many(tape.wrap(Recorded(nobody)), backwards)) == [f"q{number}" for number in backwards]


def test_equal_requests_are_answered_in_turn_and_one_too_many_is_an_error(path: Path) -> None:
    answers = iter(["one", "two"])
    with Cassette(path, "record") as tape:
        model = tape.wrap(Recorded(lambda _: [TextDelta(next(answers)), ModelFinished("stop")]))
        ask(model)
        ask(model)
    heard: list[str] = []
    with (
        pytest.raises(CassetteError, match="the same request more often than recorded; recorded responses: 2"),
        Cassette(path) as tape,
    ):
        heard += (fold(ask(model)).get_content() for model in [tape.wrap(Recorded(nobody))] * 3)
    assert heard == ["one", "two"]


@pytest.mark.parametrize(
    "more",
    [
        {"config": {"request_timeout": 5, "max_retries": 2, "deadline": 60, "extra_headers": {"X-A": "secret-header"}}},
        {"metadata": {"trace": "1"}},
    ],
)
def test_what_changes_no_answer_does_not_count(path: Path, more: dict[str, Any]) -> None:
    record(path, text("yes"))
    with Cassette(path) as tape:
        assert fold(ask(tape.wrap(Recorded(nobody)), **more)).get_content() == "yes"


@pytest.mark.parametrize(
    "more",
    [
        {"config": {"temperature": 0.5}},
        {"config": {"seed": 1}},
        {"functions": [{"name": "f", "description": "", "parameters": {"type": "object", "properties": {}}}]},
    ],
)
def test_what_changes_an_answer_counts(path: Path, more: dict[str, Any]) -> None:
    record(path, text("yes"))
    with pytest.raises(CassetteError, match="contains no response to this request"), Cassette(path) as tape:
        ask(tape.wrap(Recorded(nobody)), **more)


def test_the_callers_own_extra_does_not_count_but_the_id_of_a_call_does(path: Path) -> None:
    record(path, text("yes"), Message("user", "hi", extra={"mine": 1}))
    with Cassette(path) as tape:
        ask(tape.wrap(Recorded(nobody)), Message("user", "hi", extra={"mine": 2}))
    with pytest.raises(CassetteError), Cassette(path) as tape:
        ask(tape.wrap(Recorded(nobody)), Message("user", "hi", extra={"function_id": "2"}))


def test_a_local_file_counts_by_its_content(path: Path, tmp_path: Path) -> None:
    for folder, content in (("a", b"cat"), ("b", b"cat"), ("c", b"dog")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.png").write_bytes(content)

    def image(folder: str) -> Message:
        return Message("user", [ContentItem(image=str(tmp_path / folder / "x.png")), ContentItem(text="what?")])

    record(path, text("a cat"), image("a"))
    with Cassette(path) as tape:
        assert fold(ask(tape.wrap(Recorded(nobody)), image("b"))).get_content() == "a cat"
    with pytest.raises(CassetteError), Cassette(path) as tape:
        ask(tape.wrap(Recorded(nobody)), image("c"))
    assert str(tmp_path) not in path.read_text()


def test_a_long_image_is_written_as_its_digest_in_requests(path: Path) -> None:
    picture = "data:image/png;base64," + "A" * 10_000
    record(path, text("white"), Message("user", [ContentItem(image=picture)]))
    assert len(path.read_text()) < 2_000
    with Cassette(path) as tape:
        ask(tape.wrap(Recorded(nobody)), Message("user", [ContentItem(image=picture)]))


def test_what_differs_from_run_to_run_has_a_name_on_the_tape_and_is_put_back(path: Path) -> None:
    def echo(request: ChatRequest) -> Answer:
        whole = request.messages[-1].get_text_content()
        return [TextDelta(whole[:9]), TextDelta(whole[9:]), ModelFinished("stop")]

    record(path, echo, Message("user", "see /srv/one/a.txt"), names={"/srv/one": "[folder]"})
    assert "/srv/" not in path.read_text()
    with Cassette(path, names={"/srv/two": "[folder]"}) as tape:
        answer = fold(ask(tape.wrap(Recorded(nobody)), Message("user", "see /srv/two/a.txt")))
    assert answer.get_content() == "see /srv/two/a.txt"


# --- what is not on the tape ---


def test_a_request_that_is_not_on_the_tape_is_told_with_the_nearest_and_the_difference(path: Path) -> None:
    with Cassette(path, "record") as tape:
        model = tape.wrap(Recorded(text("yes")))
        for question in ("the colour of the sky", "the price of tea"):
            ask(model, Message("system", "Answer."), Message("user", question))
    with pytest.raises(CassetteError) as caught, Cassette(path) as tape:
        ask(tape.wrap(Recorded(nobody)), Message("system", "Answer!"), Message("user", "the price of tea"))
    told = str(caught.value)
    assert "call 2 of 2" in told
    assert '-   "content": "Answer.",' in told
    assert '+   "content": "Answer!",' in told
    assert "the sky" not in told


def test_a_miss_that_somebody_swallows_is_told_at_the_end(path: Path) -> None:
    record(path, text("yes"))
    with (
        pytest.raises(CassetteError, match="contains no response"),
        Cassette(path) as tape,
        contextlib.suppress(CassetteError),
    ):
        ask(tape.wrap(Recorded(nobody)), Message("user", "something else"))


def test_auto_asks_only_for_what_is_missing(path: Path) -> None:
    model = Recorded(text("yes"))
    for asked, question in ((1, "one"), (1, "one"), (2, "two"), (2, "one"), (2, "two")):
        before = model.asked
        with Cassette(path, "auto") as tape:
            ask(tape.wrap(model), Message("user", question))
        assert model.asked == asked
        assert tape.asked == asked - before


def test_a_tape_that_was_only_played_is_not_written(path: Path) -> None:
    record(path, text("yes"))
    before = path.read_text()
    path.chmod(0o444)
    for mode in ("replay", "auto"):
        chosen: Mode = "replay" if mode == "replay" else "auto"
        with Cassette(path, chosen) as tape:
            ask(tape.wrap(Recorded(nobody)))
    assert path.read_text() == before


def test_recording_the_same_again_writes_the_same(path: Path) -> None:
    record(path, two_turns)
    before = path.read_text()
    record(path, two_turns)
    assert path.read_text() == before
    assert max(map(len, before.splitlines())) < 240


def test_what_is_played_costs_what_it_cost(path: Path) -> None:
    tier = Tier(input=Decimal("0.1"), output=Decimal(8))
    row = PriceRow(models=("m",), currency="EUR", valid_from=date(2026, 1, 1), tiers=(tier,))

    class Priced(Recorded):
        @property
        def facts(self) -> ModelFacts:
            return ModelFacts(prices=(row,))

    usage = Usage(prompt_tokens=1000, completion_tokens=10)
    with Cassette(path, "record") as tape:
        live = fold(ask(tape.wrap(Priced(lambda _: [UsageReported(usage), ModelFinished("stop")]))))
    with Cassette(path) as tape:
        played = fold(ask(tape.chat_model("recorded:m")))
    assert live.usage == played.usage
    assert (played.usage.cost, played.usage.currency) == (Decimal("0.00018"), "EUR")
    assert tape.facts_of("recorded:m").prices == (row,)


def test_a_model_outside_of_the_block_says_so(path: Path) -> None:
    with Cassette(path, "record") as tape:
        model = tape.wrap(Recorded(text("x")))
    with pytest.raises(CassetteError, match="not open"):
        ask(model)


@pytest.mark.parametrize("name", ["ConfigError", "JackfieldError", "NoSuchError", "annotations", None])
def test_only_an_error_of_a_model_comes_from_a_tape(name: str | None) -> None:
    with pytest.raises(ValueError, match=f"{name!r} is not a ModelServiceError"):
        error_of({"class": name, "message": "x"})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda whole: whole[: len(whole) // 2],
            r"tape\.json, line \d+: the cassette is truncated or was edited incorrectly",
        ),
        (
            lambda whole: whole.replace('"text": "yes"', '"txet": "yes"'),
            r"call 1, event 1: TextDelta has no field 'txet'",
        ),
        (
            lambda whole: whole.replace('"text": "yes"', '"text": 5'),
            r"call 1, event 1: 'text' of TextDelta: expected a string",
        ),
        (
            lambda whole: whole.replace('"ModelFinished", "reason"', '"TextDelta", "text"'),
            r"call 1: incomplete response",
        ),
        (
            lambda whole: whole.replace('"cassette": 2', '"cassette": 1'),
            "expected cassette version 2, found 1; re-record the cassette",
        ),
        (lambda whole: whole.replace('"request"', '"requst"'), "call 1: must contain 'model', 'request' and 'events'"),
        (lambda whole: whole.replace('"images"', '"pictures"'), "the facts of model 'recorded:m' may only contain "),
        (lambda _: "[]", "expected cassette version 2, found list"),
    ],
)
def test_a_damaged_cassette_is_told_with_file_and_place(path: Path, damage: Callable[[str], str], message: str) -> None:
    record(path, text("yes"))
    path.write_text(damage(path.read_text()))
    with pytest.raises(CassetteError, match=message), Cassette(path):
        pass


def test_a_cassette_that_is_not_there_says_how_to_record_it(path: Path) -> None:
    with pytest.raises(CassetteError, match="record it with mode='record'"), Cassette(path):
        pass


# --- secrets ---

# It begins like nothing else in a file, and what stands around it has none of its characters.
secret_texts = st.text(string.ascii_letters + string.digits + "-_/\\\"'é\n", min_size=6, max_size=20).map("Zq~".__add__)
around_it = st.text("雪 ☃.", max_size=8)


@given(secret_texts, around_it, st.integers(0, 25), st.sampled_from(["text", "reasoning", "arguments"]))
def test_a_secret_is_nowhere_in_the_file_even_if_the_model_repeats_it_in_pieces(
    tmp_path_factory: pytest.TempPathFactory, secret: str, around: str, cut: int, where: str
) -> None:
    path = tmp_path_factory.mktemp("tape") / "tape.json"
    said = f"{around}\x00{json.dumps(secret) if where == 'arguments' else secret}\x00{around}"
    pieces = [said[:cut], said[cut:]]

    def answer(_: ChatRequest) -> Answer:
        made = {
            "text": [TextDelta(piece) for piece in pieces],
            "reasoning": [ReasoningDelta(piece) for piece in pieces],
            "arguments": [FunctionCallDelta(0, name="f", arguments=piece) for piece in pieces],
        }
        return [*made[where], ModelFinished("stop", data={"again": secret, f"key {secret}": 1})]

    record(path, answer, Message("user", f"my key is {secret}!"), secrets=[secret])
    written = path.read_text()
    for form in (secret, json.dumps(secret)[1:-1], json.dumps(json.dumps(secret))[3:-3]):
        assert form not in written
    told = json.loads(written)["calls"][0]["events"]
    name = "arguments" if where == "arguments" else "text"
    whole = "".join(event.get(name, "") for event in told)
    assert secret not in whole
    assert whole == f"{around}\x00" + ('"[secret]"' if where == "arguments" else "[secret]") + f"\x00{around}"


def test_the_key_of_a_model_is_a_secret_without_being_named(path: Path) -> None:
    key = "an-unusual-k3y-Zq8"
    with Cassette(path, "record") as tape:
        model = Recorded(lambda _: [ModelServiceError(f"wrong key {key}", partial_text=key)], {"api_key": key})
        with pytest.raises(ModelServiceError):
            ask(tape.wrap(model), Message("user", key), config={"extra_headers": {"X-Custom": "header-value"}})
    written = path.read_text()
    assert key not in written
    assert "header-value" not in written


def test_keys_of_the_environment_are_secrets(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "acme-environment-value")
    record(path, text("I know acme-environment-value"))
    assert "acme-environment-value" not in path.read_text()


@pytest.mark.parametrize(
    "key",
    [
        "sk-proj-abcdefghijklmnop1234",
        "AIzaSyA1234567890abcdefghijklmnopqrstuv",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "hf_abcdefghijklmnopqrstuvwx",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
    ],
)
def test_what_looks_like_a_key_is_a_secret(key: str) -> None:
    assert Redaction().text(f"see {key}.") == "see [secret]."


def test_ordinary_words_are_no_secrets() -> None:
    sentence = "The task-based risk-averse desk-top hf_model skips sk-1 and 550e8400-e29b-41d4-a716-446655440000."
    assert Redaction().text(sentence) == sentence
