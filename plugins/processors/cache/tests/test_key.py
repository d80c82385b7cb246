"""Requests that ask the same have one key; whatever can change an answer changes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import SecretStr

from jackfield.config import GenerateConfig
from jackfield.messages import ContentItem, FunctionCall, Message, Origin
from jackfield.request import ChatRequest
from jackfield_cache import key
from jackfield_cache.key import NotHashable, key_of

TOOL = {"name": "f", "description": "Does.", "parameters": {"type": "object", "properties": {"a": {}, "b": {}}}}
BASE = ChatRequest(model="m", messages=(Message("user", "hello"),), functions=(TOOL,))
# An option for each field; a field that the core adds has none, and the test says so.
CHANGES: dict[str, Any] = {
    "temperature": 0.0,
    "top_p": 0.5,
    "top_k": 0,
    "presence_penalty": 0.1,
    "frequency_penalty": 0.1,
    "repetition_penalty": 1.1,
    "max_tokens": 9,
    "seed": 0,
    "stop": ("x",),
    "function_choice": "f",
    "parallel_function_calls": False,
    "thought_in_content": True,
    "fncall_prompt_type": "nous",
    "use_raw_api": False,
    "reasoning_effort": "low",
    "response_format": {"type": "json_object"},
    "extra_body": {"a": 1},
}
NO_CHANGES: dict[str, Any] = {
    "max_retries": 3,
    "max_retry_delay": 9.0,
    "request_timeout": 9.0,
    "event_timeout": 90.0,
    "deadline": 9.0,
    "lang": "zh",
    "max_input_tokens": 9,
    "send_stop": False,
    "extra_headers": {"Authorization": "Bearer k"},
}


def _with(**options: Any) -> bytes:
    return key_of(replace(BASE, config=GenerateConfig(**options)))


def _saying(*items: ContentItem) -> bytes:
    return key_of(replace(BASE, messages=(Message("user", list(items)),)))


def test_every_option_is_known_to_change_an_answer_or_not_to() -> None:
    assert {*CHANGES, *NO_CHANGES} == set(GenerateConfig.model_fields)


@pytest.mark.parametrize("option", CHANGES)
def test_an_option_that_can_change_the_answer_changes_the_key(option: str) -> None:
    assert _with(**{option: CHANGES[option]}) != key_of(BASE)


@pytest.mark.parametrize("option", NO_CHANGES)
def test_how_to_wait_and_who_asks_change_no_key(option: str) -> None:
    assert _with(**{option: NO_CHANGES[option]}) == key_of(BASE)


@pytest.mark.parametrize(
    "other",
    [
        replace(BASE, model="n"),
        replace(BASE, lang="zh"),
        replace(BASE, functions=()),
        replace(BASE, functions=(TOOL, TOOL)),
        replace(BASE, functions=({**TOOL, "parameters": {"type": "object", "properties": {"b": {}, "a": {}}}},)),
        replace(BASE, messages=(Message("system", "hello"),)),
        replace(BASE, messages=(Message("user", "hello "),)),
        replace(BASE, messages=(Message("user", "hello", name="bob"),)),
        replace(BASE, messages=(Message("user", "hel"), Message("user", "lo"))),
        replace(BASE, messages=(Message("assistant", "hello"),)),
        replace(BASE, messages=(Message("assistant", "hello", reasoning_content="because"),)),
        replace(BASE, messages=(Message("assistant", "hello", reasoning_content=[ContentItem(text="because")]),)),
        replace(BASE, messages=(Message("assistant", "hello", function_call=FunctionCall("f", "{}")),)),
        replace(BASE, messages=(Message("assistant", "hello", function_call=FunctionCall("f", "{ }")),)),
        replace(BASE, messages=(Message("user", "hello", extra={"function_id": "c1"}),)),
        replace(BASE, messages=(Message("user", "hello", origin=Origin(backend="b", data={"signature": "s"})),)),
    ],
)
def test_what_a_model_reads_is_in_the_key(other: ChatRequest) -> None:
    assert key_of(other) != key_of(BASE)


CALL: dict[str, Any] = {
    "role": "assistant",
    "content": "hello",
    "reasoning_content": "because",
    "name": "bob",
    "function_call": {"name": "pay", "arguments": '{"to": "Ada"}'},
    "origin": {"backend": "b", "id": "1", "data": {"signature": "s"}},
    "extra": {"function_id": "c1"},
}
OTHER_ROLES = {"assistant": "user"}


def leaves(value: object, *path: str) -> list[tuple[str, ...]]:
    if not isinstance(value, dict):
        return [path]
    return [leaf for key, below in value.items() for leaf in leaves(below, *path, key)]


def with_another(value: Any, path: tuple[str, ...]) -> Any:
    if not path:
        return OTHER_ROLES.get(value, f"{value} ")
    return {**value, path[0]: with_another(value[path[0]], path[1:])}


def test_the_message_with_everything_sets_every_field_there_is() -> None:
    assert set(CALL) == set(Message.model_fields)
    assert set(CALL["function_call"]) == set(FunctionCall.model_fields)
    assert set(CALL["origin"]) == set(Origin.model_fields)


@pytest.mark.parametrize("path", leaves(CALL), ids=".".join)
def test_each_part_of_a_message_alone_changes_the_key(path: tuple[str, ...]) -> None:
    one, other = (replace(BASE, messages=(Message(**fields),)) for fields in (CALL, with_another(CALL, path)))
    assert key_of(one) != key_of(other)


def test_answers_written_in_another_format_are_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key_of(BASE)
    monkeypatch.setattr(key, "FORMAT", key.FORMAT + 1)
    assert key_of(BASE) != before


def test_two_servers_are_kept_apart_by_what_the_request_says_and_a_scope_stands_over_that() -> None:
    here, there = replace(BASE, server="openai@here"), replace(BASE, server="openai@there")
    assert len({key_of(BASE), key_of(here), key_of(there), key_of(BASE, "one"), key_of(BASE, "two")}) == 5
    assert key_of(here, "one") == key_of(there, "one")


def test_metadata_and_what_a_caller_notes_on_a_message_change_no_key() -> None:
    noted = Message("user", "hello", extra={"seen": True})
    assert key_of(replace(BASE, messages=(noted,), metadata={"a": object()})) == key_of(BASE)


def test_a_read_only_schema_is_the_same_as_a_dict() -> None:
    assert key_of(replace(BASE, functions=(MappingProxyType(TOOL),))) == key_of(BASE)


@pytest.mark.parametrize("kind", ["image", "audio", "video"])
def test_media_count_by_what_is_in_the_file_wherever_it_lies(tmp_path: Path, kind: str) -> None:
    one, same, other = (tmp_path / name for name in ("one 数%41", "same", "other"))
    one.write_bytes(b"picture")
    same.write_bytes(b"picture")
    other.write_bytes(b"another")
    keys = [_saying(ContentItem(**{kind: str(path)})) for path in (one, same, other)]
    assert keys[0] == keys[1] != keys[2]
    assert _saying(ContentItem(**{kind: one.as_uri()})) == keys[0]
    one.write_bytes(b"edited")
    assert _saying(ContentItem(**{kind: str(one)})) != keys[0]


def test_a_document_counts_by_its_name_and_by_what_is_in_it(tmp_path: Path) -> None:
    paths = [tmp_path / "one.txt", tmp_path / "two.txt"]
    for path in paths:
        path.write_text("text")
    keys = {_saying(ContentItem(file=str(path))) for path in paths}
    paths[0].write_text("edited")
    assert len(keys | {_saying(ContentItem(file=str(paths[0])))}) == 3


@pytest.mark.parametrize(
    "item",
    [
        {"image": "https://example.com/a.png"},
        {"image": "data:image/png;base64,AAAA"},
        {"image": "no/such/file.png"},
        {"image": "x" * 300},
        {"image": "a\0b"},
        {"video": ["no/such/1.png", "no/such/2.png"]},
        {"audio": {"data": "AAAA", "format": "wav"}},
    ],
)
def test_media_that_are_not_here_count_by_their_address(item: dict[str, Any]) -> None:
    assert _saying(ContentItem(**item)) == _saying(ContentItem(**item)) != _saying(ContentItem(image="other"))


def test_the_longest_path_there_may_be_is_one_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(Path, "is_file", lambda path: bool(asked.append(len(str(path)))))
    for length in (4_096, 4_097):
        _saying(ContentItem(image="x" * length))
    assert asked == [4_096]


def test_frames_of_a_film_count_in_their_order(tmp_path: Path) -> None:
    frames = [tmp_path / "1.png", tmp_path / "2.png"]
    for number, frame in enumerate(frames):
        frame.write_bytes(bytes([number]))
    there = [str(frame) for frame in frames]
    films = (there, there[::-1], there[:1], [*there, there[0]], [there[0], "https://x.example/2.png"])
    assert len({_saying(ContentItem(video=film)) for film in films}) == len(films)


@pytest.mark.parametrize("wrap", [lambda path: {"video": [path, path]}, lambda path: {"audio": {"data": path}}])
def test_media_in_a_list_or_a_dict_count_by_what_is_in_the_file(
    tmp_path: Path, wrap: Callable[[str], dict[str, Any]]
) -> None:
    path = tmp_path / "medium"
    keys = []
    for content in (b"one", b"edited", b"one"):
        path.write_bytes(content)
        keys.append(_saying(ContentItem(**wrap(str(path)))))
    assert keys[0] == keys[2] != keys[1]


def test_options_that_are_not_set_are_not_in_the_key() -> None:
    assert [value for _, value in key._options(GenerateConfig()) if value in (None, (), {})] == []


def test_a_text_with_half_a_character_has_a_key() -> None:
    assert key_of(replace(BASE, messages=(Message("user", "\ud83d"),))) != key_of(BASE)


@pytest.mark.parametrize("value", [object(), b"x", {1, 2}, SecretStr("k-123")])
def test_what_is_no_json_is_named_by_its_type_and_not_shown(value: Any) -> None:
    with pytest.raises(NotHashable, match=type(value).__name__) as caught:
        _with(extra_body={"x": value})
    assert "k-123" not in str(caught.value)


def test_a_request_that_contains_itself_has_no_key() -> None:
    body: dict[str, Any] = {}
    body["body"] = body
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"body": deep}
    for extra_body in (body, deep):
        with pytest.raises(NotHashable):
            key_of(replace(BASE, config=BASE.config.model_copy(update={"extra_body": extra_body})))
