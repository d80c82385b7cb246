"""One convention for settings: a class that says what they are, in every kind of component."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from jackfield.config import Config, Configured, PathText
from jackfield.errors import ConfigError
from jackfield.events import ModelEvent
from jackfield.processors import CallNext, Preprocessor, Processor
from jackfield.request import ChatRequest
from jackfield.retrieval import Corpus, Document, Embedded, Embedder, Hit, Parser, Purpose, Searcher, Where
from jackfield.tokenizers import Tokenizer
from jackfield.tools import BaseTool


class Loudness(Config):
    level: int = Field(default=3, ge=0)
    path: PathText | None = None
    api_key: str = ""


class Hears(Configured):
    config_class = Loudness
    config: Loudness


class LoudProcessor(Hears, Preprocessor):
    name = "loud"

    def prepare(self, request: ChatRequest) -> ChatRequest:
        return request


class LoudSearcher(Hears, Searcher):
    name = "loud"

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        return []


class LoudParser(Hears, Parser):
    name = "loud"

    def parse(self, data: bytes, *, source: str) -> Document:
        raise NotImplementedError


class LoudEmbedder(Hears, Embedder):
    name = "loud"
    space = "loud"

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        return Embedded(())


class LoudTokenizer(Hears, Tokenizer):
    name = "loud"

    def encode(self, text: str) -> list[int]:
        return []

    def decode(self, tokens: Sequence[int]) -> str:
        return ""


class LoudTool(Hears, BaseTool):
    name = "loud"
    description = "Loud."

    def call(self, params: Any, **_: Any) -> str:
        return ""


KINDS: list[Any] = [LoudProcessor, LoudSearcher, LoudParser, LoudEmbedder, LoudTokenizer, LoudTool]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


@every_kind
def test_settings_are_given_as_keywords_as_a_dict_or_as_their_class(kind: Any) -> None:
    given = (
        kind(level=5),
        kind({"level": 5}),
        kind(cfg={"level": 5}),
        kind(Loudness(level=5)),
        kind({"level": 4}, level=5),
    )
    assert [made.config for made in given] == [Loudness(level=5)] * 5
    assert [made.cfg for made in given] == [{"level": 5}] * 5
    assert kind().config == Loudness()


@every_kind
def test_what_does_not_fit_is_told_with_the_name_and_without_the_value(kind: Any) -> None:
    with pytest.raises(ConfigError, match=r"^loud: unknown setting 'levle'; did you mean 'level'") as caught:
        kind(levle=5, api_key="sk-1")
    assert "sk-1" not in str(caught.value)
    with pytest.raises(ConfigError, match=r"^loud: level must be greater than or equal to 0"):
        kind({"level": -1})


@every_kind
def test_a_secret_is_not_shown(kind: Any) -> None:
    assert "sk-1" not in repr(kind(api_key="sk-1").cfg)


def test_a_path_may_be_one_of_pathlib() -> None:
    assert LoudProcessor(path=Path("a") / "b").config.path == str(Path("a", "b"))


class Plain(Processor):
    name = "plain"

    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        return call_next(request)


def test_a_component_without_settings_refuses_keywords() -> None:
    assert Plain().cfg == {}
    with pytest.raises(ConfigError, match="plain takes no settings; got 'level'"):
        Plain(level=1)


class Older(Plain):
    """As they were written before there was `config_class`."""

    def __init__(self, *, level: int = 3) -> None:
        self.level = level


class OlderSearcher(Searcher):
    def __init__(self, cfg: Any = None) -> None:
        super().__init__(cfg)
        self.level = self.cfg.get("level", 3)

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        return []


def test_a_class_with_a_constructor_of_its_own_works_as_before() -> None:
    assert (Older(level=5).level, OlderSearcher({"level": 5}).level) == (5, 5)


def test_what_keeps_a_tool_safe_is_no_setting_of_its_own() -> None:
    tool = LoudTool({"level": 5, "needs_approval": True})
    assert (tool.config, tool.cfg, tool.safety().needs_approval) == (Loudness(level=5), {"level": 5}, True)
