"""Test the requests that a backend sends: messages, options, media."""

# ruff: noqa: S101 - these are tests: they assert, and take fixtures for their effects

from __future__ import annotations

import base64
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import JackfieldError, UnsupportedInputError
from jackfield.messages import ContentItem, FunctionCall, Message
from jackfield.models import BaseChatModel
from jackfield_testkit import replies
from jackfield_testkit.server import FakeOpenAI
from jackfield_testkit.suites.llm_asking import (
    MODEL,
    WEATHER,
    LLMTests,
    all_text,
    answer_of,
    assert_calls_are_answered,
    connections_to,
    sent,
    sent_messages,
    text_of,
)

UNICODE = "naïve 你好 🙂🏽 \u2028 \\ \" ' \t <|im_start|>"
# Options that the caller sets, and the expected fields in the body.
OPTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "temperature": ({"temperature": 0.0}, {"temperature": 0.0}),
    "top_p": ({"top_p": 0.5}, {"top_p": 0.5}),
    "presence_penalty": ({"presence_penalty": 0.25}, {"presence_penalty": 0.25}),
    "frequency_penalty": ({"frequency_penalty": -0.5}, {"frequency_penalty": -0.5}),
    "stop": ({"stop": ["END", "。"]}, {"stop": ["END", "。"]}),
    "response_format": ({"response_format": {"type": "json_object"}}, {"response_format": {"type": "json_object"}}),
    "extra_body": ({"extra_body": {"enable_thinking": False}}, {"enable_thinking": False}),
}
OURS_ALONE = {
    "max_input_tokens", "max_retries", "max_retry_delay", "request_timeout", "event_timeout", "deadline", "lang",
    "function_choice", "send_stop",
    "thought_in_content",
    "parallel_function_calls", "fncall_prompt_type", "use_raw_api", "extra_body", "extra_headers",
}  # fmt: skip


class MessageTests(LLMTests):
    """A history is sent completely and in order, and is not modified."""

    def test_a_history_arrives_in_order(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text("ok"))
        history = [
            Message("system", "be brief"),
            Message("user", "one"),
            Message("assistant", "two"),
            Message("user", "three"),
        ]
        answer_of(model, history)
        said = [(message["role"], text_of(message)) for message in sent_messages(server)]
        assert said == [("system", "be brief"), ("user", "one"), ("assistant", "two"), ("user", "three")]

    def test_the_configured_model_is_asked(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text("ok"))
        answer_of(model)
        assert sent(server)["model"] == MODEL

    @pytest.mark.parametrize("role", ["system", "user", "assistant"])
    def test_any_alphabet_arrives_unchanged(self, server: FakeOpenAI, model: BaseChatModel, role: str) -> None:
        server.reply(replies.text("ok"))
        others = [Message("user", "hello")] if role != "user" else []
        answer_of(model, [Message(role, UNICODE), *others])
        assert all_text(sent_messages(server), role) == UNICODE

    def test_consecutive_answers_lose_nothing(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text("ok"))
        said = [Message("assistant", "first half"), Message("assistant", "second half")]
        answer_of(model, [Message("user", "a"), *said, Message("user", "b")])
        text = all_text(sent_messages(server), "assistant")
        assert 0 <= text.find("first half") < text.find("second half")

    def test_consecutive_questions_lose_nothing(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text("ok"))
        answer_of(model, [Message("user", "first half"), Message("user", "second half")])
        text = all_text(sent_messages(server), "user")
        assert 0 <= text.find("first half") < text.find("second half")

    def test_an_answer_that_was_begun_is_sent_last(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text(" a time"))
        answer_of(model, [Message("user", "tell a tale"), Message("assistant", "Once upon")])
        last = sent_messages(server)[-1]
        assert (last["role"], text_of(last)) == ("assistant", "Once upon")

    def test_content_in_items_arrives_whole(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text("ok"))
        answer_of(model, [Message("user", [ContentItem(text="first half"), ContentItem(text="second half")])])
        text = all_text(sent_messages(server), "user")
        assert 0 <= text.find("first half") < text.find("second half")

    def test_empty_content_is_sent_without_complaint(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text("ok"))
        answer_of(model, [Message("user", "a"), Message("assistant", ""), Message("user", "b")])
        assert "a" in all_text(sent_messages(server), "user")
        assert "b" in all_text(sent_messages(server), "user")

    def test_reasoning_of_earlier_turns_is_never_sent_as_text(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text("ok"))
        earlier = [Message("assistant", "", reasoning_content="SECRET THOUGHT"), Message("assistant", "an answer")]
        answer_of(model, [Message("user", "a"), *earlier, Message("user", "b")])
        assert all_text(sent_messages(server), "assistant").strip() == "an answer"

    def test_extra_is_never_sent(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text("ok"))
        extra = {"note": "PRIVATE-NOTE"}
        call = Message(
            "assistant", function_call=FunctionCall("get_weather", "{}"), extra={**extra, "function_id": "c1"}
        )
        result = Message("function", "sunny", name="get_weather", extra={**extra, "function_id": "c1"})
        history = [Message("user", "a", extra=extra), Message("assistant", "b", extra=extra), call, result]
        answer_of(model, history, [WEATHER])
        assert b"PRIVATE-NOTE" not in server.requests[-1].body
        assert b"function_id" not in server.requests[-1].body
        assert_calls_are_answered(sent_messages(server))

    def test_a_history_is_left_as_it_was(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text("ok"))
        history = [
            Message("system", "be brief"),
            Message("user", [ContentItem(text="a")]),
            Message("assistant", "b"),
            Message("assistant", function_call=FunctionCall("get_weather", "{}"), extra={"function_id": "1"}),
            Message("function", "c", name="get_weather", extra={"function_id": "1"}),
        ]
        before = [message.model_dump_json() for message in history]
        answer_of(model, history, [WEATHER])
        assert [message.model_dump_json() for message in history] == before


class OptionTests(LLMTests):
    """Only the options set by the caller are sent."""

    @pytest.mark.parametrize("option", OPTIONS)
    def test_an_option_is_sent(self, server: FakeOpenAI, model: BaseChatModel, option: str) -> None:
        server.reply(replies.text("ok"))
        given, expected = OPTIONS[option]
        if self._is_refused(server, model, option, given):
            return
        answer_of(model, config=given)
        body = sent(server)
        assert {key: body.get(key) for key in expected} == expected

    def test_the_seed_is_sent(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text("ok"))
        if self._is_refused(server, model, "seed", {"seed": 7}):
            return
        answer_of(model, config={"seed": 7})
        assert sent(server).get("seed") == 7

    def test_the_longest_answer_is_sent_once(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text("ok"))
        answer_of(model, config={"max_tokens": 17})
        body = sent(server)
        # The older name and the newer one. Servers that know both reject requests with both.
        given = [body[key] for key in ("max_tokens", "max_completion_tokens") if body.get(key) is not None]
        assert given == [17]

    def test_an_option_of_the_model_is_sent_with_every_call(self, server: FakeOpenAI) -> None:
        server.default = replies.text("ok")
        model = self.make_model(server.url, generate_cfg={"temperature": 0.5})
        for _ in range(2):
            answer_of(model)
            assert sent(server).get("temperature") == 0.5

    def test_an_option_of_one_call_does_not_stick(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.default = replies.text("ok")
        answer_of(model, config={"temperature": 0.25, "stop": ["X"], "extra_body": {"enable_thinking": True}})
        answer_of(model)
        assert sent(server).keys().isdisjoint({"temperature", "stop", "enable_thinking"})

    def test_extra_body_wins_over_an_option(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.default = replies.text("ok")
        answer_of(model, config={"temperature": 0.25})
        if b'"temperature"' not in server.requests[-1].body:
            return  # the protocol uses a different name, and `extra_body` uses the protocol's names
        answer_of(model, config={"temperature": 0.25, "extra_body": {"temperature": 0.75}})
        assert sent(server).get("temperature") == 0.75, "a value in `extra_body` must be sent unchanged"

    def test_options_that_nobody_set_are_not_sent(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text("ok"))
        answer_of(model)
        allowed = {"model", "messages", "stream", "stream_options"} | server.dialect.required_options
        assert set(sent(server)) <= allowed, "the request contains defaults that the caller did not set"

    def test_jackfields_own_options_are_not_sent(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text("ok"))
        answer_of(
            model,
            config={
                "max_input_tokens": 1000,
                "max_retries": 1,
                "max_retry_delay": 20,
                "request_timeout": 20,
                "deadline": 20,
                "lang": "zh",
                "use_raw_api": True,
                "extra_headers": {"X-Test": "yes"},
            },
        )
        assert OURS_ALONE.isdisjoint(sent(server))
        assert server.requests[-1].headers.get("x-test") == "yes"

    def _is_refused(self, server: FakeOpenAI, model: BaseChatModel, option: str, given: dict[str, Any]) -> bool:
        """Return True if the option is declared unsupported, after checking that a call that sets it is rejected."""
        if option not in self.unsupported_options:
            return False
        with pytest.raises(JackfieldError, match=option):
            answer_of(model, config=given)
        assert server.requests == []
        return True


class MediaTests(LLMTests):
    """A model sends media that its facts list, and rejects all others before sending a request."""

    def test_an_image_is_sent_or_refused_as_the_facts_say(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        picture = "data:image/png;base64," + base64.b64encode(_png()).decode()
        parts = self._parts_sent(server, model, ContentItem(image=picture), taken=model.facts.images)
        if parts:
            assert {"type": "image_url"}.items() <= parts[1].items()
            assert parts[1]["image_url"]["url"] == picture

    def test_audio_is_sent_or_refused_as_the_facts_say(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        audio = {"data": base64.b64encode(b"RIFF").decode(), "format": "wav"}
        parts = self._parts_sent(server, model, ContentItem(audio=audio), taken=model.facts.audio)
        if parts:
            assert parts[1] == {"type": "input_audio", "input_audio": audio}

    def test_video_is_sent_or_refused_as_the_facts_say(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        video = "http://127.0.0.1/a.mp4"
        parts = self._parts_sent(server, model, ContentItem(video=video), taken=model.facts.video)
        if parts:
            assert video in json.dumps(parts[1])

    def test_a_pdf_is_sent_as_the_facts_say_or_refused(
        self, server: FakeOpenAI, model: BaseChatModel, tmp_path: Path
    ) -> None:
        """The file is damaged, so no parser can extract text from it."""
        content = b"%PDF-1.7 marmalade"
        (tmp_path / "paper.pdf").write_bytes(content)
        parts = self._parts_sent(server, model, ContentItem(file=str(tmp_path / "paper.pdf")), taken=model.facts.files)
        if parts:
            assert base64.b64encode(content).decode() in json.dumps(parts[1]), (
                "the PDF was not sent, although the facts say that the model accepts PDFs"
            )
            assert "paper.pdf" in json.dumps(parts[1])

    @pytest.mark.parametrize("role", ["user", "system"])
    def test_a_text_file_is_sent_as_text_with_its_name(
        self, server: FakeOpenAI, model: BaseChatModel, tmp_path: Path, role: str
    ) -> None:
        (tmp_path / "notes.txt").write_text("The password is marmalade.")
        server.reply(replies.text("ok"))
        message = Message(role, [ContentItem(text="before"), ContentItem(file=str(tmp_path / "notes.txt"))])
        answer_of(model, [message] if role == "user" else [message, Message("user", "hi")])
        body = json.dumps(sent(server))
        assert "The password is marmalade." in body, "a file is silently dropped"
        assert "notes.txt" in body
        assert str(tmp_path) not in body, "the path of the file must not be sent"

    @pytest.mark.parametrize("name", ["gone.txt", "odd.xyz"])
    def test_a_file_that_cannot_be_read_is_refused(
        self, server: FakeOpenAI, model: BaseChatModel, tmp_path: Path, name: str
    ) -> None:
        if name == "odd.xyz":
            (tmp_path / name).write_bytes(bytes(range(256)))
        with pytest.raises(UnsupportedInputError, match=name):
            answer_of(model, [Message("user", [ContentItem(text="hi"), ContentItem(file=str(tmp_path / name))])])
        assert (server.requests, connections_to(server)) == ([], 0)

    @pytest.mark.parametrize("kind", ["image", "audio", "video", "frames", "file"])
    @pytest.mark.parametrize("address", ["path", "file: URL"])
    def test_only_the_user_can_have_a_file_read_and_sent(
        self, server: FakeOpenAI, model: BaseChatModel, tmp_path: Path, kind: str, address: str
    ) -> None:
        """A path written by a model, or found in a tool result in the history, is treated as plain text."""
        private = tmp_path / f"private.{_CONTENTS[kind][0]}"
        private.write_bytes(_CONTENTS[kind][1])
        named = str(private) if address == "path" else private.as_uri()
        item = ContentItem(video=[named]) if kind == "frames" else ContentItem.model_validate({kind: named})
        server.reply(replies.text("ok"))
        call = Message("assistant", "", function_call=FunctionCall("weather", '{"city": "Ulm"}'))
        result = Message("function", [ContentItem(text="sunny"), item], name="weather")
        said = Message("assistant", [ContentItem(text="I have drawn it"), item])
        answer_of(model, [Message("user", "hi"), call, result, said, Message("user", "and?")], [WEATHER])
        body = json.dumps(sent(server))
        assert base64.b64encode(_CONTENTS[kind][1]).decode()[:40] not in body
        assert str(tmp_path) not in body, "the path of the file must not be sent"
        assert "sunny" in body

    def _parts_sent(
        self, server: FakeOpenAI, model: BaseChatModel, item: ContentItem, *, taken: bool
    ) -> list[dict[str, Any]]:
        """Return the parts of the message as sent, or none if it was rejected as required."""
        server.reply(replies.text("ok"))
        history = [Message("user", [ContentItem(text="before"), item, ContentItem(text="after")])]
        if not taken:
            with pytest.raises(UnsupportedInputError):
                answer_of(model, history)
            assert (server.requests, connections_to(server)) == ([], 0)
            return []
        answer_of(model, history)
        parts: list[dict[str, object]] = sent_messages(server)[-1]["content"]
        assert [part.get("text") for part in parts] == ["before", None, "after"]
        return parts


def _wav() -> bytes:
    """Return a silent audio file."""
    samples = b"\x80" * 64
    form = struct.pack("<HHIIHH", 1, 1, 8000, 8000, 1, 8)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _png() -> bytes:
    """Return the smallest possible image, one grey pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"\0\x80")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


_CONTENTS: dict[str, tuple[str, bytes]] = {
    "image": ("png", _png()),
    "frames": ("png", _png()),
    "audio": ("wav", _wav()),
    "video": ("mp4", b"\0\0\0\x20ftypisom" + bytes(range(100))),
    "file": ("txt", b"a private text that nobody has given away " * 3),
}
"""A file of each kind, with its extension and content."""
