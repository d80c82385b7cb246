"""Whatever somebody writes where an address belongs, it is understood or refused in our own words."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import httpx2
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from jackfield.errors import ConfigError, JackfieldError, ModelConnectionError, ModelServiceError
from jackfield_http import HTTPClient, Reply, check_url, header_pairs
from jackfield_http.addresses import is_plain, proxy_for

# Names that are none, or end in .invalid: nobody is asked for them.
odd = st.text(st.sampled_from("a.-_~%[]:@/\\?#\x00\n \t*ä١\ud83d1"), max_size=8)
hosts = (
    st.sampled_from(["", "127.0.0.1", "[::1]", "[::1", "::1", "a..b", "..", "[v1.x]", "[::1]x", "x" * 64 + ".invalid"])
    | odd.map(lambda text: f"{text}.invalid")
    | odd.map(lambda text: f"[{text}]")
)
ports = st.sampled_from(["", ":", ":1", ":0", ":99999", ":-1", ":+1", ": 1", ":x", ":1:1", ":" + "9" * 5000])
urls = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["http://", "https://", "HTTP://", "http:", "", "socks5://", "ftp://", "://"]),
    st.just("") | odd.map(lambda text: f"u:se{text}cret@"),
    hosts,
    ports,
    st.just("") | odd.map(lambda text: f"/{text}"),
)


def asked(url: str) -> Reply:
    """What comes of asking a URL that somebody configured; nobody listens at port 1."""

    async def ask() -> Reply:
        base = check_url(url)
        client = HTTPClient(base, backend="acme")
        try:
            return await client.exchange("POST", f"{base}/a", b"{}", [], timeout_s=5)
        finally:
            await client.aclose()

    return asyncio.run(ask())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(urls)
def test_any_text_as_an_address_is_used_or_refused_in_our_own_words(no_proxies: pytest.MonkeyPatch, url: str) -> None:
    no_proxies.setenv("NO_PROXY", "*")
    with suppress(ConfigError, ModelServiceError):
        asked(url)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(urls)
def test_any_text_as_a_proxy_is_used_or_refused_in_our_own_words_and_not_shown(
    no_proxies: pytest.MonkeyPatch, url: str
) -> None:
    try:
        no_proxies.setenv("ALL_PROXY", url)
    except (UnicodeEncodeError, ValueError):
        return  # no environment can have it
    try:
        asked("http://127.0.0.1:1")
    except (ConfigError, ModelServiceError) as error:
        shown: BaseException | None = error
        while shown is not None:
            assert "cret@" not in str(shown)
            shown = shown.__cause__


@pytest.mark.parametrize(
    "url",
    ["http://a..b", "http://.a", "http://[::1", "http://[::1]x", "http://h:99999", "http://h/a b", "http://h/\n",
     "http://\x00", f"http://{'x' * 64}.invalid", f"http://{'x.' * 127}invalid", "http://h:+1", "http://h:0",
     "http://h:65536", f"http://{'x' * 49}.{'y' * 50}.{'z' * 51}.{'u' * 50}.{'v' * 50}", "http://h\\x", "http://h/é",
     "http://h/#a", "http://h/?", "http://h#", "http://[::1%]", "http://[g::1]", "http://::1]", "httpx://h",
     "https2://h", "http:h"],
)  # fmt: skip
def test_an_address_that_no_server_has_is_refused_where_it_is_configured(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url"):
        check_url(url)


@pytest.mark.parametrize(
    "url",
    ["http://h.", "http://my_host:1/v1", "http://[fe80::1%25eth0]:1", "http://xn--a.b", "http://h:65535",
     f"http://{'x' * 63}.invalid", f"http://{'x' * 50}.{'y' * 50}.{'z' * 50}.{'u' * 50}.{'v' * 49}", "http://[::1]"],
)  # fmt: skip
def test_an_odd_address_that_a_server_may_have_is_taken(url: str) -> None:
    assert check_url(url) == url


@pytest.mark.parametrize(
    ("proxy", "says"),
    [
        ("socks4://u:secret@127.0.0.1:1", "has an unsupported scheme"),
        ("ftp://u:secret@127.0.0.1:1", "has an unsupported scheme"),
        ("http://u:secret@a..b", "has no valid address"),
        ("http://u:secret@[::1", "has no valid address"),
        ("u:secret@127.0.0.1:99999", "has no valid address"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_named_by_its_variable(
    no_proxies: pytest.MonkeyPatch, proxy: str, says: str
) -> None:
    no_proxies.setenv("ALL_PROXY", proxy)
    with pytest.raises(ConfigError, match=f"ALL_PROXY is set to a proxy that {says}") as caught:
        asked("http://127.0.0.1:1")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("environment", "url", "proxy"),
    [
        ({}, "http://h", None),
        ({"HTTP_PROXY": "http://p:1"}, "http://h", "http://p:1"),
        ({"HTTP_PROXY": "http://p:1"}, "https://h", None),
        ({"HTTPS_PROXY": "http://p:1"}, "https://h", "http://p:1"),
        ({"ALL_PROXY": "http://p:1"}, "https://h", "http://p:1"),
        ({"ALL_PROXY": "http://all:1", "HTTPS_PROXY": "https://p:1"}, "https://h", "https://p:1"),
        ({"ALL_PROXY": "http://all:1", "HTTP_PROXY": ""}, "http://h", "http://all:1"),
        ({"HTTP_PROXY": "p.example:3128"}, "http://h", "http://p.example:3128"),
        ({"HTTP_PROXY": "HTTP://u:pw@p:1"}, "http://h", "HTTP://u:pw@p:1"),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "h"}, "http://h:80", None),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "h"}, "http://me:pw@h", None),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "h:81"}, "http://h:81", None),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "h:81"}, "http://h:82", "http://p:1"),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "me"}, "http://me:pw@h", "http://p:1"),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "other"}, "http://h", "http://p:1"),
        ({"ALL_PROXY": "nonsense://", "NO_PROXY": "*"}, "http://h", None),
    ],
)
def test_the_proxy_of_a_server_is_that_of_its_scheme_else_of_all(
    no_proxies: pytest.MonkeyPatch, environment: dict[str, str], url: str, proxy: str | None
) -> None:
    no_proxies.delenv("REQUEST_METHOD", raising=False)
    for name, value in environment.items():
        no_proxies.setenv(name, value)
    assert proxy_for(url) == proxy


@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize("scheme", ["socks5", "socks5h", "SOCKS5"])
def test_a_socks_proxy_needs_an_extra(no_proxies: pytest.MonkeyPatch, scheme: str, installed: bool) -> None:
    no_proxies.setenv("ALL_PROXY", f"{scheme}://h:1")
    no_proxies.setattr("importlib.util.find_spec", lambda name: object() if installed and name == "socksio" else None)
    if installed:
        assert proxy_for("https://a.example") == f"{scheme}://h:1"
        no_proxies.setenv("ALL_PROXY", f"{scheme}://a..b")
        with pytest.raises(ConfigError, match="has no valid address"):
            proxy_for("https://a.example")
    else:
        with pytest.raises(ConfigError) as caught:
            proxy_for("https://a.example")
        assert str(caught.value) == (
            'ALL_PROXY is set to a proxy that speaks SOCKS: pip install "jackfield-http[socks]", or add the server\'s '
            "host to NO_PROXY"
        )


def test_the_variable_of_a_scheme_is_named_for_its_proxy(no_proxies: pytest.MonkeyPatch) -> None:
    no_proxies.setenv("HTTPS_PROXY", "ftp://h")
    no_proxies.setenv("ALL_PROXY", "http://h:1")
    with pytest.raises(ConfigError, match=r"^HTTPS_PROXY is set to a proxy that has an unsupported scheme"):
        proxy_for("https://a.example")


def test_a_socks_proxy_says_what_it_needs(no_proxies: pytest.MonkeyPatch) -> None:
    no_proxies.setenv("HTTP_PROXY", "socks5://127.0.0.1:1")
    no_proxies.delenv("REQUEST_METHOD", raising=False)
    with pytest.raises((ConfigError, ModelConnectionError)) as caught:
        asked("http://127.0.0.1:1")
    if isinstance(caught.value, ConfigError):  # without socksio
        assert "HTTP_PROXY" in str(caught.value)
        assert "jackfield-http[socks]" in str(caught.value)


def test_certificates_that_are_not_there_are_named_by_their_variable(no_proxies: pytest.MonkeyPatch) -> None:
    no_proxies.setenv("SSL_CERT_FILE", "/no/such/file.pem")
    with pytest.raises(JackfieldError, match="SSL_CERT_FILE"):
        asked("https://127.0.0.1:1")


@pytest.mark.parametrize("header", [{"X-A": "b\ud83d"}, {"X-\ud83d": "b"}])
def test_a_header_with_half_a_character_is_refused_and_not_shown(header: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="extra_headers") as caught:
        header_pairs(header)
    assert caught.value.__cause__ is None


@settings(max_examples=settings().max_examples * 10)
@given(urls)
@example("http://1.2.3.999/{a}")
def test_an_address_that_is_accepted_is_one_to_other_libraries(url: str) -> None:
    try:
        accepted = check_url(url)
    except ConfigError:
        return
    assert httpx2.URL(accepted).host


@pytest.mark.parametrize("host", ["1.2.3.999", "256.0.0.1", "127.0.0.010"])
def test_four_numbers_that_are_no_ip_address_are_refused(host: str) -> None:
    with pytest.raises(ConfigError, match="base_url is not a valid server URL"):
        check_url(f"http://{host}/v1")
    assert check_url("http://127.0.0.10/v1") == "http://127.0.0.10/v1"


# --- plain ones ---

nearly_plain = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["http://", "https://"]),
    st.sampled_from(["a", "a.b", "A.b", "a_b", "127.0.0.1", "[::1]", "xn--bcher-kva.example", "u@a"]),
    st.sampled_from(["", "", ":", ":80", ":443", ":080", ":8000", ":65535"]),
    st.lists(
        st.sampled_from(["v1", ".", "..", "%", "%a", "%2F", "%7e"])
        | st.text(st.sampled_from("ab1.~_-%{}|^<>:@!$&'()*+,;=/?#"), max_size=2),
        max_size=3,
    ).map(lambda parts: "".join(f"/{part}" for part in parts)),
)


@settings(max_examples=settings().max_examples * 10)
@given(nearly_plain)
def test_a_plain_address_is_written_by_others_as_it_was_given(url: str) -> None:
    assert not is_plain(url) or str(httpx2.URL(url)) in (url, f"{url}/")


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com/v1",
        "http://127.0.0.1:8000/v1",
        "http://my_container:11434",
        "https://name.openai.azure.com/openai/deployments/org%2Fa%20b",
    ],
)
def test_the_usual_addresses_are_plain(url: str) -> None:
    assert is_plain(url)
