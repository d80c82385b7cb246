"""Test what is promised before a component is used: its descriptor, and the limits of its settings."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.config import Config
from jackfield_doc_parser.plugin import tools
from jackfield_doc_parser.settings import DocParserConfig, QueryTableConfig, SummaryConfig, VocabularyConfig
from tests.support.promises import check_limit, promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "ToolSpec doc_parser": {"effects": frozenset({"files", "network"}), "file_access": True},
    "ToolSpec extract_doc_vocabulary": {"effects": frozenset({"files", "network"}), "file_access": True},
    "ToolSpec query_table": {
        "effects": frozenset({"files", "network", "processes"}),
        "read_only": True,
        "file_access": True,
    },
    "ToolSpec simple_doc_parser": {"effects": frozenset({"files", "network"}), "file_access": True},
    "ToolSpec summarize_document": {"effects": frozenset({"files", "network"}), "read_only": True, "file_access": True},
}


def test_the_descriptors_promise_these_facts_besides_their_texts_and_schemas() -> None:
    promised = promises_of(tools())
    others = ("description", "parameters", "required_by")
    assert {name: {k: v for k, v in facts.items() if k not in others} for name, facts in promised.items()} == PROMISES


@pytest.mark.parametrize(
    ("config", "setting", "last", "beyond"),
    [
        (DocParserConfig, "max_ref_token", 1, 0),
        (DocParserConfig, "cache_max_bytes", 0, -1),
        (DocParserConfig, "max_images", 1, 0),
        (DocParserConfig, "parser_page_size", 1, 0),
        (DocParserConfig, "chunk_overlap", 0, -1),
        (VocabularyConfig, "max_words", 1, 0),
        (QueryTableConfig, "max_rows", 1, 0),
        (SummaryConfig, "part_tokens", 100, 99),
        (SummaryConfig, "max_parts", 1, 0),
        (SummaryConfig, "at_once", 1, 0),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else str(value),
)
def test_a_setting_takes_its_last_value_and_refuses_the_next(
    config: type[Config], setting: str, last: object, beyond: object
) -> None:
    check_limit(config, setting, last, beyond, {})
