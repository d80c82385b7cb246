"""Test what is promised before a component is used: its descriptor, and its settings."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.config import Config
from jackfield_system_message.language_config import LanguageConfig
from jackfield_system_message.plugin import processors
from jackfield_system_message.system_message_config import SystemMessageConfig
from tests.support.promises import check_limit, defaults_of, promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "ProcessorSpec language": {"phase": "input", "before": ("multimodal",)},
    "ProcessorSpec system_message": {"before": ("truncation",)},
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    specs: list[Any] = [*processors()]
    assert promises_of(specs) == PROMISES


NEEDED: dict[type[Config], dict[str, object]] = {SystemMessageConfig: {"text": "x"}}


@pytest.mark.parametrize(
    ("config", "defaults"),
    [
        (LanguageConfig, {"lang": None, "look_at": "last", "instruct": False}),
        (SystemMessageConfig, {"where": "before", "date": False, "timezone": None}),
    ],
)
def test_the_settings_have_these_defaults(config: type[Config], defaults: dict[str, object]) -> None:
    assert defaults_of(config, defaults, NEEDED.get(config, {})) == defaults


@pytest.mark.parametrize(
    ("config", "setting", "last", "beyond"),
    [
        (SystemMessageConfig, "timezone", "UTC", ""),
    ],
)
def test_the_settings_have_these_limits(config: type[Config], setting: str, last: object, beyond: object) -> None:
    check_limit(config, setting, last, beyond, NEEDED.get(config, {}))
