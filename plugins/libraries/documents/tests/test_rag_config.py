"""What is said about documents is checked, and every part of it is read by somebody."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.errors import ConfigError
from jackfield.plugins import EmbedderSpec, ParserSpec, PluginHost, Settings, hook
from jackfield_documents import RAGConfig


class Embedders:
    """A plugin with an embedder for each of these included models; '' for one that includes none."""

    def __init__(self, *models: str) -> None:
        self._models = models

    @hook.embedders
    def embedders(self) -> list[EmbedderSpec]:
        """Return the embedders."""
        return [
            EmbedderSpec(name=f"small{number}", target="acme:Embedder", included_model=model)
            for number, model in enumerate(self._models)
        ]


def host_with(*models: str, block: frozenset[str] = frozenset()) -> PluginHost:
    host = PluginHost(Settings(block=block | {"jackfield-multilingual-embedder"}))  # it includes a model as well
    host.register(Embedders(*models))
    return host


@pytest.mark.parametrize(
    ("models", "config", "is_used"),
    [
        (("m1",), {}, True),
        (("m1", ""), {"top_k": 3}, True),
        (("",), {}, False),
        (("", ""), {}, False),
        (("m1", "m2"), {}, False),
        (("m1",), {"rag_searchers": ["keyword_search"]}, False),
        (("m1",), {"retrieval_type": "keyword"}, False),
    ],
)
def test_the_model_that_an_embedder_includes_is_used_beside_words_unless_a_searcher_is_chosen(
    models: tuple[str, ...], config: dict[str, Any], is_used: bool
) -> None:
    chosen = RAGConfig.parse(config).with_included_model(host_with(*models))
    assert chosen.searchers.keys() == ({"keyword_search", "vector_search"} if is_used else {"keyword_search"})
    if is_used:
        embedder, _, model = str(chosen.embedding_model).partition(":")
        assert (embedder.rpartition("/")[2], model) == ("small0", "m1")
        assert chosen.searchers["vector_search"] == {"embedding_model": chosen.embedding_model}
        assert chosen.weights["vector_search"] > chosen.weights["keyword_search"]


def test_a_named_model_wins_over_an_included_one() -> None:
    config = RAGConfig.parse({"embedding_model": "openai:x"})
    assert config.with_included_model(host_with("m1")).searchers == config.searchers


def test_an_included_model_is_not_used_without_a_searcher_for_vectors() -> None:
    host = host_with("m1", block=frozenset({"jackfield-vector-search"}))
    assert RAGConfig().with_included_model(host) == RAGConfig()


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
    for wrong, told in (([{"model": "m"}], "requires 'name'"), (["a", {"name": "a"}], "listed twice")):
        with pytest.raises(ConfigError, match=told):
            RAGConfig.parse({"rag_searchers": wrong})


@pytest.mark.parametrize(
    ("setting", "wrong"),
    [("where", {"year": {"near": 2024}}), ("where", {"year": []}), ("metadata", {"*.md": {"year": [2024]}})],
)
def test_a_filter_or_metadata_that_no_index_can_hold_is_refused_at_once(setting: str, wrong: Any) -> None:
    with pytest.raises(ConfigError, match=rf"{setting}.*year"):
        RAGConfig.parse({setting: wrong})


@pytest.mark.parametrize("name", ["hybrid_search", "jackfield-hybrid-search/hybrid_search"])
def test_a_searcher_that_combines_others_needs_to_know_which(name: str) -> None:
    for entry in (name, {"name": name}, {"name": name, "searchers": []}):
        with pytest.raises(ConfigError, match="combines other searchers: list those instead"):
            RAGConfig.parse({"rag_searchers": [entry]})
    settings = {"searchers": ["keyword_search"]}
    assert RAGConfig.parse({"rag_searchers": [{"name": name, **settings}]}).searchers == {name: settings}


@pytest.mark.parametrize("name", ["front_page_search", "jackfield-front-page-search/front_page_search"])
def test_the_searcher_of_front_pages_knows_how_much_a_request_takes(name: str) -> None:
    config = RAGConfig.parse({"rag_searchers": [name], "max_ref_token": 7})
    assert config.searchers == {name: {"max_ref_token": 7}}
    own = RAGConfig.parse({"rag_searchers": [{"name": name, "max_ref_token": 3}], "max_ref_token": 7})
    assert own.searchers == {name: {"max_ref_token": 3}}


@pytest.mark.parametrize("setting", ["searcher", "searcher_settings"])
def test_a_reranker_has_no_searcher_of_its_own(setting: str) -> None:
    with pytest.raises(ConfigError, match=f"remove '{setting}': rerank reorders"):
        RAGConfig.parse({"rerank": {"name": "rerank", setting: {}}})


def test_a_type_that_is_none_chooses_no_searcher() -> None:
    config = RAGConfig.parse({"embedding_model": "x", "retrieval_type": None})
    assert config.searchers.keys() == {"keyword_search", "vector_search"}


def test_with_a_reranker_the_weights_are_those_of_the_searcher_that_combines() -> None:
    config = RAGConfig.parse({"retrieval_type": "hybrid", "rerank": "rerank", "searcher_weights": {"vector_search": 3}})
    assert config.weights == {"hybrid_search": 1.0}
    assert config.searchers["hybrid_search"]["weights"] == {"vector_search": 3}


VECTOR_SETTINGS = [("embedding_model", "x"), ("index_path", "x"), ("embedder_settings", {"base_url": "x"})]


@pytest.mark.parametrize(("setting", "value"), VECTOR_SETTINGS)
def test_a_setting_of_searchers_is_given_to_the_one_that_it_is_for_or_is_an_error(setting: str, value: object) -> None:
    for other in ({"retrieval_type": "keyword"}, {"rag_searchers": ["vector_search"]}):
        with pytest.raises(ConfigError, match=f"{setting} requires vector search"):
            RAGConfig.parse({setting: value, **other})
    for kind in ("vector", "hybrid"):
        assert RAGConfig.parse({setting: value, "retrieval_type": kind}).searchers["vector_search"] == {setting: value}


def test_a_named_embedding_model_is_used_beside_words() -> None:
    config = RAGConfig.parse({"embedding_model": "x", "index_path": "y"})
    assert config.searchers == {"keyword_search": {}, "vector_search": {"embedding_model": "x", "index_path": "y"}}
    assert "retrieval_type" in config.model_fields_set  # as if the user had chosen it, also for an index on disk
    assert RAGConfig.parse({"embedding_model": None}).searchers == {"keyword_search": {}}
    assert RAGConfig.parse({"embedding_model": "x", "retrieval_type": "vector"}).searchers.keys() == {"vector_search"}


@pytest.mark.parametrize(
    ("models", "blocked", "step"),
    [
        (("m1",), (), ""),
        (("",), (), "set embedding_model, or install an embedder that includes a model: pip install jackfield-multi"),
        (("m1", "m2"), (), "set embedding_model to one of the included models: embedders@code/small0:m1, emb"),
        (("m1",), ("jackfield-vector-search",), "pip install jackfield-vector-search"),
    ],
    ids=["one model", "no model", "two models", "no searcher"],
)
def test_the_index_of_an_included_model_needs_no_name_of_a_model(
    models: tuple[str, ...], blocked: tuple[str, ...], step: str
) -> None:
    config, host = RAGConfig.parse({"index_path": "y"}), host_with(*models, block=frozenset(blocked))
    if step:
        with pytest.raises(ConfigError) as caught:
            config.with_included_model(host)
        assert str(caught.value).startswith(f"rag_cfg: index_path requires vector search: {step}")
    else:
        assert config.with_included_model(host).searchers["vector_search"]["index_path"] == "y"


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        (
            {"front_page": 1},
            "unknown searcher 'front_page'; available: keyword_search, vector_search",
        ),
        ({"keyword_search": -1}, "the weight of 'keyword_search' must be finite and at least 0"),
        ({"keyword_search": float("nan")}, "the weight of 'keyword_search' must be finite and at least 0"),
        ({"keyword_search": 0, "vector_search": 0}, "every searcher has weight 0"),
    ],
)
def test_weights_are_of_searchers_that_are_asked(weights: dict[str, float], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        RAGConfig.parse({"retrieval_type": "hybrid", "searcher_weights": weights})


def test_a_searcher_of_weight_0_is_not_asked() -> None:
    config = RAGConfig.parse({"retrieval_type": "hybrid", "searcher_weights": {"vector_search": 0}})
    assert config.searchers == {"keyword_search": {}}


def test_vectors_count_more_than_words_unless_weights_say_otherwise() -> None:
    config = RAGConfig.parse({"retrieval_type": "hybrid"})
    assert config.weights == {"keyword_search": 1, "vector_search": 1.75}
    config = RAGConfig.parse({"rag_searchers": ["acme", "jackfield-vector-search/vector_search"]})
    assert config.weights == {"acme": 1, "jackfield-vector-search/vector_search": 1.75}
    config = RAGConfig.parse({"retrieval_type": "hybrid", "searcher_weights": {"vector_search": 1}})
    assert config.weights == {"keyword_search": 1, "vector_search": 1}


def test_reranking_is_the_last_step_over_whatever_else_is_asked() -> None:
    assert RAGConfig.parse({"rerank": "acme_rerank"}).searchers == {
        "hybrid_search": {
            "searchers": [{"name": "keyword_search"}],
            "weights": {},
            "fusion": "scores",
            "k": 60,
            "rerank": "acme_rerank",
        }
    }
    config = RAGConfig.parse(
        {
            "retrieval_type": "hybrid",
            "embedding_model": "openai:m",
            "searcher_weights": {"keyword_search": 2},
            "fusion_k": 30,
            "rerank": {"name": "acme_rerank", "model": "m"},
        }
    )
    assert config.searchers["hybrid_search"] == {
        "searchers": [{"name": "keyword_search"}, {"name": "vector_search", "embedding_model": "openai:m"}],
        "weights": {"keyword_search": 2.0},
        "fusion": "scores",
        "k": 30,
        "rerank": {"name": "acme_rerank", "model": "m"},
    }


@pytest.mark.parametrize(
    ("rerank", "says"),
    [({"model": "m"}, "requires 'name'"), ({"name": "r", "searcher": "x"}, "remove 'searcher'")],
)
def test_a_reranker_has_a_name_and_not_another_searcher(rerank: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        RAGConfig.parse({"rerank": rerank})


def test_the_front_of_documents_knows_how_much_a_request_may_hold() -> None:
    config = RAGConfig.parse({"rag_searchers": ["keyword_search", "front_page_search"], "max_ref_token": 400})
    assert config.searchers == {"keyword_search": {}, "front_page_search": {"max_ref_token": 400}}


def test_settings_of_parsers_are_shown_to_nobody() -> None:
    config = RAGConfig.parse({"parsers": {"pdf": {"password": "geheim"}}, "parser_for": {".HTM": "acme/html"}})
    assert config.parsers["pdf"]["password"] == "geheim"
    assert "geheim" not in f"{config!r} {config.model_dump()} {config.model_dump_json()}"
    assert config.parser_for == {"htm": "acme/html"}


def test_a_way_to_keywords_that_is_not_there_is_an_error() -> None:
    for wrong in ("GenKeywords", "", 0, False):
        with pytest.raises(ConfigError, match="rag_keygen_strategy"):
            RAGConfig.parse({"rag_keygen_strategy": wrong})


def test_settings_of_a_searcher_win_over_the_shared_ones_and_weightless_ones_are_left_out() -> None:
    pages = "front_page_search"
    shared = RAGConfig.parse({"rag_searchers": [pages], "max_ref_token": 7})
    own = RAGConfig.parse({"rag_searchers": [{"name": pages, "max_ref_token": 5}], "max_ref_token": 7})
    assert (shared.searchers, own.searchers) == ({pages: {"max_ref_token": 7}}, {pages: {"max_ref_token": 5}})
    weights = {"keyword_search": 0, pages: 2}
    config = RAGConfig.parse({"rag_searchers": ["keyword_search", pages], "searcher_weights": weights, "rerank": "r"})
    assert config.searchers["hybrid_search"]["searchers"] == [{"name": pages, "max_ref_token": 20_000}]
    assert config.searchers["hybrid_search"]["weights"] == {pages: 2}


class Parsers:
    """A plugin with a parser of a name that another plugin has as well."""

    @hook.parsers
    def parsers(self) -> list[ParserSpec]:
        """Return the parser."""
        return [ParserSpec(name="twin", target="acme:Parser", extensions=("twin",))]


def test_a_parser_for_an_extension_must_be_one_and_settings_may_be_for_all_of_a_name() -> None:
    host = PluginHost(Settings())
    for name in ("one", "two"):
        host.register(Parsers(), name=name)
    with pytest.raises(ConfigError, match="parser_for: x"):
        RAGConfig.parse({"parser_for": {"x": "twin"}}).reader(host)
    assert RAGConfig.parse({"parsers": {"twin": {"a": 1}}}).reader(host)
