"""What is known of models."""

from __future__ import annotations

import pytest

from jackfield_dashscope.config import DashScopeConfig
from jackfield_dashscope.families import FAMILIES, UNKNOWN_TEXT, UNKNOWN_VISION, facts_of, family_of


@pytest.mark.parametrize(
    ("model", "images", "audio", "endpoint"),
    [
        ("qwen3-vl-plus-2025-12-19", True, False, "multimodal"),
        ("Qwen2.5-VL-72B-instruct", True, False, "multimodal"),
        ("qvq-max", True, False, "multimodal"),
        ("qwen3-omni-flash", True, True, "multimodal"),
        ("qwen-audio-turbo-latest", False, True, "multimodal"),
        ("qwen3.6-plus", True, False, "multimodal"),
        ("qwen3-max", False, False, "text"),
        ("deepseek-v3.2", False, False, "text"),
    ],
)
def test_a_model_is_known_by_its_family(model: str, images: bool, audio: bool, endpoint: str) -> None:
    family = family_of(model, UNKNOWN_TEXT)
    assert (family.images, family.audio, family.endpoint) == (images, audio, endpoint)


def test_a_model_that_nobody_knows_is_what_its_backend_takes_it_for() -> None:
    assert family_of("brand-new", UNKNOWN_VISION) is UNKNOWN_VISION


def test_no_family_is_hidden_by_one_before_it() -> None:
    for family in FAMILIES:
        example = family.names.replace("*", "0")
        assert family_of(example, UNKNOWN_TEXT) is family, f"{family.names} is never reached"


def test_the_configuration_wins() -> None:
    config = DashScopeConfig(model="m", images=False, audio=True, native_tools=False, context_tokens=5)
    facts = facts_of(UNKNOWN_VISION, config)
    assert (facts.images, facts.audio, facts.native_tools, facts.context_tokens) == (False, True, False, 5)
    assert facts.video


@pytest.mark.parametrize(
    ("model", "tokenizer"),
    [
        ("qwen-plus", "qwen"),
        ("qwen-max-latest", "qwen"),
        ("qwen2.5-7b-instruct", "qwen"),
        ("qwen3-32b", "qwen"),
        ("qwen3-coder-plus", "qwen"),
        ("qwen3-vl-plus", "qwen"),
        ("qwq-32b", "qwen"),
        ("qwen3.5-plus", ""),
        ("qwen3.5-omni-flash", ""),
        ("qwen3.7-max", ""),
        ("deepseek-v3.2", ""),
    ],
)
def test_the_tokenizer_is_named_where_it_counts_for_the_model(model: str, tokenizer: str) -> None:
    assert facts_of(family_of(model, UNKNOWN_TEXT), DashScopeConfig(model=model)).tokenizer == tokenizer


def test_the_configuration_can_name_a_tokenizer_or_none() -> None:
    family = family_of("qwen-plus", UNKNOWN_TEXT)
    assert facts_of(family, DashScopeConfig(model="qwen-plus", tokenizer="")).tokenizer == ""
    assert facts_of(family, DashScopeConfig(model="qwen-plus", tokenizer="mine")).tokenizer == "mine"
