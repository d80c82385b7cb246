"""Sentences, words, numbers and calls, form by form."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield_offline.filling import CannotCall, ReadyCall, prepare_call
from jackfield_offline.grammar import Directive, one_text_argument, parse_message
from jackfield_offline.knowledge import Passage
from jackfield_offline.numbers import find_number, numbers_in
from jackfield_offline.sentences import Library, split_sentences, terms


def _library(*texts: str) -> Library:
    return Library([Passage(text, "a") for text in texts])


def _terms(text: str) -> list[str]:
    return [term.text for term in terms(text)]


# --- sentences ---


@pytest.mark.parametrize("mark", ["- ", "* ", "+ ", "• ", "> ", "1. ", "12) ", "123、", "2.\t", "-\t"])
def test_each_of_these_begins_an_item(mark: str) -> None:
    found = split_sentences(Passage(f"so far\n{mark}red\n  {mark}blue\nand on", "a"))
    assert [sentence.text for sentence in found] == ["so far", "red", "blue\nand on"]


@pytest.mark.parametrize("line", ["-5 degrees", "1.5 metres", "1234. is long", "*bold* it is", "a - b"])
def test_none_of_these_begins_an_item(line: str) -> None:
    found = split_sentences(Passage(f"so far\n{line}", "a"))
    assert "".join(f"{sentence.text} " for sentence in found).split() == f"so far {line}".split()
    assert not any(sentence.text == "so far" for sentence in found)


@pytest.mark.parametrize("line", ["# one", "#", "```", "```python", "~~~", "", "  "])
def test_each_of_these_stands_between_paragraphs(line: str) -> None:
    assert [sentence.text for sentence in split_sentences(Passage(f"red\n{line}\nblue", "a"))] == ["red", "blue"]


@pytest.mark.parametrize("line", ["|---|:-:|", "***", "___", "~~ ~~", "`", "...", "# x", "=-=", "- "])
def test_a_line_without_content_is_no_sentence(line: str) -> None:
    assert split_sentences(Passage(line, "a")) == []


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ('He said "no." Then on.', 'He said "no."'),
        ("(It is so.) Then on.", "(It is so.)"),
        ("“Is it?” Then on.", "“Is it?”"),
        ("「是吗？」好", "「是吗？」"),
        ("（是！）好", "（是！）"),
        ("What?! No.", "What?!"),
        ("It has 3. 40 people came.", "It has 3."),
        ("Dr. no one came. On.", "Dr. no one came."),
        ("At no. 5a it is. On.", "At no. 5a it is."),
        ("Of 1.5 it is. On.", "Of 1.5 it is."),
    ],
)
def test_a_sentence_ends_behind_its_quotation_marks_and_not_in_abbreviations(text: str, first: str) -> None:
    assert split_sentences(Passage(text, "a"))[0].text == first


# --- words ---


@pytest.mark.parametrize(
    ("word", "form"),
    [
        ("lamps", "lamp"),
        ("ties", "tie"),  # too short for -y
        ("flies", "fly"),
        ("gas", "gas"),  # too short for a plural
        ("cars", "car"),
        ("glass", "glass"),
        ("status", "status"),
        ("basis", "basis"),
        ("ÄRZTES", "ärzte"),
        ("ﬁles", "file"),
    ],
)
def test_the_plural_of_a_word_is_the_word(word: str, form: str) -> None:
    assert _terms(word) == [form]


def test_words_that_say_nothing_are_left_out() -> None:
    assert _terms("How many lamps do you have, and what should they please tell us?") == ["lamp"]
    assert _terms("what_is the_lamp") == ["lamp"]
    assert _terms("请问我们有多少灯和什么线缆") == ["灯", "线缆"]


def test_chinese_is_cut_into_pairs_between_the_words_that_say_nothing() -> None:
    assert _terms("录音室的灯abc线") == ["录音", "音室", "灯", "abc", "线"]


# --- search ---


def test_the_score_and_the_coverage_of_what_is_found() -> None:
    best, second = _library("Red lamp.", "Red wall.", "Blue desk.").find("red lamp gold")
    assert (best.sentence.text, best.coverage, best.matched) == ("Red lamp.", 2 / 3, frozenset({"red", "lamp"}))
    assert (second.sentence.text, second.coverage, second.matched) == ("Red wall.", 1 / 3, frozenset({"red"}))
    # BM25 with k1 = 1.2 and b = 0.5; all the sentences are as long as the mean.
    rare, common = 0.9808292530117262, 0.4700036292457356  # ln(1 + 2.5 / 1.5) and ln(1 + 1.5 / 2.5)
    assert best.score == pytest.approx((rare + common) * 2 / 3)
    assert second.score == pytest.approx(common / 3)


def test_a_word_that_is_repeated_counts_more_and_a_long_sentence_less() -> None:
    long, twice, once = "Lamp one two three four.", "Lamp lamp.", "Lamp desk."
    assert [match.sentence.text for match in _library(long, once, twice).find("lamp")] == [twice, once, long]
    (match,) = _library(twice, "Grey desk wall.").find("lamp")
    rarity = 0.6931471805599453  # ln 2
    length = 1 - 0.5 + 0.5 * 2 / 2.5
    assert match.score == pytest.approx(rarity * 2 * 2.2 / (2 + 1.2 * length))


def test_the_name_of_a_tool_is_part_of_what_its_result_is_about() -> None:
    library = Library([Passage("It is 5.", "weather", from_tool=True), Passage("It is 6.", "weather.md")])
    assert [match.sentence.text for match in library.find("weather")] == ["It is 5."]


def test_nothing_is_found_for_words_that_say_nothing_or_without_sentences() -> None:
    assert _library("It is so.").find("what is it") == []
    assert Library([]).find("lamp") == []


# --- numbers ---


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3千", "3000"),
        ("3万", "30000"),
        ("3百万", "3000000"),
        ("3千万", "30000000"),
        ("3亿", "300000000"),
        ("3万亿", "3000000000000"),
        ("3 thousand", "3000"),
        ("3 Million", "3000000"),
        ("3 billion", "3000000000"),
        ("3 millions", "3"),
        ("3  万", "3"),
        *[(f"3千{unit}", "3") for unit in "克米瓦卡赫字"],
        ("1'234", "1234"),
        ("1\u00a0234", "1234"),
        ("1\u2009234", "1234"),
        ("1\u202f234", "1234"),
        ("\u22125", "-5"),
        ("x -5", "-5"),
        ("-1.5万", "-15000"),
        ("1.2345 thousand", "1234.5"),
        ("0.5", "0.5"),
    ],
)
def test_a_number_in_each_of_its_forms(text: str, value: str) -> None:
    (number,) = numbers_in(text)
    assert number.value == value


def test_where_a_number_stands() -> None:
    (number,) = numbers_in("about 2.5 million!")
    assert (number.written, number.start, number.end) == ("2.5 million", 6, 17)


@pytest.mark.parametrize(
    ("phrase", "text", "value"),
    [
        ("lamps", "5 red lamps 7", "5"),  # what is counted follows its number
        ("lamps", "lamps 7 and 5 so very red and most old lamps", "7"),
        ("lamps", "5, lamps 7", "7"),
        ("lamps", "5、lamps 7", "7"),
        ("lamps", "5; lamps 7", "7"),
        ("lamps desks", "3 lamps of 4 desks are old: 9", "3"),
        ("one two three four", "Four: 9.", None),  # a quarter of the words
        ("gold lamps", "Lamps: 9.", "9"),  # half of them
    ],
)
def test_the_number_nearest_to_the_words(phrase: str, text: str, value: str | None) -> None:
    found = find_number(phrase, _library(text))
    assert (found.number.value if found else None) == value


def test_the_best_sentence_that_has_a_number_is_taken() -> None:
    found = find_number("red lamps", _library("Red lamps here.", "Red and blue lamps: 9.", "Red desks: 7."))
    assert found is not None
    assert (found.number.value, found.sentence.text) == ("9", "Red and blue lamps: 9.")


# --- calls ---


@pytest.mark.parametrize(
    ("line", "tool", "template"),
    [
        ("call a: x", "a", "x"),
        ("  CALL\ta-b_9 ：\t x y  ", "a-b_9", "x y"),
        ('call a {"b": 1} ', "a", '{"b": 1}'),
        ("call a{}", "a", "{}"),
        (f"call {'a' * 64}: x", "a" * 64, "x"),
        ('call a: {"b": 1}', "a", '{"b": 1}'),
    ],
)
def test_a_line_that_is_a_call(line: str, tool: str, template: str) -> None:
    question, (directive,) = parse_message(f"one\n{line}\ntwo")
    assert question == "one\ntwo"
    assert (directive.tool, directive.template, directive.slots) == (tool, template, ())
    assert directive.is_json == (":" not in line.split("{", maxsplit=1)[0] and "：" not in line)


@pytest.mark.parametrize(
    "line", ["call a", "call a:", "call a: ", f"call {'a' * 65}: x", "calla: x", "recall a: x", "call é: x", "call a {"]
)
def test_a_line_that_is_no_call(line: str) -> None:
    assert parse_message(line) == (line.strip(), [])


@pytest.mark.parametrize(
    ("written", "slots"),
    [
        ("{number: a b }", [("number", "a b")]),
        ("{ NUMBER ： a}", [("number", "a")]),
        ("{text:a} {number:b}", [("text", "a"), ("number", "b")]),
        ("{Text : a}", [("text", "a")]),
        ("{number:} {number: } {other: a} {number a}", []),
    ],
)
def test_what_is_a_slot(written: str, slots: list[tuple[str, str]]) -> None:
    _, (directive,) = parse_message(f"call a: {written}")
    assert [(slot.kind, slot.phrase) for slot in directive.slots] == slots
    if slots:
        assert directive.template == " ".join(f"_jackfield_slot_{number}_" for number in range(len(slots)))


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("(Uploaded [file](a.pdf))\n\nWhy?", "Why?"),
        ("（上传了 ![image](b.png) [file](c.md)）Why?", "Why?"),
        ("Why (Uploaded [file](a.pdf))?", "Why (Uploaded [file](a.pdf))?"),
        ("(Uploaded [file](a.pdf)) (Uploaded [file](b.pdf)) Why?", "(Uploaded [file](b.pdf)) Why?"),
        ("(Uploaded a.pdf) Why?", "(Uploaded a.pdf) Why?"),
    ],
)
def test_a_list_of_uploads_in_front_is_not_part_of_the_question(text: str, question: str) -> None:
    assert parse_message(text) == (question, [])


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"properties": {"a": {"type": "string"}}}, "a"),
        ({"properties": {"a": {"type": ["string", "null"]}}}, "a"),
        ({"properties": {"a": {"type": "string"}, "b": {"type": "string"}}}, None),
        ({"properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["b"]}, "b"),
        ({"properties": {"a": {"type": "string"}}, "required": ["b"]}, "a"),
        ({"properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a", "b"]}, None),
        ({"properties": {"a": {"type": "integer"}}}, None),
        ({"properties": {"a": {"type": ["integer", "null"]}}}, None),
        ({"properties": {"a": {}}}, None),
        ({"properties": {"a": True}}, None),
        ({"properties": {}}, None),
        ({"properties": None, "required": None}, None),
        (None, None),
    ],
)
def test_which_argument_takes_a_text(parameters: Any, name: str | None) -> None:
    assert one_text_argument({"name": "f", "description": "", "parameters": parameters}) == name


def _call(line: str, *texts: str, **properties: str) -> Any:
    _, (directive,) = parse_message(line)
    parameters: Any = {"properties": {name: {"type": kind} for name, kind in properties.items()}}
    return prepare_call(directive, {"name": "f", "description": "", "parameters": parameters}, _library(*texts))


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("call f: see {text: lamps} and {text: lamps}", '{"a": "see Red lamps: 5. and Red lamps: 5."}'),
        (
            'call f {"a": ["{text: lamps}", {"b": "{text: lamps}"}], "c": {number: lamps}, "d": null}',
            '{"a": ["Red lamps: 5.", {"b": "Red lamps: 5."}], "c": 5, "d": null}',
        ),
        ('call f {"code": ["{text: lamps}"]}', """{"code": ["'Red lamps: 5.'"]}"""),
        ('call f {"code": "{text: lamps} + {text: lamps}"}', """{"code": "'Red lamps: 5.' + 'Red lamps: 5.'"}"""),
        ('call f {"a": "one\ttwo"}', '{"a": "one\\ttwo"}'),
    ],
)
def test_the_arguments_of_a_call(line: str, arguments: str) -> None:
    call = _call(line, "Red lamps: 5.", a="string")
    assert isinstance(call, ReadyCall)
    assert (call.tool, call.arguments) == ("f", arguments)
    assert all(filling.sentence.text == "Red lamps: 5." for filling in call.fillings)
    assert [filling.value for filling in call.fillings] == [
        "5" if filling.slot.kind == "number" else "Red lamps: 5." for filling in call.fillings
    ]


@pytest.mark.parametrize(
    ("line", "kind", "phrase"),
    [
        ("call f: {text: one two three lamps}", "not_found", "one two three lamps"),
        ("call f: {number: gold} {number: grey}", "not_found", "gold"),
        ('call f {"a": }', "bad_json", ""),
        ('call f {"code": "x = \'{text: lamps}\'"}', "text_in_code", "lamps"),
        ('call f {"code": "x = {text: lamps} = ("}', "text_in_code", "lamps"),
        ('call f {"code": "f({text: lamps}=1)"}', "text_in_code", "lamps"),
    ],
)
def test_why_a_call_cannot_be_made(line: str, kind: str, phrase: str) -> None:
    assert _call(line, "Red lamps: 5.", a="string") == CannotCall(kind, "f", phrase)  # type: ignore[arg-type]


def test_a_text_for_a_tool_that_takes_none_must_be_json() -> None:
    assert _call("call f: x", a="integer") == CannotCall("needs_json", "f")
    assert _call('call f: {"a": ', a="integer") == CannotCall("bad_json", "f")
    assert _call("call f: [1]", a="integer") == CannotCall("needs_json", "f")
    assert _call('call f: {"a": 1}', a="integer") == ReadyCall("f", '{"a": 1}', ())


def test_half_of_the_words_are_enough_for_a_text() -> None:
    assert isinstance(_call("call f: {text: gold lamps}", "Red lamps.", a="string"), ReadyCall)
    assert isinstance(_call("call f: {text: gold grey lamps}", "Red lamps.", a="string"), CannotCall)


def test_deep_arguments_are_no_json() -> None:
    deep = Directive("f", '{"a":' + "[" * 100_000, (), is_json=True)
    assert prepare_call(deep, {"name": "f", "description": "", "parameters": {}}, Library([])) == CannotCall(
        "bad_json", "f"
    )
