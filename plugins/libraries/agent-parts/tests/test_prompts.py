"""Prompts: what users can replace, and what is said of what they cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import ConfigError
from jackfield_agent_parts import Prompts

OWN = {
    "greet": {"en": 'Greet {name}. {"a": 1} {other}\n', "zh": "问候{name}。"},
    "part": {"en": "Bye.", "zh": "再见。"},
}


def test_values_are_filled_in_once_and_other_braces_stay() -> None:
    text = Prompts(OWN).text("greet", "en", name="{name} {other}")
    assert text == 'Greet {name} {other}. {"a": 1} {other}'


def test_a_users_prompts_replace_those_they_name(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('part = "So long."\n[greet]\nzh = "你好{name}"\n', encoding="utf-8")
    for given in (file, str(file), {"part": "So long.", "greet": {"zh": "你好{name}"}}):
        prompts = Prompts(OWN, given)
        assert prompts.text("part", "en") == prompts.text("part", "zh") == "So long."
        assert prompts.text("greet", "zh", name="安娜") == "你好安娜"
        assert prompts.text("greet", "en", name="Anna").startswith("Greet Anna.")
    assert Prompts(OWN).text("part", "en") == "Bye."


def test_a_kinds_own_prompts_come_from_its_file_and_names_may_have_several_words(tmp_path: Path) -> None:
    file = tmp_path / "prompts.toml"
    file.write_text(
        '[part]\nen = "Bye, {first_name}."\nzh = "再见"\n[greet]\nen = "Hi."\nzh = "你好"\n', encoding="utf-8"
    )
    prompts = Prompts.read(file, {"greet": "Hey."})
    assert prompts.text("part", "en", first_name="Anna") == "Bye, Anna."
    assert [prompts.text(name, "zh") for name in ("part", "greet")] == ["再见", "Hey."]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"great": "x"}, "unknown prompt 'great'; did you mean 'greet'"),
        ({"greet": {"fr": "x"}}, ": unknown language 'fr'"),
        (5, "prompts must be the path of a TOML file or a dict, got int"),
        ({"greet": 5}, "must be a string, or one string for each of en, zh"),
        ({"greet": {"en": 5}}, "must be a string for 'en', got int"),
        ({"greet": {"en": "x", "zh": None}}, "must be a string for 'zh', got NoneType"),
        ({"greet": {"en": "x", "fr": "y"}}, ": unknown language 'fr'"),
        ({"greet": "x", "parts": "y"}, "unknown prompt 'parts'; did you mean 'part'"),
        ("latin.toml", "latin.toml is not valid TOML"),
        ("gone.toml", "gone.toml cannot be read: No such file"),
        ("bad.toml", "bad.toml is not valid TOML"),
    ],
)
def test_prompts_that_do_not_fit_are_refused(given: Any, said: str, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[greet\n", encoding="utf-8")
    (tmp_path / "latin.toml").write_bytes("part = 'Adiós'".encode("latin-1"))
    with pytest.raises(ConfigError, match=said):
        Prompts(OWN, tmp_path / given if isinstance(given, str) else given)
