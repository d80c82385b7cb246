"""The wording of answers, in both languages, and how much they quote."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.config import Lang
from jackfield.messages import ContentItem, Message
from jackfield.request import ChatRequest
from jackfield_offline.answer import best_sentences, write_answer
from jackfield_offline.filling import CannotCall, Filling
from jackfield_offline.grammar import Slot
from jackfield_offline.knowledge import Passage
from jackfield_offline.sentences import Library, Sentence
from jackfield_offline.turn import Turn, read_turn

ABOUT_ME = {
    "en": "(Offline model: I do not generate text, I only quote what I was given.)",
    "zh": "（离线模型：我不生成文本，只引用给定的内容。）",
}
PAGE = Passage("Each panel has 48 sockets.", "studio.pdf", 2)


def _text(lang: Lang = "en", **parts: Any) -> str:
    """The answer to a turn of which some parts are given, without its last line."""
    empty: dict[str, Any] = {
        "question": "",
        "topic": "",
        "documents": Library([]),
        "results": (),
        "origins": (),
        "ready": (),
        "problem": None,
        "offered": (),
    }
    text, _, last = write_answer(Turn(**{**empty, **parts}), lang).text.rpartition("\n\n")
    assert last == ABOUT_ME[lang]
    return text


def _result(*items: ContentItem, name: str = "scan") -> Message:
    return Message("function", list(items), name=name)


TEXT = ContentItem(text=" ok\n")
IMAGE = ContentItem(image="http://localhost/a.png")


@pytest.mark.parametrize(
    ("lang", "parts", "expected"),
    [
        ("en", {}, "I was given no documents to answer from."),
        ("zh", {}, "没有给我可以用来回答的文档。"),
        ("en", {"documents": Library([PAGE])}, "I found nothing about this in the given documents."),
        ("zh", {"documents": Library([PAGE])}, "在给定的文档中没有找到相关内容。"),
        ("en", {"results": (_result(TEXT),)}, "scan returned:\nok"),
        ("zh", {"results": (_result(TEXT),)}, "scan 返回：\nok"),
        ("en", {"results": (_result(),)}, "scan returned nothing."),
        ("zh", {"results": (_result(),)}, "scan 没有返回内容。"),
        ("en", {"results": (_result(IMAGE, IMAGE),)}, "(scan also returned 2 item(s) that are not text.)"),
        ("zh", {"results": (_result(IMAGE),)}, "（scan 还返回了 1 个非文本项目。）"),
        (
            "en",
            {"results": (_result(ContentItem(audio="http://h/a.mp3"), ContentItem(video="http://h/a.mp4")),)},
            "(scan also returned 2 item(s) that are not text.)",
        ),
        (
            "en",
            {"results": (_result(TEXT, IMAGE), _result(TEXT, name="read"))},
            "scan returned:\nok\n(scan also returned 1 item(s) that are not text.)\n\nread returned:\nok",
        ),
    ],
)
def test_results_and_the_lack_of_them_in_words(lang: Lang, parts: dict[str, Any], expected: str) -> None:
    assert _text(lang, **parts) == expected


@pytest.mark.parametrize(
    ("lang", "expected"),
    [
        (
            "en",
            "Where the values came from:\n"
            "- 48 for “sockets”: “Each panel has 48 sockets.” [studio.pdf, page 2]\n"
            "- … for “panel”: “Each panel has 48 sockets.” [studio.pdf, page 2]\n\n"
            "From the documents:\n- “The lamps are green.” [lamps.md]",
        ),
        (
            "zh",
            "数值的出处：\n"
            "- “sockets”取 48：“Each panel has 48 sockets.” [studio.pdf，第 2 页]\n"
            "- “panel”取 …：“Each panel has 48 sockets.” [studio.pdf，第 2 页]\n\n"
            "摘自文档：\n- “The lamps are green.” [lamps.md]",
        ),
    ],
)
def test_origins_and_quotations_in_words(lang: Lang, expected: str) -> None:
    sentence = Sentence(PAGE.text, PAGE)
    origins = (
        Filling(Slot("number", "sockets"), "48", sentence),
        Filling(Slot("text", "panel"), PAGE.text, sentence),
    )
    documents = Library([PAGE, Passage("The lamps are green.", "lamps.md")])
    assert _text(lang, origins=origins, documents=documents, topic="panel lamps") == expected


@pytest.mark.parametrize(
    ("problem", "english", "chinese"),
    [
        (
            CannotCall("not_offered", "nope"),
            "I did not call nope: it is not offered. The tools offered are: scan, wait.",
            "没有调用 nope：没有提供这个工具。可用的工具有：scan, wait。",
        ),
        (
            CannotCall("none_offered", "nope"),
            "I did not call nope: no tools are offered.",
            "没有调用 nope：没有提供任何工具。",
        ),
        (
            CannotCall("not_allowed", "wait"),
            "I did not call wait: tools are switched off for this answer.",
            "没有调用 wait：这次回答不允许使用工具。",
        ),
        (
            CannotCall("not_found", "wait", "price"),
            "I did not call wait: nothing in the documents fits “price”.",
            "没有调用 wait：文档中没有与“price”相符的内容。",
        ),
        (
            CannotCall("needs_json", "wait"),
            'I did not call wait: it does not take a single text. Write: call wait {"argument": …}',
            '没有调用 wait：它的参数不是单个文本，请写：call wait {"参数": …}',
        ),
        (
            CannotCall("bad_json", "wait"),
            "I did not call wait: its arguments are not a JSON object.",
            "没有调用 wait：所写的参数不是 JSON 对象。",
        ),
        (
            CannotCall("text_in_code", "run", "motto"),
            "I did not call run: in code, the slot for “motto” must stand alone, outside quotes.",
            "没有调用 run：在代码中，“motto”的位置必须单独出现，不能放在引号里。",
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, CannotCall) else "",
)
def test_why_a_tool_was_not_called_in_words(problem: CannotCall, english: str, chinese: str) -> None:
    assert _text("en", problem=problem, offered=("scan", "wait")) == english
    assert _text("zh", problem=problem, offered=("scan", "wait")) == chinese


def test_the_parts_of_an_answer_have_an_order() -> None:
    sentence = Sentence(PAGE.text, PAGE)
    text = _text(
        results=(_result(TEXT),),
        origins=(Filling(Slot("number", "sockets"), "48", sentence),),
        problem=CannotCall("none_offered", "nope"),
        documents=Library([Passage("The lamps are green.", "a")]),
        topic="lamps",
    )
    assert [part.split(":")[0] for part in text.split("\n\n")] == [
        "scan returned",
        "Where the values came from",
        "I did not call nope",
        "From the documents",
    ]


@pytest.mark.parametrize(("length", "shown"), [(4_000, "x" * 4_000), (4_001, "x" * 4_000 + " …")])
def test_a_result_is_shown_up_to_4000_characters(length: int, shown: str) -> None:
    assert _text(results=(_result(ContentItem(text="x" * length)),)) == f"scan returned:\n{shown}"


@pytest.mark.parametrize(("length", "rest"), [(600, ""), (601, " …")])
def test_a_sentence_is_quoted_up_to_600_characters(length: int, rest: str) -> None:
    passage = Passage("lamp " + "x" * (length - 5), "a")
    turn = read_turn(ChatRequest("m", (Message("user", "lamp?"),)))
    turn = Turn(
        *(turn.question, turn.topic, Library([passage]), turn.results, turn.origins, turn.ready, None, turn.offered)
    )
    answer = write_answer(turn, "en")
    assert answer.quotes == (passage.text[:600],)
    assert f"“{passage.text[:600]}”{rest} [a]" in answer.text


# --- what is quoted ---


def _best(words: str, *sentences: str) -> list[str]:
    return [sentence.text for sentence in best_sentences(words, Library([Passage(text, "a") for text in sentences]))]


def test_at_most_three_sentences_are_quoted() -> None:
    assert _best("lamp", *(f"Lamp {letter}x." for letter in "bcdef")) == ["Lamp bx.", "Lamp cx.", "Lamp dx."]


@pytest.mark.parametrize(
    ("words", "is_quoted"),
    [
        ("red blue green", True),  # one of three
        ("red blue green gold", False),  # one of four
        ("red desk blue green gold grey", True),  # two of six
        ("red desk blue green gold grey pink", False),  # two of seven
        ("red desk panel blue green gold grey pink cyan teal lime", True),  # three of eleven
    ],
)
def test_a_sentence_is_quoted_if_it_has_a_third_of_the_words_or_three_of_them(words: str, is_quoted: bool) -> None:
    assert bool(_best(words, "Red desk, panel.")) == is_quoted


def test_sentences_much_worse_than_the_best_one_are_left_out() -> None:
    assert _best("red lamp", "Red lamp.", "Red wall.") == ["Red lamp."]
    assert _best("lamp", "Lamp one.", "Lamp two and a desk.") == ["Lamp one.", "Lamp two and a desk."]


# --- usage ---


def test_the_words_of_a_call_count_as_asked_and_as_answered() -> None:
    from jackfield import get_chat_model, sync
    from jackfield_counting.estimating import estimate_tokens

    functions = [{"name": "scan", "description": "", "parameters": {"properties": {"area": {"type": "string"}}}}]
    history: list[dict[str, Any]] = [
        {"role": "user", "content": "call scan: the hall\ncall scan: the yard"},
        {"role": "assistant", "content": "", "function_call": {"name": "scan", "arguments": '{"area": "the hall"}'}},
        {"role": "function", "content": "nobody", "name": "scan"},
    ]
    usage = sync.run(get_chat_model("offline").acomplete(history, functions)).usage
    assert usage is not None
    prompt = ["call scan: the hall\ncall scan: the yard", 'scan{"area": "the hall"}', "nobody"]
    assert usage.prompt_tokens == sum(map(estimate_tokens, prompt))
    assert usage.completion_tokens == estimate_tokens('scan{"area": "the yard"}')
