"""The known servers are as their sources say. A changed value here needs a new source there."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield_chat_completions import PROFILES, ChatCompletionsConfig, Dialect, ServerProfile
from jackfield_http.keys import KeyRule


def test_a_server_of_unknown_kind_is_spoken_to_as_most_are() -> None:
    assert Dialect() == Dialect(
        send_reasoning=True,
        stream_usage=True,
        max_tokens_key="max_tokens",
        repetition_penalty_key="repetition_penalty",
        continuation="as_is",
        sound_as_uri=False,
        cost_currency="",
        body={},
    )
    usual = ServerProfile()
    assert (usual.url, usual.key, usual.facts, usual.hosts, usual.models) == ("", "", {}, (), "")
    assert usual.where == "base_url, which usually ends in /v1"


CONTINUES = {"continuation": "continue_final_message"}
REPEATS = {"repetition_penalty_key": "repeat_penalty"}


@pytest.mark.parametrize(
    ("name", "url", "key", "models", "dialect"),
    [
        (
            "openai",
            "https://api.openai.com/v1",
            "OPENAI_API_KEY",
            "openai",
            {"send_reasoning": False, "max_tokens_key": "max_completion_tokens"},
        ),
        ("vllm", "http://localhost:8000/v1", "", "", CONTINUES),
        ("sglang", "http://localhost:30000/v1", "", "", CONTINUES),
        ("llama.cpp", "http://localhost:8080/v1", "", "", REPEATS),
        ("ollama", "http://localhost:11434/v1", "", "", {}),
        ("lmstudio", "http://localhost:1234/v1", "", "", REPEATS),
        (
            "dashscope",
            "https://dashscope.aliyuncs.com/compatible-mode/v1",
            "DASHSCOPE_API_KEY",
            "dashscope",
            {"continuation": "partial", "sound_as_uri": True},
        ),
        ("deepseek", "https://api.deepseek.com", "DEEPSEEK_API_KEY", "deepseek", {}),
        ("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "", {"cost_currency": "USD"}),
    ],
)
def test_a_known_server_has_these_facts(name: Any, url: str, key: str, models: str, dialect: dict[str, Any]) -> None:
    profile = PROFILES[name]
    assert (profile.url, profile.key, profile.models) == (url, key, models)
    assert profile.dialect == Dialect(**dialect)
    assert profile.facts == {}
    assert profile.where == ServerProfile().where


def test_these_servers_are_known() -> None:
    assert len(PROFILES) == 9


@pytest.mark.parametrize(
    ("name", "url", "allowed"),
    [
        ("openai", "https://api.openai.com/v1", True),
        ("openai", "https://eu.api.openai.com/v1", False),
        ("dashscope", "https://dashscope.aliyuncs.com/api", True),
        ("dashscope", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", True),
        ("dashscope", "https://dashscope-us.aliyuncs.com/compatible-mode/v1", True),
        ("dashscope", "https://vpc.dashscope.aliyuncs.com", True),
        ("dashscope", "https://cn-beijing.maas.aliyuncs.com", True),
        ("dashscope", "https://oss.aliyuncs.com", False),
        ("deepseek", "https://api.deepseek.com/beta", True),
        ("deepseek", "https://openrouter.ai", False),
        ("openrouter", "https://openrouter.ai/api/v1", True),
    ],
)
def test_the_key_of_a_known_server_goes_to_its_hosts_alone(name: Any, url: str, allowed: bool) -> None:
    assert PROFILES[name].key_rule.allows(url) is allowed


def test_a_profile_sends_its_key_to_its_hosts_and_that_of_its_address() -> None:
    assert ServerProfile("https://a.example/v1", "K", hosts=("b.example",)).key_rule == KeyRule(
        "K", ("b.example", "a.example")
    )
    assert ServerProfile(key="K", hosts=("b.example",)).key_rule == KeyRule("K", ("b.example",))


def test_a_configuration_has_these_defaults() -> None:
    defaults = ChatCompletionsConfig(model="m")
    names = set(ChatCompletionsConfig.__annotations__)
    assert {name: getattr(defaults, name) for name in names} == {
        "native_tools": True,
        "images": True,
        "audio": False,
        "video": False,
        "files": False,
        "json_schema": True,
        "reasoning": True,
        "context_tokens": None,
        "tokenizer": "",
        "modalities": (),
        "audio_output": None,
        "prompt_cache_key": None,
        "send_reasoning": True,
        "stream_usage": True,
        "max_tokens_key": None,
        "continuation": None,
    }
    with pytest.raises(ValueError, match="context_tokens"):
        ChatCompletionsConfig(model="m", context_tokens=0)
    assert ChatCompletionsConfig(model="m", context_tokens=1).context_tokens == 1
