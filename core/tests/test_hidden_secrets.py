"""Hiding secrets: in texts, JSON, values, pieces, logs and addresses, and nothing else is changed."""

from __future__ import annotations

import json
import logging
import re
from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.secrets import Secret, Secrets, hide_in_address
from jackfield.secrets._hiding import HIDDEN_PARTS, HideInLogs, hide_in_addresses, lower_each
from tests.support.secrets import KEY, OTHER, known


def test_secrets_that_overlap_are_hidden_as_one() -> None:
    first, second = "Zq83bXw4Rk2L", "Rk2LpV7TnQw9"
    both = known(first, second)
    assert both.hide("<Zq83bXw4Rk2LpV7TnQw9>") == f"<{HIDDEN_PARTS}>"
    assert both.hide(f"{second} <Zq83bXw4Rk2LpV7TnQw9> {first}") == f"[secret:KEY_1] <{HIDDEN_PARTS}> [secret:KEY_0]"
    inner = known("Zq83bXw4Rk2LpV7TnQw9", "bXw4Rk2L")
    assert inner.hide("Zq83bXw4Rk2LpV7TnQw9") == "[secret:KEY_0]"


def test_secrets_of_one_name_are_told_apart() -> None:
    values = ["Zq83bXw4Rk2L", "Mn61cYv9Tj5P", "Hd27eUs8Gf0W", "Lk94aQz1Xb6V"]
    secrets = Secrets(Secret("KEY", value) for value in values)
    hidden = secrets.hide(" ".join(values))
    assert hidden == "[secret:KEY] [secret:KEY#2] [secret:KEY#3] [secret:KEY#4]"
    assert secrets.fill({"a": hidden}) == {"a": " ".join(values)}


def test_a_text_that_is_json_stays_json_in_its_layout() -> None:
    secrets = known(KEY)
    text = f'{{"a":  "{KEY}",\n "é": 1}}'
    assert secrets.hide(text) == '{"a":  "[secret:KEY_0]",\n "é": 1}'
    escaped = "".join(f"\\u{ord(char):04x}" for char in KEY)
    assert secrets.hide(f' \n["{escaped}", "é"]') == '["[secret:KEY_0]", "é"]'
    assert secrets.hide(f'{{"a": "{escaped}", "é": 1}}') == '{"a": "[secret:KEY_0]", "é": 1}'
    assert secrets.hide(f"{{ no json {KEY}") == "{ no json [secret:KEY_0]"
    assert secrets.hide('{"a": "\\u0041"}') == '{"a": "\\u0041"}'
    slashed = known("ab/Zq83bXw4Rk2LpV")
    assert slashed.hide('["ab\\/Zq83bXw4Rk2LpV"]') == '["[secret:KEY_0]"]'
    assert Secrets().hide("\\u0041 and \\/") == "\\u0041 and \\/"


@pytest.mark.parametrize("escapes", [["plain", "slash"], ["plain", "slash", "code"]], ids=" ".join)
@pytest.mark.parametrize(
    "key", [KEY, "ab/Zq83bXw4Rk2LpV", "Zq83bXw4/Rk2Lp+V", "/q/8/bX/w4/R/k2/", 'Zq8\n3b/Xw4"Rk2'], ids=ascii
)
@given(data=st.data())
def test_a_secret_is_hidden_however_json_escapes_its_characters(
    key: str, escapes: list[str], data: st.DataObject
) -> None:
    def write(char: str) -> str:
        how = data.draw(st.sampled_from(escapes))
        if how == "slash" and char == "/":
            return "\\/"
        return f"\\u{ord(char):04x}" if how == "code" else json.dumps(char)[1:-1]

    secrets = known(key)
    text = f'{{"a": "<{"".join(map(write, key))}>"}}'
    assert json.loads(text) == {"a": f"<{key}>"}
    assert re.fullmatch(r"<\[secret:KEY_0(:json)?\]>", json.loads(secrets.hide(text))["a"])
    assert secrets.may_be_in(json.dumps({"arguments": text}))


@pytest.mark.parametrize(
    ("text", "may_be"),
    [(f'"{KEY}"', True), ('"plain"', False), ('"\\\\u0041"', True), ('"\\\\/"', False), ('"\\u0041"', False)],
)
def test_a_json_text_may_have_a_secret_if_it_has_a_part_of_one_or_escapes(text: str, may_be: bool) -> None:
    assert known(KEY).may_be_in(text) is may_be
    assert Secrets([Secret("weak", "short")]).may_be_in("plain") is False


def test_values_are_hidden_in_all_their_parts_and_keys_stay() -> None:
    secrets = known(KEY)
    value = {KEY: [KEY, (KEY, 1)], "name": KEY, "n": None}
    hidden = "[secret:KEY_0]"
    assert secrets.hide_value(value) == {KEY: [hidden, [hidden, 1]], "name": hidden, "n": None}
    assert secrets.hide_fields(value) == {KEY: [hidden, [hidden, 1]], "name": KEY, "n": None}
    free = {"extra": {"name": KEY}, "metadata": {"id": KEY}, "content": {"role": KEY}}
    assert secrets.hide_fields(free) == {
        "extra": {"name": hidden}, "metadata": {"id": hidden}, "content": {"role": KEY},
    }  # fmt: skip
    assert secrets.hide_value(OrderedDict(a=KEY)) == {"a": hidden}
    assert (secrets.are_in(f"x{KEY}"), secrets.are_in("x")) == (True, False)


@pytest.mark.parametrize("cut", range(1, len(KEY)))
def test_a_secret_in_pieces_is_hidden_where_it_begins(cut: int) -> None:
    pieces = [f"it is {KEY[:cut]}", f"{KEY[cut:]}, yes"]
    assert known(KEY).hide_pieces(pieces) == ["it is [secret:KEY_0]", ", yes"]
    assert known(KEY).hide_pieces(["it", " is"]) == ["it", " is"]
    assert known(KEY).pending_in(pieces[0]) == cut


def test_what_may_begin_a_secret_is_counted_by_the_longest() -> None:
    assert known(KEY).pending_in("nothing") == 0
    assert known(KEY).pending_in(KEY) == 0
    assert known("abZq83bXw4", "Zq83bXw4Rk").pending_in("abZq") == 4


@pytest.mark.parametrize(
    ("text", "spans"),
    [(f"a{KEY}b", [(1, 1 + len(KEY))]), (f"a{KEY.upper()}b", [(1, 1 + len(KEY))]), ("a", [])],
)
def test_secrets_are_found_in_capitals_if_wanted(text: str, spans: list[tuple[int, int]]) -> None:
    assert [span[:2] for span in known(KEY).find(text, any_case=True)] == spans
    assert [span[:2] for span in known(KEY).find(text)] == (spans if KEY in text else [])
    assert known(KEY).find("", any_case=True) == []


def test_a_text_in_lower_case_is_as_long_as_before() -> None:
    assert lower_each("AbC") == "abc"
    assert lower_each("İA") == "İa"


# --- logs ---


@pytest.mark.parametrize("with_error", [True, False])
@pytest.mark.parametrize("text", ["plain %s", f"has {KEY} %s"])
def test_a_log_shows_no_secret_and_is_otherwise_as_it_was(with_error: bool, text: str) -> None:
    error = ValueError(KEY if "has" in text else "plain")
    details = (type(error), error, None) if with_error else None
    record = logging.LogRecord("x", logging.INFO, "f", 1, text, ("arg",), details)
    assert HideInLogs(known(KEY)).filter(record) is True
    shown = logging.Formatter().format(record)
    assert KEY not in shown
    assert shown.startswith("plain arg" if "plain" in text else "has [secret:KEY_0] arg")
    assert ("ValueError" in shown) is with_error
    assert (record.args == ("arg",)) is ("plain" in text)
    assert KEY not in repr(record.exc_info), "for handlers that write errors in their own way"
    traced = logging.LogRecord("x", logging.INFO, "f", 1, "m", (), None)
    traced.exc_text = f"trace {KEY}"
    HideInLogs(known(KEY)).filter(traced)
    assert traced.exc_text == "trace [secret:KEY_0]"


# --- addresses in texts ---


def test_addresses_in_a_text_lose_their_secrets() -> None:
    text = f"see https://u:{KEY}@h/a and https://h/?key={OTHER} not a/b"
    assert hide_in_addresses(text) == (
        "see https://u:[secret:address.password]@h/a and https://h/?key=[secret:address.key] not a/b"
    )
    assert hide_in_addresses(f"no address {KEY}") == f"no address {KEY}"
    assert hide_in_address("https://h/plain") == "https://h/plain"
