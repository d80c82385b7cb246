"""The facts about a model in the files of its folder, file by file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import JackfieldError, ModelRequestError, ModelServiceError
from jackfield_local_embedder.embedder import translate_errors
from jackfield_local_embedder.encoder import why_not_numpy
from jackfield_local_embedder.recipe import Dense, Recipe, read_json, read_recipe
from jackfield_local_embedder.weights import has_weights

POOLING = {"type": "sentence_transformers.models.Pooling", "path": "1"}


def _recipe(root: Path, **files: Any) -> Recipe:
    """The recipe of a folder with these files; `__` in a name stands for a slash, and `.json` is added."""
    for name, content in files.items():
        path = root / f"{name.replace('__', '/')}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))
    return read_recipe(root, "m")


def test_a_folder_without_files_has_the_mean_of_all_tokens(tmp_path: Path) -> None:
    recipe = _recipe(tmp_path)
    assert recipe == Recipe(
        folder=tmp_path,
        pooling=("mean",),
        dense=(),
        normalize=False,
        max_tokens=None,
        lower_case=False,
        document_prompt="",
        query_prompt="",
    )


def test_modules_are_the_steps(tmp_path: Path) -> None:
    modules = [{"type": "x.Transformer", "path": "0_T"}, POOLING, {"type": "Dense", "path": "2"}, {"type": "Normalize"}]
    recipe = _recipe(tmp_path, modules=modules, **{"1__config": {}, "2__config": {}})
    assert recipe.folder == tmp_path / "0_T"
    assert recipe.pooling == ("mean",)
    assert recipe.dense == (Dense(tmp_path / "2", "Identity"),)
    assert recipe.normalize


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        ({}, ("mean",)),
        ({"pooling_mode": "lasttoken"}, ("lasttoken",)),
        ({"pooling_mode": ["mean", "cls"]}, ("cls", "mean")),
        ({"pooling_mode": []}, ("mean",)),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, ("cls",)),
        ({"pooling_mode_max_tokens": True}, ("max",)),
        ({"pooling_mode_mean_tokens": True}, ("mean",)),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, ("mean_sqrt_len_tokens",)),
        ({"pooling_mode_weightedmean_tokens": True}, ("weightedmean",)),
        ({"pooling_mode_lasttoken": True, "pooling_mode_cls_token": True}, ("cls", "lasttoken")),
        ({"pooling_mode": "max", "pooling_mode_cls_token": True}, ("max",)),
        ({"include_prompt": True}, ("mean",)),
    ],
)
def test_the_ways_of_pooling(tmp_path: Path, config: dict[str, Any], pooling: tuple[str, ...]) -> None:
    assert _recipe(tmp_path, modules=[POOLING], **{"1__config": config}).pooling == pooling


@pytest.mark.parametrize("activation", ["Identity", "Tanh", "ReLU", "GELU"])
def test_the_functions_of_a_layer(tmp_path: Path, activation: str) -> None:
    config = {"activation_function": f"torch.nn.modules.activation.{activation}"}
    recipe = _recipe(tmp_path, modules=[{"type": "Dense", "path": "2"}], **{"2__config": config})
    assert recipe.dense == (Dense(tmp_path / "2", activation),)


@pytest.mark.parametrize(
    ("config", "document", "query"),
    [
        ({}, "", ""),
        ({"prompts": None}, "", ""),
        ({"prompts": {"document": "d: ", "query": "q: "}}, "d: ", "q: "),
        ({"prompts": {"passage": "p: "}}, "p: ", ""),
        ({"prompts": {"corpus": "c: "}}, "c: ", ""),
        ({"prompts": {"corpus": "c: ", "passage": "p: ", "document": "d: "}}, "d: ", ""),
        ({"prompts": {"corpus": "c: ", "passage": "p: ", "document": ""}}, "p: ", ""),
        ({"prompts": {"a": "a: "}, "default_prompt_name": "a"}, "a: ", "a: "),
        ({"prompts": {"a": "a: ", "query": "q: "}, "default_prompt_name": "a"}, "a: ", "q: "),
        ({"prompts": {"a": "a: ", "document": "d: "}, "default_prompt_name": "a"}, "d: ", "a: "),
        ({"prompts": {"a": None}, "default_prompt_name": "a"}, "", ""),
        ({"prompts": {"a": "a: "}, "default_prompt_name": "b"}, "", ""),
    ],
)
def test_the_prompts_of_a_model(tmp_path: Path, config: dict[str, Any], document: str, query: str) -> None:
    recipe = _recipe(tmp_path, config_sentence_transformers=config)
    assert (recipe.document_prompt, recipe.query_prompt) == (document, query)


@pytest.mark.parametrize(
    ("sentence", "tokenizer", "longest"),
    [
        ({}, {}, None),
        ({"max_seq_length": 128}, {"model_max_length": 512}, 128),
        ({"max_seq_length": None}, {"model_max_length": 512}, 512),
        ({}, {"model_max_length": 512.0}, 512),
        ({}, {"model_max_length": 999_999}, 999_999),
        ({}, {"model_max_length": 1_000_000}, None),
        ({}, {"model_max_length": 1e30}, None),
        ({}, {"model_max_length": 0}, None),
        ({}, {"model_max_length": 1}, 1),
        ({}, {"model_max_length": "512"}, None),
    ],
)
def test_the_longest_text(tmp_path: Path, sentence: Any, tokenizer: Any, longest: int | None) -> None:
    recipe = _recipe(tmp_path, sentence_bert_config=sentence, tokenizer_config=tokenizer)
    assert recipe.max_tokens == longest
    assert not recipe.lower_case


def test_lower_case_is_asked_for_beside_the_length(tmp_path: Path) -> None:
    assert _recipe(tmp_path, sentence_bert_config={"do_lower_case": True}).lower_case


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"modules": {}}, "has an invalid file: {root}/modules.json"),
        ({"modules": [{"type": "x.CNN"}]}, "has a module 'CNN', which is not supported"),
        ({"modules": [{}]}, "has a module '', which is not supported"),
        ({"modules": [POOLING]}, "lacks the file config.json in {root}/1"),
        ({"modules": [POOLING], "1__config": {"pooling_mode": "x"}}, "pools by 'x', which is not supported"),
        (
            {"modules": [POOLING], "1__config": {"include_prompt": False}},
            "excludes the prompt from pooling, which is not supported",
        ),
        (
            {"modules": [{"type": "Dense"}], "config": {"activation_function": "torch.nn.Mish"}},
            "has a layer with the activation function torch.nn.Mish, which is not supported",
        ),
        ({"config_sentence_transformers": []}, "has an invalid file: {root}/config_sentence_transformers.json"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, files: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelRequestError) as caught:
        _recipe(tmp_path, **files)
    assert str(caught.value).startswith("transformers: the model 'm' ")
    assert str(caught.value).endswith(said.format(root=tmp_path))
    assert caught.value.backend == "transformers"


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[" * 100_000])
def test_a_file_that_is_no_json_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(ModelRequestError, match=r"'m' has a file that cannot be read, .*a\.json: "):
        read_json(tmp_path / "a.json", "m", otherwise={})


@pytest.mark.parametrize(
    ("file", "has"), [("model.safetensors", True), ("model.safetensors.index.json", True), ("model.bin", False)]
)
def test_which_weights_can_be_read(tmp_path: Path, file: str, has: bool) -> None:
    (tmp_path / file).touch()
    assert has_weights(tmp_path) == has


@pytest.mark.parametrize(
    ("config", "why"),
    [
        *[({"model_type": name}, "") for name in ("bert", "roberta", "xlm-roberta", "camembert", "mpnet")],
        ({"model_type": "distilbert", "activation": "relu", "hidden_act": "silu"}, ""),
        ({"model_type": "distilbert", "activation": "silu"}, "its activation function is 'silu'"),
        *[({"model_type": "bert", "hidden_act": name}, "") for name in ("gelu", "gelu_new", "gelu_pytorch_tanh")],
        ({}, "its architecture is None"),
        ({"model_type": "qwen3"}, "its architecture is 'qwen3'"),
        ({"model_type": "bert", "position_embedding_type": "absolute", "is_decoder": False}, ""),
        ({"model_type": "bert", "position_embedding_type": "relative"}, "it uses the position embeddings 'relative'"),
        ({"model_type": "bert", "is_decoder": True}, "it is a decoder"),
    ],
)
def test_which_models_numpy_computes(config: dict[str, Any], why: str) -> None:
    assert why_not_numpy(config) == why


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "transformers: 'm' ran out of memory: lower tokens_at_once or max_tokens"),
        (RuntimeError("out of Memory"), "transformers: 'm' ran out of memory: lower tokens_at_once or max_tokens"),
        (RuntimeError("x\ny"), "transformers: 'm' failed: RuntimeError: x y"),
        (ValueError(), "transformers: 'm' failed: ValueError: ValueError"),
    ],
)
def test_failures_of_the_libraries_are_jackfields(error: Exception, said: str) -> None:
    with pytest.raises(ModelServiceError) as caught, translate_errors("m"):
        raise error
    assert (str(caught.value), caught.value.backend, caught.value.__cause__) == (said, "transformers", error)


def test_errors_of_jackfield_pass_and_a_break_does_too() -> None:
    for error in (JackfieldError("x"), KeyboardInterrupt()):
        with pytest.raises((JackfieldError, KeyboardInterrupt)) as caught, translate_errors("m"):
            raise error
        assert caught.value is error
