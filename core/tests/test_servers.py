"""Refusals, and the bodies of requests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield.errors import (
    ConfigError,
    InvalidMessageError,
    JackfieldError,
    LimitReachedError,
    ModelAuthError,
    ModelOverloadedError,
    ModelRequestError,
    RateLimitedError,
    RunBusyError,
    RunNotFoundError,
    StoreUnavailableError,
)
from jackfield.events import RunFailed
from jackfield.plugins import PluginHost, Settings
from jackfield.servers import (
    Refusal,
    RequestRefusedError,
    Server,
    failure_of,
    load_server,
    owner_of,
    plain_refusal,
    read_object,
    refusal_of,
    write_json,
)


class HTTPException(Exception):  # noqa: N818 - the name of theirs
    """An error as Starlette and FastAPI raise it."""

    def __init__(self, status_code: int, detail: str = "Method Not Allowed") -> None:
        super().__init__(detail)
        self.status_code, self.detail = status_code, detail


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_an_object_is_read_as_it_was_written(value: dict[str, object]) -> None:
    assert read_object(write_json(value)) == value


@given(st.text(alphabet=st.characters()))
@example("half \ud83d")
def test_any_text_can_be_written(text: str) -> None:
    assert json.loads(write_json([text])) == [text]


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_does_not_have_is_not_written(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(["\ud83d", number])


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"null", b"{", b'{"a": 1} {}', b'{"a": NaN}', b'{"a": 1e999}', b'{"a": Infinity}', b'{"a": "\xff"}',
        b'{"a": 1, "a": 1}', b'{"a": {"b": 1, "b": 2}}', b'{"a": "\n"}', b'{"a":' * 102 + b"1" + b"}" * 102,
        b'{"a":' + b"[" * 200_000,
    ],
)  # fmt: skip
def test_a_body_that_is_not_one_strict_object_is_refused(body: bytes) -> None:
    with pytest.raises(RequestRefusedError) as caught:
        read_object(body)
    assert (caught.value.refusal.status, caught.value.refusal.code) == (400, "invalid_json")


def test_an_object_may_have_a_hundred_levels() -> None:
    for opening, closing in ((b'{"a":', b"}"), (b"[", b"]")):
        for levels in (99, 100):
            body = b'{"b": [], "a": ' + opening * levels + b"1" + closing * levels + b"}"
            if levels == 99:
                read_object(body)
            else:
                with pytest.raises(RequestRefusedError, match="nested too deeply"):
                    read_object(body)


@pytest.mark.parametrize(
    ("error", "status", "waits"),
    [
        (RequestRefusedError("m", status=418, code="x"), 418, False),
        (RunNotFoundError("no run"), 404, False),
        (RunBusyError("held"), 409, False),
        (StoreUnavailableError("disk"), 503, True),
        (InvalidMessageError("role"), 400, False),
        (ModelOverloadedError("full"), 429, True),
        (ModelAuthError("key sk-1"), 500, False),
        (ConfigError("path"), 500, False),
        (JackfieldError("else"), 500, False),
        (ZeroDivisionError("inside"), 500, False),
        (HTTPException(405), 405, False),
    ],
)
def test_each_error_has_its_status(error: Exception, status: int, waits: bool) -> None:
    refusal = refusal_of(error)
    assert refusal.status == status
    assert (refusal.retry_after_s is not None) == waits
    assert (str(error) in refusal.message) == (status in (400, 404, 409, 418))


@pytest.mark.parametrize(
    "error",
    [
        StoreUnavailableError("disk"),
        LimitReachedError("runs", limit="runs"),
        RateLimitedError("slow"),
        RequestRefusedError("m", retry_after_s=9.0),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_wait_that_an_error_states_is_told_to_the_client(error: Any) -> None:
    error.retry_after_s = 9.0
    assert refusal_of(error).retry_after_s == 9.0


def test_the_detail_of_a_frameworks_error_is_told_and_nothing_else_of_it() -> None:
    error = HTTPException(418, "a teapot")
    error.args = ("418: a teapot, headers: key",)
    assert refusal_of(error) == Refusal(status=418, code="invalid_request", message="a teapot")


def test_a_plain_refusal_is_json() -> None:
    media_type, body = plain_refusal(Refusal(status=404, code="not_found", message='no "run"'))
    assert media_type == "application/json"
    assert json.loads(body) == {"error": {"code": "not_found", "message": 'no "run"'}}


def test_the_owner_of_a_request_without_tokens_is_empty() -> None:
    assert owner_of({}) == ""
    assert owner_of({"jackfield.owner": "ada"}) == "ada"


@pytest.mark.parametrize("entry", [None, 1, {}, {"name": 1}, ["openai"]])
def test_what_names_no_face_is_refused(entry: object) -> None:
    with pytest.raises(ConfigError, match="a face must be"):
        load_server(entry, PluginHost(Settings()))


def test_a_face_is_taken_as_it_is() -> None:
    face = Server()
    assert load_server(face, PluginHost(Settings())) is face


# --- refusals ---


class Detailed(Exception):  # noqa: N818 - as frameworks of ASGI have it
    def __init__(self, status_code: Any, detail: str = "a detail") -> None:
        super().__init__(detail)
        self.status_code, self.detail = status_code, detail


INTERNAL = Refusal(
    status=500, code="internal", message="the server could not handle this request: see its log for the cause"
)
BUSY = "the model is busy: try again later"


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        (RequestRefusedError("m"), Refusal(status=400, code="invalid_request", message="m")),
        (
            RequestRefusedError("m", status=418, code="tea", retry_after_s=3),
            Refusal(status=418, code="tea", message="m", retry_after_s=3),
        ),
        (RunNotFoundError("no run"), Refusal(status=404, code="not_found", message="no run")),
        (RunBusyError("held"), Refusal(status=409, code="conflict", message="held")),
        (
            StoreUnavailableError("disk"),
            Refusal(
                status=503, code="unavailable", message="the run store is unavailable: try again later",
                retry_after_s=5,
            ),
        ),
        (LimitReachedError("full", limit="runs"), Refusal(status=429, code="busy", message="full", retry_after_s=1)),
        (ModelRequestError("no tools"), Refusal(status=400, code="invalid_request", message="no tools")),
        (RateLimitedError("slow"), Refusal(status=429, code="busy", message=BUSY, retry_after_s=1)),
        (
            RateLimitedError("slow", retry_after_s=30),
            Refusal(status=429, code="busy", message=BUSY, retry_after_s=30),
        ),
        (ModelOverloadedError("full"), Refusal(status=429, code="busy", message=BUSY, retry_after_s=1)),
        (
            Detailed(404),
            Refusal(status=404, code="not_found", message="nothing is served at this path: check the URL"),
        ),
        (
            Detailed(405),
            Refusal(status=405, code="method_not_allowed", message="method not allowed at this path"),
        ),
        (Detailed(400), Refusal(status=400, code="invalid_request", message="a detail")),
        (Detailed(499), Refusal(status=499, code="invalid_request", message="a detail")),
        (Detailed(399), INTERNAL),
        (Detailed(500), INTERNAL),
        (Detailed("404"), INTERNAL),
        (ValueError("inside"), INTERNAL),
    ],
    ids=str,
)  # fmt: skip
def test_a_client_reads_what_it_can_correct_and_nothing_else(error: Exception, refusal: Refusal) -> None:
    assert refusal_of(error) == refusal


def test_a_kind_of_refusal_states_what_holds_for_all_of_it() -> None:
    class TooLargeError(RequestRefusedError):
        status, code, retry_after_s = 413, "too_large", 7.0

    assert TooLargeError("m").refusal == Refusal(status=413, code="too_large", message="m", retry_after_s=7.0)
    assert TooLargeError("m", status=400, code="x").refusal == Refusal(
        status=400, code="x", message="m", retry_after_s=7.0
    )


@pytest.mark.parametrize(
    ("kind", "refusal"),
    [
        ("ContextLengthError", Refusal(status=400, code="context_length_exceeded", message="secret")),
        ("ContentFilterError", Refusal(status=400, code="content_filter", message="secret")),
        ("UnsupportedInputError", Refusal(status=400, code="unsupported_input", message="secret")),
        ("MissingFileError", Refusal(status=400, code="unsupported_input", message="secret")),
        ("InvalidMessageError", Refusal(status=400, code="invalid_request", message="secret")),
        (
            "RateLimitedError",
            Refusal(
                status=429, code="rate_limit_exceeded", message="the agent's model is busy: try again later",
                retry_after_s=5,
            ),
        ),
        (
            "ModelOverloadedError",
            Refusal(
                status=429, code="rate_limit_exceeded", message="the agent's model is busy: try again later",
                retry_after_s=5,
            ),
        ),
        (
            "ModelAuthError",
            Refusal(
                status=500, code="server_error",
                message="the run failed (ModelAuthError): see the server log for the cause",
            ),
        ),
    ],
)  # fmt: skip
def test_a_failed_run_shows_a_client_only_errors_about_its_request(kind: str, refusal: Refusal) -> None:
    assert failure_of(RunFailed("secret", kind)).refusal == refusal


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"[]", "the request body must be a JSON object, got list"),
        (b'{"a": NaN}', "the request body is not valid UTF-8 JSON: NaN is not a valid JSON number"),
        (b'{"a": 1e999}', "the request body is not valid UTF-8 JSON: a number is too large"),
        (
            b'{"b": 1, "' + b"a" * 60 + b'": 1, "' + b"a" * 60 + b'": 2}',
            f"the request body is not valid UTF-8 JSON: duplicate key '{'a' * 50}'",
        ),
        (
            b'{"a":' + b"[" * 200_000,
            "the request body is not valid UTF-8 JSON: nested too deeply",
        ),
        (
            b'{"a":' * 101 + b"1" + b"}" * 101,
            "the request body is not valid UTF-8 JSON: nested too deeply",
        ),
    ],
    ids=["list", "NaN", "huge", "twice", "deep", "101 levels"],
)
def test_a_refused_body_is_told_why(body: bytes, said: str) -> None:
    with pytest.raises(RequestRefusedError) as caught:
        read_object(body)
    assert str(caught.value) == said


def test_many_brackets_side_by_side_are_not_deep() -> None:
    assert read_object(b'{"a": [' + b"{}," * 200 + b'[{"[": 1.5}]]}')["a"][-1] == [{"[": 1.5}]


# --- by name ---


@pytest.mark.parametrize("kind", ["server", "store"])
def test_one_named_in_a_dict_gets_its_settings_over_those_of_files(site: Any, kind: str) -> None:
    from jackfield.stores import load_store

    base = {"server": "jackfield.servers:Server", "store": "jackfield_testkit.records:MemoryStore"}[kind]
    module, _, name = base.partition(":")
    hooks = f"{kind}s"
    spec = f"{kind.title()}Spec"
    source = f"from jackfield.plugins import {spec}, hook\n@hook.{hooks}\ndef offered(): return [{spec}(name='own', "
    site.add("acme", {f"{kind}.own": "acme_light"}, modules={
        "acme_light": f"{source}target='acme_heavy:Own', config='acme_heavy:Settings')]",
        "acme_heavy": f"from {module} import {name}\nfrom jackfield.config import Config\nclass Own({name}):\n"
        "    def __init__(self, size=0, shape=''): self.size, self.shape = size, shape\n"
        "class Settings(Config):\n    size: int = 0\n    shape: str = ''\n",
    })  # fmt: skip
    host = site.host(options={f"{kind}.own": {"size": 1, "shape": "round"}})
    load: Any = load_server if kind == "server" else load_store
    made = [load(entry, host) for entry in ("own", {"name": "own"}, {"name": "acme/own", "size": 3})]
    assert [(one.size, one.shape) for one in made] == [(1, "round"), (1, "round"), (3, "round")]
    assert load(made[0], host) is made[0]
    for wrong in (5, {}, {"name": 5}, None):
        with pytest.raises(
            ConfigError, match=f"{'a face' if kind == 'server' else 'store'} must be a {kind}, a {kind}'s name"
        ):
            load(wrong, host)
