"""ONNX Runtime computes what numpy and transformers do, in 8 bits nearly the same, and models that are ONNX files."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from jackfield.errors import ConfigError, ModelRequestError, ModelServiceError
from jackfield.retrieval import Embedder
from jackfield_local_embedder.graph import GraphValue, GraphWriter, quantize

Make = Callable[..., Embedder]
TEXTS = ("green tea", "绿茶 water 80.", "a b c d e f g h i j k l m n o p q r s t u v w x y z", "?")


def vectors(embedder: Embedder, texts: tuple[str, ...] = TEXTS) -> Any:
    return np.array(asyncio.run(embedder.embed(texts)).vectors)


def closeness(first: Any, second: Any) -> Any:
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return (first * second).sum(1) / lengths


@pytest.fixture
def onnx_folder(bert: Path, tmp_path: Path) -> Path:
    """A folder as repositories have it: an ONNX file that looks tokens up in a table, and a tokenizer."""
    (tmp_path / "tokenizer.json").write_bytes((bert / "tokenizer.json").read_bytes())
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx/model.onnx").write_bytes(lookup_model())
    return tmp_path


def lookup_model(output: str = "last_hidden_state", seed: int = 5) -> bytes:
    graph = GraphWriter()
    table = np.random.default_rng(seed).standard_normal((400, 8)).astype(np.float32)
    hidden = graph.node("Gather", [graph.weight("table", table), "input_ids"], output)
    inputs = [GraphValue("input_ids", "int64", ("rows", "length"))]
    return graph.model(inputs, GraphValue(hidden, "float32", ("rows", "length", 8)))


def test_the_layers_of_a_model_give_what_numpy_computes(bert: Path, make: Make) -> None:
    computed = vectors(make(bert, engine="onnx"))
    assert computed == pytest.approx(vectors(make(bert, engine="numpy")), abs=1e-5)


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "gelu_pytorch_tanh", "relu"])
def test_activation_functions_are_those_of_numpy(activation: str, save: Callable[..., Path], make: Make) -> None:
    folder = save(config={"hidden_act": activation})
    assert vectors(make(folder, engine="onnx")) == pytest.approx(vectors(make(folder, engine="numpy")), abs=1e-4)


def test_eight_bits_give_nearly_the_same_vectors(bert: Path, make: Make) -> None:
    full, int8 = vectors(make(bert, engine="numpy")), vectors(make(bert, precision="int8"))
    assert closeness(full, int8).min() > 0.995
    assert not np.array_equal(full, int8)


@pytest.mark.parametrize("settings", [{"engine": "onnx"}, {"precision": "int8"}])
def test_a_vector_does_not_depend_on_the_texts_beside_it(settings: dict[str, Any], bert: Path, make: Make) -> None:
    together = vectors(make(bert, **settings))
    alone = np.concatenate([vectors(make(bert, **settings), (text,)) for text in TEXTS])
    assert together == pytest.approx(alone, abs=1e-5)


def test_eight_bits_are_another_space_and_the_engine_is_not(bert: Path, make: Make) -> None:
    spaces = [
        make(bert, **one).space for one in ({}, {"engine": "onnx"}, {"precision": "int8"}, {"onnx_file": "a.onnx"})
    ]
    assert spaces[0] == spaces[1]
    assert len(set(spaces)) == len(spaces) - 1


def test_weights_of_8_bits_are_off_by_half_a_step_at_most() -> None:
    weight = np.random.default_rng(1).standard_normal((5, 100)).astype(np.float32)
    weight[2] = 0
    packed, scales = quantize(weight)
    back = ((packed.astype(np.float32) - 128) * scales[..., None]).reshape(5, -1)[:, :100]
    assert (np.abs(back - weight) <= np.repeat(scales, 64, axis=1)[:, :100] * 0.5001).all()


def test_auto_computes_with_onnxruntime_and_without_it_with_numpy(bert: Path) -> None:
    code = (
        "import sys\n"
        "if {missing}: sys.modules['onnxruntime'] = None\n"
        "import importlib.util as util; find = util.find_spec\n"
        "if {missing}: util.find_spec = lambda name, *more: None if name == 'onnxruntime' else find(name, *more)\n"
        "from pathlib import Path\n"
        "from jackfield_local_embedder.config import TransformersEmbedderConfig as Config\n"
        "from jackfield_local_embedder.model import SentenceModel\n"
        "model = SentenceModel(Path({folder!r}), Config(model={folder!r}))\n"
        "print(type(model._encoder).__name__, 'torch' in sys.modules)\n"
    )
    names = []
    for missing in (False, True):
        program = code.format(missing=missing, folder=str(bert))
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        names.append(done.stdout.split())
    assert names == [["GraphEncoder", "False"], ["NumpyEncoder", "False"]]


def test_without_onnxruntime_eight_bits_say_what_to_install(
    bert: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ModelServiceError, match=r"jackfield-local-embedder\[onnx\]"):
        vectors(make(bert, precision="int8"))


def test_a_folder_of_an_onnx_file_and_a_tokenizer_is_enough(onnx_folder: Path, make: Make) -> None:
    embedder = make(onnx_folder)
    embedded = vectors(embedder, ("green tea", "green"))
    table = np.random.default_rng(5).standard_normal((400, 8)).astype(np.float32)
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(onnx_folder / "tokenizer.json"))
    tokenizer.no_padding()
    expected = [table[tokenizer.encode(text).ids].mean(0) for text in ("green tea", "green")]
    assert embedded == pytest.approx(np.array(expected), abs=1e-5)


def test_the_named_file_is_used_and_not_the_weights(bert: Path, onnx_folder: Path, make: Make) -> None:
    (onnx_folder / "config.json").write_bytes((bert / "config.json").read_bytes())
    (onnx_folder / "model.safetensors").write_bytes((bert / "model.safetensors").read_bytes())
    (onnx_folder / "onnx/model_int8.onnx").write_bytes(lookup_model("token_embeddings", seed=6))
    by_weights = vectors(make(onnx_folder))
    by_file = vectors(make(onnx_folder, onnx_file="onnx/model_int8.onnx"))
    usual = vectors(make(onnx_folder, onnx_file="onnx/model.onnx"))
    assert (by_weights.shape[1], by_file.shape[1]) == (32, 8)
    assert not np.allclose(by_file, usual)


def test_a_text_of_more_tokens_than_the_model_has_positions_is_cut(onnx_folder: Path, make: Make) -> None:
    (onnx_folder / "config.json").write_text(json.dumps({"model_type": "new-model", "max_position_embeddings": 6}))
    first, second = vectors(make(onnx_folder), ("green tea train water", "green tea train water a b c d"))
    assert first == pytest.approx(second)


@pytest.mark.parametrize(
    ("files", "settings", "said"),
    [
        (
            {},
            {"onnx_file": "onnx/model_fp16.onnx"},
            "has no file 'onnx/model_fp16.onnx'; ONNX files on this disk: onnx/model.onnx",
        ),
        ({"onnx/model.onnx": None, "a.onnx": b"x", "b.onnx": b"x"}, {}, "needs onnx_file"),
        ({"onnx/model.onnx": b"no model"}, {}, "cannot be loaded by ONNX Runtime"),
        ({"onnx/model.onnx": b""}, {}, "cannot be loaded by ONNX Runtime"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(
    files: Mapping[str, bytes | None], settings: dict[str, Any], said: str, onnx_folder: Path, make: Make
) -> None:
    for path, content in files.items():
        if content is None:
            (onnx_folder / path).unlink()
        else:
            (onnx_folder / path).write_bytes(content)
    with pytest.raises(ModelRequestError) as raised:
        vectors(make(onnx_folder, **settings))
    assert said in str(raised.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"engine": "numpy", "onnx_file": "a.onnx"},
        {"engine": "torch", "precision": "int8"},
        {"onnx_file": "a.onnx", "precision": "int8"},
        {"engine": "onnx", "device": "cuda"},
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings: dict[str, Any], make: Make) -> None:
    with pytest.raises((ConfigError, ValidationError)):
        make("model", **settings)
