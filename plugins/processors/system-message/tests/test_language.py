"""Which language a conversation is in, and who decides it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield import FnCallAgent
from jackfield.config import GenerateConfig, Lang
from jackfield.errors import ConfigError
from jackfield.messages import Message
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, answer
from jackfield_system_message.detection import language_of_most, language_of_text
from jackfield_system_message.language import Language


@pytest.mark.parametrize(
    ("text", "lang"),
    [
        ("今天天气怎么样？", "zh"),
        ("今天天氣怎麼樣？", "zh"),
        ("用 Python 写一个 hello world 程序", "zh"),
        ("总结下面的文章：\nThe quick brown fox jumps over the lazy dog, and nobody knows why.", "zh"),
        ("The quick brown fox jumps over the lazy dog.\n\n翻译成中文", "zh"),
        ("解释这段代码：\n```python\nfor word in words:\n    print(word)\n```", "zh"),
        ("解释 `a b c d e f g h`，见 https://example.com/a-b-c-d-e", "zh"),
        ("```\nan open fence\n解释", None),
        ("今天天气真好啊我们去公园玩吧の", "zh"),
        ("𠮷野家在哪里", "zh"),
        ("ㄅㄆㄇ怎麼念", "zh"),
        ("What does 你好 mean?", "en"),
        ("When does 图书馆 open?", "en"),
        ("Python 的 GIL 是什么？", "zh"),
        ("翻译 hello", "zh"),
        ("Who was 鲁迅, and what did he write?\nAnswer in one sentence.", "en"),
        ("東京の天気はどうですか", "en"),
        ("東京都庁舎の歴史", "en"),
        ("ﾃｽﾄ漢字", "en"),
        ("오늘 날씨 어때요? 漢字", "en"),
        ("How are you?", "en"),
        ("Wie geht's?", "en"),
        ("Как дела?", "en"),
        ("مرحبا", "en"),
        ("42 + 1 = ?", None),
        ("。，！", None),
        ("", None),
    ],
)
def test_the_script_of_what_is_asked_says_whether_it_is_chinese(text: str, lang: Lang | None) -> None:
    assert language_of_text(text) == lang


@pytest.mark.parametrize(
    ("text", "lang"),
    [
        ("天" * 11 + "の", "zh"),  # more than ten Chinese characters for each kana
        ("天" * 10 + "の", "en"),
        ("天" * 21 + "の인", "zh"),
        ("天" * 20 + "の인", "en"),
        ("天气好 two words", "zh"),  # one and a half characters for each word
        ("天气 two words", "en"),
        ("天气好 it's so-called", "zh"),  # each of these is one word
        ("天气好 it’s 42", "zh"),
        ("天 a_b", "en"),
        ("天" * 999 + "\na b", "zh"),
        ("天气\none two\nthree four", "zh"),  # the first line,
        ("one two\nthree four\n天气", "zh"),  # or the last,
        ("one two\n天气\nthree four", "en"),  # and none between
        ("42\n天气\none two\n。", "zh"),  # of those with words
        ("天气 `a` http://a.b/c?d=e one", "zh"),
        ("天气 `a one two", "en"),
        ("天气 ```a``` one ```b```", "zh"),
        ("天气 http://a.b/c-d-e-f", "zh"),
        ("天气 `a` one two three", "zh"),  # code separates lines
        ("`a` 天气 `one two three`", "zh"),
    ],
)
def test_how_many_characters_and_words_it_takes(text: str, lang: Lang) -> None:
    assert language_of_text(text) == lang


@pytest.mark.parametrize(("length", "lang"), [(1_000, "zh"), (1_001, "en")])
def test_a_thousand_characters_at_each_end_are_looked_at(length: int, lang: Lang) -> None:
    middle = " " * 2_000
    assert language_of_text("天".rjust(length) + middle + "a ".ljust(1_000)) == lang
    assert language_of_text("a ".ljust(1_000) + middle + "天".ljust(length)) == lang
    assert language_of_text("a".ljust(1_000) + "天" + "a".rjust(1_000)) == "en"


@pytest.mark.parametrize(
    "script",
    [
        *["ぁゟ", "ァヺ", "ーヿ", "ㇰㇿ", "ｦﾟ"],  # kana, first and last
        *["\u1100\u11ff", "\u3131\u318e", "\uac00\ud7a3"],  # hangul
    ],
)
def test_the_characters_that_make_a_text_not_chinese(script: str) -> None:
    for character in script:
        assert language_of_text(f"天气好{character}") == "en"
        assert language_of_text(character) == "en"


@pytest.mark.parametrize("script", ["〇", "ㄅㄯ", "㐀䶿", "一鿿", "豈\ufaff", "\U00020000\U0003ffff"])
def test_the_characters_that_make_a_text_chinese(script: str) -> None:
    for character in script:
        assert language_of_text(character) == "zh"


@given(st.text(max_size=60))
def test_any_text_has_a_language_or_none(text: str) -> None:
    assert language_of_text(text) in ("en", "zh", None)


@given(st.text(st.characters(codec="ascii"), max_size=60))
def test_without_a_chinese_character_nothing_is_chinese(text: str) -> None:
    assert language_of_text(text) != "zh"


@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1, max_size=20))
def test_a_text_of_chinese_characters_is_chinese_until_it_has_kana(text: str) -> None:
    assert language_of_text(text) == "zh"
    assert language_of_text(text + "かな") == "en"


def test_of_a_long_text_the_ends_decide() -> None:
    assert language_of_text("Translate this:\n" + "天气很好。" * 10_000 + "\nThank you!") == "en"
    assert language_of_text("The weather is fine. " * 10_000 + "\n翻译成中文") == "zh"
    assert language_of_text("```\n" + "the code " * 10_000 + "\n```\n解释") == "zh"


def test_the_language_of_most_counts_and_of_two_that_are_even_the_last() -> None:
    assert language_of_most(["你好", "hello", "再见"]) == "zh"
    assert language_of_most(["你好", "hello", "bye", "再见", "42", ""]) == "zh"
    assert language_of_most(["你好", "hello"]) == "en"
    assert language_of_most(["42", ""]) is None


# --- the processor ---


def _prepared(*said: tuple[str, str], config: GenerateConfig | None = None, **settings: Any) -> ChatRequest:
    messages = tuple(Message(role, text, name="t" if role == "function" else None) for role, text in said)
    request = ChatRequest(model="m", messages=messages, config=config or GenerateConfig(), lang="zh")
    return Language(**settings).prepare(request)


def test_the_last_user_message_with_words_decides() -> None:
    assert _prepared(("user", "你好"), ("assistant", "你好"), ("user", "Hello!")).lang == "en"
    assert _prepared(("user", "Hello!"), ("assistant", "你好"), ("user", "42?")).lang == "en"
    assert _prepared(("user", "Hello!"), ("function", "结果"), ("assistant", "你好")).lang == "en"


def test_the_whole_history_decides_if_wanted() -> None:
    history = [("user", "你好"), ("user", "再见"), ("user", "Hello!")]
    assert _prepared(*history, look_at="all").lang == "zh"
    assert _prepared(*history).lang == "en"
    assert _prepared(*history, ("user", "Bye!"), look_at="all").lang == "en"
    assert _prepared(*reversed([*history, ("user", "Bye!")]), look_at="all").lang == "zh"


def test_where_the_user_says_nothing_the_language_stays() -> None:
    for look_at in ("last", "all"):
        assert _prepared(("system", "The Art of War."), ("user", "42"), look_at=look_at).lang == "zh"


def test_documents_in_the_system_message_decide_nothing() -> None:
    assert _prepared(("system", "# Knowledge Base\n\n孙子兵法"), ("user", "Who wrote it?")).lang == "en"


def test_what_the_call_says_wins_over_the_setting_and_the_setting_over_what_is_written() -> None:
    assert _prepared(("user", "你好"), lang="en").lang == "en"
    assert _prepared(("user", "Hello"), lang="en", config=GenerateConfig(lang="zh")).lang == "zh"


def test_a_request_that_is_right_is_passed_on_as_the_same_object() -> None:
    request = ChatRequest(model="m", messages=(Message("user", "Hello"),))
    assert Language().prepare(request) is request
    asking = Language(instruct=True)
    once = asking.prepare(request)
    assert asking.prepare(once) is once


@pytest.mark.parametrize(
    ("said", "settings", "sentence"),
    [
        ("你好", {}, "请用中文回答。"),
        ("Wie geht es dir?", {}, "Answer in the language in which the user writes."),
        ("你好", {"lang": "en"}, "Answer in English."),
        ("Hello", {"lang": "zh"}, "请用中文回答。"),
    ],
)
def test_an_answer_in_the_language_is_asked_for_at_the_end_of_the_system_message(
    said: str, settings: dict[str, Any], sentence: str
) -> None:
    assert _prepared(("user", said), instruct=True, **settings).messages[0] == Message("system", sentence)
    both = _prepared(("system", "Be kind."), ("user", said), instruct=True, **settings)
    assert both.messages[0].content == f"Be kind.\n\n{sentence}"


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("你好", "请用中文回答。"),
        ("日本語で答えてください", "Answer in the language in which the user writes."),
        ("Wie geht es dir?", "Answer in the language in which the user writes."),
    ],
)
def test_an_agents_model_is_asked_for_the_language_of_the_user(said: str, sentence: str) -> None:
    model = ScriptedModel([answer("…")], processors=[Language(instruct=True)])
    FnCallAgent([], model).run_nonstream([Message("user", said)])
    assert model.requests[0].messages[0].content == sentence


def test_the_language_of_jackfields_texts_says_nothing_of_that_of_answers() -> None:
    prepared = _prepared(("user", "你好"), config=GenerateConfig(lang="en"), instruct=True)
    assert (prepared.lang, prepared.messages[0].content) == ("en", "请用中文回答。")


def test_a_language_is_shown_with_its_settings() -> None:
    assert repr(Language()) == "<Language lang=None look_at='last'>"
    assert repr(Language(lang="zh", look_at="all")) == "<Language lang='zh' look_at='all'>"


def test_a_sentence_that_is_anywhere_in_the_system_message_is_not_added() -> None:
    history = [("system", "Answer in English. Be kind."), ("user", "Hallo")]
    assert len(_prepared(*history, lang="en", instruct=True).messages[0].get_text_content()) == len(history[0][1])
    said = _prepared(("user", "Answer in English."), lang="en", instruct=True).messages
    assert [message.content for message in said] == ["Answer in English.", "Answer in English."]


def test_settings_that_do_not_fit_are_refused_by_their_name() -> None:
    with pytest.raises(ConfigError, match="look_at"):
        Language(look_at="first")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="lang"):
        Language(lang="de")  # type: ignore[arg-type]
