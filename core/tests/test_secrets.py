"""Secrets are found wherever components hold them, hidden in values, and put back only where they were."""

from __future__ import annotations

import base64
import json
import pickle
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, SecretStr

from jackfield.config import Config, Configured, GenerateConfig, Headers, LLMConfig
from jackfield.secrets import (
    Secret,
    Secrets,
    StatesSecrets,
    digest_of,
    has_digest,
    hide_in_address,
    learn_secret,
    secrets_in,
    secrets_of,
    weakness_of,
)
from jackfield.settings import load_settings

KEYS = {
    "usual": "sk-proj-Zq83bXw4Rk2LpV7Tn",
    "quotes": "it's \"quoted\" \\ 'twice'\\\\",
    "lines": "first-line7\nsecond\tline\r\nthird",
    "unicode": "clé-пароль-密码-\U0001f511-42",
    "regex": "(a+)+$[^b]*\\d{3}|.^?",
    "json": '{"role": "assistant", "content": [1, null]}',
    "long": "Zq83bXw4" * 2000,
    "base64": "AAEC/+8gZm9vYmFyYmF6cXV4==",
    "bidi": "a\u202eb\u0000c\ud800d7Xk2",
}
nasty = pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)


def known(*values: str) -> Secrets:
    return Secrets(Secret(f"KEY_{number}", value) for number, value in enumerate(values))


def forms_of(key: str) -> set[str]:
    raw = key.encode("utf-8", "surrogatepass")
    encoded = {base64.b64encode(raw).decode(), base64.urlsafe_b64encode(b"user:" + raw).decode()}
    quoted = {quote(key, safe="", errors="replace"), quote_plus(key, errors="replace")}
    return {key, json.dumps(key)[1:-1], json.dumps(key, ensure_ascii=False)[1:-1], repr(key)[1:-1], *quoted, *encoded}


@nasty
def test_no_form_of_a_key_is_left_in_a_text(key: str) -> None:
    for form in forms_of(key):
        hidden = known(key).hide(f"before {form} after {form}")
        assert form not in hidden
        assert not form[8:-4] or form[8:-4] not in hidden
        assert hidden.count("[secret") == 2


@nasty
@pytest.mark.parametrize("in_ascii", [True, False])
def test_arguments_stay_json_and_keep_all_but_the_key(key: str, in_ascii: bool) -> None:
    asked = {"name": key, "nested": [{"text": f"x{key}y", "n": 1.5}], "plain": "a birthday\n"}
    hidden = known(key).hide(json.dumps(asked, ensure_ascii=in_ascii, indent=1))
    told = json.loads(hidden)
    assert key not in json.dumps(told, ensure_ascii=False)
    assert told["name"] == "[secret:KEY_0]" or told["name"].startswith("[secret:KEY_0:")
    assert told["plain"] == asked["plain"]
    assert [*told] == [*asked]


def test_a_key_whose_plain_characters_are_escaped_is_hidden_as_well() -> None:
    key = "Zq83bXw4/Rk2Lp"
    escaped = '{"a": "' + "".join(f"\\u{ord(one):04x}" for one in key) + '", "b": "Zq83bXw4\\/Rk2Lp"}'
    assert json.loads(known(key).hide(escaped)) == {"a": "[secret:KEY_0]", "b": "[secret:KEY_0]"}


@nasty
def test_the_beginning_of_a_key_is_hidden_and_a_common_one_is_not(key: str) -> None:
    half = key[: len(key) * 3 // 4]
    hidden = known(key).hide(f"cut: {half}")
    assert half not in hidden
    assert known("sk-proj-Zq83bXw4Rk2LpV7Tn").hide("Keys begin with sk-proj-.") == "Keys begin with sk-proj-."


@nasty
@given(data=st.data())
def test_a_key_that_a_stream_cuts_is_hidden_in_all_pieces(key: str, data: st.DataObject) -> None:
    key = key[:60]
    text = f"one {key} two"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    hidden = known(key).hide_pieces(pieces)
    assert len(hidden) == len(pieces)
    assert "".join(hidden) == "one [secret:KEY_0] two"


@given(st.text(), st.sampled_from([*KEYS.values()]))
def test_a_text_without_secrets_stays_as_it_is(text: str, key: str) -> None:
    if key[:8] not in text:
        assert known(key).hide(text) == text
        assert known(key).hide_value({text: [text]}) == {text: [text]}


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.sampled_from(["x", "messages", "assistant", "a birthday"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(
    json_values,
    st.sampled_from(["x", "messages", "assistant", "a birthday", "function_call", "20261123", "aaaaaaaaaa"]),
)
def test_a_weak_key_changes_nothing(value: Any, key: str) -> None:
    assert known(key).hide_value(value) == value
    assert known(key).hide(json.dumps(value)) == json.dumps(value)


@nasty
def test_names_roles_and_ids_stay_even_if_they_are_a_key(key: str) -> None:
    message = {"role": key, "name": key, "function_id": key, "content": key, "extra": {key: key, "name": key}}
    told = {"event": key, "call_id": key, "messages": [message], "agents": [key], "metadata": {"name": key}}
    hidden = known(key).hide_fields(told)
    assert (hidden["event"], hidden["call_id"], hidden["agents"]) == (key, key, [key])
    [message] = hidden["messages"]
    assert (message["role"], message["name"], message["function_id"]) == (key, key, key)
    assert [*message["extra"]] == [key, "name"]
    assert key not in (message["content"], *message["extra"].values(), hidden["metadata"]["name"])


# --- which values are secrets -----------------------------------------------------------------------------------------

WEAK = (
    "x", "messages", "assistant", "a birthday", "function_call", "reasoning_content", "approval_needed", "not-needed",
    "tool_call_limit", "changeme", "OpenAI", "2026-11-23", "20261123", "127.0.0.1:80", "aaaaaaaa", "********", "gpt-4",
)  # fmt: skip


@pytest.mark.parametrize("value", [*WEAK, "true or false"])
def test_words_numbers_and_short_values_are_no_secrets(value: str) -> None:
    assert weakness_of(value)


@pytest.mark.parametrize(
    "value", [*KEYS.values(), "hunter22", "aBcDeFgHiJ", "correct horse battery staple", "p4ssw0rd!"]
)
def test_what_is_random_mixed_or_long_is_a_secret(value: str) -> None:
    assert not weakness_of(value)


@pytest.mark.parametrize(
    "value", ["/home/ada/data7/x", "~/k3y5/x", "C:\\k3y5\\x", "https://h.example/v1", "eu-west1", "en_US.UTF-8"]
)
def test_paths_addresses_and_numbered_words_of_an_environment_are_no_secrets(value: str) -> None:
    assert weakness_of(value, is_named=False)


def test_a_weak_key_is_reported_once_by_its_setting_and_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        Secrets([Secret("acme.api_key", "wordswords")])
    [record] = caplog.records
    assert "acme.api_key is not hidden" in record.getMessage()
    assert "wordswords" not in caplog.text
    Secrets([Secret("acme.other_key", "EMPTY"), Secret("ACME_SEEN", "wordswords", is_named=False)])
    assert len(caplog.records) == 1


# --- where they are found ---------------------------------------------------------------------------------------------

MARK = "mk-Marked+Secret/7Q9zXw4Rk2Lp"
HEX = "7Q9zXw4Rk2Lp8Xk"


class _Config(Config):
    api_key: SecretStr | None = None
    base_url: str = ""
    extra_headers: Headers = Field(default_factory=dict)
    env: Mapping[str, str] = Field(default_factory=dict)
    nested: GenerateConfig = GenerateConfig()


class _Tool(Configured):
    config_class = _Config


@dataclass
class _Holder:
    part: object


class _Wrapper(StatesSecrets):
    def __init__(self, inner: object) -> None:
        self._inner = inner


class _Explicit:
    def secret_sources(self) -> list[object]:
        return [Secret("vault", MARK)]


def _with_attribute() -> _Wrapper:
    made = _Wrapper(None)
    vars(made)["_token"] = MARK
    return made


PLACES: Mapping[str, Any] = {
    "SecretStr of a setting": _Tool(api_key=MARK),
    "path of an address": _Tool(base_url=f"http://127.0.0.1/tokens/{quote(MARK, safe='')}/v1"),
    "query of an address": _Tool(base_url=f"http://127.0.0.1/v1?key={quote(MARK, safe='')}"),
    "password of an address": _Tool(base_url=f"http://user:{quote(MARK, safe='')}@127.0.0.1/v1"),
    "header": _Tool(extra_headers={"Authorization": f"Bearer {MARK}"}),
    "environment of a server": _Tool(env={"SERVICE": MARK}),
    "nested settings": _Tool(nested={"extra_headers": {"X-Access": MARK}}),
    "a component inside of others": _Wrapper([{"any": _Holder(_Wrapper(_Tool(api_key=MARK)))}]),
    "an attribute": _with_attribute(),
    "a method": _Explicit(),
    "a plain dict": {"mcpServers": {"a": {"headers": {"Cookie": f"session {MARK}"}}}},
}


@pytest.mark.parametrize("place", PLACES)
def test_a_secret_is_found_in_every_place(place: str) -> None:
    values = {secret.value for secret in secrets_in(PLACES[place])}
    assert MARK in values
    hidden = secrets_of(PLACES[place]).hide(f"it is {MARK}")
    assert MARK[:12] not in hidden


def test_what_is_no_secret_is_not_found() -> None:
    plain = _Tool(
        base_url="https://h.example/compatible-mode/v1/gpt-4o-2024-08-06", env={"LANG": "en_US.UTF-8", "N": "1"}
    )
    kept = secrets_of(plain)
    for text in ("compatible-mode", "gpt-4o-2024-08-06", "en_US.UTF-8", "https://h.example/compatible-mode/v1"):
        assert kept.hide(text) == text
    schema = {"parameters": {"properties": {"token": {"type": "string", "description": "Describes tokens at length."}}}}
    assert [*secrets_in(schema)] == []


def test_components_that_hold_each_other_are_looked_at_once() -> None:
    one, other = _Wrapper(None), _Wrapper(None)
    one._inner, other._inner = other, [one, _Tool(api_key=MARK)]
    assert MARK in {secret.value for secret in secrets_in(one)}


def test_secrets_of_the_environment_and_of_the_settings_are_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("ACME_SECRET_ACCESS", MARK)
    file = tmp_path / "config.toml"
    file.write_text(f'[secrets]\nOTHER = "{HEX}"\n')
    settings = load_settings(project_dir=tmp_path, user_file=file)
    hidden = secrets_of(settings=settings).hide(f"{MARK} {HEX}")
    assert hidden == "[secret:ACME_SECRET_ACCESS] [secret:OTHER]"


def test_a_secret_that_is_learned_later_is_hidden_by_what_exists_already() -> None:
    before = known("Zq83bXw4Rk2LpV7Tn")
    later = "at-9Kd83jfLw02mZ"
    assert before.hide(later) == later
    learn_secret("server acme", later)
    assert before.may_be_in(f'"{later}"')
    assert before.hide(later) == "[secret:server_acme]"
    learn_secret("server acme", None)


def test_a_declared_secret_of_any_name_is_known_once_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    before = known()
    monkeypatch.setenv("ACME_ACCESS_CODE", "c0de-83jfLw02mZqq")
    assert load_settings(with_project=False).secret("ACME_ACCESS_CODE")
    assert before.hide("c0de-83jfLw02mZqq") == "[secret:ACME_ACCESS_CODE]"


def test_secrets_learned_in_threads_are_all_hidden() -> None:
    values = [f"th-{number:03}Lw02mZqqXk" for number in range(50)]
    threads = [threading.Thread(target=learn_secret, args=("t", value)) for value in values]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not any(value in known().hide(" ".join(values)) for value in values)


def test_neither_repr_nor_pickle_of_the_component_shows_a_secret() -> None:
    secrets = known(MARK)
    assert MARK not in f"{secrets!r} {Secret('n', MARK)!r} {vars(secrets)['_forms']!r}"
    assert MARK.encode() not in pickle.dumps(secrets)


def test_two_secrets_of_one_name_have_two_placeholders() -> None:
    both = Secrets([Secret("api_key", MARK), Secret("api_key", HEX)])
    assert both.hide(f"{MARK} {HEX}") == "[secret:api_key] [secret:api_key#2]"


# --- putting back -----------------------------------------------------------------------------------------------------


@nasty
def test_what_was_sealed_comes_back_exactly(key: str) -> None:
    told = {"event": "X", "messages": [{"content": f"{key} {key[:-2]} {quote(key, errors='replace')}"}], "n": 1}
    sealed = known(key).seal(told)
    assert key not in json.dumps(sealed, ensure_ascii=False)
    assert known(key).unseal(json.loads(json.dumps(sealed))) == (told, True)


def test_without_the_secret_or_with_another_one_nothing_is_put_back() -> None:
    sealed = known(MARK).seal({"content": f"it is {MARK}"})
    for others in (Secrets(), known(HEX), known(MARK + "changed")):
        assert others.unseal(sealed) == ({"content": "it is [secret:KEY_0]"}, False)
    edited = {**sealed, "content": "it is now [secret:KEY_0]"}
    assert known(MARK).unseal(edited)[1] is False


def test_a_placeholder_that_a_model_wrote_is_never_filled() -> None:
    told = {"content": "send [secret:KEY_0] to me"}
    assert known(MARK).seal(told) == told
    assert known(MARK).unseal(told) == (told, True)
    mixed = known(MARK).seal({"content": f"send [secret:KEY_0] and {MARK}"})
    assert MARK not in json.dumps(known(MARK).unseal(mixed)[0])


def test_the_digest_of_what_has_a_secret_is_salted_and_slow_to_guess() -> None:
    one, other = digest_of([MARK], is_secret=True), digest_of([MARK], is_secret=True)
    assert one != other
    assert has_digest([MARK], one)
    assert not has_digest([HEX], one)
    assert has_digest([1], digest_of([1], is_secret=False))
    assert not has_digest([2], digest_of([1], is_secret=False))


@pytest.mark.parametrize(
    "place", ["https://h.example/{}/v1", "https://h.example/v1?key={}", "https://h.example/v1?x={}"]
)
def test_no_text_of_a_configuration_shows_a_secret_in_an_address(place: str) -> None:
    secret = "Zq83bXw4Rk2LpV7Tn"
    config = LLMConfig(model="m", base_url=place.format(secret))
    assert config.server_url == place.format(secret)
    for text in (repr(config), str(config), str(config.model_dump()), config.model_dump_json()):
        assert secret not in text
        assert "https://h.example/" in text


def test_an_address_without_secrets_is_shown_as_it_is() -> None:
    assert "'http://localhost:8000/v1'" in repr(LLMConfig(model="m", base_url="http://localhost:8000/v1"))
    assert hide_in_address("postgresql://user:Zq83bXw4Rk2L@h/db") == "postgresql://user:[secret:address.password]@h/db"
