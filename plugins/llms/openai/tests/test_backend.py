"""The backend over real connections: where it asks, as whom, and what it keeps open."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gc
import http.server
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from jackfield import sync
from jackfield.errors import (
    ConfigError,
    MissingSecretError,
    ModelAuthError,
    ModelConnectionError,
    ModelRequestError,
    ModelTimeoutError,
    UnsupportedInputError,
)
from jackfield.events import ModelEvent, TextDelta
from jackfield.messages import Message
from jackfield.plugins.host import PluginHost
from jackfield.settings import Settings
from jackfield_openai.backend import OpenAIChat
from jackfield_testkit.server import FakeOpenAI, error, raw, text

MakeModel = Callable[..., OpenAIChat]
HELLO = [Message("user", "hello")]
ANSWER = b'{"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}'


def ask(model: OpenAIChat) -> str:
    return sync.run(model.acomplete(HELLO)).get_content()


class _Answerer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@contextlib.contextmanager
def answering(
    handler: type[_Answerer], context: ssl.SSLContext | None = None, *, address: str = "127.0.0.1"
) -> Iterator[str]:
    """Another server than the usual one; gives its base URL."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server_class = type("Server", (http.server.ThreadingHTTPServer,), {"address_family": family})
    with server_class((address, 0), handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            host = f"[{address}]" if ":" in address else "localhost"
            yield f"{'https' if context else 'http'}://{host}:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


def stream(model: OpenAIChat) -> AsyncGenerator[ModelEvent, None]:
    return cast("AsyncGenerator[ModelEvent, None]", model.stream(model.make_request(HELLO)))


# --- where, and as whom ---


def test_the_first_address_given_is_asked(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(text("hello"))
    nowhere = "http://127.0.0.1:1/v1"
    assert ask(make_model(api_base=server.url, base_url=nowhere, model_server=nowhere)) == "hello"
    assert server.requests[0].path == "/v1/chat/completions"


def test_an_address_with_a_slash_at_its_end_is_the_same(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(text("hello"))
    ask(make_model(base_url=server.url + "/"))
    assert server.requests[0].path == "/v1/chat/completions"


def test_the_address_may_come_from_the_environment(
    server: FakeOpenAI, make_model: MakeModel, clean_environment: pytest.MonkeyPatch
) -> None:
    clean_environment.setenv("OPENAI_BASE_URL", server.url)
    server.reply(text("hello"))
    assert ask(make_model(base_url=None)) == "hello"


def test_an_address_without_a_scheme_is_refused(make_model: MakeModel) -> None:
    with pytest.raises(ConfigError, match="http://"):
        ask(make_model(base_url="localhost:8000/v1"))


def test_the_configured_key_wins_over_the_environments_and_a_server_of_ones_own_needs_none(
    server: FakeOpenAI, make_model: MakeModel, clean_environment: pytest.MonkeyPatch
) -> None:
    server.default = text("hello")
    ask(make_model())
    clean_environment.setenv("OPENAI_API_KEY", "sk-environment")
    ask(make_model())
    ask(make_model(api_key=" sk-configured\n"))
    sent = [request.headers["authorization"] for request in server.requests]
    assert sent == ["Bearer EMPTY", "Bearer sk-environment", "Bearer sk-configured"]


def test_without_an_address_a_key_is_needed_and_nothing_is_sent(make_model: MakeModel) -> None:
    with pytest.raises(MissingSecretError, match="OPENAI_API_KEY"):
        ask(make_model(base_url=None))


def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(make_model: MakeModel) -> None:
    with pytest.raises(ConfigError) as caught:
        ask(make_model(api_key="sk-caf\u00e9"))
    assert "caf" not in str(caught.value)


def test_headers_say_who_asks_and_nothing_about_the_machine(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(text("hello"))
    model = make_model(
        organization="org-1", project="proj-1", generate_cfg={"extra_headers": {"X-Mine": "1", "User-Agent": "me"}}
    )
    ask(model)
    headers = server.requests[0].headers
    assert (headers["openai-organization"], headers["openai-project"]) == ("org-1", "proj-1")
    assert (headers["x-mine"], headers["user-agent"]) == ("1", "me")
    assert [name for name in headers if name.startswith("x-stainless")] == []


def test_a_header_that_cannot_be_sent_is_an_error_that_does_not_show_it(make_model: MakeModel) -> None:
    with pytest.raises(ModelRequestError) as caught:
        ask(make_model(generate_cfg={"extra_headers": {"X-Token": "secret\nvalue"}}))
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_key_that_the_server_repeats_is_not_shown(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(error(401, "Incorrect API key provided: sk-do-not-show"))
    with pytest.raises(ModelAuthError) as caught:
        ask(make_model(api_key="sk-do-not-show"))
    assert "sk-do-not-show" not in str(caught.value) + repr(caught.value)


# --- what is asked ---


def test_facts_are_as_configured(make_model: MakeModel) -> None:
    facts = make_model(native_tools=False, images=False, audio=True, context_tokens=4096).facts
    assert (facts.native_tools, facts.images, facts.audio, facts.context_tokens) == (False, False, True, 4096)


def test_a_missing_image_is_refused_before_anything_is_sent(
    server: FakeOpenAI, make_model: MakeModel, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedInputError):
        sync.run(make_model().acomplete([Message("user", [{"image": str(tmp_path / "gone.png")}])]))
    assert server.requests == []


def test_a_local_image_is_sent_inside_the_request(server: FakeOpenAI, make_model: MakeModel, tmp_path: Path) -> None:
    server.reply(text("a dot"))
    path = tmp_path / "dot"
    path.write_bytes(b"\x89PNG\r\n\x1a\n")
    sync.run(make_model().acomplete([Message("user", [{"image": f"file://{path}"}])]))
    url = server.requests[0].json["messages"][0]["content"][0]["image_url"]["url"]
    assert url == "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()


# --- answers ---


def test_a_large_answer_arrives_whole_however_slowly_it_is_read(server: FakeOpenAI, make_model: MakeModel) -> None:
    # Several times what is read ahead, so that the socket must be paused and resumed.
    server.reply(text([f"{n:06d}" + "x" * 994 for n in range(5000)]))

    async def slowly() -> str:
        parts = []
        async for event in stream(make_model()):
            if isinstance(event, TextDelta):
                parts.append(event.text)
                if len(parts) % 500 == 1:
                    await asyncio.sleep(0.01)
        return "".join(parts)

    answer = sync.run(slowly())
    assert len(answer) == 5_000_000
    assert [answer[start : start + 6] for start in range(0, len(answer), 1_000_000)] == [
        f"{n:06d}" for n in range(0, 5000, 1000)
    ]


def test_the_events_so_far_come_while_the_server_is_still_writing(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(text(["first", "second"]).stall_after(1))

    async def first() -> ModelEvent:
        events = stream(make_model(generate_cfg={"request_timeout": 30}))
        try:
            return await anext(events)
        finally:
            await events.aclose()

    assert sync.run(first()) == TextDelta("first")


def test_silence_is_an_error_that_says_how_long_it_was(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(text("hello").delayed(5))
    with pytest.raises(ModelTimeoutError, match=r"0\.2 s"):
        ask(make_model(generate_cfg={"request_timeout": 0.2}))


def test_a_server_that_writes_slowly_is_not_silent(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(text([str(n) for n in range(8)]).paced(0.1))
    assert ask(make_model(generate_cfg={"request_timeout": 0.5})) == "01234567"


def test_a_closed_port_says_which_address(make_model: MakeModel) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(ModelConnectionError, match=f"127.0.0.1:{port}"):
        ask(make_model(base_url=f"http://127.0.0.1:{port}/v1"))


def test_a_page_in_place_of_an_answer_says_to_check_the_address(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(raw(b"<html>Welcome</html>", {"Content-Type": "text/html"}))
    with pytest.raises(Exception, match="base_url"):
        ask(make_model())


# --- connections ---


def test_one_connection_serves_one_call_after_the_other(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.default = text("hello")
    model = make_model()
    for _ in range(5):
        ask(model)
    assert server.connections == 1


def test_a_connection_is_kept_after_an_error_that_was_read(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(error(400, "no"), text("yes"))
    model = make_model()
    with pytest.raises(ModelRequestError):
        ask(model)
    assert ask(model) == "yes"
    assert server.connections == 1


def test_many_calls_at_once_have_a_connection_each_and_keep_them(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.default = text("hello").delayed(0.3)
    model = make_model()

    async def crowd() -> list[str]:
        return [answer.get_content() for answer in await asyncio.gather(*(model.acomplete(HELLO) for _ in range(120)))]

    assert sync.run(crowd()) == ["hello"] * 120
    assert server.connections == 120
    assert sync.run(crowd()) == ["hello"] * 120
    assert server.connections == 120


def test_leaving_a_stream_closes_its_connection(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.default = text(["a", "b"]).stall_after(1)
    model = make_model()

    async def leave() -> None:
        events = stream(model)
        await anext(events)
        await events.aclose()

    sync.run(leave())
    assert server.wait_until(lambda s: s.open_connections == 0)


def test_cancelling_a_call_closes_its_connection(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.default = text("hello").delayed(30)
    model = make_model()

    async def cancel() -> None:
        call = asyncio.ensure_future(model.acomplete(HELLO))
        await asyncio.to_thread(server.wait_until, lambda s: bool(s.open_connections and s.requests))
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call

    sync.run(cancel())
    assert server.wait_until(lambda s: s.open_connections == 0)


def test_a_model_works_on_one_event_loop_after_the_other_and_leaves_nothing_open(
    server: FakeOpenAI, make_model: MakeModel
) -> None:
    server.default = text("hello")
    model = make_model()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        for _ in range(3):
            assert asyncio.run(model.acomplete(HELLO)).get_content() == "hello"
            assert server.wait_until(lambda s: s.open_connections == 0)
        gc.collect()


def test_a_model_works_on_several_event_loops_at_once(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.default = text("hello")
    model = make_model()
    answers: list[str] = []

    def talk() -> None:
        answers.extend(asyncio.run(model.acomplete(HELLO)).get_content() for _ in range(5))

    threads = [threading.Thread(target=talk) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["hello"] * 20


def test_a_closed_model_has_no_connections_and_can_be_used_again(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.default = text("hello")
    model = make_model()
    ask(model)
    sync.run(model.aclose())
    sync.run(model.aclose())
    assert server.wait_until(lambda s: s.open_connections == 0)
    assert ask(model) == "hello"


def test_closing_a_model_while_it_answers_lets_the_answer_end(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.default = text(["a", "b", "c"]).paced(0.05)
    model = make_model()

    async def close_in_the_middle() -> list[ModelEvent]:
        events = []
        async for event in stream(model):
            await model.aclose()
            events.append(event)
        return events

    assert [event.text for event in sync.run(close_in_the_middle()) if isinstance(event, TextDelta)] == ["a", "b", "c"]
    assert server.wait_until(lambda s: s.open_connections == 0)


def test_an_address_of_ip_version_6_is_reached(make_model: MakeModel) -> None:
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6")
    listener.close()
    with answering(_Answerer, address="::1") as url:
        assert ask(make_model(base_url=url)) == "hello"


def test_closing_a_model_closes_what_it_opened_on_another_loop(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.default = text("hello")
    model = make_model()
    ask(model)
    asyncio.run(model.aclose())
    assert server.wait_until(lambda s: s.open_connections == 0)


def test_a_forgotten_model_leaves_no_connection_open(server: FakeOpenAI, clean_environment: object) -> None:
    server.default = text("hello")
    model = OpenAIChat({"model": "m", "base_url": server.url}, host=PluginHost(Settings()))
    ask(model)
    del model
    gc.collect()
    assert server.wait_until(lambda s: s.open_connections == 0)


def test_a_connection_that_the_server_closed_meanwhile_is_not_used_again(make_model: MakeModel) -> None:
    with answering(type("Impatient", (_Answerer,), {"timeout": 0.1})) as url:
        model = make_model(base_url=url)
        assert ask(model) == "hello"
        time.sleep(0.4)  # the server closes a connection that is idle for 0.1 s
        assert ask(model) == "hello"


def test_a_server_that_closes_after_each_answer_is_understood(make_model: MakeModel) -> None:
    with answering(type("Old", (_Answerer,), {"protocol_version": "HTTP/1.0"})) as url:
        model = make_model(base_url=url)
        assert [ask(model), ask(model)] == ["hello", "hello"]


# --- proxies and TLS ---


def test_a_proxy_of_the_environment_is_used(
    server: FakeOpenAI, make_model: MakeModel, clean_environment: pytest.MonkeyPatch
) -> None:
    clean_environment.setenv("HTTP_PROXY", server.origin.replace("http://", "http://me:pass@"))
    server.reply(text("hello"))
    assert ask(make_model(base_url="http://model.invalid/v1")) == "hello"
    request = server.requests[0]
    assert request.path == "http://model.invalid/v1/chat/completions"
    assert request.headers["host"] == "model.invalid"
    assert request.headers["proxy-authorization"] == "Basic " + base64.b64encode(b"me:pass").decode()


def test_a_proxy_is_not_used_for_an_address_that_needs_none(
    server: FakeOpenAI, make_model: MakeModel, clean_environment: pytest.MonkeyPatch
) -> None:
    clean_environment.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    clean_environment.setenv("NO_PROXY", "localhost,127.0.0.1")
    server.reply(text("hello"))
    assert ask(make_model()) == "hello"


@pytest.fixture
def tls_server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The URL of a server with a certificate of its own making, and the certificate."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl command to make a certificate with")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    options = ["-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([openssl, "req", "-x509", "-newkey", "rsa:2048", *options, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with answering(_Answerer, context) as url:
        yield url, certificate


def test_tls_is_spoken_and_the_certificate_is_checked(
    tls_server: tuple[str, Path], make_model: MakeModel, clean_environment: pytest.MonkeyPatch
) -> None:
    url, certificate = tls_server
    with pytest.raises(ModelConnectionError, match=r"(?i)certificate"):
        ask(make_model(base_url=url))
    clean_environment.setenv("SSL_CERT_FILE", str(certificate))
    model = make_model(base_url=url)
    assert [ask(model), ask(model)] == ["hello", "hello"]


# --- cost ---


def test_no_sdk_is_imported_before_the_first_call() -> None:
    code = (
        "import sys; from jackfield_openai.backend import OpenAIChat; OpenAIChat({'model': 'm'});"
        "print([name for name in ('openai', 'httpx2', 'httpcore2', 'anyio') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
