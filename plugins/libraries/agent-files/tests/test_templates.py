"""Variables of agent files: only names, only in texts, and every missing one is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield.errors import ConfigError
from jackfield_agent_files.files import load_agent_config
from jackfield_agent_files.templates import fill_input, fill_variables

TEMPLATE = """llm: openai:m
system_message: Explain {{ topic }} to {{audience}}. Leave {{ user.name }} and {{#each}} as they are.
prompt: "{{ topic }}, in short: {{ input }}"
params: {audience: a beginner}
function_list: ["{{ topic }}"]
handoffs: [{name: b, description: "Knows {{ topic }}.", system_message: "{{ tone }}"}]
"""


@pytest.fixture
def template(tmp_path: Path) -> Path:
    path = tmp_path / "explain.yaml"
    path.write_text(TEMPLATE)
    return path


def test_texts_are_filled_and_nothing_else(template: Path) -> None:
    config = load_agent_config(template, params={"topic": "tides", "tone": "Be kind."})
    assert config.system_message == ("Explain tides to a beginner. Leave {{ user.name }} and {{#each}} as they are.")
    assert config.prompt == "tides, in short: {{ input }}"
    assert config.function_list == ("{{ topic }}",)
    assert config.handoffs == ({"name": "b", "description": "Knows tides.", "system_message": "Be kind."},)
    assert load_agent_config(template, params=None).system_message.startswith("Explain {{ topic }}")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, r"no value for 'topic', 'tone' in .*: pass -p topic=… -p tone=…, or add a default under `params`"),
        ({"topic": "x", "tone": "y", "audiense": "z"}, r"has no variable 'audiense'; did you mean 'audience'\?"),
        ({"topic": "x", "tone": "y", "input": "z"}, "has no variable 'input'"),
    ],
)
def test_missing_and_unknown_variables_are_named(template: Path, params: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_agent_config(template, params=params)


def test_a_default_without_a_variable_and_one_that_is_a_table_are_errors(tmp_path: Path) -> None:
    for params, message in (
        ({"topic": "x"}, "has no variable 'topic'"),
        ({"a": {}}, "must be a table of default values"),
        (["a"], "must be a table of default values"),
    ):
        (tmp_path / "a.json").write_text(json.dumps({"llm": "openai:m", "params": params}))
        with pytest.raises(ConfigError, match=message):
            load_agent_config(tmp_path / "a.json")


TEXTS = ("system_message", "prompt", "description")
SETTINGS: st.SearchStrategy[Any] = st.recursive(
    st.just("{{ a }}") | st.text(st.sampled_from("ab{} \n") | st.characters(), max_size=8) | st.none() | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["path", "x", *TEXTS]), inner, max_size=3)
    ),
    max_leaves=6,
)


@example([{"description": "{{ a }}"}], "1")
@given(SETTINGS, st.text(max_size=20))
def test_no_value_changes_anything_but_its_text(settings: Any, value: str) -> None:
    table = {"system_message": "{{ a }}", "files": settings}
    filled = fill_variables(table, {"a": value}, file="f")
    assert filled == {"system_message": value, "files": settings}


@pytest.mark.parametrize(
    ("prompt", "text", "asked"),
    [
        ("Say {{ input }}!", "it {{ input }}", "Say it {{ input }}!"),
        ("Say {{input}}!", "", "Say !"),
        ("Summarise this:", "a text", "Summarise this:\n\na text"),
        ("Tell a joke.", "", "Tell a joke."),
        ("Translate: {{ input }}", "", "Translate:"),
        ("Greet {{ name }}.", "Now.", "Greet {{ name }}.\n\nNow."),
    ],
)
def test_what_is_typed_goes_into_the_prompt_or_follows_it(prompt: str, text: str, asked: str) -> None:
    assert fill_input(prompt, text) == asked


def test_texts_of_agents_in_options_and_lists_are_filled_and_other_tables_are_not() -> None:
    inner = {"agent": "acme", "prompt": "{{ a }}", "description": "{{a}}", "other": "{{ a }}"}
    table = {
        "options": {"agents": [inner, {"system_message": "{{ a }}"}], "group": {"prompt": "{{ a }} {{ b }}"}},
        "llm": {"description": "{{ a }} {{ c }}"},
        "function_list": [inner, {"name": "x", "description": "{{ a }} {{ d }}"}],
    }
    filled = fill_variables(table, {"a": "1"}, file="f")
    done = {**inner, "prompt": "1", "description": "1"}
    assert filled == {
        "options": {"agents": [done, {"system_message": "1"}], "group": {"prompt": "{{ a }} {{ b }}"}},
        "llm": {"description": "{{ a }} {{ c }}"},
        "function_list": [done, {"name": "x", "description": "{{ a }} {{ d }}"}],
    }


@pytest.mark.parametrize("text", ["{{a}}", "{{ a }}", "{{\ta }}"])
def test_a_variable_may_have_blanks_around_it(text: str) -> None:
    assert fill_variables({"prompt": text}, {"a": "1"}, file="f") == {"prompt": "1"}


@pytest.mark.parametrize("text", ["{a}", "{{ 1a }}", "{{ a.b }}", "{{ a b }}", "{{\na }}", "{{}}"])
def test_anything_else_in_braces_is_text(text: str) -> None:
    assert fill_variables({"prompt": text}, {}, file="f") == {"prompt": text}


def test_a_value_wins_over_a_default_and_defaults_may_be_numbers() -> None:
    table = {"prompt": "{{ a }} {{ b }} {{ input }}", "params": {"a": 1, "b": 2.5}}
    assert fill_variables(table, {"a": "x"}, file="f") == {"prompt": "x 2.5 {{ input }}"}
    assert fill_variables({"description": "{{ input }}"}, {"input": "y"}, file="f") == {"description": "y"}
    assert fill_input("{{ other }} {{ input }}", "x") == "{{ other }} x"
