"""A key stands nowhere but in the header that carries it, and goes nowhere but to the server it was set for.

Every backend, every place a key can be given in, and every place it could surface in.
"""

from __future__ import annotations

import base64
import copy
import itertools
import json
import logging
import os
import pickle
import re
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

import pytest

from jackfield import AgentConfig, create_agent, sync
from jackfield.errors import ConfigError, JackfieldError, ModelAuthError, ModelServiceError
from jackfield.models import get_chat_model
from jackfield.plugins import PluginHost
from jackfield.retrieval import Chunk, Corpus, make_searcher
from jackfield.settings import load_settings
from jackfield_agent_files.files import load_agent_config
from jackfield_testkit import replies
from jackfield_testkit.replies import Reply
from jackfield_testkit.server import FakeOpenAI, RecordedRequest

MARK = "mk-Marked+Secret/7Q9zXw4Rk2Lp"
PIECE = 10  # who has so many characters of it in a row knows it again
ELSEWHERE = "http://models.elsewhere.example/v1"


# --- what sends keys --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asker:
    """How something that sends a key is made, and asked once."""

    kind: str
    name: str
    variable: str
    url_variable: str
    address: str = "base_url"

    def made(self, settings: Mapping[str, Any], host: PluginHost) -> Any:
        settings = {"model": "m", **settings}
        match self.kind:
            case "llm":
                # What is looked for stands in the first error as well: nobody waits for others.
                config = {"model_type": self.name, **settings}
                config["generate_cfg"] = {"max_retries": 0, **settings.get("generate_cfg", {})}
                return get_chat_model(config, host=host)
            case "embedder":
                return host.load("embedder", self.name)(host=host, **{"max_retries": 0, **settings})
        return make_searcher(self.name, {"max_retries": 0, **settings}, host=host)

    def ask(self, made: Any) -> Any:
        match self.kind:
            case "llm":
                return sync.run(made.acomplete([{"role": "user", "content": "hello"}]))
            case "embedder":
                return sync.run(made.embed(["hello"]))
        corpus = Corpus((Chunk("c", "a.txt", "hello world", 0, 2),))
        return sync.run(made.search("hello", corpus, limit=1))

    @property
    def needs_key(self) -> bool:
        return self.variable not in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")

    def is_taken(self, header: str) -> bool:
        """Whether the key is in this header, which nothing else may set."""
        return header.lower() == {"azure": "api-key", "anthropic": "x-api-key"}.get(self.name, "authorization")

    def with_headers(self, headers: Mapping[str, str]) -> dict[str, Any]:
        given = {"extra_headers": dict(headers)}
        return {"generate_cfg": given} if self.kind == "llm" else given


ASKERS = {
    "openai": Asker("llm", "openai", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "responses": Asker("llm", "openai_responses", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "anthropic": Asker("llm", "anthropic", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    "azure": Asker("llm", "azure", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", address="azure_endpoint"),
    "azure-token": Asker("llm", "azure", "AZURE_OPENAI_AD_TOKEN", "AZURE_OPENAI_ENDPOINT", address="azure_endpoint"),
    "dashscope": Asker("llm", "qwen_dashscope", "DASHSCOPE_API_KEY", "DASHSCOPE_HTTP_URL"),
    "dashscope-vl": Asker("llm", "qwenvl_dashscope", "DASHSCOPE_API_KEY", "DASHSCOPE_HTTP_URL"),
    "dashscope-audio": Asker("llm", "qwenaudio_dashscope", "DASHSCOPE_API_KEY", "DASHSCOPE_HTTP_URL"),
    "openai-embedder": Asker("embedder", "openai", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "dashscope-embedder": Asker("embedder", "dashscope", "DASHSCOPE_API_KEY", "DASHSCOPE_HTTP_URL"),
    "dashscope-rerank": Asker("searcher", "dashscope_rerank", "DASHSCOPE_API_KEY", "DASHSCOPE_HTTP_URL"),
}
HEADERS = ("Authorization", "x-api-key", "Api-Key", "Cookie", "X-Goog-Signature", "X-Plain")
PLACES = ("argument", "environment", "file", *HEADERS)


@pytest.fixture(params=sorted(ASKERS))
def asker(request: pytest.FixtureRequest) -> Asker:
    return ASKERS[request.param]


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """No key, address, file or proxy of the developer."""
    for asker in ASKERS.values():
        monkeypatch.delenv(asker.variable, raising=False)
        monkeypatch.delenv(asker.url_variable, raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("DASHSCOPE_CONFIG", str(tmp_path / "none.toml"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-the-environment")
    return monkeypatch


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        yield server


@pytest.fixture
def proxied(server: FakeOpenAI, bare: pytest.MonkeyPatch) -> FakeOpenAI:
    """A server that is asked whatever the address is: it stands where the proxy is."""
    bare.setenv("http_proxy", server.origin)
    return server


def host_now() -> PluginHost:
    """The plugins, with the settings of now. One host for all tests with the same file, for each looks for plugins."""
    file = Path(os.environ["XDG_CONFIG_HOME"], "jackfield/config.toml")
    return _host_with(file.read_text() if file.exists() else "")


@cache
def _host_with(_file: str) -> PluginHost:
    return PluginHost(load_settings())


def given_in(place: str, asker: Asker, url: str, bare: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """The settings with which the mark is sent from this place."""
    settings: dict[str, Any] = {asker.address: url}
    match place:
        case "argument":
            name = "azure_ad_token" if asker.variable.endswith("TOKEN") else "api_key"
            return {**settings, name: MARK}
        case "environment":
            bare.setenv(asker.variable, MARK)
            return settings
        case "file":
            (tmp_path / "jackfield").mkdir()
            (tmp_path / "jackfield/config.toml").write_text(f'[secrets]\n{asker.variable} = "{MARK}"\n')
            return settings
    if asker.is_taken(place) and not asker.needs_key:
        return {**settings, **asker.with_headers({place: f"Bearer {MARK}"})}  # it lets its user in instead of a key
    value = f"Bearer {MARK}" if place == "Authorization" else f"session={MARK}" if place == "Cookie" else MARK
    return {**settings, "api_key": "another-key-altogether", **asker.with_headers({place: value})}


# --- where it may surface ---------------------------------------------------------------------------------------------


def pieces_of(secret: str) -> set[str]:
    forms = [secret, quote(secret, safe=""), base64.b64encode(f"user:{secret}".encode()).decode().rstrip("=")[8:-2]]
    return {form[at : at + PIECE].lower() for form in forms for at in range(len(form) - PIECE + 1)}


PIECES = pieces_of(MARK)


def leaks(text: str | bytes) -> str:
    """Where in a text the mark stands, '' if it does not: whole or in part, in any case, encoded or not."""
    lowered = (text if isinstance(text, str) else text.decode("latin-1")).lower()
    found = next((lowered.find(piece) for piece in PIECES if piece in lowered), -1)
    return "" if found < 0 else lowered[max(0, found - 120) : found + 40]


def frames_of(trace: TracebackType | None) -> Iterator[str]:
    """The local variables of every frame but those of this file, as tools that report errors write them down."""
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename != __file__:
            for name, value in trace.tb_frame.f_locals.items():
                yield f"{code.co_filename}:{code.co_name}: {name} = {value!r}"
        trace = trace.tb_next


def all_of(error: BaseException) -> Iterator[str]:
    """Everything that is known of an error and of all it was raised from."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield f"{one!s} {one!r} {one.args!r} {vars(one)!r}"
        yield from frames_of(one.__traceback__)
        waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
    yield "".join(traceback.format_exception(error))
    yield pickle.dumps(error).decode("latin-1")


def shown_of(made: Any) -> Iterator[str]:
    """Every form in which something that has a key can be looked at."""
    config = getattr(made, "config", None) or made._config
    yield f"{made!r} {made!s} {config!r} {config!s} {copy.deepcopy(config)!r} {copy.copy(config)!r}"
    yield f"{config.model_dump()!r} {config.model_dump_json()} {config.model_dump(mode='json')!r}"
    yield pickle.dumps(config).decode("latin-1")
    yield repr(vars(made))
    yield f"{getattr(made, 'server_name', '')} {getattr(made, 'space', '')}"


def check(texts: Iterator[str]) -> None:
    found = [leak for text in texts if (leak := leaks(text))]
    assert not found, found[0]


FORMS = {
    "as it is": MARK,
    "upper": MARK.upper(),
    "lower": MARK.lower(),
    "percent": quote(MARK, safe=""),
    "basic": "Basic " + base64.b64encode(f"user:{MARK}".encode()).decode(),
    "cut": "x" * 485 + MARK,
    "half": f"{MARK[:14]}... is no key",
}
"""How servers repeat a key."""


def echoes(place: str) -> Iterator[tuple[str, Reply]]:
    """Answers that repeat the key: in all parts of an answer, and in all forms.

    From where a key is known, how it is written and which part of an answer repeats it do not depend on each other: all
    parts are tried with a key that is an argument, all forms with two parts, and each place with two forms.
    """
    yield "reset", replies.text("some text").reset_after(0)
    if place == "argument":
        # One that is cut is found only by those who look for it before they cut.
        for form in ("as it is", "cut"):
            yield from zip(itertools.repeat(form), parts_with(FORMS[form]), strict=False)
    for form in FORMS if place in ("argument", "Authorization") else ("as it is", "basic"):
        yield form, replies.error(401, f"what is {FORMS[form]}", code=FORMS[form], type=FORMS[form])
        yield form, replies.raw(f"<html>{FORMS[form]}</html>".encode(), status=502)


def parts_with(said: str) -> Iterator[Reply]:
    """Answers that have a text in one part each."""
    for status in (400, 401, 429, 500):
        yield replies.error(status, f"what is {said}", code=said, type=said)
    yield replies.error(401, headers={"x-request-id": said, "set-cookie": f"k={said}"})
    yield replies.raw(json.dumps({"detail": [{"input": {"k": said}}]}).encode(), status=422)
    yield replies.raw(json.dumps({"code": said, "message": said, "request_id": said}).encode(), status=403)
    yield replies.raw(json.dumps([said]).encode())
    yield replies.chunks([{"error": {"message": said, "code": said, "type": said}}])
    yield replies.raw(f"data: {said}\n\n".encode(), headers={"content-type": "text/event-stream"})
    yield replies.raw(("{" + " " * (985 - len(said)) + said).encode())


@pytest.mark.parametrize("place", PLACES)
def test_a_key_is_nowhere_to_be_seen(
    asker: Asker,
    place: str,
    server: FakeOpenAI,
    bare: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    settings = given_in(place, asker, server.url, bare, tmp_path)
    made = asker.made(settings, host_now())
    check(shown_of(made))
    if asker.is_taken(place) and asker.needs_key:
        with pytest.raises(ConfigError, match="extra_headers") as refused:
            asker.ask(made)
        check(all_of(refused.value))
        assert server.requests == []
        return
    for name, reply in echoes(place):
        server.reply(reply)
        before = len(server.requests)
        with pytest.raises(ModelServiceError) as caught:
            asker.ask(made)
        sent = [request for request in server.requests[before:] if leaks(str(request.headers))]
        assert sent, "the key was not sent: nothing is tested"
        assert not leaks(f"{[(r.path, r.body) for r in sent]!r}"), "it is in more than a header"
        found = [leak for text in all_of(caught.value) if (leak := leaks(text))]
        assert not found, (name, found[0])
    check(shown_of(made))
    server.stop()
    with pytest.raises(ModelServiceError) as caught:
        asker.ask(made)
    check(all_of(caught.value))
    check(iter([caplog.text, *capfd.readouterr()]))


@pytest.mark.parametrize("wrong", [{"no_such_key": 1}, {"max_retries": MARK}, {"model": [MARK]}])
def test_a_configuration_that_does_not_fit_shows_no_key(asker: Asker, wrong: dict[str, Any], bare: Any) -> None:
    key = {"api_key": MARK, **asker.with_headers({"Authorization": MARK})}
    with pytest.raises((JackfieldError, ValueError)) as caught:
        asker.made({**key, **wrong}, host_now())
    check(all_of(caught.value))
    if asker.kind == "llm":
        with pytest.raises((JackfieldError, ValueError)) as caught:
            create_agent({"llm": {"model_type": asker.name, "model": "m", **key, **wrong}}, host=host_now())
        check(all_of(caught.value))


def test_a_key_that_no_header_can_carry_is_not_shown(asker: Asker, server: FakeOpenAI, bare: Any) -> None:
    for odd in (f"{MARK}\nx", f"{MARK}é"):
        made = asker.made({asker.address: server.url, "api_key": odd}, host_now())
        with pytest.raises(ConfigError) as caught:
            asker.ask(made)
        check(all_of(caught.value))
        check(shown_of(made))


# --- user names and passwords in addresses ----------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["settings", "environment"])
def test_an_address_with_a_password_is_refused_and_not_shown(
    asker: Asker, where: str, proxied: FakeOpenAI, bare: pytest.MonkeyPatch
) -> None:
    url = f"http://user:{quote(MARK, safe='')}@models.example/v1"
    if where == "environment":
        bare.setenv(asker.url_variable, url)
    with pytest.raises(ConfigError, match="user name") as caught:
        asker.ask(
            asker.made({"api_key": "k" * 12, **({asker.address: url} if where == "settings" else {})}, host_now())
        )
    check(all_of(caught.value))
    assert not proxied.requests


# --- where a key goes -------------------------------------------------------------------------------------------------


def sent_to(server: FakeOpenAI) -> str:
    return " ".join(f"{request.path} {request.headers} {request.body!r}" for request in server.requests)


def refused(asker: Asker, settings: Mapping[str, Any]) -> str:
    with pytest.raises((ModelAuthError, ConfigError)) as caught:
        asker.ask(asker.made(settings, host_now()))
    return str(caught.value)


@pytest.mark.parametrize("place", ["environment", "file"])
def test_a_key_of_the_environment_does_not_go_to_an_address_from_elsewhere(
    asker: Asker, place: str, proxied: FakeOpenAI, bare: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    proxied.default = replies.error(401, "who are you?")
    settings = given_in(place, asker, "", bare, tmp_path)
    evil = ("http://api.openai.com.evil.example/v1", "http://localhost.evil.example/v1", "http://10.0.0.7/v1")
    for url in (ELSEWHERE, *evil):
        told = refused(asker, {**settings, asker.address: url})
        assert not leaks(sent_to(proxied))
        assert "org-of-the-environment" not in sent_to(proxied)
        wanted = rf"{asker.variable} is not sent to .*set api_key next to the URL.*{asker.url_variable}"
        assert re.search(wanted, told), url


def test_a_key_goes_to_the_address_it_is_configured_with(
    asker: Asker, proxied: FakeOpenAI, bare: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    proxied.default = replies.error(401)
    refused(asker, given_in("argument", asker, ELSEWHERE, bare, tmp_path))
    assert leaks(sent_to(proxied))


def test_a_key_of_the_environment_goes_to_the_address_of_the_environment(
    asker: Asker, proxied: FakeOpenAI, bare: pytest.MonkeyPatch
) -> None:
    bare.setenv(asker.variable, MARK)
    bare.setenv(asker.url_variable, ELSEWHERE)
    proxied.default = replies.error(401)
    refused(asker, {})
    assert leaks(sent_to(proxied))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_key_of_the_environment_goes_to_this_machine(
    asker: Asker, host: str, server: FakeOpenAI, bare: pytest.MonkeyPatch
) -> None:
    bare.setenv(asker.variable, MARK)
    server.default = replies.error(401)
    refused(asker, {asker.address: server.url.replace("127.0.0.1", host)})
    assert leaks(sent_to(server))


@pytest.mark.parametrize("asker", [asker for asker in ASKERS.values() if asker.kind == "llm"], ids=str)
def test_servers_of_the_environment_have_names_of_their_own(asker: Asker, bare: pytest.MonkeyPatch) -> None:
    names = set()
    for url in ("https://one.example/v1", "https://two.example/v1"):
        bare.setenv(asker.url_variable, url)
        names.add(asker.made({}, host_now()).server_name)
    assert names == {f"{asker.name}@one.example", f"{asker.name}@two.example"}


# --- agents as data ---------------------------------------------------------------------------------------------------


AGENT = {
    "llm": {
        "model": "m",
        "model_type": "openai",
        "api_key": MARK,
        "base_url": f"http://u:{MARK}@h",
        "generate_cfg": {"extra_headers": {"Authorization": MARK}},
        "processors": [{"name": "x", "api_key": MARK}],
    },
    "function_list": [{"name": "search", "api_key": MARK, "servers": [{"auth_token": MARK}]}],
    "rag_cfg": {"password": MARK},
    "extra_generate_cfg": {"extra_headers": {"Cookie": MARK}},
}


def test_an_agent_as_data_shows_no_key() -> None:
    config = AgentConfig.parse(AGENT)
    shown = [
        repr(config),
        str(config),
        repr(config.model_dump()),
        config.model_dump_json(),
        repr(copy.deepcopy(config)),
    ]
    check(iter([*shown, pickle.dumps(config).decode("latin-1")]))
    assert isinstance(config.llm, dict)
    assert config.llm["api_key"] == MARK, "who makes the model still gets it"


@pytest.mark.parametrize("kind", ["yaml", "toml", "json"])
def test_a_file_that_cannot_be_read_shows_no_key(kind: str, tmp_path: Path) -> None:
    file = tmp_path / f"agent.{kind}"
    for text in (
        f"llm:\n  api_key: {MARK}: x\n",
        f"llm:\n  api_key: '{MARK}\n",
        f'llm = {{ api_key = "{MARK} }}\n',
        f"[llm]\napi_key = {MARK}\n",
        f'{{"llm": {{"api_key": "{MARK}",}}',
        f'{{"llm": {{"api_key": {MARK}',
        f"api_key: {MARK}\n",
        f"{MARK}: 1\n" * 2,
        f"- {MARK}",
    ):
        file.write_text(text)
        with pytest.raises(ConfigError) as caught:
            create_agent(load_agent_config(file))
        if not text.startswith(MARK):  # a name that is not known is shown: it is no value
            check(all_of(caught.value))


def test_every_reply_of_these_tests_is_asked_for(server: FakeOpenAI) -> None:
    """The forms that are looked for are those that servers write."""
    assert all(leaks(form) for form in (MARK, MARK.upper(), quote(MARK, safe=""), f"..{MARK[3:15]}"))
    assert leaks(base64.b64encode(f"user:{MARK}".encode()))
    assert not leaks("mk-Marked")
    assert RecordedRequest.__dataclass_fields__["headers"]
