"""What the system message says, where it says it, and which day it is."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.config import LLMConfig
from jackfield.errors import ConfigError
from jackfield.messages import Message
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, answer
from jackfield_system_message.answer_language import SENTENCES
from jackfield_system_message.date import date_line
from jackfield_system_message.language import Language
from jackfield_system_message.system_message import SystemMessage
from jackfield_system_message.system_message_config import Where

HI = Message("user", "hi")
LATE = datetime(2026, 11, 20, 23, 30, tzinfo=UTC).timestamp()


def _request(*messages: Message, **fields: Any) -> ChatRequest:
    return ChatRequest(model="m", messages=messages or (HI,), **fields)


def _said(processor: SystemMessage, *messages: Message, **fields: Any) -> Any:
    """What the system says; '' if there is no system message."""
    first = processor.prepare(_request(*messages, **fields)).messages[0]
    return first.content if first.role == "system" else ""


def test_where_there_is_no_system_message_there_is_one_then() -> None:
    places: tuple[Where, ...] = ("before", "after", "if_missing")
    for where in places:
        prepared = SystemMessage(text="Be brief.", where=where).prepare(_request())
        assert prepared.messages == (Message("system", "Be brief."), HI)


def test_it_stands_before_or_after_what_the_system_says() -> None:
    kind = Message("system", "Be kind.", extra={"mine": 1})
    assert _said(SystemMessage(text="Be brief."), kind, HI) == "Be brief.\n\nBe kind."
    assert _said(SystemMessage(text="Be brief.", where="after"), kind, HI) == "Be kind.\n\nBe brief."
    assert SystemMessage(text="Be brief.").prepare(_request(kind, HI)).messages[0].extra == {"mine": 1}


def test_if_missing_it_leaves_alone_what_the_system_says() -> None:
    missing = SystemMessage(text="Be brief.", where="if_missing")
    for content in ("Be kind.", [{"file": "rules.pdf"}]):
        request = _request(Message("system", content), HI)
        assert missing.prepare(request) is request
    assert _said(missing, Message("system", ""), HI) == "Be brief."


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_sentence_about_the_language_is_no_system_message_yet(sentence: str) -> None:
    missing = SystemMessage(text="Be brief.", where="if_missing")
    assert _said(missing, Message("system", sentence), HI) == f"Be brief.\n\n{sentence}"


def test_parts_of_a_system_message_stay_parts() -> None:
    parts = Message("system", [{"text": "Be kind."}, {"file": "rules.pdf"}])
    (said, *_) = SystemMessage(text="Be brief.").prepare(_request(parts, HI)).messages
    assert said.get_text_content() == "Be brief.\n\n\nBe kind."
    assert [item.type for item in said.items] == ["text", "text", "file"]


def test_what_is_said_already_is_not_said_again() -> None:
    processor = SystemMessage(text="Be brief.", date=True, clock=lambda: LATE, timezone="UTC")
    once = processor.prepare(_request(Message("system", "Be kind."), HI))
    assert processor.prepare(once) is once


def test_it_speaks_the_language_of_the_request_and_english_where_it_has_no_other() -> None:
    both = SystemMessage(text={"en": "Be brief.", "zh": "请简短。"})
    assert _said(both, HI, lang="zh") == "请简短。"
    assert _said(both, HI, lang="en") == "Be brief."
    assert _said(SystemMessage(text={"en": "Be brief."}), HI, lang="zh") == "Be brief."
    assert _said(SystemMessage(text={"zh": "请简短。"}), HI, lang="en") == "请简短。"
    assert _said(SystemMessage(text={"en": " \n", "zh": "请简短。\n"}), HI, lang="en") == "请简短。"


def test_the_date_is_a_line_of_its_own_in_the_language_of_the_request() -> None:
    dated = SystemMessage(text="Be brief.", date=True, timezone="UTC", clock=lambda: LATE)
    assert _said(dated, HI) == "Be brief.\n\nCurrent date: Friday, November 20, 2026"
    alone = SystemMessage(date=True, timezone="UTC", clock=lambda: LATE)
    assert _said(alone, HI, lang="zh") == "当前时间：2026年11月20日，星期五"


def test_the_day_is_that_of_the_time_zone() -> None:
    days = {
        zone: _said(SystemMessage(date=True, timezone=zone, clock=lambda: LATE))
        for zone in ("America/New_York", "UTC", "Asia/Shanghai")
    }
    assert [day.split()[-2] for day in days.values()] == ["20,", "20,", "21,"]
    here = datetime.fromtimestamp(LATE).date()  # noqa: DTZ006 - the machine's own zone is what is meant
    assert _said(SystemMessage(date=True, clock=lambda: LATE)) == date_line(here, "en")


def test_all_day_long_the_text_stays_the_same_and_at_midnight_it_changes() -> None:
    now = [datetime(2026, 11, 20, tzinfo=UTC).timestamp()]
    processor = SystemMessage(date=True, timezone="UTC", clock=lambda: now[0])
    said = set()
    for _hour in range(24):
        said.add(_said(processor))
        now[0] += 3600
    assert len(said) == 1
    assert _said(processor) not in said


@given(st.dates())
def test_every_day_has_a_line_of_its_own_whatever_the_locale(day: date) -> None:
    assert date_line(day, "en") == f"Current date: {day:%A, %B} {day.day}, {day.year}"  # tests run in the C locale
    assert date_line(day, "zh").startswith(f"当前时间：{day.year}年{day.month}月{day.day}日，星期")
    assert date_line(day, "zh")[-1] == "一二三四五六日"[day.weekday()]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({}, "nothing to add"),
        ({"text": " "}, "nothing to add"),
        ({"text": {}}, "nothing to add"),
        ({"text": {"en": "", "zh": " \n"}}, "nothing to add"),
        ({"text": {"fr": "Soyez bref."}}, "text"),
        ({"text": "a", "where": "beside"}, "where"),
        ({"text": "a", "timezone": "Mars/Olympus"}, "Mars/Olympus"),
        ({"text": "a", "timezone": "../../etc/passwd"}, "etc/passwd"),
        ({"text": "a", "timezone": "Europe"}, "Europe"),
        ({"text": "a", "timezone": ""}, "timezone"),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_their_name(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        SystemMessage(**settings)


def test_named_in_a_models_configuration_it_comes_after_the_language_and_before_the_backend() -> None:
    processors = [{"name": "system_message", "text": {"en": "Be brief.", "zh": "请简短。"}}, "language"]
    config = LLMConfig.parse({"model": "m", "processors": processors})
    model = ScriptedModel([answer("はい")], config=config)
    model.ask([Message("user", "日本語で答えてください")])
    assert model.requests[0].messages[0].content == "Be brief."
    names = [processor.name for processor in model.processors()]
    assert names.index("language") < names.index("system_message")


def test_with_the_language_asked_for_if_missing_still_means_missing() -> None:
    chain = [SystemMessage(text="你为图书馆工作。", where="if_missing"), Language(instruct=True)]
    model = ScriptedModel([answer("九点。")], processors=chain)
    model.ask([Message("user", "几点开门？")])
    assert model.requests[0].messages[0].content == "你为图书馆工作。\n\n请用中文回答。"
