"""Refusals, and the bodies of requests."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield.errors import (
    ConfigError,
    InvalidMessageError,
    JackfieldError,
    ModelAuthError,
    ModelOverloadedError,
    RunBusyError,
    RunNotFoundError,
    StoreUnavailableError,
)
from jackfield.plugins import PluginHost, Settings
from jackfield.servers import (
    Refusal,
    RequestRefusedError,
    Server,
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
    read_object(b'{"a":' * 100 + b"1" + b"}" * 100)


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
