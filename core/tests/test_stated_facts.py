"""Facts that classes state and documentation repeats: how events are treated, defaults, and the text of a setting."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, get_args

import pytest

from jackfield import Limits, tool
from jackfield.config import (
    Adjustable,
    Config,
    Configured,
    GenerateConfig,
    LLMConfig,
    checked_list,
)
from jackfield.descriptors import (
    LLMSpec,
    ParserSpec,
    PostprocessorSpec,
    ProcessorSpec,
    SandboxSpec,
    ServerSpec,
    ToolsetSpec,
    ToolSpec,
    in_language,
    required_by,
)
from jackfield.errors import ConfigError
from jackfield.events import AgentEvent, ModelEvent, ModelFinished, PreparationProgress
from jackfield.request import ModelFacts
from jackfield.tools import ToolExecutor

DELTAS = {"TextDelta", "ReasoningDelta", "FunctionCallDelta", "MediaDelta"}
NOTES = {"RetryScheduled", "HistoryTrimmed", "PreparationProgress", "PluginEvent", "ToolProgress", "ApprovalDecided"}
RECORDED = {
    "HistoryTrimmed", "PluginEvent", "ToolFinished", "ApprovalNeeded", "ApprovalDecided", "HandedOff", "TurnFinished",
    "RunFinished", "RunFailed",
}  # fmt: skip


def test_each_event_is_treated_as_its_class_states() -> None:
    kinds = [*get_args(ModelEvent), *get_args(AgentEvent)]
    for name, stated in (("is_delta", DELTAS), ("is_note", NOTES), ("is_recorded", RECORDED)):
        assert {kind.__name__ for kind in kinds if getattr(kind, name)} == stated, name


@pytest.mark.parametrize(
    ("reason", "is_cut_off"),
    [("stop", False), ("tool_calls", False), ("length", True), ("content_filter", True), ("error", True)],
)
def test_an_answer_is_cut_off_unless_it_ended_by_itself(reason: Any, is_cut_off: bool) -> None:
    assert ModelFinished(reason).is_cut_off is is_cut_off


def test_progress_names_its_part() -> None:
    assert PreparationProgress("reading files", 3, 400, "a.pdf").text == "reading files: 3 of 400, a.pdf"
    assert PreparationProgress("reading", 0, 4).text == "reading: 0 of 4"


# --- defaults ---


def test_a_run_is_limited_in_its_turns_alone() -> None:
    assert Limits().model_dump() == {
        "turns": 20, "tool_calls": None, "tokens": None, "seconds": None, "cost": None, "currency": "USD",
    }  # fmt: skip


def test_the_options_of_an_answer_have_these_defaults() -> None:
    stated = {name: value for name, value in GenerateConfig().model_dump().items() if value not in (None, (), {})}
    assert stated == {"send_stop": True, "max_retries": 2, "max_retry_delay": 120.0, "function_choice": "auto"}
    assert get_args(Adjustable) == ("temperature", "top_p", "max_tokens", "seed")


def test_a_model_is_text_with_tools_unless_it_states_more() -> None:
    facts = ModelFacts()
    assert (facts.native_tools, facts.forced_calls, facts.thoughts_in_text) == (True, True, True)
    others = ("images", "audio", "video", "files", "file_urls", "json_schema", "schema_with_tools", "reasoning")
    assert not any(getattr(facts, name) for name in others)
    assert (facts.context_tokens, facts.max_output_tokens, facts.tokenizer, facts.prices) == (None, None, "", ())
    assert [kind for kind in ("text", "file", "image", "audio", "video") if facts.takes(kind)] == ["text", "file"]  # type: ignore[arg-type]
    assert ModelFacts(audio=True).takes("audio")


def test_calls_have_these_limits_unless_an_agent_states_others() -> None:
    executor = ToolExecutor({})
    assert (executor.timeout_s, executor.max_result_chars, executor.max_media_chars) == (300, 60_000, 20_000_000)


@pytest.mark.parametrize(
    ("spec", "stated"),
    [
        (ToolSpec, {"concurrent": True}),
        (ToolsetSpec, {}),
        (LLMSpec, {}),
        (ParserSpec, {}),
        (ProcessorSpec, {"phase": "context"}),
        (PostprocessorSpec, {"phase": "output"}),
        (SandboxSpec, {"runs_programs": True}),
        (ServerSpec, {"http": True}),
    ],
)
def test_a_descriptor_claims_nothing_that_it_does_not_state(spec: Any, stated: dict[str, Any]) -> None:
    more = {"description": ""} if spec is ToolSpec else {}
    made = spec(name="n", target="m:T", **more)
    ignored = ("name", "target", "parameters", "extra")
    values = {name: getattr(made, name) for name in made.__dataclass_fields__ if name not in ignored}
    assert {name: value for name, value in values.items() if value} == stated


# --- descriptors ---


@tool(read_only=True, effects=["files"], timeout_s=7)
def look(a: int) -> int:
    """Look at it. Then look again.

    Args:
        a: A number.
    """
    return a


def test_a_descriptor_of_a_function_has_all_that_the_function_states() -> None:
    spec = ToolSpec.of(look, secrets=("A_KEY",), network=("h",), requires=("tool.x",), check="m:c")
    assert (spec.name, spec.summary, spec.description) == ("look", "Look at it.", "Look at it. Then look again.")
    assert (spec.read_only, spec.effects, spec.timeout_s, spec.concurrent) == (True, {"files"}, 7, True)
    assert spec.parameters == look.schema()["parameters"]
    assert (spec.secrets, spec.network, spec.requires, spec.check) == (("A_KEY",), ("h",), ("tool.x",), "m:c")
    assert spec.target == f"{__name__}:look"
    with pytest.raises(TypeError, match="is not a function decorated with @tool"):
        ToolSpec.of(len)
    with pytest.raises(TypeError, match="'json:loads' is not a function decorated with @tool"):
        ToolSpec.of("json:loads")


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("One. Two.", "One."), ("One? Two.", "One?"), ("一。 二。", "一。"), (" One ", "One"), ("x" * 300, "x" * 300),
        ("x" * 301, "x" * 299 + "…"), ("1.5 is one.", "1.5 is one."),
    ],
)  # fmt: skip
def test_the_summary_of_a_tool_is_its_first_sentence(text: str, summary: str) -> None:
    def named(a: int) -> int:
        return a

    assert ToolSpec.of(tool(named, description=text)).summary == summary


TABLE: Any = {"way": {"both": ["a.x", "b.y"], "one": ["a.x"]}, "searchers": "searcher", "most": ["c.z"], "": ["d.w"]}


@pytest.mark.parametrize(
    ("settings", "components"),
    [
        ({"way": "both", "most": 3}, ["a.x", "b.y"]),
        ({"way": "one"}, ["a.x"]),
        ({"way": "none"}, []),
        ({"searchers": ["p", {"name": "q", "n": 1}]}, ["searcher.p", "searcher.q"]),
        ({"most": 0}, ["c.z"]),
        ({"most": None}, []),
        ({"most": 3}, ["c.z"]),
        ({"": True}, ["d.w"]),
        ({"way": None, "": True}, ["d.w"]),
        ({}, []),
    ],
    ids=str,
)
def test_the_first_setting_with_a_value_says_what_is_required(settings: Any, components: list[str]) -> None:
    assert required_by(TABLE, settings) == components


# --- settings ---


class Inner(Config):
    depth: int = 1


class Own(Config):
    size: int = 1
    inner: Inner = Inner()


class Sized(Configured):
    name = "sized"
    config_class = Own


FAULTS: dict[str, tuple[Any, str]] = {
    "no dict": (lambda: Own.parse(5), "Own must be a dict, got int"),  # type: ignore[arg-type]
    "a label": (lambda: Own.parse([], what="settings of x"), "settings of x must be a dict, got list"),  # type: ignore[arg-type]
    "unknown": (lambda: Own.parse({"sice": 1}), "Own: unknown setting 'sice'; did you mean 'size'?"),
    "unknown inside": (
        lambda: Own.parse({"inner": {"dept": 1}}),
        "Own: unknown setting 'inner.dept'; did you mean 'depth'?",
    ),
    "two": (
        lambda: Own.parse({"size": "x", "inner": {"depth": "y"}}),
        "Own: size must be a whole number, got a string; inner.depth must be a whole number, got a string",
    ),
    "of a component": (lambda: Sized({"sice": 1}), "sized: unknown setting 'sice'; did you mean 'size'?"),
    "next to generate_cfg": (
        lambda: LLMConfig.parse({"model": "m", "generate_cfg": {"api_key": "x"}}),
        "LLMConfig: unknown setting 'generate_cfg.api_key': put it next to generate_cfg, as in {'model': ..., "
        "'api_key': ...}",
    ),
    "in generate_cfg": (
        lambda: LLMConfig.parse({"model": "m", "top_p": 1}),
        "LLMConfig: unknown setting 'top_p': put it in generate_cfg, as in {'model': ..., 'generate_cfg': "
        "{'top_p': ...}}",
    ),
    "close to one in generate_cfg": (
        lambda: LLMConfig.parse({"model": "m", "temprature": 1}),
        "LLMConfig: unknown setting 'temprature'; did you mean 'temperature' in generate_cfg, as in 'generate_cfg': "
        "{'temperature': ...}?",
    ),
    "an address": (
        lambda: LLMConfig.parse({"model": "m", "base_url": "h:80"}),
        "LLMConfig: base_url: the URL must start with http:// or https://, as in http://localhost:8000/v1",
    ),
    "a user in an address": (
        lambda: LLMConfig.parse({"model": "m", "base_url": "http://u:p@h"}),
        "LLMConfig: base_url: the URL must not contain a user name or password: set api_key, or a header in "
        "extra_headers",
    ),
    "a switch for a number": (
        lambda: GenerateConfig.parse({"seed": True}),
        "GenerateConfig: seed: must not be True",
    ),
    "a switch for a limit": (lambda: Limits.parse({"turns": False}), "Limits: turns: must not be False"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_wrong_setting_is_told_with_its_place_and_remedy(case: str) -> None:
    make, text = FAULTS[case]
    with pytest.raises(ConfigError) as caught:
        make()
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("config", "name", "least", "below"),
    [
        (GenerateConfig, "temperature", 0, -0.1), (GenerateConfig, "top_p", 1, 1.1), (GenerateConfig, "top_p", 0.1, 0),
        (GenerateConfig, "top_k", 0, -1), (GenerateConfig, "repetition_penalty", 0.1, 0),
        (GenerateConfig, "max_tokens", 1, 0), (GenerateConfig, "max_retries", 100, 101),
        (GenerateConfig, "max_retries", 0, -1), (GenerateConfig, "max_retry_delay", 0.1, 0),
        (GenerateConfig, "request_timeout", 0.1, 0), (GenerateConfig, "event_timeout", 0.1, 0),
        (GenerateConfig, "deadline", 0.1, 0), (GenerateConfig, "deadline", 1, float("nan")),
        (GenerateConfig, "max_retry_delay", 1, float("inf")), (Limits, "turns", 1, 0), (Limits, "tool_calls", 0, -1),
        (Limits, "tokens", 1, 0), (Limits, "seconds", 0.1, 0), (Limits, "cost", Decimal("0.1"), 0),
    ],
)  # fmt: skip
def test_a_number_may_be_as_small_or_large_as_the_setting_says(config: Any, name: str, least: Any, below: Any) -> None:
    assert getattr(config.parse({name: least}), name) == least
    with pytest.raises(ConfigError, match=name):
        config.parse({name: below})


def test_options_are_merged_with_those_of_the_call_on_top() -> None:
    first = GenerateConfig(seed=1, stop=("a", "b"), extra_body={"x": 1, "y": 1}, top_p=0.5)
    second = {"seed": 2, "stop": ["b", "c"], "extra_body": {"y": 2}, "top_p": None}
    merged = first.merged(second)
    assert (merged.seed, merged.stop, merged.extra_body, merged.top_p) == (2, ("a", "b", "c"), {"x": 1, "y": 2}, None)
    assert first.merged(None) is first
    assert first.merged({}) is first
    assert GenerateConfig(use_raw_api=True, parallel_function_calls=False).use_raw_api is True


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        ({}, None), ({"model_server": "dashscope"}, None), ({"model_server": "http://a"}, "http://a"),
        ({"model_server": "http://a", "base_url": "http://b"}, "http://b"),
        ({"model_server": "http://a", "base_url": "http://b", "api_base": "https://c"}, "https://c"),
    ],
)  # fmt: skip
def test_the_address_of_a_server_is_the_most_exact_one(settings: Any, url: str | None) -> None:
    assert LLMConfig(model="m", **settings).server_url == url


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ("a", "x must be a list of ys, got str: use ['a']"), (b"a", "x must be a list of ys, got bytes: use […]"),
        ({"a": 1}, "x must be a list of ys, got dict: use […]"), (5, "x must be a list of ys, got int: use […]"),
    ],
)  # fmt: skip
def test_one_value_is_no_list(values: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        checked_list(values, "x", "ys")
    assert str(caught.value) == said
    listed = iter("ab")
    assert checked_list(listed, "x", "ys") is listed  # type: ignore[type-var]


def test_a_component_keeps_its_settings_as_they_were_passed() -> None:
    made = Sized({"size": 3}, inner={"depth": 2})
    assert (made.config, dict(made.cfg)) == (Own(size=3, inner=Inner(depth=2)), {"size": 3, "inner": {"depth": 2}})
    assert dict(Sized(Own(size=3)).cfg) == {"size": 3}
    assert Sized(Own(size=3), size=4).config == Own(size=4)
    assert dict(Sized().cfg) == {}

    class Bare(Configured):
        pass

    assert dict(Bare({"a": 1}).cfg) == {"a": 1}
    with pytest.raises(ConfigError, match="Bare takes no settings; got 'a', 'b'"):
        Bare(a=1, b=2)


@pytest.mark.parametrize(
    ("texts", "lang", "text"),
    [
        ("One.", "zh", "One."),
        ({"zh": "一。", "en": "One."}, "zh", "一。"),
        ({"zh": "一。", "en": "One."}, "fr", "One."),
        ({"zh": "一。", "en": ""}, "en", "一。"),
        ({"zh": "一。"}, "en", "一。"),
        ({}, "en", ""),
    ],
)
def test_a_text_is_in_the_language_or_else_in_english_or_else_in_any(texts: Any, lang: str, text: str) -> None:
    assert in_language(texts, lang) == text
