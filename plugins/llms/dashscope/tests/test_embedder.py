"""Texts as vectors, asked for over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jackfield import sync
from jackfield.errors import (
    ConfigError,
    ContentFilterError,
    ContextLengthError,
    MissingSecretError,
    ModelAuthError,
    ModelResponseError,
    ModelServiceError,
    RateLimitedError,
)
from jackfield.messages import Usage
from jackfield.plugins import PluginHost
from jackfield.retrieval import Embedded, Embedder
from jackfield.settings import Settings
from jackfield_dashscope.embedder import DashScopeEmbedder
from jackfield_testkit import replies
from jackfield_testkit.dashscope import DashScopeRequest, FakeDashScope
from jackfield_testkit.embeddings import tokens_in, vector_of
from jackfield_testkit.replies import Reply
from jackfield_testkit.server import RecordedRequest

PATH = "/api/v1/services/embeddings/text-embedding/text-embedding"

MakeEmbedder = Callable[..., DashScopeEmbedder]


@pytest.fixture
def make_embedder(server: FakeDashScope, clean_environment: pytest.MonkeyPatch) -> Iterator[MakeEmbedder]:
    """Makes embedders that ask the server, and closes them."""
    made: list[DashScopeEmbedder] = []
    host = PluginHost(Settings())

    def make(**settings: Any) -> DashScopeEmbedder:
        given = {"base_url": server.url, "api_key": "sk-test", "max_retries": 0, **settings}
        asked = {"model": "text-embedding-v4", **given}
        made.append(host.make(host.find("embedder", "dashscope"), asked, Embedder))
        return made[-1]

    yield make
    for embedder in made:
        sync.run(embedder.aclose())


def embed(embedder: DashScopeEmbedder, *texts: str, **options: Any) -> Embedded:
    return sync.run(embedder.embed(texts, **options))


def native(server: FakeDashScope) -> list[dict[str, Any]]:
    """The bodies of all requests, as they were sent."""
    return [request.native for request in server.requests if isinstance(request, DashScopeRequest)]


def answer(*vectors: list[float], tokens: int = 3) -> Reply:
    items = [{"text_index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    return output({"embeddings": items}, usage={"total_tokens": tokens})


def output(value: Any, **more: Any) -> Reply:
    return replies.raw(json.dumps({"output": value, **more}).encode())


# --- the request ---


def test_texts_are_sent_natively_with_what_they_are_for(server: FakeDashScope, make_embedder: MakeEmbedder) -> None:
    embedder = make_embedder(dimension=256, instruct="Find the tea")
    embed(embedder, "a", "b")
    embed(embedder, "q", purpose="query")
    assert server.requests[0].native_path == PATH  # type: ignore[attr-defined]
    assert native(server) == [
        {
            "model": "text-embedding-v4",
            "input": {"texts": ["a", "b"]},
            "parameters": {"text_type": "document", "dimension": 256, "output_type": "dense"},
        },
        {
            "model": "text-embedding-v4",
            "input": {"texts": ["q"]},
            "parameters": {
                "text_type": "query",
                "dimension": 256,
                "output_type": "dense",
                "instruct": "Find the tea",
            },
        },
    ]
    assert "x-dashscope-sse" not in server.requests[0].headers


def test_the_key_and_the_workspace_are_this_embedders_own(server: FakeDashScope, make_embedder: MakeEmbedder) -> None:
    embed(make_embedder(api_key="sk-one", workspace="ws-one"), "a")
    embed(make_embedder(api_key="sk-two", extra_headers={"X-Note": "n"}), "a")
    first, second = (request.headers for request in server.requests)
    assert (first["authorization"], first["x-dashscope-workspace"]) == ("Bearer sk-one", "ws-one")
    assert (second["authorization"], second["x-note"]) == ("Bearer sk-two", "n")


def test_extra_body_is_put_over_the_parameters(server: FakeDashScope, make_embedder: MakeEmbedder) -> None:
    embed(make_embedder(extra_body={"output_type": "dense", "text_type": "query"}), "a")
    assert native(server)[0]["parameters"] == {"text_type": "query", "output_type": "dense"}


def test_nothing_is_asked_for_no_texts(server: FakeDashScope, make_embedder: MakeEmbedder) -> None:
    assert embed(make_embedder()) == Embedded(())
    assert server.requests == []


def test_an_empty_text_is_refused_by_its_number_before_anything_is_sent(
    server: FakeDashScope, make_embedder: MakeEmbedder
) -> None:
    with pytest.raises(ValueError, match="text 2 is empty"):
        embed(make_embedder(), "a", "b", "", "")
    assert server.requests == []


def test_the_address_of_the_sdks_name_wins(server: FakeDashScope, make_embedder: MakeEmbedder) -> None:
    embed(make_embedder(base_url="http://127.0.0.1:1/api/v1", base_http_api_url=server.url), "a")
    assert len(server.requests) == 1


def test_no_secret_that_a_server_repeats_is_shown(server: FakeDashScope, make_embedder: MakeEmbedder) -> None:
    for reply in (
        replies.error(400, "no sk-do-not-show and no tok-do-not-show"),
        replies.raw(b'{"code": "New", "message": "no sk-do-not-show and no tok-do-not-show"}'),
    ):
        server.reply(reply)
        with pytest.raises(ModelServiceError, match=r"no \[key\] and no \[key\]"):
            embed(make_embedder(api_key="sk-do-not-show", extra_headers={"x-token": "tok-do-not-show"}), "a")


def test_without_a_key_the_variable_is_named(make_embedder: MakeEmbedder) -> None:
    with pytest.raises(MissingSecretError, match=r"^embedder dashscope needs .*DASHSCOPE_API_KEY"):
        embed(make_embedder(api_key=None), "a")


@pytest.mark.parametrize("wrong", [{"model": ""}, {"dimension": 0}, {"batch_size": 0}, {"modell": "x"}])
def test_settings_that_do_not_fit_are_told_when_it_is_made(make_embedder: MakeEmbedder, wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        make_embedder(**wrong)


# --- batches ---


def test_batches_keep_the_order_and_their_counts_are_added(server: FakeDashScope, make_embedder: MakeEmbedder) -> None:
    texts = [f"text number {number}" for number in range(27)]
    found = embed(make_embedder(), *texts)
    assert sorted(len(body["input"]["texts"]) for body in native(server)) == [7, 10, 10]
    assert list(found.vectors) == [vector_of(text) for text in texts]
    assert found.usage == Usage(prompt_tokens=tokens_in(texts), total_tokens=tokens_in(texts))


def test_no_more_requests_are_on_their_way_than_allowed(server: FakeDashScope, make_embedder: MakeEmbedder) -> None:
    server.default = answer([1.0]).delayed(0.05)
    most = 0

    async def work() -> None:
        nonlocal most
        asking = asyncio.create_task(make_embedder(batch_size=1, concurrency=3).embed(["a"] * 12))
        while not asking.done():
            most = max(most, server.open_streams)
            await asyncio.sleep(0.005)
        await asking

    sync.run(work())
    assert most == server.connections == 3


def test_vectors_are_put_in_the_order_of_their_numbers(server: FakeDashScope, make_embedder: MakeEmbedder) -> None:
    items = [{"text_index": 1, "embedding": [1, 0]}, {"text_index": 0, "embedding": [0, 1]}]
    server.reply(output({"embeddings": items}))
    assert embed(make_embedder(), "a", "b").vectors == ((0.0, 1.0), (1.0, 0.0))


def test_one_that_fails_ends_the_others(server: FakeDashScope, make_embedder: MakeEmbedder) -> None:
    def respond(request: RecordedRequest) -> Reply:
        bad = request.json["input"] == ["bad"]
        return replies.error(401, "no", code="invalid_api_key") if bad else answer([1.0]).delayed(30)

    server.respond(respond)
    with pytest.raises(ModelAuthError):
        embed(make_embedder(batch_size=1), "a", "b", "bad")
    assert server.wait_until(lambda s: s.open_streams == 0)


# --- what goes wrong ---


def test_what_may_succeed_is_tried_again_as_often_as_allowed(
    server: FakeDashScope, make_embedder: MakeEmbedder
) -> None:
    server.reply(replies.error(429, headers={"Retry-After": "0"}), replies.error(503), answer([1.0, 0.0]))
    assert embed(make_embedder(max_retries=2), "a").vectors == ((1.0, 0.0),)
    assert len(server.requests) == 3


def test_what_cannot_succeed_is_not_tried_again(server: FakeDashScope, make_embedder: MakeEmbedder) -> None:
    server.reply(replies.error(400, "Range of input length should be [1, 8192]"))
    with pytest.raises(ContextLengthError):
        embed(make_embedder(max_retries=5), "a")
    assert len(server.requests) == 1


def test_without_retries_the_first_error_is_raised_with_what_the_server_asks(
    server: FakeDashScope, make_embedder: MakeEmbedder
) -> None:
    server.reply(replies.error(429, headers={"Retry-After": "7"}))
    with pytest.raises(RateLimitedError) as caught:
        embed(make_embedder(), "a")
    assert (caught.value.retry_after_s, caught.value.backend) == (7.0, "dashscope")


def test_an_error_that_calls_itself_a_success_is_an_error(server: FakeDashScope, make_embedder: MakeEmbedder) -> None:
    server.reply(replies.raw(b'{"code":"DataInspectionFailed","message":"no","request_id":"abc"}'))
    with pytest.raises(ContentFilterError) as caught:
        embed(make_embedder(), "a")
    assert caught.value.request_id == "abc"


def test_an_error_in_an_answer_may_have_a_code_alone(server: FakeDashScope, make_embedder: MakeEmbedder) -> None:
    server.reply(replies.raw(b'{"code":"DataInspectionFailed"}'))
    with pytest.raises(ContentFilterError):
        embed(make_embedder(), "a")


@pytest.mark.parametrize(
    "reply",
    [
        replies.raw(b"<html>"),
        replies.raw(b"[" * 20_000),
        replies.raw(b"[" * 20_000 + b"]" * 20_000),
        replies.raw(b'{"output": ' * 20_000 + b"0" + b"}" * 20_000),
        replies.raw(b'{"message": "a status without a code"}'),
        output(1),
        output({"embeddings": [{"text_index": 0, "embedding": ["x"]}]}),
        output({"embeddings": []}),
        output({"embeddings": [{"text_index": 1, "embedding": [1.0]}]}),
        output({"embeddings": [{"text_index": 0, "embedding": [1.0]}, {"text_index": 0, "embedding": [1.0]}]}),
        output({"embeddings": [{"text_index": 0, "embedding": []}]}),
        output({"embeddings": [{"text_index": 0, "embedding": [1.0, 2.0]}]}),
    ],
)
def test_what_are_no_vectors_for_these_texts_is_an_error(
    server: FakeDashScope, make_embedder: MakeEmbedder, reply: Reply
) -> None:
    server.reply(reply)
    with pytest.raises(ModelResponseError):
        embed(make_embedder(dimension=1), "a")


def test_vectors_of_different_lengths_are_an_error(server: FakeDashScope, make_embedder: MakeEmbedder) -> None:
    server.reply(answer([1.0]), answer([1.0, 2.0]))
    with pytest.raises(ModelResponseError, match="different lengths"):
        embed(make_embedder(batch_size=1), "a", "b")


# --- what it says of itself ---


def test_the_space_is_the_model_and_the_dimension(make_embedder: MakeEmbedder) -> None:
    plain, short = make_embedder(), make_embedder(dimension=256)
    assert (plain.space, plain.dimension) == ("dashscope:text-embedding-v4", None)
    assert (short.space, short.dimension) == ("dashscope:text-embedding-v4/256", 256)


def test_half_a_character_costs_no_vector(server: FakeDashScope, make_embedder: MakeEmbedder) -> None:
    embed(make_embedder(), "a\ud83d")
    assert native(server)[0]["input"]["texts"] == ["a\ufffd"]


def test_vectors_are_those_that_the_sdk_gets(server: FakeDashScope, make_embedder: MakeEmbedder) -> None:
    import dashscope

    ours = embed(make_embedder(dimension=128), "green tea", "绿茶", purpose="query")
    with dashscope.Client(api_key="sk-test", base_url=server.url) as client:
        theirs = client.embeddings.create(
            model="text-embedding-v4",
            input=["green tea", "绿茶"],
            text_type="query",
            dimension=128,
            output_type="dense",
        )
    assert [list(vector) for vector in ours.vectors] == [item.embedding for item in theirs.embeddings]
    first, second = native(server)
    assert first == second
