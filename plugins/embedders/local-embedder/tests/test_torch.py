"""With torch: numpy and ONNX Runtime compute what transformers does, and what numpy cannot compute works, too."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jackfield import sync
from jackfield.errors import ModelRequestError
from jackfield.retrieval import Embedder
from jackfield_local_embedder import torch_encoder

Make = Callable[..., Embedder]
TEXTS = ("green tea", "绿茶 water 80.", "a b c d e f g h i j k l m n o p q r s t u v w x y z " * 3, "?")

SIZES = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 300,
}
DISTIL = {"dim": 32, "hidden_dim": 64, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 300}


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory, bert: Path) -> Callable[..., Path]:
    """A model of transformers' with random weights, in a folder."""

    def made(architecture: str, **changes: Any) -> Path:
        import torch
        import transformers

        torch.set_num_threads(1)
        torch.manual_seed(7)
        size = DISTIL if architecture == "DistilBert" else SIZES
        vocabulary = json.loads((bert / "config.json").read_text())["vocab_size"]
        settings = {"vocab_size": vocabulary, **size, **changes}
        config = getattr(transformers, f"{architecture}Config")(**settings)
        model = getattr(transformers, f"{architecture}Model")(config)
        with torch.no_grad():
            for parameter in model.parameters():  # as it is made, all texts are nearly alike
                parameter.normal_(0, 0.3)
        folder = tmp_path_factory.mktemp(architecture.lower())
        model.save_pretrained(folder)
        (folder / "tokenizer.json").write_bytes((bert / "tokenizer.json").read_bytes())
        return folder

    return made


def vectors(embedder: Embedder) -> Any:
    return np.array(sync.run(embedder.embed(TEXTS)).vectors)


@pytest.mark.parametrize(
    ("architecture", "changes"),
    [
        ("Bert", {}),
        ("Bert", {"hidden_act": "gelu_new"}),
        ("Bert", {"hidden_act": "relu", "pad_token_id": 2}),
        ("Roberta", {"pad_token_id": 1}),
        ("XLMRoberta", {"pad_token_id": 1}),
        ("Camembert", {"pad_token_id": 1}),
        ("DistilBert", {}),
        ("MPNet", {"pad_token_id": 1}),
        *(
            (architecture, {"pad_token_id": 1, "max_position_embeddings": 40})  # fewer than the longest text needs
            for architecture in ("Bert", "Roberta", "XLMRoberta", "MPNet", "DistilBert")
        ),
    ],
    ids=str,
)
def test_numpy_and_onnxruntime_compute_what_transformers_does(
    made: Callable[..., Path], make: Make, architecture: str, changes: dict[str, Any]
) -> None:
    folder = made(architecture, **changes)
    ours, graph, theirs = (vectors(make(folder, engine=engine)) for engine in ("numpy", "onnx", "torch"))
    assert np.abs(theirs).max() > 0.1
    assert ours == pytest.approx(theirs, abs=2e-4)
    assert graph == pytest.approx(theirs, abs=2e-4)
    assert len(np.unique(ours.round(3), axis=0)) == len(TEXTS)


def test_a_model_that_numpy_does_not_know_is_computed_by_torch(made: Callable[..., Path], make: Make) -> None:
    folder = made("Qwen3", num_key_value_heads=2, head_dim=8)
    (folder / "1_Pooling").mkdir()
    (folder / "modules.json").write_text(
        json.dumps([{"type": "x.Transformer", "path": ""}, {"type": "x.Pooling", "path": "1_Pooling"}])
    )
    (folder / "1_Pooling/config.json").write_text('{"pooling_mode_lasttoken": true}')
    together = vectors(make(folder))
    alone = [sync.run(make(folder).embed([text])).vectors[0] for text in TEXTS]
    assert together == pytest.approx(np.array(alone), abs=1e-4)  # padding changes nothing


def test_weights_of_bfloat16_say_that_torch_reads_them(made: Callable[..., Path], make: Make) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    folder = made("Bert")
    expected = vectors(make(folder))
    weights = load_file(folder / "model.safetensors")
    save_file({name: value.to(torch.bfloat16) for name, value in weights.items()}, folder / "model.safetensors")
    with pytest.raises(ModelRequestError, match="set engine to torch"):
        vectors(make(folder))
    assert vectors(make(folder, engine="torch")) == pytest.approx(expected, abs=0.2)


def test_a_folder_without_a_tokenizer_json_gets_its_tokenizer_from_transformers(
    made: Callable[..., Path], make: Make
) -> None:
    folder = made("Bert")
    expected = vectors(make(folder))
    words = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text("\n".join(sorted(words, key=words.__getitem__)), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer", "do_lower_case": true}')
    assert vectors(make(folder)) == pytest.approx(expected, abs=1e-5)


def test_code_that_comes_with_a_model_is_run_only_if_it_is_trusted(
    made: Callable[..., Path], make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.syspath_prepend(tmp_path / "modules")
    folder = made("Bert")
    expected = vectors(make(folder))
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "strange", "auto_map": {"AutoConfig": "own_code.C", "AutoModel": "own_code.M"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own_code.py").write_text(
        f"open({str(tmp_path / 'run')!r}, 'w')\n"
        "from transformers import BertConfig, BertModel\n"
        "class C(BertConfig):\n    model_type = 'strange'\n"
        "class M(BertModel):\n    config_class = C\n"
    )
    for settings in ({}, {"engine": "torch"}):
        with pytest.raises(ModelRequestError, match="trust_remote_code"):
            vectors(make(folder, **settings))
    assert not (tmp_path / "run").exists()
    assert vectors(make(folder, trust_remote_code=True)) == pytest.approx(expected, abs=1e-5)
    assert (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("device", "has_cuda", "expected"),
    [
        ("auto", True, "cuda"),
        ("auto", False, "cpu"),
        ("cpu", True, "cpu"),
        ("cuda", False, "cuda"),
        ("cuda:1", True, "cuda:1"),
    ],
)
def test_the_device_is_the_one_that_is_set_else_cuda_where_there_is_one(
    device: str, has_cuda: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_cuda)
    assert torch_encoder._device(device) == expected
