"""Secrets are put back where they were, and a digest says what was there."""

from __future__ import annotations

from jackfield.secrets import Secrets, digest_of, has_digest
from jackfield.secrets._hiding import placeholders_in
from tests.support.secrets import KEY, known


def test_only_known_placeholders_are_filled() -> None:
    secrets = known(KEY)
    unknown = "[secret:KEY_1] [secret:KEY_0:xy] [secret:KEY_1:15]"
    hidden = {"a": f"[secret:KEY_0] [secret:KEY_0:15] {unknown}", "b": [("[secret:KEY_0]", 1)]}
    assert secrets.fill(hidden) == {"a": f"{KEY} {KEY[:15]} {unknown}", "b": [[KEY, 1]]}
    assert placeholders_in("[secret:a] [secret:b] [secret:a]") == ["[secret:a]", "[secret:b]"]


def test_an_object_is_restored_as_its_seal_would_be() -> None:
    secrets = known(KEY)
    plain, told = {"content": "a"}, {"content": f"a {KEY}"}
    assert secrets.seal(plain) == plain
    assert secrets.as_restored(told) == told
    assert secrets.as_restored({"content": f"[secret:KEY_0] {KEY}"}) == {"content": "[secret:KEY_0] [secret:KEY_0]"}
    sealed = secrets.seal(told)
    assert sealed["content"] == "a [secret:KEY_0]"
    assert secrets.unseal(sealed) == (told, True)
    assert secrets.unseal(plain) == (plain, True)
    assert Secrets().unseal(sealed) == ({"content": "a [secret:KEY_0]"}, False)


def test_a_digest_of_a_secret_has_a_salt_and_another_one_has_none() -> None:
    open_one, salted = digest_of({"b": 1, "a": 2}, is_secret=False), digest_of("x", is_secret=True)
    assert (len(open_one), open_one) == (64, digest_of({"a": 2, "b": 1}, is_secret=False))
    salt, _, digest = salted.partition(":")
    assert (len(salt), len(digest)) == (32, 32)
    assert salted != digest_of("x", is_secret=True)
    assert has_digest("x", salted)
    assert not has_digest("y", salted)
    assert has_digest({"a": 2, "b": 1}, open_one)
