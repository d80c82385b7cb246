"""Asking a model: every way is a view of one stream, retried by the class of the error."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield.config import GenerateConfig, LLMConfig
from jackfield.errors import (
    AmbiguousPluginError,
    BrokenPluginError,
    ConfigError,
    ContentFilterError,
    ContextLengthError,
    ModelAuthError,
    ModelConnectionError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelRequestError,
    ModelResponseError,
    ModelServiceError,
    ModelTimeoutError,
    PluginNotFoundError,
    RateLimitedError,
    UnsupportedInputError,
)
from jackfield.events import (
    ModelEvent,
    ModelFinished,
    PluginEvent,
    RetryScheduled,
    StreamReset,
    TextDelta,
    UsageReported,
)
from jackfield.messages import Message, Usage
from jackfield.models import ONLY_BEFORE_OUTPUT, BaseChatModel, Retry, fold, get_chat_model, wait_before_retry
from jackfield.plugins import PluginHost
from jackfield.processors import CallNext, Processor
from jackfield.request import ChatRequest, ModelFacts
from jackfield.testing import ScriptedModel, answer

SECRET = "sk-" + "SECRET"
ASK = [{"role": "user", "content": "q"}]
DONE = ModelFinished("stop")
ADD = {"name": "add", "description": "Adds.", "parameters": {"type": "object", "properties": {}, "required": []}}
Gather = Callable[[AsyncIterator[Any]], list[Any]]


class Naps:
    """A clock that only notes how long it should have slept."""

    def __init__(self) -> None:
        self.slept_s: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept_s.append(seconds)


def scripted(*steps: Sequence[ModelEvent | Exception], naps: Naps | None = None, **generate: Any) -> ScriptedModel:
    """A model with retries that take no time."""
    config = LLMConfig.parse({"model": "scripted", "generate_cfg": generate})
    return ScriptedModel(steps, config=config, processors=[Retry(sleep=naps or Naps(), jitter=lambda: 1.0)])


# --- retries ---

RETRIED: list[type[ModelServiceError]] = [
    RateLimitedError,
    ModelOverloadedError,
    ModelConnectionError,
    ModelTimeoutError,
    ModelResponseError,
]
NEVER_RETRIED: list[type[ModelServiceError]] = [
    ModelServiceError,
    ModelRequestError,
    UnsupportedInputError,
    ContextLengthError,
    ContentFilterError,
    ModelNotFoundError,
    ModelAuthError,
]


@pytest.mark.parametrize("error", RETRIED)
def test_an_error_that_waiting_can_mend_is_retried(error: type[ModelServiceError]) -> None:
    model = scripted([error("busy")], answer("hello"), max_retries=1)
    assert model.quick_chat("q") == "hello"
    assert len(model.requests) == 2


@pytest.mark.parametrize("error", NEVER_RETRIED)
def test_an_error_that_waiting_cannot_mend_is_raised_at_once(error: type[ModelServiceError]) -> None:
    model = scripted([error("no")], answer("hello"), max_retries=3)
    with pytest.raises(error):
        model.quick_chat("q")
    assert len(model.requests) == 1


def test_what_can_succeed_is_retried_twice_unless_somebody_says_otherwise() -> None:
    for config, attempts in (({}, 3), ({"max_retries": 0}, 1)):
        model = ScriptedModel([[ModelOverloadedError("busy")]] * 4, processors=[Retry(sleep=Naps())])
        model.config = LLMConfig.parse({"model": "m", "generate_cfg": config})
        with pytest.raises(ModelOverloadedError):
            model.quick_chat("q")
        assert len(model.requests) == attempts


def test_after_the_last_retry_the_last_error_is_raised_as_it_was() -> None:
    last = RateLimitedError("third", status=429, request_id="r3")
    model = scripted([ModelOverloadedError("first")], [ModelConnectionError("second")], [last], max_retries=2)
    with pytest.raises(RateLimitedError) as caught:
        model.quick_chat("q")
    assert caught.value is last
    assert len(model.requests) == 3


def test_a_server_that_names_a_pause_is_left_alone_for_so_long() -> None:
    naps = Naps()
    busy = RateLimitedError("slow", status=429, retry_after_s=90.0)
    scripted([busy], answer("x"), naps=naps, max_retries=1).quick_chat("q")
    assert naps.slept_s == [90.0]


@given(st.integers(1, 60), st.floats(0, 1), st.sampled_from(RETRIED))
def test_a_pause_grows_up_to_a_minute_and_never_beyond(
    attempt: int, jitter: float, kind: type[ModelServiceError]
) -> None:
    pause = wait_before_retry(kind("x"), attempt, max_retries=100, jitter=jitter)
    longer = wait_before_retry(kind("x"), attempt + 1, max_retries=100, jitter=jitter)
    assert pause is not None
    assert longer is not None
    assert 0 < pause <= 60
    assert pause <= longer


@given(st.integers(1, 20), st.floats(0, 1), st.floats() | st.floats(0, 500), st.floats(0.001, 1000))
@example(1, 0.0, float("nan"), 120.0)
@example(1, 0.0, 1e9, 120.0)
@example(1, 0.0, float("inf"), 120.0)
@example(1, 0.0, -1e9, 120.0)
def test_what_the_server_asks_for_is_the_least_pause_or_too_long(
    attempt: int, jitter: float, asked: float, most: float
) -> None:
    for error in (RateLimitedError("x", retry_after_s=asked), ModelOverloadedError("x", retry_after_s=asked)):
        pause = wait_before_retry(error, attempt, max_retries=100, jitter=jitter, max_delay_s=most)
        if asked <= most:
            assert pause is not None
            assert max(asked, 0) <= pause <= most
        else:
            assert pause is None


@pytest.mark.parametrize("asked", [120.1, 1e9, float("inf"), float("nan")])
@pytest.mark.parametrize("kind", [RateLimitedError, ModelOverloadedError])
def test_a_server_that_asks_for_too_long_a_pause_gets_none_and_its_error_is_raised_at_once(
    asked: float, kind: type[ModelServiceError]
) -> None:
    naps = Naps()
    error = kind("slow", retry_after_s=asked)
    model = scripted([error], answer("x"), naps=naps, max_retries=5)
    with pytest.raises(kind) as caught:
        model.quick_chat("q")
    assert caught.value is error
    assert naps.slept_s == []
    assert "longer than max_retry_delay=120" in caught.value.__notes__[0]


def test_whoever_wants_to_wait_longer_says_so() -> None:
    naps = Naps()
    busy = RateLimitedError("slow", retry_after_s=900.0)
    scripted([busy], answer("x"), naps=naps, max_retries=1, max_retry_delay=1000).quick_chat("q")
    assert naps.slept_s == [900.0]


@pytest.mark.parametrize("error", [RateLimitedError("x"), RateLimitedError("x", status=429)])
def test_a_rate_limit_waits_longer_than_another_fault(error: ModelServiceError) -> None:
    limited = wait_before_retry(error, 1, max_retries=1, jitter=0)
    other = wait_before_retry(ModelOverloadedError("x"), 1, max_retries=1, jitter=1)
    assert limited is not None
    assert other is not None
    assert limited >= 2 > other


@pytest.mark.parametrize("kind", RETRIED)
def test_a_status_429_is_a_rate_limit_in_every_class_of_error(kind: type[ModelServiceError]) -> None:
    pause = wait_before_retry(kind("x", status=429), 1, max_retries=1, jitter=0)
    assert pause is not None
    assert pause >= 2


def test_a_retry_before_any_output_is_announced_and_resets_nothing(gather: Gather) -> None:
    model = scripted([ModelOverloadedError("busy")], [TextDelta("a"), DONE], max_retries=1)
    assert gather(model.astream(ASK)) == [RetryScheduled(1, 0.5, "busy"), TextDelta("a"), DONE]


def test_a_retry_after_output_says_that_the_output_is_void(gather: Gather) -> None:
    model = scripted(
        [TextDelta("ab"), ModelConnectionError("cut")],
        [ModelOverloadedError("busy")],
        [TextDelta("X"), TextDelta("Y"), DONE],
        max_retries=2,
    )
    events = gather(model.astream(ASK))
    assert [event for event in events if isinstance(event, StreamReset)] == [StreamReset("cut")]
    assert fold(events).get_content() == "XY"


def test_a_growing_list_starts_again_after_a_reset() -> None:
    model = scripted([TextDelta("ab"), ModelConnectionError("cut")], [TextDelta("X"), DONE], max_retries=1)
    snapshots = [messages[0]["content"] for messages in model.chat(ASK)]
    assert snapshots[-1] == "X"
    assert set(snapshots) <= {"ab", "X"}


def test_a_delta_stream_is_retried_before_its_first_item_and_never_after() -> None:
    early = scripted([ModelConnectionError("cut")], [TextDelta("a"), DONE], max_retries=1)
    assert [messages[0]["content"] for messages in early.chat(ASK, delta_stream=True)] == ["a"]
    late = scripted([TextDelta("ab"), ModelConnectionError("cut")], answer("never asked for"), max_retries=1)
    got: list[str] = []
    with pytest.raises(ModelConnectionError):
        got += (messages[0]["content"] for messages in late.chat(ASK, delta_stream=True))
    assert len(late.requests) == 1


def test_a_wait_that_would_pass_the_deadline_is_not_begun() -> None:
    naps = Naps()
    model = scripted(
        [RateLimitedError("slow", retry_after_s=30.0)], answer("x"), naps=naps, max_retries=5, deadline=10.0
    )
    with pytest.raises(RateLimitedError):
        model.quick_chat("q")
    assert naps.slept_s == []


class Silent(BaseChatModel):
    """Says one word and then nothing any more."""

    backend = "silent"

    def __init__(self, config: Any, **options: Any) -> None:
        super().__init__(config, **options)
        self.closed = threading.Event()

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        try:
            yield TextDelta("well")
            await asyncio.Event().wait()
            yield DONE
        finally:
            self.closed.set()


def test_a_deadline_ends_a_silent_stream_with_an_error_that_has_what_arrived() -> None:
    model = Silent({"model": "m", "generate_cfg": {"deadline": 0.05}})
    with pytest.raises(ModelTimeoutError, match="increase `deadline`") as caught:
        model.quick_chat("q")
    assert caught.value.partial_text == "well"
    assert model.closed.is_set()


@pytest.mark.parametrize("options", [{}, {"max_retries": 2}, {"deadline": 60.0}], ids=str)
def test_leaving_a_stream_early_closes_the_backends_own(options: dict[str, Any]) -> None:
    async def leave_early() -> bool:
        model = Silent({"model": "m", "generate_cfg": options})
        events = model.astream(ASK)
        await anext(events)
        await events.aclose()  # type: ignore[attr-defined]
        return model.closed.is_set()

    assert asyncio.run(leave_early())


def test_a_foreign_timeout_is_not_taken_for_the_deadline() -> None:
    class Foreign(Silent):
        async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
            raise TimeoutError("the socket timed out")
            yield DONE

    for options in ({"max_retries": 1}, {"max_retries": 1, "deadline": 60.0}, {}):
        with pytest.raises(TimeoutError, match="the socket timed out"):
            Foreign({"model": "m", "generate_cfg": options}).quick_chat("q")


def test_a_note_before_the_answer_neither_keeps_from_a_retry_nor_makes_anything_void(gather: Gather) -> None:
    notes = [PluginEvent("acme.note"), UsageReported(Usage(prompt_tokens=1))]
    model = scripted([*notes, ModelOverloadedError("busy")], answer("Yes."), max_retries=1)
    came = gather(model.astream(ASK, metadata={ONLY_BEFORE_OUTPUT: True}))
    assert [type(event) for event in came[:3]] == [PluginEvent, UsageReported, RetryScheduled]
    assert not any(isinstance(event, StreamReset) for event in came)
    assert fold(came).get_content() == "Yes."


@pytest.mark.parametrize(
    "note", [PluginEvent("acme.note"), UsageReported(Usage(prompt_tokens=1))], ids=lambda one: type(one).__name__
)
@pytest.mark.parametrize("before", [0, 1, 2])
@pytest.mark.parametrize("after", [0, 1])
def test_output_stays_output_whatever_follows_it(gather: Gather, note: Any, before: int, after: int) -> None:
    steps: list[Any] = [*[note] * before, TextDelta("ab"), *[note] * after, ModelConnectionError("cut")]
    came = gather(scripted(steps, answer("X"), max_retries=1).astream(ASK))
    assert [event for event in came if isinstance(event, StreamReset)] == [StreamReset("cut")]
    assert fold(came).get_content() == "X"
    once = scripted(steps, answer("X"), max_retries=1)
    with pytest.raises(ModelConnectionError):
        gather(once.astream(ASK, metadata={ONLY_BEFORE_OUTPUT: True}))
    assert len(once.requests) == 1


# --- answers that break off ---


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: model.chat(ASK, stream=False),
        lambda model: list(model.chat(ASK)),
        lambda model: list(model.chat(ASK, delta_stream=True)),
        lambda model: model.quick_chat("q"),
        lambda model: list(model.quick_chat_oai(ASK)),
    ],
    ids=["no stream", "stream", "delta stream", "quick_chat", "quick_chat_oai"],
)
def test_an_answer_that_ends_in_the_middle_is_an_error_however_one_asks(ask: Callable[[BaseChatModel], Any]) -> None:
    with pytest.raises(ModelResponseError, match="was cut off"):
        ask(scripted([TextDelta("Once upon a")]))


def test_an_answer_that_ends_in_the_middle_is_retried_like_a_broken_connection() -> None:
    model = scripted([TextDelta("Once upon a")], [TextDelta("Once more"), DONE], max_retries=1)
    assert model.quick_chat("q") == "Once more"


def test_the_error_of_a_broken_answer_has_what_had_arrived() -> None:
    with pytest.raises(ModelConnectionError) as caught:
        scripted([TextDelta("so "), TextDelta("far"), ModelConnectionError("cut")]).quick_chat("q")
    assert caught.value.partial_text == "so far"


# --- one text, many threads ---


def test_quick_chat_gives_the_text_without_the_reasoning() -> None:
    assert scripted(answer("hello", reasoning="why")).quick_chat("q") == "hello"


def test_many_threads_may_ask_one_model_at_once() -> None:
    model = ScriptedModel(lambda request: answer(request.messages[-1].get_text_content()))
    got: dict[int, str] = {}

    def ask(number: int) -> None:
        got[number] = model.quick_chat(f"question {number}")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == {number: f"question {number}" for number in range(8)}


# --- requests that make no sense ---


def test_two_system_messages_are_refused() -> None:
    system = {"role": "system", "content": "s"}
    with pytest.raises(ValueError, match="two system messages"):
        scripted(answer("x")).chat([system, *ASK, system], stream=False)


@pytest.mark.parametrize("choice", ["zz", "", "Add"])
def test_a_chosen_function_that_is_not_there_is_an_error_that_lists_the_choices(choice: str) -> None:
    model = scripted(answer("x"))
    with pytest.raises(ValueError, match="auto, none, required, add"):
        model.chat(ASK, [ADD], stream=False, extra_generate_cfg={"function_choice": choice})
    assert model.requests == []


@pytest.mark.parametrize("choice", ["auto", "none", "required", "add"])
def test_a_choice_that_is_there_reaches_the_backend(choice: str) -> None:
    model = scripted(answer("x"))
    model.chat(ASK, [ADD], stream=False, extra_generate_cfg={"function_choice": choice})
    assert model.requests[0].config.function_choice == choice


def test_a_function_without_a_name_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="name"):
        scripted(answer("x")).chat(ASK, [{"description": "no name"}], stream=False)


def test_an_unknown_option_of_a_call_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'temperature'"):
        scripted(answer("x")).chat(ASK, stream=False, extra_generate_cfg={"temprature": 1})


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
@pytest.mark.parametrize("kind", ["image", "audio", "video"])
def test_content_the_model_does_not_take_is_refused_before_the_backend_is_asked(kind: str, role: str) -> None:
    ask = [Message(role, [{"text": "look"}, {kind: "http://x/y"}]), Message("user", "and?")]
    for retries in (0, 2):
        model = scripted(answer("x"), max_retries=retries)
        with pytest.raises(UnsupportedInputError, match=f"scripted:scripted does not support {kind} input"):
            model.chat(ask, stream=False)
        assert model.requests == []
    facts = ModelFacts(images=True, audio=True, video=True)
    assert ScriptedModel([answer("seen")], facts=facts).chat(ask, stream=False)[-1].content == "seen"


@pytest.mark.parametrize(("text", "lang"), [("hello", "en"), ("你好", "zh"), ("what is 茶?", "zh")])
def test_the_language_is_that_of_the_question_unless_one_is_named(text: str, lang: str) -> None:
    model = scripted(answer("x"), answer("x"))
    model.quick_chat(text)
    model.chat([Message("user", text)], stream=False, extra_generate_cfg={"lang": "en"})
    assert [request.lang for request in model.requests] == [lang, "en"]


# --- the chain ---


def noting(name: str, phase: Any, log: list[str]) -> Processor:
    class Noting(Processor):
        async def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
            log.append(f"{name} asks")
            async for event in call_next(request):
                yield event
            log.append(f"{name} has it")

    made = Noting()
    Noting.name, Noting.phase = name, phase
    return made


def test_processors_wrap_the_call_in_the_order_of_their_phases() -> None:
    log: list[str] = []
    chain = [noting(phase, phase, log) for phase in ("transport", "input", "output", "context", "format")]
    ScriptedModel([answer("x")], processors=chain).quick_chat("q")
    inwards = ["output", "input", "context", "format", "transport"]
    assert log == [f"{name} asks" for name in inwards] + [f"{name} has it" for name in reversed(inwards)]


def test_an_explicit_chain_is_the_whole_chain() -> None:
    assert ScriptedModel([], processors=[]).processors() == []
    assert [processor.name for processor in ScriptedModel([], host=PluginHost(paths=[])).processors()] == ["retry"]


def test_a_configured_processor_is_loaded_from_its_plugin(site: Any) -> None:
    site.add("acme", {"processor.upper": "acme_light"}, modules={
        "acme_light": "from jackfield.plugins import ProcessorSpec, hook\n@hook.processors\ndef processors():\n"
        "    return [ProcessorSpec(name='upper', target='acme_upper:Upper')]\n",
        "acme_upper": "from jackfield.events import TextDelta\nfrom jackfield.processors import Postprocessor\n"
        "class Upper(Postprocessor):\n    name = 'upper'\n    def start(self, request): return self\n"
        "    def feed(self, event):\n"
        "        return [TextDelta(event.text.upper()) if isinstance(event, TextDelta) else event]\n",
    })  # fmt: skip

    class Hosted(BaseChatModel):
        backend = "hosted"

        async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
            for event in answer("hello"):
                yield event

    model = Hosted({"model": "m", "processors": ["acme/upper"]}, host=site.host())
    assert model.quick_chat("q") == "HELLO"
    with pytest.raises(PluginNotFoundError):
        Hosted({"model": "m", "processors": ["lower"]}, host=site.host()).quick_chat("q")


# --- making one ---

BACKEND = """
from jackfield.models import BaseChatModel
from jackfield.testing import answer

class Backend(BaseChatModel):
    backend = "acme"

    async def stream(self, request):
        for event in answer("hello from " + request.model):
            yield event
"""
LIGHT = (
    "from jackfield.plugins import LLMSpec, hook\n@hook.llms\ndef llms():\n"
    "    return [LLMSpec(name={name!r}, target='{target}', models={models!r})]\n"
)


def add_backend(site: Any, distribution: str, name: str, *, target: str = "", models: tuple[str, ...] = ()) -> None:
    stem = distribution.replace("-", "_")
    light = LIGHT.format(name=name, target=target or f"{stem}_heavy:Backend", models=models)
    modules = {f"{stem}_light": light, f"{stem}_heavy": BACKEND}
    site.add(distribution, {f"llm.{name}": f"{stem}_light"}, modules=modules)


@pytest.mark.parametrize(
    "cfg",
    [
        "acme:m-1",
        "acme-llm/acme:m-1",
        " acme : m-1 ",
        {"model_type": "acme", "model": "m-1"},
        LLMConfig(model="m-1", model_type="acme"),
    ],
    ids=str,
)
def test_a_model_is_made_from_an_address_a_dict_or_a_config(site: Any, cfg: Any) -> None:
    add_backend(site, "acme-llm", "acme")
    assert get_chat_model(cfg, host=site.host()).quick_chat("q") == "hello from m-1"


def test_a_model_name_may_hold_colons_and_slashes(site: Any) -> None:
    add_backend(site, "acme-llm", "acme")
    assert get_chat_model("acme:org/m:7b", host=site.host()).config.model == "org/m:7b"


def test_a_model_is_returned_as_it_is() -> None:
    model = scripted()
    assert get_chat_model(model) is model


def test_a_servers_address_alone_means_the_compatible_backend(site: Any) -> None:
    add_backend(site, "jackfield-openai", "openai")
    for key in ("api_base", "base_url", "model_server"):
        for address in ("http://127.0.0.1:1/v1", "https://acme.test"):
            model = get_chat_model({"model": "m", key: address}, host=site.host())
            assert model.config.model_type == "openai"


def test_the_only_model_of_a_backend_need_not_be_named(site: Any) -> None:
    add_backend(site, "one-llm", "one", models=("only",))
    add_backend(site, "two-llm", "two", models=("a", "b"))
    assert get_chat_model("one", host=site.host()).config.model == "only"
    for cfg in ("two", "two:"):
        with pytest.raises(ConfigError, match="no model specified for two"):
            get_chat_model(cfg, host=site.host())


def test_making_a_model_leaves_the_callers_dict_alone(site: Any) -> None:
    add_backend(site, "acme-llm", "acme")
    cfg = {"model": "m", "model_type": "acme", "generate_cfg": {"stop": "END"}}
    get_chat_model(cfg, host=site.host())
    assert cfg == {"model": "m", "model_type": "acme", "generate_cfg": {"stop": "END"}}


@pytest.mark.parametrize(
    ("cfg", "error", "told"),
    [
        ({"model": "gpt-4", "api_key": SECRET}, ConfigError, "no backend specified for model 'gpt-4'.*Installed: acme"),
        ({"model": "acme:m", "api_key": SECRET}, ConfigError, "model_type='acme'"),
        ({"model": "m", "model_type": "acne", "api_key": SECRET}, PluginNotFoundError, "did you mean 'acme'"),
        ({"model": "m", "model_type": "acme", "api_kee": SECRET}, ConfigError, "did you mean 'api_key'"),
        ({"model": "m", "model_type": "acme", "api_key": [SECRET]}, ConfigError, "api_key"),
        ({"model_type": "acme", "api_key": SECRET}, ConfigError, "no model specified for acme"),
        ({"api_key": SECRET}, ConfigError, "no backend"),
        ("gpt-4", ConfigError, "no backend specified for model 'gpt-4'"),
        ("10.0.0.1:8000", ConfigError, "with 'model' and 'base_url'"),
        (["acme", "m"], ConfigError, "got list"),
        ({"model": "m", "model_type": 3, "api_key": SECRET}, ConfigError, "model_type"),
    ],
    ids=str,
)
def test_a_model_that_cannot_be_made_is_an_error_without_secrets(
    site: Any, cfg: Any, error: type[Exception], told: str
) -> None:
    add_backend(site, "acme-llm", "acme")
    with pytest.raises(error, match=told) as caught:
        get_chat_model(cfg, host=site.host())
    assert SECRET not in str(caught.value)


def test_a_backend_that_is_no_model_is_broken_and_two_of_one_name_are_ambiguous(site: Any) -> None:
    add_backend(site, "bad-llm", "bad", target="json:JSONDecoder")
    with pytest.raises(BrokenPluginError, match="json:JSONDecoder is not a subclass"):
        get_chat_model("bad:m", host=site.host())
    add_backend(site, "one-llm", "twin")
    add_backend(site, "two-llm", "twin")
    with pytest.raises(AmbiguousPluginError, match="one-llm/twin"):
        get_chat_model("twin:m", host=site.host())


def test_a_models_repr_shows_its_address_and_no_secret() -> None:
    model = ScriptedModel([], config=LLMConfig.parse({"model": "m", "api_key": SECRET}))
    assert repr(model) == "<ScriptedModel scripted:m>"


def test_the_options_of_a_model_are_those_of_its_requests_unless_a_call_says_otherwise() -> None:
    model = scripted(answer("x"), answer("x"), temperature=1, stop=["A"])
    model.quick_chat("q")
    model.chat(ASK, stream=False, extra_generate_cfg=GenerateConfig(temperature=0, stop=("B",)))
    assert [(request.config.temperature, request.config.stop) for request in model.requests] == [
        (1, ("A",)),
        (0, ("A", "B")),
    ]
