"""The model as a whole: what it answers, what it calls, and how the two follow each other."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield import FnCallAgent, get_chat_model, tool
from jackfield.config import GenerateConfig
from jackfield.errors import ModelNotFoundError
from jackfield.events import ModelFinished, TextDelta, UsageReported
from jackfield.messages import Message, as_messages
from jackfield.request import ChatRequest
from jackfield_counting.estimating import estimate_tokens
from jackfield_offline.answer import write_answer
from jackfield_offline.knowledge import read_passages
from jackfield_offline.turn import read_turn

ABOUT_ME = {"en": "(Offline model:", "zh": "（离线模型："}
SUM = "call code_interpreter: print({number: sockets on one panel} * {number: 每条线缆长})"


def _function(content: Any, name: str = "code_interpreter", call_id: str = "offline_1") -> dict[str, Any]:
    return {"role": "function", "name": name, "content": content, "extra": {"function_id": call_id}}


def _answered(*calls: tuple[str, str, str]) -> list[dict[str, Any]]:
    """The messages of calls (name, arguments, result) that were made in one turn."""
    asked = [
        {
            "role": "assistant",
            "content": "",
            "function_call": {"name": name, "arguments": arguments},
            "extra": {"function_id": f"offline_{number}"},
        }
        for number, (name, arguments, _) in enumerate(calls, start=1)
    ]
    return asked + [
        _function(result, name, f"offline_{number}") for number, (name, _, result) in enumerate(calls, start=1)
    ]


# --- answers ---


def test_a_question_is_answered_by_a_quotation_with_source_and_page(ask: Any) -> None:
    answer = ask("How many sockets does a panel have?")
    assert "“Each panel has 48 sockets and 12 lamps.” [studio.pdf, page 1]" in answer.get_content()
    assert answer.finish_reason == "stop"
    assert answer.model == "extractive"


def test_a_chinese_question_is_answered_from_a_chinese_document(ask: Any) -> None:
    text = ask("线缆有多长？", lang="zh").get_content()
    assert "“每条线缆长 300 厘米。” [手册.md]" in text
    assert ABOUT_ME["zh"] in text


@pytest.mark.parametrize(
    ("lang", "question", "expected"),
    [("en", "What is the capital of France?", "I found nothing"), ("zh", "法国的首都在哪里？", "没有找到")],
)
def test_it_says_so_when_the_documents_say_nothing_about_it(ask: Any, lang: str, question: str, expected: str) -> None:
    text = ask(question, lang=lang).get_content()
    assert expected in text
    assert "“" not in text


def test_it_says_so_when_there_are_no_documents(ask: Any) -> None:
    assert "no documents" in ask("How many sockets?", system="Be brief.").get_content()


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("question", ["How many sockets?", "no idea", "call nope: x", "call wait: long"])
def test_every_answer_says_that_it_comes_from_the_offline_model(ask: Any, lang: str, question: str) -> None:
    assert ABOUT_ME[lang] in ask(question, lang=lang).get_content()


def test_the_answer_streams_in_several_pieces_and_reports_its_usage(knowledge: str) -> None:
    model = get_chat_model("offline")
    messages = [Message("system", knowledge), Message("user", "How many sockets?")]
    from jackfield import sync

    async def gather() -> list[Any]:
        return [event async for event in model.astream(messages)]

    events = sync.run(gather())
    texts = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(texts) > 5
    usage, finished = events[-2:]
    assert isinstance(usage, UsageReported)
    assert usage.usage.prompt_tokens == sum(estimate_tokens(message.get_text_content()) for message in messages)
    assert usage.usage.completion_tokens == estimate_tokens("".join(texts))
    assert finished == ModelFinished("stop", model="extractive")


def test_it_states_that_it_calls_tools_natively() -> None:
    facts = get_chat_model("offline:extractive").facts
    assert (facts.native_tools, facts.reasoning) == (True, False)


def test_there_is_no_other_model() -> None:
    with pytest.raises(ModelNotFoundError, match="offline:extractive"):
        get_chat_model("offline:large").ask([{"role": "user", "content": "x"}])


def test_describing_the_backend_imports_neither_it_nor_the_models() -> None:
    code = (
        "import sys, jackfield_offline.plugin as plugin; print(plugin.llms()[0].models); "
        "assert not {'jackfield_offline.backend', 'jackfield.models', 'pydantic'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("('extractive',)\n", "")


# --- calls ---


def test_a_call_gets_its_numbers_from_both_documents(ask: Any, made: Any) -> None:
    answer = ask("How long are all cables?\n" + SUM)
    assert made(answer) == [("code_interpreter", {"code": "print(48 * 300)"})]
    assert answer.finish_reason == "tool_calls"
    assert answer.get_content() == ""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("call web_search: jackfield {number: francs for the desk}", ("web_search", {"query": "jackfield 60000"})),
        ('CALL wait {"minutes": {number: 休息时间}}', ("wait", {"minutes": 15})),
        ('call wait: {"minutes": 4}', ("wait", {"minutes": 4})),
        ("call web_search：灯 {text: lamps burn hours}", None),
        (
            'call web_search {"query": "{text: 休息时间}", "limit": 2}',
            ("web_search", {"query": "休息时间是 15 分钟，不得打扰。", "limit": 2}),
        ),
        ("(Uploaded [file](a.pdf) ![image](b.png)) call web_search: x", ("web_search", {"query": "x"})),
    ],
)
def test_the_two_forms_of_a_call(ask: Any, made: Any, line: str, expected: Any) -> None:
    (call,) = made(ask(line))
    if expected is None:
        assert call[1]["query"].startswith("灯 Its lamps are green, and\nburn")
    else:
        assert call == expected


def test_calls_are_made_in_their_order_and_all_in_one_turn(ask: Any, made: Any) -> None:
    answer = ask('call web_search: one\nand\ncall wait {"minutes": 1}\ncall web_search: two')
    assert [name for name, _ in made(answer)] == ["web_search", "wait", "web_search"]
    assert [message.function_id for message in answer.messages] == ["offline_1", "offline_2", "offline_3"]


def test_one_call_at_a_time_where_that_is_asked_for(ask: Any, made: Any) -> None:
    question = "call web_search: one\ncall web_search: two"
    assert made(ask(question, parallel_function_calls=False)) == [("web_search", {"query": "one"})]
    history = _answered(("web_search", '{"query": "one"}', "found"))
    assert made(ask(question, *history, parallel_function_calls=False)) == [("web_search", {"query": "two"})]


def test_a_call_may_wait_for_what_an_earlier_one_finds(ask: Any, made: Any) -> None:
    question = "call web_search: gold\ncall code_interpreter: print(2 * {number: price of gold})"
    assert made(ask(question)) == [("web_search", {"query": "gold"})]
    history = _answered(("web_search", '{"query": "gold"}', "The price of gold is 90 francs."))
    assert made(ask(question, *history)) == [("code_interpreter", {"code": "print(2 * 90)"})]


def test_the_values_of_all_earlier_calls_are_explained(ask: Any, made: Any) -> None:
    slots = ("{number: francs for the desk}", "{number: sockets on one panel}")
    question = "\n".join(f"call code_interpreter: print({slot})" for slot in slots)
    ready = made(ask(question))
    assert ready == [("code_interpreter", {"code": f"print({number})"}) for number in ("60000", "48")]
    history = _answered(*((name, json.dumps(arguments), "printed") for name, arguments in ready))
    text = ask(question, *history).get_content()
    assert "60000 for “francs for the desk”" in text
    assert "48 for “sockets on one panel”" in text


def test_ids_of_calls_go_on_through_a_conversation(ask: Any) -> None:
    history = _answered(("web_search", '{"query": "one"}', "found"))
    answer = ask("call web_search: one", *history, "call web_search: two")
    assert answer.messages[0].function_id == "offline_2"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("call code_interpreter: print({number: price of gold})", "fits “price of gold”"),
        ("call nope: x", "code_interpreter, web_search, wait"),
        ("call wait: long", 'Write: call wait {"argument"'),
        ('call wait {"minutes": }', "not a JSON object"),
        ("call code_interpreter: print('{text: lamps}')", "outside quotes"),
        ("call code_interpreter: print({text: lamps}", "outside quotes"),
    ],
)
def test_what_cannot_be_called_is_told_and_nothing_is_called(ask: Any, made: Any, line: str, expected: str) -> None:
    answer = ask(line)
    assert made(answer) == []
    assert expected in answer.get_content()
    assert answer.finish_reason == "stop"


def test_one_unknown_tool_keeps_all_calls_from_being_made(ask: Any, made: Any) -> None:
    assert made(ask("call web_search: x\ncall nope: y")) == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [({"functions": []}, "no tools are offered"), ({"function_choice": "none"}, "switched off")],
)
def test_nothing_is_called_where_nothing_may_be(ask: Any, made: Any, options: Any, expected: str) -> None:
    answer = ask("How many sockets?\ncall web_search: x", **options)
    assert made(answer) == []
    assert expected in answer.get_content()
    assert "48 sockets" in answer.get_content()


@pytest.mark.parametrize(
    "arguments",
    ['{"steps": [{"code": "m = {text: the motto}"}]}', '{"code": {"python": ["m = {text: the motto}"]}}'],
    ids=["inside of another argument", "around another argument"],
)
def test_code_is_code_wherever_it_stands_among_the_arguments(ask: Any, made: Any, arguments: str) -> None:
    system = "# Knowledge Base\n\n## The content from x:\n\n```\nThe motto is quit().\n```"
    ((_, given),) = made(ask(f"call wait {arguments}", system=system))
    assert "m = 'The motto is quit().'" in str(given)


HOSTILE = st.lists(
    st.sampled_from(["_jackfield_slot_0_", "_jackfield_slot_1_", "'", '"', "\\", "quit()", "#", ";", " "]), max_size=5
)


@given(motto=HOSTILE, device=HOSTILE)
@example(motto=["_jackfield_slot_1_"], device=["'"])
def test_no_sentence_leaves_its_literal_whatever_two_of_them_say(
    ask: Any, made: Any, motto: list[str], device: list[str]
) -> None:
    sentences = [f"The motto is {''.join(motto)} indeed.", f"The device is {''.join(device)} indeed."]
    text = "\n\n".join(sentences)
    answer = ask(
        "call code_interpreter: a = {text: motto}; b = {text: device}",
        system=f"# Knowledge Base\n\n## The content from x:\n\n```\n{text}\n```",
    )
    if not made(answer):
        assert "outside quotes" in answer.get_content()
        return
    ((_, arguments),) = made(answer)
    assigned = [node.value for node in ast.parse(arguments["code"]).body if isinstance(node, ast.Assign)]
    assert [node.value for node in assigned if isinstance(node, ast.Constant)] == sentences


def test_a_sentence_put_into_code_is_a_literal_whatever_it_says(ask: Any, made: Any) -> None:
    hostile = "# Knowledge Base\n\n## The content from x:\n\n```\nThe motto is ''' + \"quit()\" + \\''' indeed.\n```"
    ((_, arguments),) = made(ask("call code_interpreter: motto = {text: the motto}", system=hostile))
    scope: dict[str, Any] = {}
    exec(arguments["code"], scope)
    assert scope["motto"] == "The motto is ''' + \"quit()\" + \\''' indeed."


# --- after the calls ---


def test_after_its_calls_it_shows_the_result_and_where_the_numbers_came_from(ask: Any) -> None:
    history = _answered(("code_interpreter", '{"code": "print(48 * 300)"}', "14400\n"))
    answer = ask("What colour are the lamps?\n" + SUM, *history)
    text = answer.get_content()
    assert answer.finish_reason == "stop"
    assert "code_interpreter returned:\n14400" in text
    assert "48 for “sockets on one panel”: “Each panel has 48 sockets and 12 lamps.” [studio.pdf, page 1]" in text
    assert "300 for “每条线缆长”: “每条线缆长 300 厘米。” [手册.md]" in text
    assert "Its lamps are green" in text


def test_what_a_tool_says_later_changes_no_origin(ask: Any) -> None:
    history = _answered(("code_interpreter", '{"code": "print(48 * 300)"}', "Sockets, panel, sockets, panel: 99"))
    assert "48 for “sockets on one panel”" in ask(SUM, *history).get_content()


def test_a_result_is_shown_in_its_turn_and_quoted_in_later_ones(ask: Any) -> None:
    history = _answered(("web_search", '{"query": "gold"}', "The price of gold is 90 francs."))
    now = ask("What is the price of gold?\ncall web_search: gold", *history, system="").get_content()
    assert now.count("The price of gold is 90 francs.") == 1
    assert "web_search returned:\nThe price" in now
    later = ask("call web_search: gold", *history, "What is the price of gold?", system="").get_content()
    assert "“The price of gold is 90 francs.” [web_search]" in later
    assert "returned" not in later


def test_a_tool_that_is_no_longer_offered_has_its_result_shown_and_nothing_else(ask: Any, schemas: Any) -> None:
    history = _answered(("code_interpreter", '{"code": "print(48 * 300)"}', "14400"))
    for offered in ([], schemas[1:]):
        text = ask(SUM, *history, functions=offered).get_content()
        assert text.startswith("code_interpreter returned:\n14400")
        assert "Where the values came from" not in text


def test_no_sentence_is_quoted_twice(ask: Any) -> None:
    history = _answered(("code_interpreter", '{"code": "print(48 * 300)"}', "14400"))
    text = ask("How many sockets does a panel have?\n" + SUM, *history).get_content()
    assert text.count("Each panel has 48 sockets") == 1


def test_no_origin_is_claimed_for_a_call_that_is_not_the_one_it_made(ask: Any) -> None:
    history = _answered(("code_interpreter", '{"code": "print(1)"}', "1"))
    assert "Where the values came from" not in ask(SUM, *history).get_content()


def test_calls_that_nobody_asked_for_are_followed_by_an_answer(ask: Any, made: Any) -> None:
    history = _answered(("web_search", '{"query": "x"}', "found it"))
    answer = ask(SUM, *history)
    assert made(answer) == []
    assert "found it" in answer.get_content()
    answer = ask("call wait: 5\ncall web_search: x", *history)
    assert made(answer) == []
    assert "found it" in answer.get_content()


def test_documents_that_a_tool_brings_are_quoted_and_not_shown_whole(ask: Any) -> None:
    found = json.dumps([{"url": "http://localhost/doors.md", "text": ["[page: 4]\nThe door is red.\nIt is open."]}])
    history = _answered(("web_search", '{"query": "door"}', found))
    text = ask("call web_search: door", *history, system="").get_content()
    assert "“The door is red.” [doors.md, page 4]" in text
    assert "url" not in text


def test_a_result_without_text_is_told_of(ask: Any) -> None:
    assert "code_interpreter returned nothing" in ask("hm", _function("")).get_content()


def test_a_whole_run_through_an_agent(knowledge: str) -> None:
    @tool
    def code_interpreter(code: str) -> str:
        """Work out an expression."""
        return str(eval(code))

    agent = FnCallAgent([code_interpreter], "offline:extractive", system_message=knowledge)
    question = "call code_interpreter: {number: sockets on one panel} * {number: 每条线缆长}"
    messages = agent.run_nonstream([{"role": "user", "content": question}])
    assert [message["role"] for message in messages] == ["assistant", "function", "assistant"]
    assert messages[1]["content"] == "14400"
    assert "14400" in messages[-1]["content"]


# --- what holds for all inputs ---

_WORDS = st.sampled_from(
    [
        *[
            "call wait: ",
            'call wait {"minutes": ',
            "call x: y",
            "{number: sockets}",
            "{text: 线缆}",
            "{number:",
            "}",
            "\n",
        ],
        *[
            "# Knowledge Base\n",
            "## The content from a:\n",
            "```\n",
            "[page: 3]\n",
            "48 sockets. ",
            "线缆长 3 米。",
            "| a | 1 |\n",
        ],
        *[
            "- item 5\n",
            "{",
            '"',
            "What? ",
            "…",
            "## 来自 b 的内容：\n",
            "\n\n...\n\n",
            "1.2.3 ",
            "-7 万",
            "\r\n",
            "\u2028",
        ],
    ]
)
_TEXTS = st.lists(_WORDS | st.text(max_size=6), max_size=14).map("".join)


@given(system=_TEXTS, question=_TEXTS, result=_TEXTS, lang=st.sampled_from(["en", "zh"]), has_result=st.booleans())
def test_it_answers_any_text_and_quotes_nothing_but_what_is_there(
    schemas: Any, system: str, question: str, result: str, lang: Any, has_result: bool
) -> None:
    history: list[Any] = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    if has_result:
        history.append(_function(result))
    request = ChatRequest("extractive", as_messages(history), tuple(schemas), GenerateConfig(), lang)
    turn = read_turn(request)
    answer = write_answer(turn, lang)
    passages = read_passages(request.messages)
    for quote in answer.quotes:
        assert quote in answer.text
        assert any(quote in passage.text for passage in passages)
    for passage in passages:
        assert all(line.strip("\r") in system + result for line in passage.text.split("\n"))
    for call in turn.ready:
        assert isinstance(json.loads(call.arguments), dict)
