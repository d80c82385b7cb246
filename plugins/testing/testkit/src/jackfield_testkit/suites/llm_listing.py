"""Test how a backend lists its server's models."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

import json

import pytest

from jackfield.errors import (
    ConfigError,
    ModelAuthError,
    ModelConnectionError,
    ModelNotFoundError,
    ModelResponseError,
    ModelServiceError,
    ModelTimeoutError,
)
from jackfield.models import BaseChatModel, ListsModels
from jackfield_testkit import replies
from jackfield_testkit.server import FakeOpenAI
from jackfield_testkit.suites.llm_asking import API_KEY, TIME_OUTS_S, LLMTests, connections_to, run_with


class ListingTests(LLMTests):
    """`alist_models`: the list is complete, and errors are the same as for requests.

    The tests are skipped if a backend does not have this method or does not support it.
    """

    def test_a_list_that_the_service_does_not_have_is_refused_before_any_request(self, server: FakeOpenAI) -> None:
        model = self.make_model(server.url)
        if not isinstance(model, ListsModels):
            pytest.skip("the model has no alist_models")
        refusal: ConfigError | None = None
        try:
            run_with(model, model.alist_models)
        except ConfigError as error:
            refusal = error
        if refusal is not None:
            assert server.listings == []
            assert connections_to(server) == 0
            assert model.backend.lower() in str(refusal).lower(), "the error does not name the backend"

    def test_all_models_are_listed_once_and_in_order_however_many_pages_they_take(self, server: FakeOpenAI) -> None:
        model = self._lister(server)
        for names in ([], ["one"], [f"model-{number:03}" for number in range(250, 0, -1)]):
            server.models = tuple(names)
            assert _list(model) == names

    def test_a_list_is_asked_for_with_the_key_in_one_header(self, server: FakeOpenAI) -> None:
        _list(self._lister(server))
        for request in server.listings:
            assert sum(API_KEY in value for value in request.headers.values()) == 1
            assert API_KEY not in request.path

    @pytest.mark.parametrize(
        ("status", "error_class"),
        [(401, ModelAuthError), (403, ModelAuthError), (404, ModelNotFoundError), (500, ModelServiceError)],
    )
    def test_a_refused_list_has_the_error_of_a_refused_request(
        self, server: FakeOpenAI, status: int, error_class: type[ModelServiceError]
    ) -> None:
        model = self._lister(server)
        server.reply_to_listing(replies.error(status, "because of reasons"))
        error = _error_of(model)
        assert isinstance(error, error_class)
        assert (error.status, error.backend) == (status, model.backend)
        assert "because of reasons" in str(error), "the server's message is missing"

    def test_a_list_is_retried_as_often_as_requests_are(self, server: FakeOpenAI) -> None:
        model = self._lister(server, generate_cfg={"max_retries": 1})
        busy = replies.error(429, "slow down", headers={"Retry-After": "0"})
        server.reply_to_listing(busy)
        assert _list(model) == list(server.models)
        server.reply_to_listing(busy, busy, busy)
        assert _error_of(model).status == 429

    @pytest.mark.parametrize("body", ["<html>", "null", "[]", "{}", '{"data": 3}', '{"data": [3]}', '{"output": []}'])
    def test_an_answer_that_is_no_list_is_an_error(self, server: FakeOpenAI, body: str) -> None:
        model = self._lister(server)
        server.reply_to_listing(replies.raw(body.encode()))
        error = _error_of(model)
        assert isinstance(error, ModelResponseError)
        assert "list of models" in str(error)

    def test_a_server_that_does_not_answer_ends_at_the_time_out(self, server: FakeOpenAI) -> None:
        self._lister(server)
        error: ModelServiceError | None = None
        for seconds in TIME_OUTS_S:
            server.clear()
            server.reply_to_listing(replies.raw(b"{}").delayed(60))
            error = _error_of(self.make_model(server.url, generate_cfg={"request_timeout": seconds}))
            if server.listings:  # otherwise the machine was too busy to connect
                break
        assert isinstance(error, ModelTimeoutError)

    def test_a_broken_connection_is_an_error(self, server: FakeOpenAI) -> None:
        model = self._lister(server)
        server.reply_to_listing(replies.raw(b"{}").closing(unanswered=True))
        assert isinstance(_error_of(model), ModelConnectionError)

    def test_a_server_that_repeats_its_first_page_does_not_keep_the_client(self, server: FakeOpenAI) -> None:
        model = self._lister(server)
        server.models = tuple(f"model-{number:03}" for number in range(250))
        first = server.dialect.list_models(server.models, {"limit": "100", "page_size": "100"})
        server.reply_to_listing(*[replies.raw(first)] * 20)
        assert _list(model) == _names_in(first)
        assert len(server.listings) <= 3

    def _lister(self, server: FakeOpenAI, **overrides: object) -> BaseChatModel:
        model = self.make_model(server.url, **overrides)
        if not isinstance(model, ListsModels):
            pytest.skip("the model has no alist_models")
        try:
            _list(model)
        except ConfigError as error:
            pytest.skip(f"the model does not support listing models: {error}")
        server.clear()
        return model


def _error_of(model: BaseChatModel) -> ModelServiceError:
    with pytest.raises(ModelServiceError) as caught:
        _list(model)
    return caught.value


def _list(model: BaseChatModel) -> list[str]:
    assert isinstance(model, ListsModels)
    return run_with(model, model.alist_models)


def _names_in(page: bytes) -> list[str]:
    value = json.loads(page)
    entries = value["output"]["models"] if "output" in value else value["data"]
    return [entry.get("id") or entry["model"] for entry in entries]
