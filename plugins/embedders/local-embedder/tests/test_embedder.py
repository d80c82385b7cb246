"""What a model's own files say is done, and what is wrong with a model is reported."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from jackfield import sync
from jackfield.errors import ModelNotFoundError, ModelRequestError, ModelResponseError, ModelServiceError
from jackfield.retrieval import Embedder
from jackfield_local_embedder.arrays import ACTIVATIONS
from jackfield_local_embedder.model import SentenceModel, batches_by_length
from jackfield_testkit.forks import output_of

Make = Callable[..., Embedder]
Save = Callable[..., Path]

TEXT = "green tea 水 80."


def vector(embedder: Embedder, text: str = TEXT, **options: Any) -> Any:
    return np.array(sync.run(embedder.embed([text], **options)).vectors[0])


def refusal(embedder: Embedder) -> ModelServiceError:
    with pytest.raises(ModelServiceError) as caught:
        sync.run(embedder.embed([TEXT]))
    assert "Traceback" not in str(caught.value)
    return caught.value


def pooled(pooling: Mapping[str, object], *more: str) -> dict[str, Any]:
    """The files of a model that pools so."""
    kinds = ("Transformer", "Pooling", *more)
    listed = [
        {"idx": n, "path": f"{n}_{kind}" if n else "", "type": f"sentence_transformers.models.{kind}"}
        for n, kind in enumerate(kinds)
    ]
    return {"modules.json": listed, "1_Pooling/config.json": pooling}


# --- from tokens to a vector ---


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("cls", lambda tokens: tokens[0]),
        ("lasttoken", lambda tokens: tokens[-1]),
        ("max", lambda tokens: tokens.max(0)),
        ("mean", lambda tokens: tokens.sum(0) / len(tokens)),
        ("mean_sqrt_len_tokens", lambda tokens: tokens.sum(0) / math.sqrt(len(tokens))),
        ("weightedmean", lambda tokens: sum((n + 1) * t for n, t in enumerate(tokens)) / sum(range(len(tokens) + 1))),
    ],
)
@pytest.mark.parametrize("form", ["old", "new"])
def test_tokens_are_pooled_as_the_model_says(
    save: Save, make: Make, tokens_of: Callable[[Path, str], Any], mode: str, expected: Callable[[Any], Any], form: str
) -> None:
    old = {"cls": "cls_token", "max": "max_tokens", "mean": "mean_tokens", "weightedmean": "weightedmean_tokens"}
    key = f"pooling_mode_{old.get(mode, mode)}"
    folder = save(**pooled({"pooling_mode": mode} if form == "new" else {key: True, "pooling_mode_x": False}))
    assert vector(make(folder)) == pytest.approx(expected(tokens_of(folder, TEXT)), abs=1e-5)


def test_several_ways_of_pooling_stand_side_by_side(
    save: Save, make: Make, tokens_of: Callable[[Path, str], Any]
) -> None:
    folder = save(**pooled({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}))
    tokens = tokens_of(folder, TEXT)
    assert vector(make(folder)) == pytest.approx(np.concatenate([tokens[0], tokens.mean(0)]), abs=1e-5)


def test_a_folder_that_says_nothing_is_pooled_by_the_mean(
    save: Save, make: Make, tokens_of: Callable[[Path, str], Any]
) -> None:
    folder = save()
    assert vector(make(folder)) == pytest.approx(tokens_of(folder, TEXT).mean(0), abs=1e-5)


@pytest.mark.parametrize("mode", ["cls", "max", "mean", "lasttoken"])
def test_the_setting_for_pooling_overrules_the_models_files(save: Save, make: Make, mode: str) -> None:
    pools_so, pools_otherwise = (save(**pooled({"pooling_mode": one}, "Normalize")) for one in (mode, "weightedmean"))
    assert vector(make(pools_otherwise, pooling=mode)) == pytest.approx(vector(make(pools_so)))
    assert make(pools_so, pooling=mode).space != make(pools_so).space


def test_vectors_are_normalised_only_if_the_model_says_so(save: Save, make: Make) -> None:
    plain, normalised = (save(**pooled({"pooling_mode": "mean"}, *more)) for more in ((), ("Normalize",)))
    raw = vector(make(plain))
    assert not math.isclose(np.linalg.norm(raw), 1, abs_tol=0.01)
    assert vector(make(normalised)) == pytest.approx(raw / np.linalg.norm(raw), abs=1e-6)


def test_vectors_that_are_cut_have_length_one_again(save: Save, make: Make) -> None:
    folder = save(**pooled({"pooling_mode": "mean"}, "Normalize"))
    whole, cut = vector(make(folder)), vector(make(folder, dimension=5))
    assert cut == pytest.approx(whole[:5] / np.linalg.norm(whole[:5]), abs=1e-6)


def test_more_numbers_than_the_model_has_are_refused(bert: Path, make: Make) -> None:
    assert "set dimension to that or less, got 999" in str(refusal(make(bert, dimension=999)))


@pytest.mark.parametrize("activation", ["Identity", "Tanh", "ReLU", "GELU"])
def test_a_layer_after_pooling_is_computed(save: Save, make: Make, activation: str) -> None:
    mean = save(**pooled({"pooling_mode": "mean"}))
    path = f"torch.nn.modules.activation.{activation}"
    folder = save(**pooled({"pooling_mode": "mean"}, "Dense"), **{"2_Dense/config.json": {"activation_function": path}})
    chance = np.random.default_rng(5)
    weight, bias = chance.standard_normal((7, 32)).astype(np.float32), chance.standard_normal(7).astype(np.float32)
    save_file({"linear.weight": weight, "linear.bias": bias}, str(folder / "2_Dense/model.safetensors"))
    by_hand: Mapping[str, Callable[[float], float]] = {
        "Identity": lambda x: x,
        "Tanh": math.tanh,
        "ReLU": lambda x: max(0.0, x),
        "GELU": lambda x: x * math.erfc(-x / math.sqrt(2)) / 2,
    }
    assert vector(make(folder)) == pytest.approx(
        [by_hand[activation](x) for x in weight @ vector(make(mean)) + bias], abs=1e-5
    )


@pytest.mark.parametrize("name", ["gelu", "gelu_new"])
def test_activation_functions_are_those_of_the_formula(name: str) -> None:
    def by_tanh(x: float) -> float:
        return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

    formula = {"gelu": lambda x: 0.5 * x * math.erfc(-x / math.sqrt(2)), "gelu_new": by_tanh}[name]
    numbers = np.concatenate([np.linspace(-30, 30, 5_021), [0.0, 1e30, -1e30]]).astype(np.float32)
    found = ACTIVATIONS[name]()(numbers)
    assert found == pytest.approx([formula(float(x)) for x in numbers], rel=1e-5, abs=2e-6)


# --- before the model ---


def test_texts_are_cut_where_the_model_says_and_not_where_its_tokenizer_was_trained(
    save: Save, tokens_of: Callable[[Path, str], Any]
) -> None:
    long = "tea " * 200
    assert len(tokens_of(save(**{"sentence_bert_config.json": {"max_seq_length": 20}}), long)) == 20
    assert len(tokens_of(save(**{"tokenizer_config.json": {"model_max_length": 30}}), long)) == 30
    assert len(tokens_of(save(**{"tokenizer_config.json": {"model_max_length": 1e30}}), long)) == 64  # positions
    assert len(tokens_of(save(**{"sentence_bert_config.json": {"max_seq_length": 500}}), long)) == 64
    assert len(tokens_of(save(**{"sentence_bert_config.json": {"max_seq_length": 20}}), TEXT)) < 20


def test_max_tokens_cuts_texts_shorter(bert: Path, make: Make) -> None:
    embedder = make(bert, max_tokens=4)
    assert vector(embedder, "tea water green") == pytest.approx(vector(embedder, "tea water train train"))
    assert sync.run(embedder.embed(["tea " * 50])).usage.prompt_tokens == 4


def test_prompts_are_those_of_the_model_unless_others_are_set(save: Save, make: Make) -> None:
    prompts = {"prompts": {"query": "water: ", "passage": "train: ", "document": ""}}
    folder, bare = save(**{"config_sentence_transformers.json": prompts}), make(save())
    for purpose, word in (("query", "water: "), ("document", "train: ")):
        assert vector(make(folder), purpose=purpose) == pytest.approx(vector(bare, word + TEXT))
        without = make(folder, query_prefix="", document_prefix="")
        assert vector(without, purpose=purpose) == pytest.approx(vector(bare, TEXT))
        other = make(folder, query_prefix="a ", document_prefix="a ")
        assert vector(other, purpose=purpose) == pytest.approx(vector(bare, "a " + TEXT))


@pytest.mark.parametrize("text", ["黑白", "tea 黑", "黑白红蓝绿 tea", "tea " * 9 + "黑白红蓝"])
def test_a_text_in_an_unknown_script_gets_zeros_and_changes_no_other_vector(bert: Path, make: Make, text: str) -> None:
    embedder = make(bert, query_prefix="water " * 9)
    for purpose in ("query", "document"):
        embedded = sync.run(embedder.embed([TEXT, text, "train"], purpose=purpose)).vectors
        assert set(embedded[1]) == {0.0}
        assert embedded[0] == pytest.approx(vector(embedder, TEXT, purpose=purpose), abs=1e-5)
        assert embedded[2] == pytest.approx(vector(embedder, "train", purpose=purpose), abs=1e-5)
        assert sync.run(embedder.embed([text], purpose=purpose)).vectors == (embedded[1],)


@pytest.mark.parametrize("text", ["绿茶 tea", "tea " * 9 + "黑白红", "tea ☕ ☃ ─", "☕ ☃", "80 ─ 80"])
def test_a_few_unknown_letters_and_any_symbols_are_read(bert: Path, make: Make, text: str) -> None:
    assert np.linalg.norm(vector(make(bert), text)) == pytest.approx(1)


def test_a_default_prompt_is_for_both(save: Save, make: Make) -> None:
    said = {"prompts": {"usual": "water: "}, "default_prompt_name": "usual"}
    folder = save(**{"config_sentence_transformers.json": said})
    assert vector(make(folder), purpose="query") == pytest.approx(vector(make(folder)))
    assert vector(make(folder)) == pytest.approx(vector(make(save()), "water: " + TEXT))


def test_a_prefix_of_documents_makes_another_space_and_one_of_queries_does_not(bert: Path, make: Make) -> None:
    space = make(bert).space
    assert make(bert, document_prefix="a ").space != space != make(bert, document_prefix="").space
    assert make(bert, query_prefix="a ").space == space == make(bert, engine="numpy", tokens_at_once=7).space
    assert len({make(bert, **{name: 7}).space for name in ("dimension", "max_tokens")} | {space}) == 3


def test_a_relative_folder_is_another_space_in_another_place(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = make("./model").space
    monkeypatch.chdir(tmp_path)
    assert make("./model").space != here


def test_a_model_that_wants_lower_case_gets_it(save: Save, tokens_of: Callable[[Path, str], Any]) -> None:
    cased = save(**{"sentence_bert_config.json": {"do_lower_case": True}})
    file = cased / "tokenizer.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "normalizer": None}))
    assert tokens_of(cased, "GREEN TEA") == pytest.approx(tokens_of(cased, "green tea"))


# --- weights ---


def test_names_of_weights_may_have_a_prefix_and_old_words(save: Save, make: Make, weights: Mapping[str, Any]) -> None:
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    renamed = {}
    for name, value in weights.items():
        end = next((end for end in old if name.endswith(end)), "")
        renamed[f"bert.{name.removesuffix(end)}{old.get(end, '')}"] = value
    assert vector(make(save(of={**renamed, "cls.bias": np.zeros(3, np.float32)}))) == pytest.approx(
        vector(make(save()))
    )


def test_weights_in_several_files_are_read(save: Save, make: Make, weights: Mapping[str, Any]) -> None:
    folder = save()
    (folder / "model.safetensors").unlink()
    files = {name: f"part-{number % 2}.safetensors" for number, name in enumerate(weights)}
    for file in set(files.values()):
        save_file({name: weights[name] for name in weights if files[name] == file}, str(folder / file))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    assert vector(make(folder)) == pytest.approx(vector(make(save())))


def test_half_precision_is_read(save: Save, make: Make, weights: Mapping[str, Any]) -> None:
    half = save(of={name: value.astype(np.float16) for name, value in weights.items()})
    assert vector(make(half)) == pytest.approx(vector(make(save())), abs=0.02)


# --- what is wrong ---


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("config.json", b"{", "config.json"),
        ("config.json", b"[1]", "has an invalid file"),
        ("config.json", b'{"model_type": "bert", "num_attention_heads": 0}', "num_attention_heads"),
        ("config.json", b'{"model_type": "bert", "num_attention_heads": 4}', "num_hidden_layers"),
        ("modules.json", b'[{"type": "x.CNN", "path": ""}]', "'CNN'"),
        ("1_Pooling/config.json", b'{"pooling_mode": "median"}', "'median'"),
        ("1_Pooling/config.json", b'{"include_prompt": false}', "prompt"),
        ("tokenizer.json", b"{}", "tokenizer.json"),
        ("model.safetensors", b"not weights at all", "model.safetensors"),
    ],
)
def test_a_damaged_file_is_named(save: Save, make: Make, file: str, content: bytes, said: str) -> None:
    folder = save(**pooled({"pooling_mode": "mean"}))
    (folder / file).write_bytes(content)
    error = refusal(make(folder))
    assert isinstance(error, ModelRequestError)
    assert said in str(error)
    assert str(folder) in str(error)


@pytest.mark.parametrize(
    "missing", ["embeddings.word_embeddings.weight", "embeddings.LayerNorm.bias", "encoder.layer.1.output.dense.bias"]
)
def test_missing_weights_are_named(save: Save, make: Make, weights: Mapping[str, Any], missing: str) -> None:
    folder = save(of={name: value for name, value in weights.items() if name != missing})
    assert missing in str(refusal(make(folder)))


def test_weights_of_another_shape_are_an_error_of_the_model(save: Save, make: Make, weights: Mapping[str, Any]) -> None:
    refusal(make(save(of={**weights, "encoder.layer.0.output.dense.weight": np.ones((3, 5), np.float32)})))


def test_damaged_weights_give_an_error_and_no_vectors(save: Save, make: Make, weights: Mapping[str, Any]) -> None:
    broken = {**weights, "encoder.layer.0.output.dense.bias": np.full(32, np.nan, np.float32)}
    assert isinstance(refusal(make(save(of=broken))), ModelResponseError)


def test_a_layer_with_an_unknown_function_is_refused(save: Save, make: Make) -> None:
    files = {"2_Dense/config.json": {"activation_function": "torch.nn.modules.activation.Mish"}}
    assert "Mish" in str(refusal(make(save(**pooled({"pooling_mode": "mean"}, "Dense"), **files))))


def test_what_numpy_cannot_compute_says_why_and_what_to_set(save: Save, make: Make) -> None:
    for config, why in (
        ({"model_type": "qwen3"}, "'qwen3'"),
        ({"hidden_act": "silu"}, "'silu'"),
        ({"position_embedding_type": "relative_key"}, "'relative_key'"),
        ({"is_decoder": True}, "decoder"),
    ):
        error = str(refusal(make(save(config=config), engine="numpy")))
        assert why in error
        assert "set engine" in error


def test_a_name_that_is_not_here_says_how_to_get_it(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    for name in ("org/never-seen", "never seen", "./no/such/folder"):
        error = refusal(make(name))
        assert isinstance(error, ModelNotFoundError)
        assert "folder" in str(error)
    assert "set download to true" in str(refusal(make("org/never-seen")))


# --- many texts ---


@given(st.lists(st.integers(1, 600)), st.integers(1, 5000))
def test_each_text_is_in_one_batch_and_no_batch_is_larger_than_allowed(lengths: list[int], at_once: int) -> None:
    batches = list(batches_by_length(lengths, at_once))
    assert sorted(number for batch in batches for number in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[number] for number in batch) <= at_once


def test_a_cancelled_call_computes_no_further_batch(bert: Path, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = make(bert, tokens_at_once=1)
    computed: list[int] = []
    real = SentenceModel.vectors

    async def cancel() -> None:
        begun, loop = asyncio.Event(), asyncio.get_running_loop()

        def vectors(model: SentenceModel, rows: Any) -> Any:
            computed.append(len(rows))
            loop.call_soon_threadsafe(begun.set)
            return real(model, rows)

        monkeypatch.setattr(SentenceModel, "vectors", vectors)
        call = asyncio.create_task(embedder.embed([TEXT] * 50))
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await embedder.aclose()  # which waits for the batch that runs

    asyncio.run(cancel())
    assert len(computed) < 50


def test_listing_and_making_one_loads_neither_numpy_nor_torch() -> None:
    code = """
import sys
from jackfield.plugins import default_host
from jackfield.retrieval import Embedder
host = default_host()
host.make(host.find("embedder", "transformers"), {"model": "org/name"}, Embedder)
print({"numpy", "torch", "transformers", "tokenizers", "huggingface_hub"} & set(sys.modules))
"""
    assert output_of(code) == "set()"


def test_numpy_alone_embeds_without_torch_in_the_process(bert: Path) -> None:
    code = f"""
import sys
from jackfield import sync
from jackfield.plugins import default_host
from jackfield.retrieval import Embedder
host = default_host()
embedder = host.make(host.find("embedder", "transformers"), {{"model": {str(bert)!r}}}, Embedder)
assert sync.run(embedder.embed(["tea"])).vectors
print({{"torch", "transformers"}} & set(sys.modules))
"""
    assert output_of(code) == "set()"
