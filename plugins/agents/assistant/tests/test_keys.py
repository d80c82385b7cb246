"""What is searched for: the question, or keywords that a model makes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from jackfield import PluginHost, create_agent
from jackfield.errors import ConfigError, ModelRequestError, PluginError
from jackfield.events import ModelEvent, PluginEvent, RunEvent
from jackfield.request import ChatRequest
from jackfield.settings import Settings
from jackfield.testing import ScriptedModel, answer
from jackfield_assistant import Assistant
from jackfield_assistant.keys import PLAIN_QUESTION
from jackfield_assistant.memory import RETRIEVED

KEYWORDS = '```json\n{"keywords_zh": ["插孔"], "keywords_en": ["jack", "patch bay"]}\n```'
SPLIT = '{"information": ["sockets of a panel"], "instruction": ["count", "in French"]}'
QUESTION = "How many sockets has a panel? Answer in French, please, and count them twice."


class Searched:
    """Stands for the retrieval tool's result, and remembers what was searched for."""

    def __init__(self) -> None:
        self.queries: list[str] = []
        self.passages: Sequence[Any] = [{"url": "guide.md", "text": ["48 sockets"]}]
        self.errors: Sequence[Any] = ()

    async def retrieve(self, query: str, files: Any, *, report: Any) -> Searched:
        self.queries.append(query)
        return self

    def load(self) -> Searched:
        return self


Answers = Callable[[str], list[ModelEvent | Exception]]


def answers(prompt: str) -> list[Any]:
    if "information" in prompt and "instruction" in prompt:
        return [*answer(SPLIT)]
    return [*answer(KEYWORDS if "keywords_zh" in prompt else "48")]


@pytest.fixture
def guide(tmp_path: Path) -> str:
    path = tmp_path / "guide.md"
    path.write_text("# Panels\n\nA panel has 48 sockets. A patch bay is a panel of jacks, and jacks are sockets.\n")
    return str(path)


def asked(
    guide: str, strategy: str, script: Answers = answers, **options: Any
) -> tuple[Searched, ScriptedModel, list[Any], Any]:
    def step(request: ChatRequest) -> list[Any]:
        return script(request.messages[-1].get_text_content())

    model, searched = ScriptedModel(step), Searched()
    agent = Assistant(llm=model, files=[guide], rag_cfg={"rag_keygen_strategy": strategy}, **options)
    agent.memory._retrieval = searched  # type: ignore[assignment]
    stream = agent.stream(QUESTION)
    return searched, model, list(stream), stream.result


@pytest.mark.parametrize(
    ("strategy", "prompts", "searched_for"),
    [
        ("none", 0, QUESTION),
        ("GenKeyword", 1, f"{QUESTION} 插孔 jack patch bay"),
        ("SplitQueryThenGenKeyword", 2, "sockets of a panel 插孔 jack patch bay"),
        ("GenKeywordWithKnowledge", 1, f"{QUESTION} 插孔 jack patch bay"),
        ("SplitQueryThenGenKeywordWithKnowledge", 2, "sockets of a panel 插孔 jack patch bay"),
    ],
)
def test_each_strategy_makes_its_query(strategy: str, prompts: int, searched_for: str, guide: str) -> None:
    searched, model, events, result = asked(guide, strategy)
    assert searched.queries == [searched_for]
    assert len(model.requests) == prompts + 1
    assert result.text == "48"
    below = [event for event in events if isinstance(event, RunEvent)]
    assert {(event.agent, event.depth) for event in below} == ({("keywords", 1)} if prompts else set())
    assert result.usage.total_tokens == 2 * (prompts + 1)
    if strategy.endswith("WithKnowledge"):
        prompt = model.requests[prompts - 1].messages[-1].get_text_content()
        assert "socket" in prompt.split("Words of the documents:")[1].split("Question:")[0]


def test_the_prompts_are_in_the_language_of_the_question_and_can_be_replaced(guide: str) -> None:
    model = ScriptedModel(lambda request: answers(request.messages[-1].get_text_content()))
    options: dict[str, Any] = {"llm": model, "files": [guide], "rag_cfg": {"rag_keygen_strategy": "GenKeyword"}}
    Assistant(**options).ask("面板有几个插孔?")
    assert "检索词" in model.requests[0].messages[-1].get_text_content()
    Assistant(**options, prompts={"keywords": "keywords_zh for {question}"}).ask(QUESTION)
    assert model.requests[2].messages[-1].get_text_content() == f"keywords_zh for {QUESTION}"
    with pytest.raises(ConfigError, match="unknown prompt 'keyword'; did you mean 'keywords'"):
        Assistant(**options, prompts={"keyword": "x"})


@pytest.mark.parametrize("text", ["", "no JSON here", "[1, 2]", '{"keywords_en": "one"}', '{"keywords_en": [1, null]}'])
def test_what_is_not_keywords_leaves_the_question_as_it_is(text: str, guide: str) -> None:
    searched, _, _, result = asked(guide, "GenKeyword", lambda p: [*answer(text if "keywords_zh" in p else "48")])
    assert searched.queries == [QUESTION]
    assert result.text == "48"


def test_a_model_that_fails_costs_its_keywords_only_and_an_event_says_so(guide: str) -> None:
    def script(prompt: str) -> list[Any]:
        return [ModelRequestError("refused", backend="scripted")] if "keywords_zh" in prompt else [*answer("48")]

    searched, _, events, result = asked(guide, "GenKeyword", script)
    assert (searched.queries, result.text) == ([QUESTION], "48")
    (event,) = [event for event in events if isinstance(event, PluginEvent) and event.name == PLAIN_QUESTION]
    assert "refused" in event.data["note"]


def test_limits_count_what_keywords_cost(guide: str) -> None:
    _, model, _, result = asked(guide, "GenKeyword", limits={"tokens": 2})
    assert (result.stop_reason, len(model.requests)) == ("token_limit", 1)


def test_an_unknown_strategy_and_one_without_a_model_or_its_tool_are_refused(guide: str) -> None:
    with pytest.raises(ConfigError, match="rag_keygen_strategy"):
        create_agent("assistant", rag_cfg={"rag_keygen_strategy": "GenKeywords"})
    with pytest.raises(ConfigError, match="pass llm="):
        create_agent("memory", rag_cfg={"rag_keygen_strategy": "GenKeyword"})
    host = PluginHost(Settings(block=frozenset({"jackfield-doc-parser"})))
    with pytest.raises(PluginError, match="extract_doc_vocabulary"):
        Assistant(llm=ScriptedModel([]), rag_cfg={"rag_keygen_strategy": "GenKeywordWithKnowledge"}, host=host)


def test_memory_answers_with_passages_and_needs_no_model(guide: str) -> None:
    agent = create_agent("memory", files=[guide])
    result = agent.ask("How many sockets has a panel?")
    (message,) = result.messages
    assert (message.role, message.name) == ("assistant", "memory")
    assert '"url"' in result.text
    assert "48 sockets" in result.text
    assert [str(source) for source in result.sources] == ["guide.md"]
    assert create_agent("memory").ask("How many?").text == ""
    assert list(agent.run("How many sockets?"))[-1][-1].content == agent.ask("How many sockets?").text
    events = list(agent.stream("How many sockets?"))
    assert [event.name for event in events if isinstance(event, PluginEvent)] == [RETRIEVED]
