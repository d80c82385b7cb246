"""What is said about documents is checked, and every part of it is read by somebody."""

from __future__ import annotations

import pytest

from jackfield.errors import ConfigError
from jackfield_documents import RAGConfig


def test_an_unknown_key_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'chunk_overlap'"):
        RAGConfig.parse({"chunk_overlapp": 3})


def test_chunk_size_is_another_word_for_the_parsers_page_size() -> None:
    assert RAGConfig.parse({"chunk_size": 100}).parser_page_size == 100
    assert RAGConfig.parse({"parser_page_size": 100}).parser_page_size == 100
    assert RAGConfig.parse(None) == RAGConfig()


def test_a_searcher_may_come_with_settings() -> None:
    config = RAGConfig.parse({"rag_searchers": ["keyword_search", {"name": "acme/rank", "model": "m"}]})
    assert config.searchers == {"keyword_search": {}, "acme/rank": {"model": "m"}}
    assert RAGConfig(retrieval_type="hybrid").searchers == {"keyword_search": {}, "vector_search": {}}
    for wrong, told in (([{"model": "m"}], "needs 'name'"), (["a", {"name": "a"}], "named twice")):
        with pytest.raises(ConfigError, match=told):
            RAGConfig.parse({"rag_searchers": wrong})


@pytest.mark.parametrize("setting", ["embedding_model", "index_path"])
def test_a_setting_of_searchers_is_given_to_the_one_that_it_is_for_or_is_an_error(setting: str) -> None:
    with pytest.raises(ConfigError, match=f"{setting} is read with retrieval_type 'vector' or 'hybrid' only"):
        RAGConfig.parse({setting: "x"})
    for kind in ("vector", "hybrid"):
        assert RAGConfig.parse({setting: "x", "retrieval_type": kind}).searchers["vector_search"] == {setting: "x"}


def test_a_way_to_keywords_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ConfigError, match="rag_keygen_strategy"):
        RAGConfig.parse({"rag_keygen_strategy": "GenKeyword"})


@pytest.mark.parametrize("package", ["jackfield", "jackfield.config"])
def test_its_old_places_still_have_it_and_name_the_new_one(package: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"{package}.RAGConfig has moved to jackfield_documents.RAGConfig"):
        exec(f"from {package} import RAGConfig as old; assert old is RAGConfig", {"RAGConfig": RAGConfig})
