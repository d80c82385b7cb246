"""The options of an answer, one by one, and what they do to the scores of tokens."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jackfield.config import GenerateConfig
from jackfield.errors import ModelRequestError
from jackfield_transformers import generation
from jackfield_transformers.generation import generate


def _asked(
    own: dict[str, Any] | None = None, *, ends: tuple[int, ...] = (7, 5), pad: int | None = 3, **config: Any
) -> Any:
    """The arguments of a model's `generate`."""
    import torch
    import transformers

    options: Any = transformers.GenerationConfig
    asked: dict[str, Any] = {}
    model = SimpleNamespace(generation_config=options(**(own or {})), generate=asked.update, device=torch.device("cpu"))
    loaded: Any = SimpleNamespace(model=model, end_tokens=frozenset(ends), tokenizer=SimpleNamespace(pad_token_id=pad))
    tokens = {"input_ids": torch.tensor([[9, 9, 9]]), "attention_mask": torch.tensor([[1, 1, 1]])}
    before = model.generation_config.to_dict()
    generate(loaded, tokens, GenerateConfig(**config), max_new_tokens=40, listener=lambda _: False)
    assert model.generation_config.to_dict() == before  # a call changes nothing for the next one
    return SimpleNamespace(**asked)


def _names(asked: Any) -> list[str]:
    return [type(processor).__name__ for processor in asked.logits_processor]


def test_the_model_itself_takes_the_likeliest_token_because_the_last_processor_draws() -> None:
    own = {
        "temperature": 0.5,
        "top_k": 4,
        "top_p": 0.5,
        "typical_p": 0.5,
        "min_p": 0.1,
        "max_length": 9,
        "num_beams": 2,
    }
    options = _asked({**own, "do_sample": True, "repetition_penalty": 1.5}).generation_config
    assert (options.do_sample, options.num_beams) == (False, 1)
    assert (options.max_length, options.max_new_tokens) == (None, 40)
    assert (options.temperature, options.top_k, options.top_p) == (1.0, 50, 1.0)
    assert (options.typical_p, options.min_p) == (1.0, None)
    assert (options.epsilon_cutoff, options.eta_cutoff) == (0.0, 0.0)
    assert options.repetition_penalty == 1.5
    assert options.eos_token_id == [5, 7]


@pytest.mark.parametrize(
    ("ends", "pad", "told"), [((7, 5), 3, 3), ((7, 5), 0, 0), ((7, 5), None, 5), ((), None, None), ((), 3, 3)]
)
def test_what_is_padded_with(ends: tuple[int, ...], pad: int | None, told: int | None) -> None:
    options = _asked(ends=ends, pad=pad).generation_config
    assert options.pad_token_id == told
    assert options.eos_token_id == (sorted(ends) or None)


@pytest.mark.parametrize(
    ("own", "config", "names"),
    [
        ({}, {}, []),
        ({"top_k": 9}, {"temperature": 0.5}, ["TemperatureLogitsWarper", "TopKLogitsWarper", "_Sampler"]),
        ({"top_k": 9}, {"temperature": 1.0}, ["TopKLogitsWarper", "_Sampler"]),
        ({}, {"temperature": 0.0}, []),
        ({"top_k": 9}, {"top_p": 0.5}, ["TopKLogitsWarper", "TopPLogitsWarper", "_Sampler"]),
        ({"top_k": 0}, {"top_p": 1.0}, ["_Sampler"]),
        ({}, {"top_k": 0}, ["_Sampler"]),
        ({}, {"top_k": 0, "extra_body": {"min_p": 0.5, "typical_p": 0.5}},
         ["MinPLogitsWarper", "TypicalLogitsWarper", "_Sampler"]),
        ({}, {"top_k": 0, "extra_body": {"min_p": 0.0}}, ["_Sampler"]),
        ({}, {"top_k": 0, "extra_body": {"do_sample": False}}, []),
        ({}, {"repetition_penalty": 1.5}, []),
        ({}, {"seed": 1}, []),
        ({"do_sample": True, "top_k": 0}, {}, ["_Sampler"]),
        ({"do_sample": True}, {"temperature": 0.0}, []),
        ({"do_sample": True}, {"extra_body": {"temperature": 0}}, []),
        ({"temperature": 0.5, "do_sample": True}, {"temperature": 1.0, "top_k": 0}, ["_Sampler"]),
        ({}, {"presence_penalty": 1.0}, ["_Penalties"]),
        ({}, {"frequency_penalty": -1.0, "temperature": 0.0}, ["_Penalties"]),
        ({}, {"presence_penalty": 0.0, "frequency_penalty": 0.0}, []),
        ({}, {"frequency_penalty": 1.0, "top_k": 0}, ["_Penalties", "_Sampler"]),
    ],
)  # fmt: skip
def test_which_options_take_part(own: dict[str, Any], config: dict[str, Any], names: list[str]) -> None:
    assert _names(_asked(own, **config)) == names


def test_options_have_the_values_of_the_call_and_else_those_of_the_model() -> None:
    own = {"repetition_penalty": 1.5, "do_sample": True, "temperature": 0.5}
    assert _asked(own).generation_config.repetition_penalty == 1.5
    assert _asked(own, repetition_penalty=1.25).generation_config.repetition_penalty == 1.25
    assert _asked(own).logits_processor[0].temperature == 0.5
    assert _asked(own, temperature=0.25).logits_processor[0].temperature == 0.25
    assert _asked(own, extra_body={"temperature": 0.75}, temperature=0.25).logits_processor[0].temperature == 0.75
    assert _asked(extra_body={"no_repeat_ngram_size": 2}).generation_config.no_repeat_ngram_size == 2


@pytest.mark.parametrize(
    "key",
    [
        *["num_beams", "num_return_sequences", "return_dict_in_generate", "prompt_lookup_num_tokens", "penalty_alpha"],
        *["dola_layers", "stop_strings", "eos_token_id", "max_length", "max_new_tokens", "_from_model_config", "nope"],
    ],
)
def test_options_that_do_not_give_one_answer_are_refused(key: str) -> None:
    with pytest.raises(ModelRequestError) as caught:
        _asked(extra_body={key: 1, "temperature": 1})
    assert str(caught.value) == (
        f"transformers: unsupported options in extra_body: {key!r}; only "
        "GenerationConfig options that produce a single answer are supported"
    )
    assert caught.value.backend == "transformers"


def test_options_of_the_template_are_none_of_generation() -> None:
    asked = _asked(extra_body={"chat_template_kwargs": {"a": 1}, "enable_thinking": False})
    assert not hasattr(asked.generation_config, "enable_thinking")


def test_the_prompt_is_passed_on_with_its_mask() -> None:
    asked = _asked()
    assert (asked.input_ids.tolist(), asked.attention_mask.tolist()) == ([[9, 9, 9]], [[1, 1, 1]])


# --- what chooses a token ---


def test_penalties_are_once_for_presence_and_each_time_for_frequency_and_for_the_answer_alone() -> None:
    import torch

    (penalties,) = _asked(presence_penalty=0.5, frequency_penalty=0.25).logits_processor
    tokens = torch.tensor([[0, 0, 0, 1, 2, 2]])  # the prompt has three
    assert penalties(tokens, torch.tensor([[1.0, 1.0, 1.0, 1.0]])).tolist() == [[1.0, 0.25, 0.0, 1.0]]


def test_a_draw_leaves_one_token_and_follows_the_scores() -> None:
    import torch

    sampler = _asked(top_k=0, seed=5).logits_processor[-1]
    scores = torch.tensor([[0.0, 2.0, -torch.inf, 1.0]])
    drawn = [0] * 4
    for _ in range(2_000):
        (row,) = sampler(torch.tensor([[0]]), scores).tolist()
        assert sorted(row) == [-torch.inf] * 3 + [0.0]
        drawn[row.index(0.0)] += 1
    shares = torch.softmax(scores, dim=-1)[0].tolist()
    assert [count / 2_000 for count in drawn] == pytest.approx(shares, abs=0.05)


def test_a_seed_of_any_size_gives_its_own_draws_again() -> None:
    import torch

    def draws(seed: int) -> list[int]:
        sampler = _asked(top_k=0, seed=seed).logits_processor[-1]
        return [int(sampler(torch.tensor([[0]]), torch.zeros(1, 50)).argmax()) for _ in range(20)]

    assert draws(1) == draws(1) == draws(2**63 + 1)
    assert len({tuple(draws(seed)) for seed in (0, 1, 2, 3, -1)}) == 5


def test_the_listener_is_told_each_new_token_once_and_may_stop() -> None:
    import torch

    told: list[list[int]] = []

    def listen(tokens: Any) -> bool:
        told.append(list(tokens))
        return len(told) == 2

    criterion = generation._ListeningCriterion(listen, 2)
    for tokens, stops in (([9, 9, 1], False), ([9, 9, 1, 2, 3], True), ([9, 9, 1, 2, 3], False)):
        stopped = criterion(torch.tensor([tokens]), torch.zeros(1))
        assert (stopped.tolist(), stopped.dtype) == ([stops], torch.bool)
    assert told == [[1], [2, 3], []]
