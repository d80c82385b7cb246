"""The sources of secrets: addresses, headers, settings, the environment, and components of an agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from jackfield.secrets import Secret, Secrets, StatesSecrets, learn_secret, secrets_in, secrets_of
from jackfield.secrets._sources import _LearnedSecrets, environment_secrets, secrets_in_address, secrets_in_headers
from tests.support.secrets import KEY, OTHER, known

MIXED = "a1b2c3d4e5f6"


def found(secrets: Any) -> list[tuple[str, str]]:
    return [(secret.name, secret.value) for secret in secrets]


@pytest.mark.parametrize(
    ("address", "secrets"),
    [
        ("no address", []),
        ("https://h/a", []),
        ("https://user:p%40ss@h/", [("n.password", "p%40ss"), ("n.password", "p@ss")]),
        ("https://h/?key=abc&q=words&sig=x&code=y&plain=word", [("n.key", "abc"), ("n.sig", "x"), ("n.code", "y")]),
        (f"https://h/?q={MIXED}", [("n.q", MIXED)]),
        ("https://h/?api_token=a&Signature=s", [("n.api_token", "a"), ("n.Signature", "s")]),
        ("https://h/?AUTH=t&apikey=u", [("n.AUTH", "t"), ("n.apikey", "u")]),
        (f"https://h/x/{MIXED}/y#{MIXED}", [("n.path", MIXED), ("n.path", MIXED)]),
        ("http://[broken", []),
    ],
)  # fmt: skip
def test_an_address_has_secrets_in_its_password_query_and_path(address: str, secrets: list[tuple[str, str]]) -> None:
    assert found(secrets_in_address(address, "n")) == secrets


def test_words_with_a_number_in_an_address_are_not_hidden() -> None:
    address = "https://h/documentation12/page?q=documentation13#documentation14"
    secrets = Secrets(secrets_in_address(address, "n"))
    assert secrets.hide(address) == address
    assert MIXED not in Secrets(secrets_in_address(f"https://h/{MIXED}?q={OTHER}", "n")).hide(f"It is {MIXED}.")


def test_headers_are_secret_with_their_words_unless_they_are_plain() -> None:
    headers: dict[Any, Any] = {
        "Authorization": "Bearer abc", "X-Key": "abc", "Accept": "x", "User-Agent": "y", "Content-Type": "z",
        "Accept-Encoding": "e", "accept-language": "l", "X-Variable": "${A_KEY}", "X-Number": 5, "X-Half": "${A",
        "X-Url": "https://u:pw@h/",
    }  # fmt: skip
    assert found(secrets_in_headers(headers, "server")) == [
        ("server.Authorization", "Bearer abc"), ("server.Authorization", "Bearer"), ("server.Authorization", "abc"),
        ("server.X-Key", "abc"), ("server.X-Half", "${A"), ("server.X-Url", "https://u:pw@h/"),
        ("server.X-Url.password", "pw"), ("server.X-Url.password", "pw"),
    ]  # fmt: skip
    named = {secret.value: secret.is_named for secret in secrets_in_headers(headers, "s")}
    assert (named["abc"], named["Bearer abc"], named["Bearer"], named["${A"]) == (True, False, False, False)


class Holder(StatesSecrets):
    def __init__(self, name: str, **parts: Any) -> None:
        self.name = name
        vars(self).update(parts)


def test_settings_are_named_by_their_component_and_their_key() -> None:
    holder = Holder("mail", cfg={"api_key": "k", "_token": "t", "size": 3, "nested": {"password": "p"}})
    assert found(secrets_in(holder)) == [("mail.api_key", "k"), ("mail.token", "t"), ("nested.password", "p")]
    assert found(secrets_in({"keys": ["a"], "api_key": ["a", 5, "b"], "token": ("c",)})) == [
        ("api_key", "a"), ("api_key", "b"), ("token", "c"),
    ]  # fmt: skip
    assert found(secrets_in({"url": "https://u:pw1@h/", "parameters": {"token": "x"}})) == [
        ("url", "https://u:pw1@h/"), ("url.password", "pw1"), ("url.password", "pw1"),
    ]  # fmt: skip
    assert found(secrets_in([Secret("s", "v"), {"headers": "plain"}, b"x", 5, None])) == [
        ("s", "v"),
        ("headers", "plain"),
    ]


def test_the_environment_has_secrets_by_their_names_and_in_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in list(os.environ):
        monkeypatch.delenv(name)
    variables = {
        "A_KEY": "1",
        "TOKEN_B": "2",
        "MONKEY": "3",
        "DB_URL": "pg://u:pw@h/",
        "C_credentials": "4",
        "KEYS": "5",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    secrets = {secret.value: secret for secret in environment_secrets()}
    assert secrets.keys() == {"1", "2", "4", "pg://u:pw@h/", "pw"}
    assert not secrets["1"].warns


def test_components_of_an_agent_are_included_once() -> None:
    inner = Holder("inner", api_key=KEY)
    outer = Holder("outer", part=inner, token=OTHER)
    secrets = secrets_of(outer)
    assert secrets.hide(f"{KEY} {OTHER}") == "[secret:inner.api_key] [secret:outer.token]"
    inner.extra_token = "Yt6-Lk2mZx81PvTn4"  # type: ignore[attr-defined]
    secrets.include(inner)
    assert secrets.hide("Yt6-Lk2mZx81PvTn4") == "Yt6-Lk2mZx81PvTn4", "it was looked at before"
    secrets.include({"api_key": "Yt6-Lk2mZx81PvTn4"})
    assert secrets.hide("Yt6-Lk2mZx81PvTn4") == "[secret:api_key]"


def test_the_last_thousand_secrets_are_known() -> None:
    learned = _LearnedSecrets()
    for number in range(1001):
        learned.add(Secret("n", str(number)))
    learned.add(Secret("n", "1000"))
    assert (len(learned.all()), learned.revision) == (1000, 1001)
    assert learned.all()[0].value == "1"
    learn_secret("n", "")


def test_new_secrets_are_told_from_known_ones() -> None:
    secrets = known(KEY)
    assert secrets.add([Secret("a", KEY)]) is False
    assert secrets.add([Secret("a", f" {OTHER}\n")]) is True
    assert secrets.hide(f"<{OTHER}>") == "<[secret:a#2]>"
    assert (bool(secrets), bool(Secrets())) == (True, False)
    assert repr(Secrets([Secret("a", KEY), Secret("a", f" {OTHER}\n")])) == "<3 secrets>"
    assert Secrets([Secret(" /x y/ ", KEY)]).hide(KEY) == "[secret:x_y]"
    assert Secrets([Secret("//", KEY)]).hide(KEY) == "[secret:unnamed]"


def test_secrets_of_settings_are_known_by_their_names() -> None:
    class Named:
        def named_secrets(self) -> Mapping[str, str]:
            return {"A_KEY": KEY}

    assert secrets_of(settings=Named()).hide(KEY) == "[secret:A_KEY]"


class _Growing(StatesSecrets):
    """A component with a collection; what it uses may be changed by another thread at any time."""

    def __init__(self, collection: Any) -> None:
        self.api_key = "sk-first-0123456789"
        self.collection = collection
        self.token = "sk-last-0123456789"


@pytest.mark.parametrize(
    ("collection", "add"),
    [
        ({"api_key": "sk-1-0123456789", "token": "sk-2-0123456789"}, lambda one, key: one.update({key: "x"})),
        (
            {"headers": {"X-Key": "sk-1-0123456789", "X-Token": "sk-2-0123456789"}},
            lambda one, key: one["headers"].update({key: "x"}),
        ),
        ({"https://a:sk-1-0123456789@acme.example", "https://b:sk-2-0123456789@acme.example"}, set.add),
    ],
    ids=["settings", "headers", "set"],
)
def test_a_component_that_changes_while_it_is_searched_is_searched_to_its_end(collection: Any, add: Any) -> None:
    component = _Growing(collection)
    values: set[str] = set()
    for number, secret in enumerate(secrets_in(component)):
        values.add(secret.value)
        setattr(component, f"late_{number}", number)
        add(collection, f"late_{number}")
    assert {"sk-first-0123456789", "sk-1-0123456789", "sk-2-0123456789", "sk-last-0123456789"} <= values
