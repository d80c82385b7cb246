"""A model, its files and its limits are found where they are, and each failure says what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jackfield.errors import ModelAuthError, ModelConnectionError, ModelNotFoundError, ModelServiceError
from jackfield_local_embedder.arrays import normalize_layer, softmax, unit_length
from jackfield_local_embedder.config import TransformersEmbedderConfig
from jackfield_local_embedder.embedder import TransformersEmbedder
from jackfield_local_embedder.hub import folder_of
from jackfield_local_embedder.model import batches_by_length
from jackfield_local_embedder.onnx_encoder import find_onnx_file, has_onnx_file, longest_of, pad_rows


@pytest.mark.parametrize(
    ("files", "named", "found"),
    [
        (["model.onnx"], "", "model.onnx"),
        (["onnx/model.onnx"], "", "onnx/model.onnx"),
        (["a.onnx", "model.onnx", "onnx/model.onnx"], "", "model.onnx"),
        (["a.onnx", "onnx/model.onnx"], "", "onnx/model.onnx"),
        (["deep/er/only.onnx"], "", "deep/er/only.onnx"),
        (["a.onnx", "b.onnx"], "", None),
        ([], "", None),
        (["a.onnx", "model.onnx"], "a.onnx", "a.onnx"),
        (["model.onnx"], "a.onnx", None),
        (["model.onnx.txt"], "", None),
    ],
)
def test_the_named_onnx_file_is_taken_else_the_usual_one_else_the_only_one(
    tmp_path: Path, files: list[str], named: str, found: str | None
) -> None:
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    assert has_onnx_file(tmp_path) == any(file.endswith(".onnx") for file in files)
    if found is not None:
        assert find_onnx_file(tmp_path, named, "m") == tmp_path / found
        return
    with pytest.raises(ModelServiceError) as caught:
        find_onnx_file(tmp_path, named, "m")
    listed = ", ".join(file for file in files if file.endswith(".onnx")) or "none"
    assert f"ONNX files on this disk: {listed}" in str(caught.value)
    assert ("has no file 'a.onnx'" if named else "needs onnx_file") in str(caught.value)


@pytest.mark.parametrize(
    ("config", "longest"),
    [
        ({}, None),
        ({"max_position_embeddings": "512"}, None),
        ({"max_position_embeddings": 512}, 512),
        ({"max_position_embeddings": 512, "model_type": "bert", "pad_token_id": 1}, 512),
        ({"max_position_embeddings": 514, "model_type": "roberta", "pad_token_id": 1}, 512),
        ({"max_position_embeddings": 514, "model_type": "xlm-roberta", "pad_token_id": 1}, 512),
        ({"max_position_embeddings": 514, "model_type": "camembert", "pad_token_id": 1}, 512),
        ({"max_position_embeddings": 514, "model_type": "mpnet"}, 513),
    ],
)
def test_the_longest_text_is_that_of_the_positions_which_some_begin_behind_the_padding(
    config: dict[str, Any], longest: int | None
) -> None:
    assert longest_of(config) == longest


def test_shorter_rows_are_filled_up_and_masked() -> None:
    inputs = pad_rows([[5, 9], [7]], 9, [[0, 1], [1]])  # some models pad with the token that ends a text
    assert {name: value.tolist() for name, value in inputs.items()} == {
        "input_ids": [[5, 9], [7, 9]],
        "attention_mask": [[1, 1], [1, 0]],
        "token_type_ids": [[0, 1], [1, 0]],
        "position_ids": [[0, 1], [0, 1]],
    }
    assert pad_rows([[5, 6]], 0)["token_type_ids"].tolist() == [[0, 0]]


@pytest.mark.parametrize(
    ("lengths", "at_once", "batches"),
    [
        ([], 10, []),
        ([3, 1, 2], 100, [[1, 2, 0]]),
        ([3, 1, 2], 4, [[1, 2], [0]]),
        ([5, 5], 10, [[0, 1]]),
        ([5, 5], 9, [[0], [1]]),
        ([50], 1, [[0]]),
        ([1, 1, 50], 10, [[0, 1], [2]]),
    ],
)
def test_texts_of_similar_length_are_computed_together(
    lengths: list[int], at_once: int, batches: list[list[int]]
) -> None:
    assert list(batches_by_length(lengths, at_once)) == batches


@pytest.mark.parametrize(
    ("settings", "space"),
    [
        ({}, "transformers:org/m"),
        ({"revision": "r"}, "transformers:org/m:r"),
        ({"dimension": 8}, "transformers:org/m::8"),
        ({"max_tokens": 9}, "transformers:org/m:::9"),
        ({"document_prefix": ""}, "transformers:org/m::::''"),
        ({"document_prefix": "d: "}, "transformers:org/m::::'d: '"),
        ({"onnx_file": "a.onnx"}, "transformers:org/m:::::a.onnx"),
        ({"precision": "int8"}, "transformers:org/m:::::int8"),
        ({"query_prefix": "q", "engine": "torch", "tokens_at_once": 7, "device": "cpu"}, "transformers:org/m"),
        ({"download": True, "trust_remote_code": True}, "transformers:org/m"),
    ],
)
def test_a_space_is_all_that_gives_a_document_another_vector(settings: dict[str, Any], space: str) -> None:
    embedder = TransformersEmbedder(model="org/m", **settings)
    assert embedder.space == space
    assert repr(embedder) == f"<TransformersEmbedder {space}>"
    assert embedder.dimension == settings.get("dimension")


@pytest.mark.parametrize("given", ["./m", "~/m"])
def test_the_space_of_a_folder_is_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert TransformersEmbedder(model=given).space == f"transformers:{tmp_path / 'm'}"
    (tmp_path / "m").mkdir()
    assert folder_of(TransformersEmbedderConfig(model=given)).resolve() == tmp_path / "m"


def hub_error(name: str) -> Exception:
    """An error of the hub's client, whose constructors ask for a response."""
    from huggingface_hub import errors

    error_class: Any = getattr(errors, name)
    return error_class.__new__(error_class)  # type: ignore[no-any-return]


NOT_HERE = (
    "transformers: no folder or downloaded model named 'org/m': set download to true to "
    "fetch it from the hub (and unset HF_HUB_OFFLINE), or specify a folder"
)


@pytest.mark.parametrize(
    ("error", "download", "error_class", "text"),
    [
        (
            "GatedRepoError",
            True,
            ModelAuthError,
            "transformers: 'org/m' is gated: accept its terms on the hub, and set HF_TOKEN to a token of that account",
        ),
        (
            "RevisionNotFoundError",
            True,
            ModelNotFoundError,
            "transformers: 'org/m' has no such revision: check `revision`",
        ),
        (
            "RepositoryNotFoundError",
            True,
            ModelNotFoundError,
            "transformers: no model 'org/m' on the hub, or it requires HF_TOKEN: check the name",
        ),
        (
            "HFValidationError",
            False,
            ModelNotFoundError,
            "transformers: no such folder: 'org/m'; names on the hub have the form org/name",
        ),
        ("LocalEntryNotFoundError", False, ModelNotFoundError, NOT_HERE),
        ("OfflineModeIsEnabled", True, ModelNotFoundError, NOT_HERE),
        (
            OSError("no route for hf_secret"),
            True,
            ModelConnectionError,
            "transformers: 'org/m' could not be fetched from the hub: no route for [key]",
        ),
        (OSError(), True, ModelConnectionError, "transformers: 'org/m' could not be fetched from the hub: OSError"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.endswith("Error") else "",
)
@pytest.mark.parametrize("wrapped", [False, True], ids=["itself", "as a cause"])
def test_a_model_that_cannot_be_had_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
    error: str | Exception,
    download: bool,
    error_class: type[ModelServiceError],
    text: str,
    wrapped: bool,
) -> None:
    made = hub_error(error) if isinstance(error, str) else error

    def fetch(*args: object, **options: object) -> str:
        if wrapped and isinstance(error, str):
            raise OSError("We could not load it") from made
        raise made

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    with pytest.raises(ModelServiceError) as caught:
        folder_of(TransformersEmbedderConfig(model="org/m", download=download), key="hf_secret")
    assert (type(caught.value), str(caught.value)) == (error_class, text)
    assert caught.value.backend == "transformers"


@pytest.mark.parametrize(
    ("settings", "onnx", "patterns", "ignored"),
    [
        ({}, False, ["*.json", "*.txt", "*.model", "*.safetensors"], 4),
        (
            {},
            True,
            ["*.json", "*.txt", "*.model", "model.onnx", "onnx/model.onnx", "model.onnx_data", "onnx/model.onnx_data"],
            0,
        ),
        ({"onnx_file": "a.onnx"}, False, ["*.json", "*.txt", "*.model", "a.onnx", "a.onnx_data"], 0),
    ],
)
def test_only_the_files_that_are_needed_are_fetched(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    settings: dict[str, Any],
    onnx: bool,
    patterns: list[str],
    ignored: int,
) -> None:
    asked: list[dict[str, Any]] = []

    def fetch(model: str, **options: Any) -> str:
        asked.append({"model": model, **options})
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    for download in (False, True):
        config = TransformersEmbedderConfig(model="org/m", revision="r", download=download, **settings)
        assert folder_of(config, key="k" if download else "", onnx=onnx) == tmp_path
    first, second, *pickled = asked
    assert (first["local_files_only"], second["local_files_only"]) == (True, False)
    assert (first["token"], second["token"]) == (None, "k")
    for one in (first, second):
        assert (one["model"], one["revision"], one["allow_patterns"]) == ("org/m", "r", patterns)
        assert len(one["ignore_patterns"]) == ignored
    # Pickled weights, which can run code, are the last resort.
    fallback = [] if onnx or settings else [["pytorch_model*.bin", "*/pytorch_model.bin"]]
    assert [one["allow_patterns"] for one in pickled] == fallback


def test_pickled_weights_are_not_fetched_where_there_are_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "model.safetensors").touch()
    asked: list[object] = []
    monkeypatch.setattr(
        "huggingface_hub.snapshot_download", lambda model, **options: (asked.append(model), str(tmp_path))[1]
    )
    folder_of(TransformersEmbedderConfig(model="org/m", download=True))
    assert asked == ["org/m"]


def test_arrays_are_normalised_as_the_formulas_say() -> None:
    numbers = np.array([[1.0, 2.0, 6.0], [0.0, 0.0, 0.0]], np.float32)
    lengths = np.linalg.norm(unit_length(numbers), axis=-1)
    assert lengths.tolist() == [pytest.approx(1), 0]
    shares = softmax(numbers.copy())
    assert np.allclose(shares, np.exp(numbers) / np.exp(numbers).sum(-1, keepdims=True))
    assert np.allclose(softmax(numbers + np.float32(1000)), shares), "large numbers do not overflow"
    weight, bias = np.array([1, 2, 3], np.float32), np.array([4, 5, 6], np.float32)
    expected = (numbers - numbers.mean(-1, keepdims=True)) / np.sqrt(numbers.var(-1, keepdims=True) + 0.5)
    assert np.allclose(normalize_layer(numbers, weight, bias, 0.5), expected * weight + bias)
