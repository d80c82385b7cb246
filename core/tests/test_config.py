"""Configurations: unknown keys are told, what is nearest is named, and no secret shows."""

from __future__ import annotations

import copy
import pickle
import re
import traceback
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, field_validator, model_validator

from jackfield import AgentConfig
from jackfield.config import Config, GenerateConfig, Limits, LLMConfig, SettingsDict
from jackfield.errors import ConfigError

SECRET = "sk-" + "SECRET"


@pytest.mark.parametrize(
    ("cls", "value", "told"),
    [
        (LLMConfig, {"model": "m", "modle_type": "x"}, "unknown setting 'modle_type'; did you mean 'model_type'"),
        (LLMConfig, {"model": "m", "generate_cfg": {"tempratur": 1}}, "'generate_cfg.tempratur'; did you mean 'temp"),
        (GenerateConfig, {"top_pp": 1}, "did you mean 'top_p'"),
        (AgentConfig, {"limits": {"turn": 3}}, "unknown setting 'limits.turn'; did you mean 'turns'"),
        (Limits, {"zzz": 3}, "known: cost, currency, seconds, tokens, tool_calls, turns"),
    ],
)
def test_an_unknown_key_is_an_error_that_names_the_nearest(cls: type[Config], value: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        cls.parse(value)
    assert told in str(caught.value)


def test_an_error_names_what_was_configured_and_the_key() -> None:
    with pytest.raises(ConfigError, match=r"^the llm: generate_cfg\.top_p must be less than or equal to 1"):
        LLMConfig.parse({"model": "m", "generate_cfg": {"top_p": 2}}, what="the llm")


@pytest.mark.parametrize("value", ["openai:m", 3, ["model", "m"], [("model",)]])
def test_what_is_no_dict_is_a_config_error(value: Any) -> None:
    with pytest.raises(ConfigError):
        LLMConfig.parse(value)


def test_a_model_has_no_default_and_is_stripped() -> None:
    with pytest.raises(ConfigError, match="model"):
        LLMConfig.parse({})
    with pytest.raises(ConfigError, match="model"):
        LLMConfig.parse({"model": "  "})
    assert LLMConfig.parse({"model": " m "}).model == "m"


def test_parsing_a_configuration_gives_the_same_one() -> None:
    config = LLMConfig(model="m")
    assert LLMConfig.parse(config) is config
    assert GenerateConfig.parse(None) == GenerateConfig()


def test_parsing_leaves_the_callers_dict_alone() -> None:
    value = {"model": " m ", "generate_cfg": {"stop": "END"}}
    before = copy.deepcopy(value)
    LLMConfig.parse(value)
    assert value == before


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        LLMConfig(model="m").model = "n"  # type: ignore[misc]


# --- secrets ---


def _with_secrets() -> LLMConfig:
    return LLMConfig.parse(
        {"model": "m", "api_key": SECRET, "generate_cfg": {"extra_headers": {"Authorization": SECRET}}}
    )


def test_a_key_can_be_read_by_who_asks_for_it() -> None:
    key = _with_secrets().api_key
    assert key is not None
    assert key.get_secret_value() == SECRET


@pytest.mark.parametrize("show", [repr, str, lambda config: repr(config.generate_cfg), lambda config: f"{config!s}"])
def test_no_secret_is_shown(show: Any) -> None:
    assert SECRET not in show(_with_secrets())


@pytest.mark.parametrize("name", ["dsn", "database_dsn", "DSN", "api_key", "password"])
def test_what_is_named_like_a_secret_is_shown_by_no_settings(name: str) -> None:
    given = SettingsDict({"name": "store", name: f"host=db password={SECRET}"})
    assert SECRET not in repr(given)
    assert SECRET.encode() not in pickle.dumps(given)


@pytest.mark.parametrize("depth", range(4))
@pytest.mark.parametrize("wrap", [lambda inner: {"a": inner}, lambda inner: [inner], lambda inner: (0, inner)])
def test_a_secret_is_hidden_however_deep_it_is(wrap: Any, depth: int) -> None:
    nested: Any = {"password": SECRET, "level": 3}
    for _ in range(depth):
        nested = wrap(nested)
    given = SettingsDict({"name": "store", "inner": nested})
    assert SECRET not in repr(given)
    assert "'level': 3" in repr(given)
    assert SECRET.encode() not in pickle.dumps(given)
    again = pickle.loads(pickle.dumps(given))
    assert isinstance(again, SettingsDict)
    assert "'level': 3" in repr(again)


def test_no_key_and_no_header_is_in_a_pickle() -> None:
    config = _with_secrets()
    assert SECRET.encode() not in pickle.dumps(config)
    again = pickle.loads(pickle.dumps(config))
    assert (again.model, again.api_key, again.generate_cfg.extra_headers) == ("m", None, {})
    assert config.generate_cfg.extra_headers == {"Authorization": SECRET}, "the original keeps them"


@pytest.mark.parametrize(
    "value",
    [
        {"model": "m", "api_key": [SECRET]},
        {"model": "m", "apikey": SECRET},
        {"model": 3, "api_key": SECRET},
        {"model": "m", "api_key": SECRET, "generate_cfg": {"temperature": SECRET, "lang": SECRET, "stop": 3}},
        {"model": "m", "base_url": {"key": SECRET}},
        {"model": "m", "generate_cfg": {"extra_headers": SECRET}},
    ],
)
def test_no_secret_is_in_an_error_nor_in_its_traceback(value: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        LLMConfig.parse(value)
    assert SECRET not in str(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


# --- generate_cfg ---


def test_a_stop_that_is_one_text_is_not_taken_apart() -> None:
    assert GenerateConfig.parse({"stop": "END"}).stop == ("END",)
    assert GenerateConfig.parse({"stop": ["A", "B"]}).stop == ("A", "B")


def test_the_options_of_a_call_win_and_stops_and_bodies_are_joined() -> None:
    base = GenerateConfig.parse({"temperature": 1, "top_p": 0.5, "stop": ["A", "B"], "extra_body": {"x": 1, "y": 1}})
    merged = base.merged({"temperature": 0, "stop": ["B", "C"], "extra_body": {"y": 2}})
    assert merged.temperature == 0
    assert merged.top_p == 0.5
    assert merged.stop == ("A", "B", "C")
    assert merged.extra_body == {"x": 1, "y": 2}
    assert base.stop == ("A", "B")


def test_an_unknown_option_of_a_call_is_told_as_one_of_generate_cfg() -> None:
    with pytest.raises(ConfigError, match=r"^generate_cfg: unknown setting 'temprature'; did you mean 'temperature'"):
        GenerateConfig().merged({"temprature": 1})


def test_an_option_can_be_unset_for_one_call() -> None:
    assert GenerateConfig(temperature=1).merged({"temperature": None}).temperature is None


options = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.floats(0, 2),
        "seed": st.integers(0, 9),
        "stop": st.lists(st.text(max_size=3), max_size=3) | st.text(max_size=3),
        "max_retries": st.integers(0, 9),
        "extra_body": st.dictionaries(st.sampled_from("ab"), st.integers()),
    },
)


@given(options, options, options)
def test_merging_is_associative(a: dict[str, Any], b: dict[str, Any], c: dict[str, Any]) -> None:
    first = GenerateConfig.parse(a)
    assert first.merged(b).merged(c) == first.merged(GenerateConfig.parse(b).merged(c))


@given(options)
def test_merging_nothing_changes_nothing(a: dict[str, Any]) -> None:
    config = GenerateConfig.parse(a)
    assert config.merged(None) == config.merged({}) == config


# --- servers and documents ---


@pytest.mark.parametrize(
    ("keys", "url"),
    [
        ({"api_base": "http://a", "base_url": "http://b", "model_server": "http://c"}, "http://a"),
        ({"base_url": "http://b", "model_server": "http://c"}, "http://b"),
        ({"model_server": "http://c"}, "http://c"),
        ({"model_server": "dashscope"}, None),
        ({"api_base": "HTTPS://A", "model_server": "http://c"}, "HTTPS://A"),
        ({}, None),
    ],
)
def test_the_servers_address_has_an_order_of_precedence(keys: dict[str, str], url: str | None) -> None:
    assert LLMConfig(model="m", **keys).server_url == url


@pytest.mark.parametrize("key", ["api_base", "base_url"])
def test_an_address_without_a_scheme_is_refused(key: str) -> None:
    with pytest.raises(ConfigError, match=f"{key}: the URL must start with http:// or https://"):
        LLMConfig.parse({"model": "m", key: "localhost:8000/v1"})


class Sized(Config):
    names: tuple[str, ...] = ()
    size: int = 1
    ratio: float = 1.0
    is_open: bool = False
    either: str | dict[str, Any] | None = None
    mode: Literal["fast", "slow"] = "fast"
    count: int = Field(default=1, ge=1)
    limits: Limits = Limits()
    code: str = Field(default="AB", pattern="^[A-Z]{2}$", min_length=2)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"names": "a"}, "names must be a list, got a string"),
        ({"names": ["a", 5]}, "names.1 must be a string, got a number: put it in quotes"),
        ({"names": ["a", 1.5]}, "names.1 must be a string, got a number: put it in quotes"),
        ({"limits": {"turns": True}}, "limits.turns: must not be True"),
        ({"limits": True}, "limits must be a table, got a boolean"),
        ({"names": None}, "names must be a list, got an empty value"),
        ({"size": "many"}, "size must be a whole number, got a string"),
        ({"size": 1.5}, "size must be a whole number"),
        ({"ratio": []}, "ratio must be a number, got a list"),
        ({"is_open": "maybe"}, "is_open must be true or false, got a string"),
        ({"either": True}, "either must be a string or a table, got a boolean: put it in quotes"),
        ({"mode": "odd"}, "mode must be 'fast' or 'slow'"),
        ({"count": 0}, "count must be greater than or equal to 1"),
        ({"limits": 3}, "limits must be a table, got a number"),
        ({"code": "A"}, "code must have at least 2 characters"),
        ({"code": "ab"}, "code must match pattern '^[A-Z]{2}$'"),
        ({"limits": {"currency": "eur"}}, "limits.currency must match pattern '^[A-Z]{3}$' (ISO 4217: USD, CNY, EUR)"),
        (
            {"limits": {"turns": []}, "size": {}},
            "size must be a whole number, got a table; limits.turns must be a whole number, got a list",
        ),
    ],
)
def test_a_wrong_form_is_named_in_plain_words(value: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Sized.parse(value, what="w")
    said = str(caught.value)
    assert said == f"w: {text}" or said.startswith((f"w: {text};", f"w: {text} ("))
    assert "should" not in str(caught.value)


class Ends(Config):
    command: str = ""
    url: str = ""

    @field_validator("url")
    @classmethod
    def _require_https(cls, url: str) -> str:
        if not url.startswith("https://"):
            raise ValueError("must start with https://")
        return url

    @model_validator(mode="after")
    def _require_one(self) -> Ends:
        if bool(self.command) == bool(self.url):
            raise ValueError("specify either 'command' or 'url'")
        return self


@pytest.mark.parametrize(
    ("value", "text"),
    [({}, "w: specify either 'command' or 'url'"), ({"url": "ftp://a.test"}, "w: url: must start with https://")],
)
def test_an_error_about_the_whole_names_no_setting(value: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Ends.parse(value, what="w")
    assert str(caught.value) == text


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(st.sampled_from([AgentConfig, LLMConfig, GenerateConfig, Limits, Sized]), st.data())
def test_no_error_about_a_setting_has_words_of_the_validator(cls: type[Config], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(cls.model_fields)))
    text = ""
    try:
        cls.parse({name: data.draw(_VALUES)})
    except ConfigError as error:
        text = str(error)
    assert not re.search(r"Input should|function-|valid (string|tuple|dictionary)|\[\w+,", text), text
