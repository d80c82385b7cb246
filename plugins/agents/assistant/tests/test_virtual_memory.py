"""An agent whose model looks things up: the passages are in the system message, and in the history where they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield import Message, create_agent
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_agent_parts import Prompts
from jackfield_assistant import VirtualMemoryAgent
from jackfield_assistant.memory import PROMPTS
from jackfield_assistant.virtual import Paging
from jackfield_counting.estimating import estimate_tokens


@pytest.fixture
def books(tmp_path: Path) -> list[str]:
    paths = []
    for name, text in (("panels.md", "A panel has 48 sockets."), ("cables.md", "A cable is 2 m long.")):
        (tmp_path / name).write_text(f"# {name}\n\n{text}\n", encoding="utf-8")
        paths.append(str(tmp_path / name))
    return paths


def looks_up(*names: str) -> Any:
    wanted: list[tuple[str, dict[str, object]]] = [("retrieval", {"query": "how?", "files": [one]}) for one in names]
    return calls(*wanted)


def system_of(model: ScriptedModel, number: int) -> str:
    return model.requests[number].messages[0].get_text_content()


def results_of(model: ScriptedModel, number: int) -> list[str]:
    return [m.get_text_content() for m in model.requests[number].messages if m.role == "function"]


def test_what_the_model_looks_up_stands_in_the_system_message_and_in_the_history_where_it_was(books: list[str]) -> None:
    model = ScriptedModel([looks_up("panels.md", "cables.md"), answer("48 and 2."), answer("As I said.")])
    agent = create_agent("virtual_memory", llm=model, files=books, system_message="Be short.")
    result = agent.ask("Sockets of a panel, length of a cable?")
    assert system_of(model, 0) == "Be short.\n\nDocuments that the tool retrieval searches: panels.md, cables.md"
    for part in ("48 sockets", "2 m long", "[file](panels.md)", "[file](cables.md)"):
        assert part in system_of(model, 1), "every call of a turn counts, not only the last"
    assert results_of(model, 1) == ["What was found is in the knowledge base in the system message."] * 2
    found = [message.get_text_content() for message in result.messages if message.role == "function"]
    assert ["48 sockets" in text for text in found] == [True, False]
    assert [json.loads(text)[0]["url"] for text in found] == ["panels.md", "cables.md"]
    agent.ask("And again?", history=result.history)
    assert "48 sockets" in system_of(model, 2), "the next question finds it there"
    assert sum("48 sockets" in message.get_text_content() for message in model.requests[2].messages) == 1


@pytest.mark.parametrize(
    "cfg", [{"rag_keygen_strategy": "GenKeyword"}, {"question_rewriting": "model"}], ids=["keywords", "rewriting"]
)
def test_the_model_searches_even_if_the_settings_name_a_strategy_for_queries(
    cfg: dict[str, str], books: list[str]
) -> None:
    model = ScriptedModel([looks_up("panels.md"), answer("48.")])
    VirtualMemoryAgent(llm=model, files=books, rag_cfg=cfg).ask("Sockets?")
    assert "48 sockets" in system_of(model, 1)
    assert len(model.requests) == 2, "nothing else is asked of the model"


def test_what_no_longer_fits_can_be_looked_up_again(books: list[str]) -> None:
    model = ScriptedModel([looks_up("panels.md"), looks_up("cables.md"), answer("2 m.")])
    agent = VirtualMemoryAgent(llm=model, files=books, rag_cfg={"max_ref_token": 16})
    agent.ask("什么是面板？")
    assert "48 sockets" in system_of(model, 1)
    assert "48 sockets" not in system_of(model, 2)
    assert "2 m long" in system_of(model, 2)
    assert system_of(model, 2).startswith("可用 retrieval 工具检索的文档：panels.md, cables.md\n\n# 知识库")
    assert results_of(model, 2) == [
        "这里检索到的内容已不再显示。如有需要，请用 retrieval 工具重新检索。",
        "检索到的内容见系统消息中的知识库。",
    ]


def test_what_could_not_be_read_stays_where_the_model_looks_for_it(books: list[str], tmp_path: Path) -> None:
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    model = ScriptedModel([calls(("retrieval", {"query": "how?"})), looks_up("none.md"), answer("48.")])
    create_agent("virtual_memory", llm=model, files=[*books, str(tmp_path / "broken.pdf")]).ask("Sockets?")
    [both] = results_of(model, 1)
    assert both.startswith("What was found is in the knowledge base")
    assert "could not be read" in both
    assert "broken.pdf" in both
    assert "none.md" in results_of(model, 2)[1], "an error is a result like any other"


def test_given_knowledge_stands_beside_what_is_looked_up(books: list[str]) -> None:
    model = ScriptedModel([looks_up("panels.md"), answer("48.")])
    agent = create_agent("virtual_memory", llm=model, files=books)
    agent.run_nonstream([Message("user", "Sockets?")], knowledge="A panel is green.")
    assert "A panel is green." in system_of(model, 0)
    assert "A panel is green." in system_of(model, 1)
    assert "48 sockets" in system_of(model, 1)


def test_where_there_is_nothing_to_know_the_model_is_told_nothing_and_reads_why(tmp_path: Path) -> None:
    (tmp_path / "empty.md").write_text("", encoding="utf-8")
    model = ScriptedModel(
        [answer("Hello."), looks_up("empty.md"), answer("Nothing."), calls(("retrieval", {"query": "?"})), answer("?")]
    )
    alone = create_agent("virtual_memory", llm=model)
    alone.run_nonstream([Message("user", "Hello")], knowledge="")
    assert [message.role for message in model.requests[0].messages] == ["user"]
    create_agent("virtual_memory", llm=model, files=[str(tmp_path / "empty.md")]).ask("What is in it?")
    assert "Knowledge Base" not in system_of(model, 2)
    [result] = results_of(model, 2)
    assert "knowledge base" not in result, "nothing was moved"
    alone.ask("And without files?")
    assert "knowledge base" not in results_of(model, 4)[0]


def result_of(number: int, words: int) -> Message:
    text = f"passage {number} " + "word " * words
    return Message("function", json.dumps([{"url": f"{number}.md", "text": [text]}]), name="retrieval")


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(0, 120))
@example([40], 0)
def test_the_system_message_has_the_last_result_and_as_many_before_it_as_fit(sizes: list[int], most: int) -> None:
    results = [result_of(number, words) for number, words in enumerate(sizes)]
    tokens = [estimate_tokens(json.loads(result.get_text_content())[0]["text"][0]) for result in results]
    request = ChatRequest(model="m", messages=(Message("user", "go"), *results))
    system, _, *prepared = Paging(Prompts.read(PROMPTS), most).prepare(request).messages
    shown = [number for number in range(len(sizes)) if f"passage {number} " in system.get_text_content()]
    first = shown[0]
    assert shown == [*range(first, len(sizes))], "the newest ones, and the last always"
    assert first == len(sizes) - 1 or sum(tokens[first:]) <= most
    assert first == 0 or sum(tokens[first - 1 :]) > most, "no more would fit"
    assert ["no longer" in message.get_text_content() for message in prepared] == [
        number < first for number in range(len(sizes))
    ]


RESULTS = st.one_of(
    st.text(max_size=20),
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["url", "text", "x"]), inner),
        max_leaves=8,
    ).map(json.dumps),
    st.lists(st.fixed_dictionaries({"url": st.text(max_size=5), "text": st.lists(st.text(max_size=9))})).map(
        json.dumps
    ),
)


def is_passage(entry: object) -> bool:
    return isinstance(entry, dict) and "url" in entry and isinstance(entry.get("text"), list)


@given(st.lists(RESULTS, max_size=4), st.integers(0, 20))
@example(['[{}, {"url": null, "text": [null]}]'], 0)
def test_whatever_a_tool_of_that_name_says_reaches_the_model(results: list[str], most: int) -> None:
    paging = Paging(Prompts.read(PROMPTS), most)
    messages = [Message("user", "go"), *(Message("function", text, name="retrieval") for text in results)]
    prepared = paging.prepare(ChatRequest(model="m", messages=tuple(messages))).messages
    body = [message for message in prepared if message.role != "system"]
    assert [(message.role, message.name) for message in body] == [(message.role, message.name) for message in messages]
    system = "".join(message.get_text_content() for message in prepared if message.role == "system")
    for before, after in zip(messages, body, strict=True):
        if after.content != before.content and "no longer" not in after.get_text_content():
            passages = json.JSONDecoder().raw_decode(before.get_text_content())[0]
            texts = [str(text) for one in passages if is_passage(one) for text in one["text"]]
            assert all(text in system for text in texts if text.strip())
