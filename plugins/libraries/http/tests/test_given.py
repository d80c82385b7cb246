"""What people configure is checked, and an error about it shows no secret."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jackfield_http
from jackfield.errors import ConfigError, ContextLengthError, ModelServiceError
from jackfield_http import (
    HTTPClient,
    check_url,
    class_of_status,
    header_pairs,
    json_bytes,
    json_piece,
    json_value,
    key_for_header,
)


def test_the_public_names_are_these() -> None:
    assert sorted(jackfield_http.__all__) == [
        "Access",
        "AnswerReader",
        "Calls",
        "DataLineDecoder",
        "ErrorClass",
        "Failures",
        "HTTPClient",
        "Halves",
        "HeaderPairs",
        "KeyRule",
        "NO_KEY",
        "Opened",
        "PATIENCE",
        "Post",
        "Reply",
        "SSEDecoder",
        "SSE_END",
        "Server",
        "Wire",
        "arguments_of",
        "check_url",
        "class_of_status",
        "configured_url",
        "count_of",
        "header_pairs",
        "json_bytes",
        "json_piece",
        "json_value",
        "key_for_header",
        "request_id_of",
        "translate_errors",
    ]
    assert all(hasattr(jackfield_http, name) for name in jackfield_http.__all__)


@pytest.mark.parametrize("url", ["http://h", "https://h:8000/v1", "http://[::1]:80/v1"])
def test_an_address_is_taken_as_it_is_but_for_slashes_at_its_end(url: str) -> None:
    assert check_url(url) == url
    assert check_url(url + "//") == url


@pytest.mark.parametrize(
    "url", ["localhost:8000/v1", "ftp://h", "", "http://", "http://:80", "http://h:x", "http://[::1", "http://h/v1?a=b"]
)
def test_what_http_cannot_reach_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="azure_endpoint"):
        check_url(url, setting="azure_endpoint")


NO_SERVER = "is not a valid server URL, such as http://127.0.0.1:8000/v1"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("ftp://u:secret@h", "must start with http:// or https://, got 'ftp'"),
        ("h:secret", "must start with http:// or https://, got 'h'"),
        ("http://u:secret@h", "must not contain a user name or a password: set api_key, or a header in extra_headers"),
        ("http://secret@h", "must not contain a user name or a password: set api_key, or a header in extra_headers"),
        ("http://:secret@h", "must not contain a user name or a password: set api_key, or a header in extra_headers"),
        (
            "http://a..b/secret",
            f"{NO_SERVER}: it needs a valid host",
        ),
        (
            "http://h:99999/secret",
            f"{NO_SERVER}: it needs a valid host",
        ),
        ("http://h?key=secret", f"{NO_SERVER}: remove everything"),
        ("http://h#secret", f"{NO_SERVER}: remove everything"),
        (
            "http://h/secr\u00e9t/secret",
            f"{NO_SERVER}: it contains a space",
        ),
        ("http://h/a secret", f"{NO_SERVER}: it contains a space"),
    ],
)
def test_a_refused_address_is_not_shown(url: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_url(url)
    assert str(caught.value).startswith(f"base_url {says}")
    assert "secret" not in str(caught.value)


def test_a_client_needs_the_address_of_a_server() -> None:
    with pytest.raises(ConfigError, match=r"^acme: the server URL has no valid host") as caught:
        HTTPClient("http://u:secret@a..b", backend="acme")
    assert "secret" not in str(caught.value)
    assert HTTPClient("https://u:secret@h:1/v1", backend="acme").address == "https://h:1"


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126)), st.sampled_from(["", " ", "\n", "\r\n"]))
def test_a_key_loses_only_the_space_around_it(key: str, space: str) -> None:
    assert key_for_header(space + key + space) == key
    assert key_for_header(None) == ""


@pytest.mark.parametrize("key", ["sk-caf\u00e9", "sk-ca\nf", "sk-ca\x00f"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(ConfigError, match=r"^the key contains a .*: copy the key again$") as caught:
        key_for_header(key)
    assert "ca\n" not in str(caught.value)
    assert "sk-" not in str(caught.value)


def test_of_two_headers_with_one_name_the_later_is_sent() -> None:
    assert header_pairs({"A": "1", "b": "2"}, {"B": "3"}) == [(b"a", b"1"), (b"b", b"3")]


@pytest.mark.parametrize("name", ["authorization", "api-key", "x-api-key", "content-type", "accept-encoding"])
def test_an_extra_header_wins_over_all_but_the_keys_and_those_of_the_body(name: str) -> None:
    own = {name.title(): "mine", "User-Agent": "jackfield"}
    assert dict(header_pairs(own, extra={"user-agent": "me"}))[b"user-agent"] == b"me"
    with pytest.raises(ConfigError, match=f"extra_headers must not contain '{name}'") as caught:
        header_pairs(own, extra={name.upper(): "sk-other"})
    assert "sk-other" not in str(caught.value)
    # Where the backend has none, it lets its user in.
    assert header_pairs(extra={name.upper(): "mine"}) == [(name.encode(), b"mine")]


@pytest.mark.parametrize("name", ["x-quill-token", "cookie"])
def test_a_header_of_any_name_that_carries_the_key_cannot_be_replaced(name: str) -> None:
    own = {name.title(): "Token=sk-mine", "User-Agent": "jackfield"}
    with pytest.raises(ConfigError, match=f"extra_headers must not contain '{name}'") as caught:
        header_pairs(own, extra={name.upper(): "sk-other"}, key="sk-mine")
    assert "sk-" not in str(caught.value)
    assert dict(header_pairs(own, extra={"user-agent": "me"}, key="sk-mine"))[b"user-agent"] == b"me"
    # Without a key, or with a conventional one, the user may set the header.
    for key in ("", "EMPTY"):
        assert header_pairs({name: key}, extra={name: "mine"}, key=key) == [(name.encode(), b"mine")]


@pytest.mark.parametrize("name", ["Host", "content-length", "Transfer-Encoding"])
def test_an_extra_header_is_none_of_the_connection(name: str) -> None:
    with pytest.raises(ConfigError, match="remove it"):
        header_pairs(extra={name: "1"})


def test_headers_show_their_names_alone() -> None:
    headers = header_pairs({"Authorization": "Bearer sk-mine"}, {"X-A": "1"})
    assert repr(headers) == "<headers authorization, x-a>"


def test_a_header_in_which_the_key_is_conventional_can_be_replaced() -> None:
    own = {"Authorization": "Bearer EMPTY"}
    assert header_pairs(own, extra={"authorization": "Basic x"}, key="EMPTY") == [(b"authorization", b"Basic x")]
    with pytest.raises(ConfigError, match="which carries the API key: set api_key instead"):
        header_pairs({"Authorization": "Bearer EMPTY2"}, extra={"authorization": "x"})


@given(st.integers(300, 599))
def test_every_status_that_is_no_success_is_some_error(status: int) -> None:
    error_class = class_of_status(status)
    assert issubclass(error_class, ModelServiceError)
    assert error_class.retryable == (status >= 500 or status in (408, 409, 425, 429))
    assert class_of_status(413) is ContextLengthError


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(json_values)
def test_json_comes_back_as_it_was(value: object) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return  # a key with half a surrogate pair: see below
    assert json_value(json_bytes(value)) == value


def test_half_a_surrogate_pair_is_replaced_and_nothing_else() -> None:
    assert json_bytes({"a": "b\ud83d"}) == b'{"a": "b\xef\xbf\xbd"}'
    assert json_value(rb'{"a": "b\ud83d"}') == {"a": "b\ufffd"}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'{"key": sk-secret}', "Expecting value, at character 8"),
        (b'"sk-secret\xff"', "the text is not utf-8, at byte 10"),
        (b"[" * 200_000, "the JSON is nested too deeply"),
    ],
    ids=["syntax", "encoding", "depth"],
)
@pytest.mark.parametrize("read", [json_value, lambda data: json_piece(data, ())], ids=["value", "piece"])
def test_an_error_about_json_has_the_place_and_not_the_text(
    read: Callable[[bytes], object], data: bytes, says: str
) -> None:
    with pytest.raises(ValueError, match=f"^{says}$") as caught:
        read(data)
    shown = "".join(traceback.format_exception(caught.value))
    assert "sk-secret" not in shown


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 200_000, b"plain"])
def test_what_is_no_json_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        json_value(data)
