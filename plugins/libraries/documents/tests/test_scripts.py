"""The scripts of a text, by which parts in other scripts are told apart."""

from __future__ import annotations

import pytest

from jackfield_documents.scripts import scripts_of

SAMPLES = {
    "latin": "tides", "chinese": "潮汐", "kana": "ひらがな", "hangul": "한국어", "cyrillic": "прилив",
    "greek": "παλίρροια", "arabic": "المد", "hebrew": "גאות", "devanagari": "ज्वार", "thai": "กระแสน้ำ",
}  # fmt: skip


@pytest.mark.parametrize(("script", "text"), SAMPLES.items())
def test_each_script_is_known_by_its_letters(script: str, text: str) -> None:
    assert scripts_of(text) == {script}


@pytest.mark.parametrize(
    ("text", "scripts"),
    [
        ("", set()),
        ("12 — 34 !?", set()),
        ("a" * 8 + "п" * 2, {"latin", "cyrillic"}),
        ("a" * 81 + "п" * 19, {"latin"}),
        ("a" * 12 + "潮", {"latin", "chinese"}),
        ("a" * 13 + "潮", {"latin"}),
    ],
    ids=["empty", "no letters", "a fifth", "less", "a Chinese character counts three", "too few"],
)
def test_a_script_counts_from_a_fifth_of_the_letters_on(text: str, scripts: set[str]) -> None:
    assert scripts_of(text) == scripts
