"""Test that a backend opens no connection before the first call and never reveals its API key."""

# ruff: noqa: S101 - these are tests: they assert, and take fixtures for their effects

from __future__ import annotations

import asyncio
import itertools
import logging
import multiprocessing
import pickle
import traceback
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from jackfield import ModelFacts, sync
from jackfield.errors import JackfieldError, ModelServiceError
from jackfield.models import BaseChatModel
from jackfield.plugins import LLMSpec, default_host
from jackfield_testkit import replies
from jackfield_testkit.server import FakeOpenAI
from jackfield_testkit.suites.given_secrets import HOW_TO_STATE, texts_of, unstated
from jackfield_testkit.suites.llm_asking import API_KEY, HELLO, LIMIT_S, LLMTests, answer_of, connections_to, run_with

_MOST_ERRORS = 50
_FORMS = {"upper case": API_KEY.upper(), "lower case": API_KEY.lower(), "cut": API_KEY[:-2]}


class HygieneTests(LLMTests):
    """Secrets, connections and facts."""

    def test_making_a_model_connects_to_nothing(self, server: FakeOpenAI) -> None:
        model = self.make_model(server.url)
        assert repr(model)
        assert isinstance(model.facts, ModelFacts)
        assert connections_to(server) == 0

    def test_the_proxy_of_the_environment_is_used(self, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
        # The server acts as the proxy: it receives a full URL whose host was not looked up.
        server.reply(replies.text("by proxy"))
        _only_proxy(monkeypatch, server.origin)
        assert answer_of(self.make_model("http://model.invalid/v1")).get_content() == "by proxy"
        assert server.requests[-1].path == "http://model.invalid/v1/chat/completions"

    def test_what_needs_no_proxy_is_asked_without_it(self, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
        server.reply(replies.text("at once"))
        _only_proxy(monkeypatch, "http://127.0.0.1:9", none_for="127.0.0.1")
        assert answer_of(self.make_model(server.url)).get_content() == "at once"

    def test_its_facts_are_facts_and_stay_the_same(self, model: BaseChatModel) -> None:
        facts = model.facts
        assert isinstance(facts, ModelFacts)
        assert facts == model.facts
        assert facts.context_tokens is None or facts.context_tokens > 0
        assert model.backend

    def test_the_key_is_sent_in_a_header_alone(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text("ok"))
        answer_of(model)
        request = server.requests[-1]
        assert request.headers.get("authorization") == f"Bearer {API_KEY}"
        assert API_KEY not in f"{request.native_path} {request.body!r}"
        carrying = [name for name, value in request.native_headers.items() if API_KEY in value]
        assert len(carrying) == 1, f"the key must be sent in a single header, got {carrying}"

    def test_an_extra_header_takes_the_place_of_no_key_and_of_no_content_type(
        self, server: FakeOpenAI, model: BaseChatModel
    ) -> None:
        """Such a call is either rejected (`header_pairs` does this) or sent with the backend's own header."""
        server.default = replies.text("ok")
        answer_of(model)
        before = server.requests[-1].native_headers
        owned = [name for name, value in before.items() if API_KEY in value] + ["content-type"]
        for name in [*owned, *map(str.upper, owned), *map(str.title, owned)]:
            with suppress(JackfieldError):
                answer_of(model, config={"extra_headers": {name: "of-the-caller"}})
            after = server.requests[-1].native_headers
            assert after.get(name.lower()) == before.get(name.lower()), f"the caller's {name} was sent"

    def test_the_key_is_in_no_representation(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text("ok"))
        answer_of(model)
        shown = [*texts_of(model).values(), *texts_of(model.config).values(), model.config.model_dump_json()]
        assert not [text for text in shown if API_KEY in text]

    @pytest.mark.parametrize("place", ["/{}/v1", "/v1?key={}"])
    def test_a_secret_in_an_address_is_in_no_representation_and_in_no_error(
        self, server: FakeOpenAI, place: str
    ) -> None:
        server.default = replies.error(500)
        secret, shown = "Zq83bXw4Rk2LpV7Tn", []
        try:
            model = self.make_model(server.origin + place.format(secret))
            shown += [*texts_of(model).values()][:2]
            shown += [
                f"{model.config!r} {model.config}",
                model.config.model_dump_json(),
                f"{model.config.model_dump()}",
            ]
            assert not unstated(model, [secret]), HOW_TO_STATE
            answer_of(model)
        except JackfieldError as error:  # a backend may refuse such an address
            shown += _all_of(error)
        assert not [text for text in shown if secret in text]

    def test_the_key_is_stated_for_records(self, model: BaseChatModel) -> None:
        assert not unstated(model, [API_KEY]), HOW_TO_STATE

    @pytest.mark.parametrize("status", [400, 401, 429, 500])
    def test_the_key_is_in_no_error_even_if_the_server_repeats_it(
        self, server: FakeOpenAI, model: BaseChatModel, status: int
    ) -> None:
        server.reply(replies.error(status, f"Incorrect API key provided: {API_KEY}.", code="invalid_api_key"))
        with pytest.raises(ModelServiceError) as caught:
            answer_of(model)
        error = caught.value
        assert API_KEY not in f"{error} {error!r} {pickle.dumps(error)!r}"
        assert API_KEY not in "".join(traceback.format_exception(error)), "the key is in the error's cause or context"

    @pytest.mark.parametrize("form", sorted(_FORMS))
    def test_the_key_is_in_no_error_in_whatever_form_and_field_the_server_repeats_it(
        self, server: FakeOpenAI, model: BaseChatModel, form: str
    ) -> None:
        said = _FORMS[form]
        server.reply(
            replies.error(401, f"what is {said}?", code=said, type=said),
            replies.error(400, "no", headers={"x-request-id": said}),
            replies.raw(f"<html>{said}</html>".encode(), status=502),
        )
        for _ in range(3):
            with pytest.raises(ModelServiceError) as caught:
                answer_of(model)
            shown = "".join(_all_of(caught.value))
            assert said[3:].lower() not in shown.lower(), shown

    @pytest.mark.parametrize("failure", ["error", "malformed", "reset", "no connection"])
    def test_the_key_is_in_no_error_of_a_stream_or_a_connection(
        self, server: FakeOpenAI, model: BaseChatModel, failure: str
    ) -> None:
        first = {"choices": [{"index": 0, "delta": {"content": "half"}, "finish_reason": None}]}
        told = {"message": f"the key {API_KEY} was withdrawn", "type": "server_error", "code": API_KEY}
        answers = {
            "error": replies.chunks([first, {"error": told}]),
            "malformed": replies.chunks([first, f'{{"cut {API_KEY}']),
            "reset": replies.text(["half", "x"]).reset_after(1),
        }
        if failure in answers:
            server.reply(answers[failure])
        else:
            server.stop()
        with pytest.raises(ModelServiceError) as caught:
            answer_of(model)
        shown = "".join(_all_of(caught.value))
        assert API_KEY[3:].lower() not in shown.lower(), shown

    @pytest.mark.parametrize("failure", ["refusal", "reset", "no answer"])
    def test_the_key_is_in_no_local_variable_of_an_error(
        self, server: FakeOpenAI, model: BaseChatModel, failure: str
    ) -> None:
        # Error reporting tools record local variables. `jackfield.secrets.ForgetLocals` empties them.
        answers = {
            "refusal": replies.error(401, f"what is {API_KEY}?"),
            "reset": replies.text("some text").reset_after(0),
            "no answer": replies.raw(b"{", status=200),
        }
        server.default = answers[failure]
        with pytest.raises(ModelServiceError) as caught:
            answer_of(model)
        assert not [line for line in _locals_of(caught.value) if API_KEY in line]

    def test_an_address_with_a_password_is_refused_or_used_and_not_shown(
        self, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        _only_proxy(monkeypatch, server.origin)
        server.default = replies.text("ok")
        password = "pass-SECRET-word"  # noqa: S105 - made up
        refused, shown = None, ""
        try:
            model = self.make_model(f"http://user:{password}@model.invalid/v1")
            answer_of(model)
            shown = f"{model!r} {model.config!r} {model.config.model_dump_json()}"
        except JackfieldError as error:
            refused = error
        if refused is not None:
            assert password not in "".join(_all_of(refused))
        else:
            basic = b64encode(f"user:{password}".encode()).decode()
            assert server.requests[-1].headers.get("authorization") == f"Basic {basic}"
            assert password not in shown
        assert password not in "".join(request.native_path for request in server.requests)

    def test_a_key_of_the_environment_goes_to_no_address_that_a_configuration_names(
        self, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        _only_proxy(monkeypatch, server.origin)
        server.default = replies.text("ok")
        named = default_host().spec("llm", self.component, LLMSpec).secrets if self.secrets is None else self.secrets
        for variable in named:
            monkeypatch.setenv(variable, API_KEY)
        with suppress(JackfieldError):  # it may also refuse to ask without a key
            answer_of(self.make_model("http://models.elsewhere.invalid/v1", api_key=None))
        sent = [f"{request.native_path} {request.native_headers}" for request in server.requests]
        assert not [text for text in sent if API_KEY in text], (
            f"{' or '.join(named)} was sent to a URL that was not configured together with the key: "
            "see jackfield_http.keys.find_key"
        )

    def test_the_key_is_in_no_log(
        self, server: FakeOpenAI, model: BaseChatModel, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        server.reply(replies.text("ok"), replies.error(401), replies.text("x").reset_after(0))
        answer_of(model)
        for _ in range(2):
            with pytest.raises(ModelServiceError):
                answer_of(model)
        assert API_KEY not in caplog.text

    def test_nothing_is_printed(
        self, server: FakeOpenAI, model: BaseChatModel, capfd: pytest.CaptureFixture[str]
    ) -> None:
        server.reply(replies.text("ok"), replies.error(500))
        answer_of(model)
        with pytest.raises(ModelServiceError):
            answer_of(model)
        assert capfd.readouterr() == ("", "")

    def test_a_closed_model_can_be_closed_again_and_used_again(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.default = replies.text("ok")

        async def close_and_use() -> str:
            await model.aclose()
            first = (await model.acomplete(HELLO)).get_content()
            await model.aclose()
            await model.aclose()
            return first + (await model.acomplete(HELLO)).get_content()

        assert run_with(model, close_and_use) == "okok"

    def test_closing_a_model_closes_its_connections(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.default = replies.text("ok")

        async def ask_and_close() -> bool:
            await model.acomplete(HELLO)
            await model.aclose()
            # Before the loop ends, which would close everything.
            return await asyncio.to_thread(
                lambda: server.wait_until(lambda s: s.open_connections == 0, timeout_s=self.patience_s)
            )

        assert run_with(model, ask_and_close), "`aclose` leaves connections open"

    # Python 3.12 and later warn about any fork in a threaded process; the test shows that it still works.
    @pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    def test_a_forked_process_can_ask_although_its_parent_has_open_connections(
        self, server: FakeOpenAI, model: BaseChatModel
    ) -> None:
        if "fork" not in multiprocessing.get_all_start_methods():
            pytest.skip("this system does not support fork")
        server.default = replies.text("ok")
        assert sync.run(model.acomplete(HELLO)).get_content() == "ok"
        assert _in_a_fork(lambda: sync.run(model.acomplete(HELLO)).get_content()) == "ok"
        assert sync.run(model.acomplete(HELLO)).get_content() == "ok", "the parent process can no longer call the model"


def _all_of(error: BaseException) -> list[str]:
    """Return the messages of an error and its causes, and its pickle."""
    shown = ["".join(traceback.format_exception(error)), pickle.dumps(error).decode("latin-1")]
    return shown + [f"{one!s} {one!r} {one.args!r} {vars(one)!r}" for one in _with_causes(error)]


def _locals_of(error: BaseException) -> list[str]:
    """Return the local variables in all frames of an error and its causes, except those of tests."""
    found: list[str] = []
    frames = itertools.chain.from_iterable(traceback.walk_tb(one.__traceback__) for one in _with_causes(error))
    for frame, _ in frames:
        where = f"{frame.f_code.co_filename}, {frame.f_code.co_qualname}"
        if "jackfield_testkit" not in where:
            found += [f"{where}: {name} = {value!r}" for name, value in frame.f_locals.items()]
    return found


def _with_causes(error: BaseException) -> list[BaseException]:
    """Return an error and all its causes, even if they refer to each other."""
    found = [error]
    for one in found:  # it grows meanwhile
        found += [other for other in (one.__cause__, one.__context__) if other is not None and other not in found]
    return found[:_MOST_ERRORS]


def _in_a_fork(work: Callable[[], str]) -> str:
    """Return a function's result, or its error, from a child process."""
    context: Any = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def answer() -> None:
        try:
            there.send(work())
        except Exception as error:  # noqa: BLE001 - reported to the caller
            there.send(f"{type(error).__name__}: {error}")

    child = context.Process(target=answer)
    child.start()
    there.close()
    try:
        told: str = here.recv() if here.poll(LIMIT_S) else f"no response within {LIMIT_S:g} s"
    except EOFError:
        told = "no response: the process exited"
    finally:
        child.kill()
        child.join()
    return told


def _only_proxy(monkeypatch: pytest.MonkeyPatch, url: str, *, none_for: str = "") -> None:
    """Set one proxy in the environment and remove all others."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("http_proxy", url)
    monkeypatch.setenv("HTTP_PROXY", url)
    if none_for:
        monkeypatch.setenv("no_proxy", none_for)
        monkeypatch.setenv("NO_PROXY", none_for)
