"""Processors that a program gives where it makes a model: in place of all others, or besides them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from types import ModuleType
from typing import Any

import pytest

from jackfield import get_chat_model
from jackfield.config import LLMConfig
from jackfield.errors import BrokenPluginError, ConfigError, ModelConnectionError, PluginNotFoundError
from jackfield.events import ModelEvent
from jackfield.models import BaseChatModel
from jackfield.plugins import LLMSpec, PluginHost, ProcessorSpec, hook
from jackfield.processors import CallNext, Postprocessor, Preprocessor, Processor
from jackfield.request import ChatRequest
from jackfield.settings import Settings
from jackfield.testing import ScriptedModel, answer


class Marking(Processor):
    name = "marking"

    def __init__(self, mark: str = "installed") -> None:
        super().__init__()
        self.mark = mark

    async def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        MARKS.append(self.mark)
        async for event in call_next(request):
            yield event


class Second(Marking):
    name = "second"


class FlakyConfig(LLMConfig):
    base_url: str | None = "http://127.0.0.1:1/v1"


class Flaky(BaseChatModel):
    backend = "flaky"
    config_class = FlakyConfig

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        MARKS.append("asked")
        if MARKS.count("asked") == 1:
            raise ModelConnectionError("down", backend="flaky")
        for event in answer("a"):
            assert not isinstance(event, Exception)
            yield event


MARKS: list[str] = []


class _Offers:
    @hook.llms
    def llms(self) -> list[LLMSpec]:
        return [LLMSpec(name="flaky", target=f"{__name__}:Flaky")]

    @hook.processors
    def processors(self) -> list[ProcessorSpec]:
        return [ProcessorSpec(name="marking", target=f"{__name__}:Marking")]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> PluginHost:
    """A host with a backend that fails once, and a processor."""
    module = ModuleType(__name__)
    module.__dict__.update(Flaky=Flaky, Marking=Marking)
    monkeypatch.setitem(__import__("sys").modules, __name__, module)
    MARKS.clear()
    host = PluginHost(settings=Settings())
    host.register(_Offers(), name="given")
    return host


def made(host: PluginHost, **options: Any) -> BaseChatModel:
    cfg: Mapping[str, Any] = {
        "model_type": "flaky",
        "model": "m",
        "generate_cfg": {"max_retries": 2, "max_retry_delay": 0.01},
    }
    return get_chat_model(cfg, host=host, **options)


def test_added_processors_stand_beside_what_there_is(host: PluginHost) -> None:
    assert made(host, processors=[Second("mine")], add=True).ask("q").text == "a"
    assert MARKS == ["mine", "asked", "asked"]  # retries are there
    MARKS.clear()
    model = made(host, processors=[Second("mine")], add=True)
    with pytest.raises(ConfigError, match="cannot be added to an existing model"):
        get_chat_model(model, processors=[], host=host)


def test_given_processors_stand_in_place_of_all_others(host: PluginHost) -> None:
    with pytest.raises(ModelConnectionError):
        made(host, processors=[Second("mine")]).ask("q")
    assert MARKS == ["mine", "asked"]


def test_no_processors_at_all_means_no_retries_either(host: PluginHost) -> None:
    with pytest.raises(ModelConnectionError):
        made(host, processors=[]).ask("q")
    assert MARKS == ["asked"]
    MARKS.clear()
    assert made(host, processors=[], add=True).ask("q").text == "a"


def test_a_configuration_object_overrides_only_what_it_sets(host: PluginHost) -> None:
    model = get_chat_model(LLMConfig(model="m", model_type="flaky"), host=host)
    assert model.config.base_url == "http://127.0.0.1:1/v1"  # the backend's own default
    model = get_chat_model(LLMConfig(model="m", model_type="flaky", base_url="http://127.0.0.1:2"), host=host)
    assert model.config.base_url == "http://127.0.0.1:2"


@pytest.mark.parametrize("entry", ["marking", {"name": "marking"}])
def test_they_may_be_named_as_in_a_configuration(host: PluginHost, entry: Any) -> None:
    made(host, processors=[entry], add=True).ask("q")
    assert MARKS == ["installed", "asked", "asked"]


class Nameless(Preprocessor):
    def prepare(self, request: ChatRequest) -> ChatRequest:
        return request


class NoRequest(Preprocessor):
    name = "acme"

    def prepare(self, request: ChatRequest) -> Any:
        return None


class AsyncPrepare(Preprocessor):
    name = "acme"

    async def prepare(self, request: ChatRequest) -> ChatRequest:  # type: ignore[override]
        return request


class AsyncAround(Processor):
    name = "acme"

    async def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        return call_next(request)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (Nameless, "<class .*Nameless'> is not a processor: pass a name"),
        (5, "5 is not a processor: pass a name"),
        (Nameless(), "processor Nameless has no name: set `name` in its class"),
        (NoRequest(), "processor 'acme' returned an object of type NoneType from `prepare`, which must be a plain"),
        (AsyncPrepare(), "processor 'acme' returned an object of type coroutine from `prepare`, which must be a plain"),
        (AsyncAround(), "processor 'acme' returned an object of type coroutine from `around`, which must yield events"),
    ],
    ids=["class", "number", "no name", "no request", "async prepare", "around that returns"],
)
def test_the_error_for_a_processor_with_a_fault_names_it(host: PluginHost, entry: Any, message: str) -> None:
    with pytest.raises((ConfigError, BrokenPluginError), match=message):
        made(host, processors=[entry]).ask("q")
    assert MARKS == []


class Transform:
    def __init__(self, feed: Callable[[ModelEvent], Any]) -> None:
        self.feed = feed


class Feeds(Postprocessor):
    name = "acme"

    def __init__(self, feed: Callable[[ModelEvent], Any]) -> None:
        super().__init__()
        self.fed = feed

    def start(self, request: ChatRequest) -> Transform:
        return Transform(self.fed)


async def _later(event: ModelEvent) -> AsyncIterator[ModelEvent]:
    yield event


def _wrong(event: ModelEvent) -> list[ModelEvent]:
    raise TypeError("its own")


@pytest.mark.parametrize(
    ("feed", "kind"), [(lambda _: None, "NoneType"), (lambda event: event, "TextDelta"), (_later, "async_generator")]
)
def test_the_error_for_a_transform_that_returns_no_events_names_it(
    feed: Callable[[ModelEvent], Any], kind: str
) -> None:
    with pytest.raises(
        BrokenPluginError, match=rf"Transform\.feed returned an object of type {kind}, but must yield events or"
    ):
        ScriptedModel([answer("a")], processors=[Feeds(feed)]).ask("q")


def test_an_error_of_a_transform_itself_is_passed_on() -> None:
    with pytest.raises(TypeError, match="its own"):
        ScriptedModel([answer("a")], processors=[Feeds(_wrong)]).ask("q")


def test_processors_are_added_beside_those_that_the_model_was_made_with() -> None:
    model = ScriptedModel([answer("a")], processors=[Marking("own")])
    model._use_processors([Second("added")], add=True)
    assert model.ask("q").text == "a"
    assert MARKS == ["own", "added"]


def test_what_cannot_be_added_is_refused(host: PluginHost) -> None:
    with pytest.raises(PluginNotFoundError, match="no_such"):
        made(host, processors=["no_such"])
    with pytest.raises(ConfigError, match="processors"):
        made(host, processors="marking")
    model = made(host)
    with pytest.raises(ConfigError, match="when creating the model"):
        get_chat_model(model, processors=[Second()])
    model.ask("q")
    with pytest.raises(RuntimeError, match="already been used"):
        model._use_processors([Second()], add=True)
