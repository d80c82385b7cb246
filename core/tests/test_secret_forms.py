"""The forms of a secret: each way to write one is found and hidden."""

from __future__ import annotations

import pytest

from jackfield.secrets._forms import forms_of, probe_of
from tests.support.secrets import KEY, known


def test_a_secret_has_a_form_for_each_way_to_write_it() -> None:
    value = 'a b"c/é-Zq83bX'
    forms = {form.placeholder: form.text for form in forms_of(value, "K")}
    assert forms["[secret:K]"] == value
    assert forms["[secret:K:json]"] == 'a b\\"c/é-Zq83bX'
    assert forms["[secret:K:json-ascii]"] == 'a b\\"c/\\u00e9-Zq83bX'
    assert forms["[secret:K:json-json]"] == 'a b\\\\\\"c/é-Zq83bX'
    assert forms["[secret:K:url]"] == "a%20b%22c%2F%C3%A9-Zq83bX"
    assert forms["[secret:K:url-path]"] == "a%20b%22c/%C3%A9-Zq83bX"
    assert forms["[secret:K:url-form]"] == "a+b%22c%2F%C3%A9-Zq83bX"
    assert len(forms) == len(set(forms.values()))
    assert "[secret:K:repr]" not in forms, "it is the same as the whole"


@pytest.mark.parametrize("before", [0, 1, 2])
@pytest.mark.parametrize("length", [12, 13, 14])
def test_a_secret_in_base64_is_hidden_at_every_offset(before: int, length: int) -> None:
    import base64

    value = "Zq83bXw4Rk2LpV"[:length]
    whole = base64.b64encode(b"u:p"[:before] + value.encode() + b"xyz").decode()
    hidden = known(value).hide(whole)
    assert "[secret:KEY_0:base64-" in hidden
    kept = hidden.partition("[secret")[0] + hidden.partition("]")[2]
    assert len(kept) <= 12
    assert len(hidden.partition("[secret")[0]) == (0, 2, 3)[before], "only characters with bits of the text before it"
    texts = [form.text for form in forms_of(value, "K") if f"base64-{before}" in form.placeholder]
    assert texts == [text for text in texts if text in whole] != []


def test_a_beginning_that_is_no_common_text_is_hidden_with_its_length() -> None:
    assert known(KEY).hide(f"it is {KEY[:15]}!") == "it is [secret:KEY_0:15]!"
    assert known(KEY).hide("it is sk-proj-!") == "it is sk-proj-!"
    assert known(KEY).hide(f"{KEY}{KEY[:14]}") == "[secret:KEY_0][secret:KEY_0:14]"
    assert next(probe_of(form) for form in forms_of("ab-Zq83bXw4", "K")) == "Zq83b"


def test_the_shortest_secret_has_forms_and_a_common_beginning_may_be_long() -> None:
    assert next(form.text for form in forms_of("Zq83bXw4", "K")) == "Zq83bXw4"
    assert known("Zq83bXw4").hide("it is Zq83bXw4") == "it is [secret:KEY_0]"
    long = "words-and-more-words-Zq83bXw4Rk2LpV7Tn"
    assert known(long).hide(f"it is {long[:-2]}!") == f"it is [secret:KEY_0:{len(long) - 2}]!"
