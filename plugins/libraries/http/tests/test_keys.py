"""An API key goes to the servers that it is meant for, and to no other."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from jackfield.errors import ConfigError, MissingSecretError
from jackfield.settings import Settings
from jackfield_http.keys import FoundKey, KeyRule, find_key, is_loopback

RULE = KeyRule("ACME_KEY", ("api.acme.example", ".models.acme.example"), "ACME_URL")


@pytest.fixture(autouse=True)
def own_url(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address that the user has set together with the key."""
    monkeypatch.setenv("ACME_URL", "http://proxy.internal:8080/v1")
    monkeypatch.setenv("ACME_KEY", "sk-environment")


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        (None, True),
        ("https://api.acme.example/v1", True),
        ("https://api.acme.example:444", True),
        ("https://api.acme.example./v1", True),
        ("https://API.acme.example", True),
        ("http://api.acme.example/v1", False),
        ("https://eu.api.acme.example", False),
        ("https://notapi.acme.example", False),
        ("https://api.acme.example.evil.example", False),
        ("https://api.acme.example@evil.example", False),
        ("https://eu.models.acme.example", True),
        ("https://a.eu.models.acme.example.", True),
        ("https://models.acme.example", False),
        ("https://evilmodels.acme.example", False),
        ("http://eu.models.acme.example", False),
        ("http://proxy.internal:8080/other", True),
        ("http://PROXY.internal:8080", True),
        ("https://proxy.internal:8080", False),
        ("http://proxy.internal:8081", False),
        ("http://proxy.internal", False),
        ("http://127.0.0.1:9/v1", True),
        ("http://127.8.8.8", True),
        ("http://[::1]:9", True),
        ("http://localhost:9", True),
        ("http://LOCALHOST", True),
        ("http://gpu.localhost.", True),
        ("http://localhost.evil.example", False),
        ("http://evillocalhost", False),
        ("http://128.0.0.1", False),
        ("http://192.168.0.1", False),
        ("http://[::2]", False),
        ("http://127.0.0.1.evil.example", False),
    ],
)
def test_the_key_of_the_environment_goes_to_this_machine_the_provider_and_the_address_beside_it(
    url: str | None, allowed: bool
) -> None:
    assert RULE.allows(url) is allowed
    key = find_key(url, RULE, configured=None, settings=Settings())
    assert key.variable == "ACME_KEY"
    assert (key.value, bool(key.withheld)) == (("sk-environment", False) if allowed else ("", True))


def test_a_configured_key_goes_anywhere_and_comes_first() -> None:
    key = find_key("http://evil.example", RULE, configured=SecretStr(" sk-mine\n"), settings=Settings())
    assert key == FoundKey("sk-mine", variable="ACME_KEY")
    assert find_key(None, RULE, configured=SecretStr("sk-mine"), settings=Settings()).value == "sk-mine"
    assert find_key(None, RULE, configured=SecretStr(""), settings=Settings()).value == "sk-environment"


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        ("\u00fc", "a non-ASCII character"),
        ("\u201d", "a non-ASCII character"),
        ("\n", "a line break or control character"),
        ("\x01", "a line break or control character"),
    ],
)
@pytest.mark.parametrize("name", ["api_key", "ACME_KEY"])
def test_a_key_that_no_header_can_carry_is_named_but_not_shown(
    name: str, bad: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = f"sk-first{bad}last"
    monkeypatch.setenv("ACME_KEY", key)
    configured = SecretStr(key) if name == "api_key" else None
    with pytest.raises(ConfigError) as caught:
        find_key(None, RULE, configured=configured, settings=Settings())
    assert str(caught.value) == f"{name} contains {fault}, which no HTTP header can carry: copy the key again"


@pytest.mark.parametrize("url_variable", ["ACME_URL", ""])
def test_a_key_that_is_withheld_says_where_it_would_have_gone_and_what_to_set(url_variable: str) -> None:
    rule = KeyRule("ACME_KEY", url_variable=url_variable)
    key = find_key("https://elsewhere.example:1/v1?a=b", rule, configured=None, settings=Settings())
    more = ", or ACME_URL in the environment" if url_variable else ""
    assert key.withheld == (
        "ACME_KEY is not sent to elsewhere.example, a host that was not "
        "configured together with it: set api_key next to "
        f"the URL{more}"
    )
    with pytest.raises(ConfigError, match=r"^backend acme needs a key, but ACME_KEY is not sent"):
        key.or_missing(needed_by="backend acme")


def test_a_key_that_is_not_set_is_missing_only_where_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ACME_KEY")
    key = find_key("https://elsewhere.example", RULE, configured=None, settings=Settings())
    assert key == FoundKey(variable="ACME_KEY")
    with pytest.raises(MissingSecretError, match="ACME_KEY") as caught:
        key.or_missing(needed_by="backend acme")
    assert "backend acme" in str(caught.value)
    assert FoundKey("sk-mine", withheld="never mind").or_missing(needed_by="x") == "sk-mine"
    assert find_key(None, KeyRule(""), configured=None, settings=Settings()) == FoundKey()


def test_a_key_is_not_shown() -> None:
    assert "sk-mine" not in repr(FoundKey("sk-mine"))


def test_an_address_without_a_host_is_not_this_machine() -> None:
    assert not is_loopback("http://")
    assert not is_loopback("127.0.0.1")
