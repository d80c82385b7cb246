"""The embedder keeps Jackfield's contract, and what is OpenAI's own: base64, prefixes, addresses, keys."""

from __future__ import annotations

import asyncio
import base64
import json
import pickle
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar

import pytest

from jackfield import sync
from jackfield.errors import ConfigError, MissingSecretError, ModelResponseError, ModelServiceError, RateLimitedError
from jackfield.plugins import PluginHost
from jackfield.retrieval import Embedded
from jackfield.settings import Settings
from jackfield_openai.embeddings import OpenAIEmbedder
from jackfield_testkit import embeddings, replies
from jackfield_testkit.embeddings import embeddings_of, texts_in, vector_of
from jackfield_testkit.replies import Reply
from jackfield_testkit.server import FakeOpenAI, RecordedRequest
from jackfield_testkit.suites import EmbedderSuite

MakeEmbedder = Callable[..., OpenAIEmbedder]


class TestEmbedder(EmbedderSuite):
    component = "jackfield-openai/openai"
    other_space: ClassVar[Mapping[str, Any]] = {"dimension": 16}


class TestEmbedderOfNumbers(EmbedderSuite):
    component = "jackfield-openai/openai"
    config: ClassVar[Mapping[str, Any]] = {"encoding_format": "float", "dimension": 24}
    other_space: ClassVar[Mapping[str, Any]] = {"model": "another"}


@pytest.fixture
def make(server: FakeOpenAI, clean_environment: pytest.MonkeyPatch) -> Iterator[MakeEmbedder]:
    """Makes embedders that ask the server, which embeds, and closes them."""
    server.respond(embeddings_of)
    made: list[OpenAIEmbedder] = []

    def make(**settings: Any) -> OpenAIEmbedder:
        given = {"model": "test-embeddings", "base_url": server.url, "max_retries": 0, **settings}
        made.append(OpenAIEmbedder(host=PluginHost(Settings()), **given))
        return made[-1]

    yield make
    for embedder in made:
        sync.run(embedder.aclose())


def embedded(embedder: OpenAIEmbedder, *texts: str, **options: Any) -> Embedded:
    return sync.run(embedder.embed(texts, **options))


# --- the request ---


def test_a_request_asks_for_base64_and_has_no_more_than_it_must(server: FakeOpenAI, make: MakeEmbedder) -> None:
    embedded(make(), "tea", "coffee")
    assert server.requests[-1].path == "/v1/embeddings"
    assert server.requests[-1].json == {
        "model": "test-embeddings",
        "input": ["tea", "coffee"],
        "encoding_format": "base64",
    }


def test_numbers_are_what_a_server_sends_that_is_asked_for_nothing_else(server: FakeOpenAI, make: MakeEmbedder) -> None:
    embedded(make(encoding_format="float"), "tea")
    assert server.requests[-1].json == {"model": "test-embeddings", "input": ["tea"]}


def test_a_dimension_and_anything_extra_are_sent(server: FakeOpenAI, make: MakeEmbedder) -> None:
    embedder = make(dimension=16, extra_body={"truncate": "END"}, extra_headers={"X-Tenant": "blue"})
    assert [len(vector) for vector in embedded(embedder, "tea").vectors] == [16]
    assert server.requests[-1].json["dimensions"] == embedder.dimension == 16
    assert server.requests[-1].json["truncate"] == "END"
    assert server.requests[-1].headers["x-tenant"] == "blue"


@pytest.mark.parametrize(("field", "value"), [("encoding_format", "float"), ("dimensions", 24), ("model", "other")])
def test_a_field_of_the_extra_body_wins_over_a_setting(
    server: FakeOpenAI, make: MakeEmbedder, field: str, value: object
) -> None:
    embedder = make(extra_body={field: value}, dimension=None if field == "model" else 16)
    with suppress(ModelServiceError):  # the vectors may then be longer than the setting says
        embedded(embedder, "tea")
    assert server.requests[-1].json[field] == value


def test_the_account_that_pays_is_named(server: FakeOpenAI, make: MakeEmbedder) -> None:
    embedded(make(organization="org-1", project="proj-1"), "tea")
    headers = server.requests[-1].headers
    assert (headers["openai-organization"], headers["openai-project"]) == ("org-1", "proj-1")


def test_what_a_text_is_for_is_said_by_a_prefix(server: FakeOpenAI, make: MakeEmbedder) -> None:
    embedder = make(document_prefix="passage: ", query_prefix="query: ")
    embedded(embedder, "tea", "coffee")
    embedded(embedder, "tea", purpose="query")
    assert [texts_in(request) for request in server.requests] == [["passage: tea", "passage: coffee"], ["query: tea"]]
    assert embedder.space != make().space
    assert make(query_prefix="query: ").space == make().space, "it does not change what the index is made of"


@pytest.mark.parametrize(("batch_size", "sizes"), [(1, [1] * 5), (2, [1, 2, 2]), (5, [5]), (6, [5])])
def test_a_request_has_no_more_texts_than_it_may(
    server: FakeOpenAI, make: MakeEmbedder, batch_size: int, sizes: list[int]
) -> None:
    vectors = embedded(make(batch_size=batch_size), *"abcde").vectors
    assert sorted(len(texts_in(request)) for request in server.requests) == sizes
    assert vectors == tuple(map(vector_of, "abcde"))


def test_no_more_requests_are_on_their_way_than_there_may_be(server: FakeOpenAI, make: MakeEmbedder) -> None:
    server.respond(lambda request: embeddings_of(request).delayed(60))
    embedder = make(batch_size=1, concurrency=3)

    async def ask_and_leave() -> int:
        call = asyncio.create_task(embedder.embed([*map(str, range(12))]))
        assert await asyncio.to_thread(server.wait_until, lambda s: s.open_streams == 3, timeout_s=10)
        await asyncio.sleep(0.05)  # for one too many
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        return len(server.requests)

    assert asyncio.run(ask_and_leave()) == 3


# --- the answer ---


def test_a_server_that_knows_no_base64_is_understood(server: FakeOpenAI, make: MakeEmbedder) -> None:
    server.respond(lambda r: embeddings.embeddings(r, [vector_of("tea")], tokens=1, knows_base64=False))
    assert embedded(make(), "tea").vectors == (vector_of("tea"),)


def test_a_server_that_refuses_base64_is_asked_for_numbers_from_then_on(server: FakeOpenAI, make: MakeEmbedder) -> None:
    def answer(request: RecordedRequest) -> Reply:
        if "encoding_format" in request.json:
            return replies.error(422, "encoding_format: extra fields not permitted")
        return embeddings_of(request)

    server.respond(answer)
    embedder = make()
    for _ in range(2):
        assert embedded(embedder, "tea").vectors == (vector_of("tea"),)
    assert ["encoding_format" in request.json for request in server.requests] == [True, False, False]


def test_whole_numbers_are_numbers(server: FakeOpenAI, make: MakeEmbedder) -> None:
    server.reply(replies.raw(b'{"data": [{"index": 0, "embedding": [0, 1, -2.5]}]}'))
    assert embedded(make(), "tea") == Embedded(((0.0, 1.0, -2.5),))


@pytest.mark.parametrize(
    "embedding",
    [
        "not base64!",
        "AAA=",
        "",
        [],
        ["1.5"],
        [None],
        [[0.5]],
        base64.b64encode(struct.pack("<2f", 1.0, float("nan"))).decode(),
        base64.b64encode(struct.pack("<2f", float("inf"), float("-inf"))).decode(),
    ],
    ids=str,
)
def test_a_vector_that_is_none_is_an_error(server: FakeOpenAI, make: MakeEmbedder, embedding: object) -> None:
    server.reply(replies.raw(json.dumps({"data": [{"index": 0, "embedding": embedding}]}).encode()))
    with pytest.raises(ModelResponseError, match="sent a response without embeddings"):
        embedded(make(), "tea")


def test_a_dimension_that_the_model_does_not_have_is_told(server: FakeOpenAI, make: MakeEmbedder) -> None:
    server.respond(lambda r: embeddings.embeddings(r, [vector_of("tea", 8)], tokens=1))
    with pytest.raises(ModelResponseError, match=r"8 numbers instead of the requested 16: .* remove `dimension`"):
        embedded(make(dimension=16), "tea")


def test_a_server_that_counts_nothing_has_cost_nothing(server: FakeOpenAI, make: MakeEmbedder) -> None:
    server.reply(replies.raw(b'{"data": [{"index": 0, "embedding": [0.5]}], "usage": null}'))
    assert embedded(make(), "tea").usage.total_tokens == 0


# --- where, and as whom ---


def test_without_an_address_the_key_must_be_there(make: MakeEmbedder) -> None:
    with pytest.raises(MissingSecretError) as caught:
        embedded(make(base_url=None), "tea")
    assert caught.value.variable == "OPENAI_API_KEY"


def test_a_server_of_ones_own_needs_no_key(server: FakeOpenAI, make: MakeEmbedder) -> None:
    embedded(make(), "tea")
    assert server.requests[-1].headers["authorization"] == "Bearer EMPTY"


def test_key_and_address_may_be_in_the_environment(
    server: FakeOpenAI, make: MakeEmbedder, clean_environment: pytest.MonkeyPatch
) -> None:
    clean_environment.setenv("OPENAI_API_KEY", "sk-from-environment")
    clean_environment.setenv("OPENAI_BASE_URL", server.url)
    clean_environment.setenv("OPENAI_ORG_ID", "org-1")
    embedded(make(base_url=None), "tea")
    assert server.requests[-1].headers["authorization"] == "Bearer sk-from-environment"
    assert server.requests[-1].headers["openai-organization"] == "org-1"


@pytest.mark.parametrize("setting", ["api_base", "model_server"])
def test_an_address_may_have_its_other_names(server: FakeOpenAI, make: MakeEmbedder, setting: str) -> None:
    embedded(make(base_url=None, **{setting: server.url}), "tea")
    assert server.requests[-1].path == "/v1/embeddings"


def test_no_secret_that_a_server_repeats_is_shown(server: FakeOpenAI, make: MakeEmbedder) -> None:
    server.reply(replies.error(400, "no sk-do-not-show and no tok-do-not-show"))
    with pytest.raises(ModelServiceError, match=r"no \[key\] and no \[key\]"):
        embedded(make(api_key="sk-do-not-show", extra_headers={"x-token": "tok-do-not-show"}), "tea")


def test_a_kind_of_server_may_be_named(server: FakeOpenAI, make: MakeEmbedder) -> None:
    embedded(make(server="vllm"), "tea")
    assert server.requests[-1].path == "/v1/embeddings"
    assert "openai-organization" not in server.requests[-1].headers


@pytest.mark.parametrize(
    "wrong", [{"modle": "x"}, {"batch_size": 0}, {"dimension": 0}, {"model": ""}, {"concurrency": 0}], ids=str
)
def test_settings_are_checked_when_it_is_made(make: MakeEmbedder, wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="OpenAIEmbedder: "):
        make(**wrong)


def test_one_text_in_place_of_several_is_refused(make: MakeEmbedder) -> None:
    with pytest.raises(ValueError, match="must be a list of strings"):
        sync.run(make().embed("tea"))


def test_it_can_be_pickled_and_leaves_its_key_behind(make: MakeEmbedder) -> None:
    embedder = make(api_key="sk-secret")
    embedded(embedder, "tea")
    pickled = pickle.dumps(embedder)
    assert b"sk-secret" not in pickled
    again = pickle.loads(pickled)
    assert again.config.api_key is None
    assert embedded(again, "tea") == embedded(embedder, "tea")
    sync.run(again.aclose())


def test_others_do_not_wait_while_one_waits_to_be_asked_again(server: FakeOpenAI, make: MakeEmbedder) -> None:
    server.reply(replies.error(503))
    assert len(embedded(make(batch_size=1, concurrency=1, max_retries=1), *"abc").vectors) == 3
    # The first is asked again after those that did not wait.
    assert [texts_in(request) for request in server.requests] == [["a"], ["b"], ["c"], ["a"]]


def test_after_its_last_attempt_it_says_how_long_to_wait(server: FakeOpenAI, make: MakeEmbedder) -> None:
    server.reply(replies.error(429, "slow down", headers={"Retry-After": "7"}))
    with pytest.raises(RateLimitedError) as caught:
        asyncio.run(make().embed(["tea"]))
    assert caught.value.retry_after_s == 7


def test_a_space_is_the_model_with_what_changes_its_vectors(make: MakeEmbedder) -> None:
    plain = make()
    assert plain.space == f"openai:{plain.config.model}"
    assert make(dimension=8).space == f"{plain.space}:8"
    assert make(document_prefix="passage: ").space == f"{plain.space}::passage: "
    assert make(dimension=8, document_prefix="d").space == f"{plain.space}:8:d"
    assert make(document_prefix="d").space != make(document_prefix="d:").space != make(document_prefix=":").space
    assert make(query_prefix="query: ").space == plain.space
    assert (plain.dimension, make(dimension=8).dimension) == (None, 8)
    assert repr(plain) == f"<OpenAIEmbedder {plain.space}>"


@pytest.mark.parametrize("indexes", [[0, 0], [1, 2], [0], [0, 1, 2], [-1, 0]])
def test_vectors_that_are_numbered_wrongly_are_an_error(
    server: FakeOpenAI, make: MakeEmbedder, indexes: list[int]
) -> None:
    data = [{"index": index, "embedding": [1.0, 2.0]} for index in indexes]
    server.reply(replies.raw(json.dumps({"data": data}).encode()))
    with pytest.raises(
        ModelResponseError, match=rf"sent {len(indexes)} vectors for 2 texts, or numbered them incorrectly"
    ):
        embedded(make(), "a", "b")


def test_vectors_are_in_the_order_of_their_numbers(server: FakeOpenAI, make: MakeEmbedder) -> None:
    data = [{"index": index, "embedding": [float(index), 1.0]} for index in (2, 0, 1)]
    server.reply(replies.raw(json.dumps({"data": data, "usage": {"prompt_tokens": 7}}).encode()))
    answer = embedded(make(), "a", "b", "c")
    assert [vector[0] for vector in answer.vectors] == [0, 1, 2]
    assert (answer.usage.prompt_tokens, answer.usage.total_tokens) == (7, 7)


def test_only_a_refusal_about_base64_is_answered_by_asking_for_numbers(server: FakeOpenAI, make: MakeEmbedder) -> None:
    server.reply(replies.error(400, "no such model"))
    with pytest.raises(ModelServiceError, match="no such model"):
        embedded(make(max_retries=0), "a")
    server.reply(replies.error(503, "encoding_format is broken"))
    with pytest.raises(ModelServiceError, match="HTTP 503"):
        embedded(make(max_retries=0), "a")
    server.reply(replies.error(400, "encoding_format is unknown"))
    with pytest.raises(ModelServiceError, match="encoding_format"):
        embedded(make(max_retries=0, encoding_format="float"), "a")
    assert len(server.requests) == 3
