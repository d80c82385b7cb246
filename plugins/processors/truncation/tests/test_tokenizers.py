"""What counts: the tokenizer that is named, the model's own, or an estimate that learns."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import AsyncIterator, Callable

import pytest

from jackfield import sync
from jackfield.errors import ConfigError, PluginError, PluginNotFoundError
from jackfield.events import HistoryTrimmed, ModelEvent, ModelFinished, TextDelta, UsageReported
from jackfield.messages import ContentItem, Message, Usage
from jackfield.plugins import Plugins
from jackfield.processors import Processor
from jackfield.request import ChatRequest, ModelFacts
from jackfield_counting.estimating import EstimatingTokenizer, estimate_tokens
from jackfield_counting.requests import Counts
from jackfield_testkit.streams import gathered
from jackfield_truncation.compaction import Compacting, Compaction
from jackfield_truncation.processor import Truncation
from jackfield_truncation.summarizing import SummarizingTruncation
from jackfield_truncation.tokenizing import Counting, Countings
from tests.support.site import FakeSite

MakeRequest = Callable[..., ChatRequest]

PLUGIN = """
from jackfield.plugins import TokenizerSpec, hook

@hook.tokenizers
def tokenizers():
    return [
        TokenizerSpec(name=name, target=f"acme_words.words:{name.title()}", config="acme_words.words:WordsConfig")
        for name in ("words", "broken", "gone")
    ]
"""
WORDS = """
import threading
from jackfield.config import Config
from jackfield.errors import ConfigError
from jackfield.tokenizers import Tokenizer

counted = []
threads = set()

class WordsConfig(Config):
    times: int = 1

class Words(Tokenizer):
    name = "words"
    def __init__(self, times=1):
        self.times = times
    def encode(self, text):
        counted.append(text)
        threads.add(threading.get_ident())
        return list(range(self.times * len(text.split())))
    def decode(self, tokens):
        raise ValueError("words have no numbers")

class Broken(Words):
    def encode(self, text):
        raise ConfigError("the vocabulary is not there")

class Gone(Words):
    def __init__(self, times=1):
        raise OSError("the vocabulary is not there")
"""
LONG = [Message("user", "first " * 400), Message("assistant", "yes"), Message("user", "and now?")]


@pytest.fixture
def acme(site: FakeSite) -> FakeSite:
    """A machine with a distribution that has three tokenizers, two of which cannot be loaded."""
    site.add(
        "acme-words",
        {f"tokenizer.{name}": "acme_words.plugin" for name in ("words", "broken", "gone")},
        modules={"acme_words.plugin": PLUGIN, "acme_words.words": WORDS},
    )
    return site


def _asked(
    processor: Processor, request: ChatRequest, *, prompt_tokens: int = 0
) -> tuple[list[ModelEvent], ChatRequest]:
    """The events of an answer, and what was sent for it."""
    sent: list[ChatRequest] = []

    async def call_next(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        sent.append(request)
        yield UsageReported(Usage(prompt_tokens=prompt_tokens, completion_tokens=1))
        yield ModelFinished("stop")

    return sync.run(gathered(processor.around(request, call_next))), sent[0]


def _words() -> tuple[list[str], set[int]]:
    from importlib import import_module

    module = import_module("acme_words.words")
    return module.counted, module.threads


def test_the_tokenizer_that_the_backend_names_counts_if_it_is_installed(
    acme: FakeSite, make_request: MakeRequest
) -> None:
    facts = ModelFacts(tokenizer="words")
    truncation = Truncation(host=acme.host())
    events, sent = _asked(truncation, make_request(LONG, 450, facts=facts))
    assert sent.messages == tuple(LONG)
    events, sent = _asked(truncation, make_request(LONG, 350, facts=facts))
    assert isinstance(events[0], HistoryTrimmed)
    assert events[0].tokens_before == 400 + 1 + 2 + 3 * 4


def test_a_tokenizer_may_be_given_settings(acme: FakeSite, make_request: MakeRequest) -> None:
    truncation = Truncation(host=acme.host(), tokenizer={"name": "words", "times": 2})
    (told, *_), _ = _asked(truncation, make_request(LONG, 450))
    assert isinstance(told, HistoryTrimmed)
    assert told.tokens_before == 2 * (400 + 1 + 2) + 3 * 4
    with pytest.raises(ConfigError, match="unknown setting 'time'"):
        _asked(Truncation(host=acme.host(), tokenizer={"name": "words", "time": 2}), make_request(LONG, 450))
    with pytest.raises(ConfigError, match="'name'"):
        Truncation(tokenizer={"times": 2})


def truncation_of(host: Plugins) -> Processor:
    return Truncation(host=host, tokenizer="words")


def summarizing_of(host: Plugins) -> Processor:
    return SummarizingTruncation(host=host, tokenizer="words", summary_tokens=100)


def compacting_of(host: Plugins) -> Processor:
    compaction = Compaction(tokenizer="words", context_tokens=1200, summary_tokens=100)
    compaction.host = host
    return Compacting(compaction.shared, ())


@pytest.mark.parametrize("make", [truncation_of, summarizing_of, compacting_of], ids=lambda make: make.__name__)
def test_a_vocabulary_counts_in_a_thread_and_not_on_the_loop(
    make: Callable[[Plugins], Processor], acme: FakeSite, make_request: MakeRequest
) -> None:
    processor = make(acme.host())
    said = [Message(("user", "assistant")[number % 2], f"{number} " + "word " * 60) for number in range(30)]

    async def ask() -> int:
        async def call_next(request: ChatRequest) -> AsyncIterator[ModelEvent]:
            yield TextDelta("in short")
            yield ModelFinished("stop")

        await gathered(processor.around(make_request([*said, Message("user", "and now?")], 1200), call_next))
        return threading.get_ident()

    loop_thread = sync.run(ask())
    counted, threads = _words()
    assert counted
    assert loop_thread not in threads


def test_a_request_that_is_small_however_it_is_counted_loads_no_tokenizer(
    acme: FakeSite, make_request: MakeRequest
) -> None:
    truncation = Truncation(host=acme.host(), tokenizer="words")
    request = make_request(LONG, 10_000, facts=ModelFacts(tokenizer="words"))
    _, sent = _asked(truncation, request)
    assert sent is request
    assert "acme_words.words" not in sys.modules


@pytest.mark.parametrize(("name", "blocked"), [("absent", ()), ("words", ("acme-words",))])
def test_without_the_models_own_tokenizer_tokens_are_estimated(
    acme: FakeSite, make_request: MakeRequest, name: str, blocked: tuple[str, ...]
) -> None:
    request = make_request(LONG, 450, facts=ModelFacts(tokenizer=name))
    came = Truncation(host=acme.host(block=blocked)).prepare(request)
    assert came == Truncation(tokenizer="estimate").prepare(request)


@pytest.mark.parametrize("name", ["broken", "gone"])
def test_a_vocabulary_of_the_model_that_cannot_be_loaded_is_logged_and_does_without(
    acme: FakeSite, make_request: MakeRequest, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    truncation = Truncation(host=acme.host())
    request = make_request(LONG, 350, facts=ModelFacts(tokenizer=name))
    with caplog.at_level(logging.WARNING):
        came = [_asked(truncation, request)[1] for _ in range(2)]
    (record,) = caplog.records
    assert "vocabulary is not there" in record.getMessage()
    assert came[0] == came[1] == Truncation(tokenizer="estimate").prepare(request)


def test_a_tokenizer_that_the_settings_name_must_be_there(acme: FakeSite, make_request: MakeRequest) -> None:
    with pytest.raises(PluginNotFoundError, match="absent"):
        Truncation(host=acme.host(), tokenizer="absent")
    with pytest.raises(PluginError, match="acme-words"):
        Truncation(host=acme.host(block=("acme-words",)), tokenizer="words")
    with pytest.raises(ConfigError, match="vocabulary is not there"):
        _asked(Truncation(host=acme.host(), tokenizer="broken"), make_request(LONG, 350))


def test_the_settings_win_over_what_the_backend_names(acme: FakeSite, make_request: MakeRequest) -> None:
    request = make_request(LONG, 450, facts=ModelFacts(tokenizer="words"))
    came = Truncation(host=acme.host(), tokenizer="estimate").prepare(request)
    assert came.messages == Truncation().prepare(make_request(LONG, 450)).messages
    assert "acme_words.words" not in sys.modules


def test_a_vocabulary_needs_less_of_a_margin(acme: FakeSite, make_request: MakeRequest) -> None:
    request = make_request([Message("user", "word " * 950)], facts=ModelFacts(tokenizer="words"))
    settings = {"context_tokens": 1000, "answer_tokens": 10}
    assert Truncation(host=acme.host(), **settings).prepare(request) is request  # type: ignore[arg-type]
    assert Truncation(tokenizer="estimate", **settings).prepare(request) is not request  # type: ignore[arg-type]
    assert Truncation(host=acme.host(), margin=0.1, **settings).prepare(request) is not request  # type: ignore[arg-type]


# --- learning ---

TEXT = "Some words of a conversation, and then some more of them. " * 40


def test_estimates_come_nearer_to_what_the_server_counts(make_request: MakeRequest) -> None:
    """A server that counts half as much again as the estimate."""
    truncation = Truncation()
    size = estimate_tokens(TEXT)
    request = make_request([Message("user", TEXT)], size + 10)
    assert truncation.prepare(request) is request
    for _ in range(40):
        _, sent = _asked(truncation, request, prompt_tokens=0)
        _asked(
            truncation, request, prompt_tokens=round(1.5 * size * len(str(sent.messages)) / len(str(request.messages)))
        )
    (event, *_), sent = _asked(truncation, request)
    assert isinstance(event, HistoryTrimmed)
    assert event.tokens_before == pytest.approx(1.5 * size, rel=0.1)
    assert event.tokens_after <= size + 10


@pytest.mark.parametrize("reported", [0, 1, 20, 10**6])
def test_numbers_that_mean_something_else_teach_nothing(make_request: MakeRequest, reported: int) -> None:
    truncation = Truncation()
    request = make_request([Message("user", TEXT)], estimate_tokens(TEXT) + 4)
    for _ in range(40):
        _asked(truncation, request, prompt_tokens=reported)
    assert truncation.prepare(request) is request


def test_pictures_teach_nothing(make_request: MakeRequest) -> None:
    truncation = Truncation(media_tokens=10)
    picture = ContentItem(image="https://example.org/a.png")
    request = make_request([Message("user", [ContentItem(text=TEXT), picture])], estimate_tokens(TEXT) + 14)
    for _ in range(40):
        _asked(truncation, request, prompt_tokens=2 * estimate_tokens(TEXT))
    assert truncation.prepare(request) is request


def test_what_one_model_teaches_is_for_that_model_alone(make_request: MakeRequest) -> None:
    truncation = Truncation()
    request = make_request([Message("user", TEXT)], estimate_tokens(TEXT) + 4)
    other = make_request([Message("user", TEXT)], estimate_tokens(TEXT) + 4, server="other@example.org")
    for _ in range(40):
        _asked(truncation, other, prompt_tokens=2 * estimate_tokens(TEXT))
    assert truncation.prepare(other) is not other
    assert truncation.prepare(request) is request


def test_what_was_remembered_holds_after_something_was_learned(make_request: MakeRequest) -> None:
    """The counts kept are those without the factor, so an old text is not counted again, nor with an old factor."""
    truncation = Truncation()
    request = make_request([Message("user", TEXT), Message("assistant", TEXT), Message("user", "and?")], 10**4)
    tight = make_request(request.messages, 2 * estimate_tokens(TEXT) + 50)
    before = truncation.prepare(tight)
    for _ in range(40):
        _asked(truncation, tight, prompt_tokens=round(1.3 * 2 * estimate_tokens(TEXT)))
    assert before is tight
    assert truncation.prepare(tight) is not tight


def test_a_server_that_counts_a_little_differently_each_time_does_not_change_what_is_sent(
    make_request: MakeRequest,
) -> None:
    truncation = Truncation()
    history = [Message("user", TEXT), Message("assistant", TEXT), Message("user", TEXT), Message("assistant", "yes")]
    request = make_request([*history, Message("user", "and?")], 2 * estimate_tokens(TEXT))
    sent = set()
    for number in range(40):
        _, came = _asked(
            truncation, request, prompt_tokens=round((0.97 + 0.06 * (number % 2)) * 2 * estimate_tokens(TEXT))
        )
        sent.add(str(came.messages))
    assert len(sent) == 1


@pytest.mark.parametrize(("learned", "used"), [(0.5, 0.5), (0.96, 1.0), (1.04, 1.0), (2.0, 2.0)])
def test_a_factor_is_followed_in_both_directions_once_it_has_changed_enough(learned: float, used: float) -> None:
    assert Counting(Counts(len), 0, estimate=EstimatingTokenizer(learned)).counter().factor == used


def test_no_more_than_64_models_are_learned_about(make_request: MakeRequest) -> None:
    countings = Countings(tokenizer="estimate", count=None, media_tokens=0, host=None)
    for number in range(200):
        request = make_request([Message("user", "a")], server=f"server {number}")
        assert countings.of(request) is countings.of(request)
        assert len(countings._learning) <= 64
