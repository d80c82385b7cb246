"""A tiny BERT with random weights, made by numpy alone."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from jackfield.retrieval import Embedder
from jackfield_testkit.installed import plain_host

WIDTH, LAYERS, HEADS, INNER, POSITIONS = 32, 2, 4, 64, 64
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
Save = Callable[..., Path]
Make = Callable[..., Embedder]


def tokenizer() -> Tokenizer:
    """Words of letters and pairs of them, and Chinese characters; with settings of training left in it, as in many."""
    chance = random.Random(3)
    pairs = [a + b for a in string.ascii_lowercase for b in string.ascii_lowercase]
    whole = [
        "green",
        "tea",
        "train",
        "water",
        *"绿茶要用八十度的水冲泡数",
        *string.ascii_lowercase,
        *string.digits,
        ".",
        "?",
    ]
    pieces = [*whole, *chance.sample(pairs, 200)]
    vocabulary = dict.fromkeys([*SPECIAL, *pieces, *("##" + piece for piece in pieces)])
    made = Tokenizer(
        models.WordPiece({piece: number for number, piece in enumerate(vocabulary)}, unk_token="[UNK]")  # type: ignore[call-arg]
    )
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    made.enable_padding(length=POSITIONS)
    made.enable_truncation(8)
    return made


def weights_of_bert(seed: int = 1) -> dict[str, Any]:
    """Of a BERT, by their names."""
    chance = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (tokenizer().get_vocab_size(), WIDTH),
        "embeddings.position_embeddings.weight": (POSITIONS, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
    }
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}."
        for part, (outer, inner) in {
            "attention.self.query": (WIDTH, WIDTH),
            "attention.self.key": (WIDTH, WIDTH),
            "attention.self.value": (WIDTH, WIDTH),
            "attention.output.dense": (WIDTH, WIDTH),
            "intermediate.dense": (INNER, WIDTH),
            "output.dense": (WIDTH, INNER),
        }.items():
            shapes[f"{layer}{part}.weight"] = (outer, inner)
            shapes[f"{layer}{part}.bias"] = (outer,)
    made = {name: chance.standard_normal(shape).astype(np.float32) * 0.3 for name, shape in shapes.items()}
    norms = ["embeddings.LayerNorm"]
    norms += [f"encoder.layer.{n}.{p}.LayerNorm" for n in range(LAYERS) for p in ("attention.output", "output")]
    for norm in norms:
        made[f"{norm}.weight"] = np.ones(WIDTH, np.float32)
        made[f"{norm}.bias"] = np.zeros(WIDTH, np.float32)
    return made


CONFIG: Mapping[str, object] = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": WIDTH,
    "intermediate_size": INNER,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": POSITIONS,
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "pad_token_id": 0,
    "type_vocab_size": 2,
    "vocab_size": tokenizer().get_vocab_size(),
}


@pytest.fixture(scope="session")
def save(tmp_path_factory: pytest.TempPathFactory) -> Save:
    """Save a model into a folder of its own. `files` are further files of JSON, by their paths."""

    def save(*, of: Mapping[str, Any] | None = None, config: Mapping[str, Any] | None = None, **files: object) -> Path:
        folder = tmp_path_factory.mktemp("model")
        (folder / "config.json").write_text(json.dumps({**CONFIG, **(config or {})}))
        tokenizer().save(str(folder / "tokenizer.json"))
        save_file(dict(weights_of_bert() if of is None else of), str(folder / "model.safetensors"))
        for path, content in files.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(json.dumps(content))
        return folder

    return save


def modules(*kinds: str) -> list[dict[str, object]]:
    """`modules.json` of these kinds; a folder is named for its number and kind."""
    return [
        {"idx": number, "path": "" if kind == "Transformer" else f"{number}_{kind}", "type": f"x.models.{kind}"}
        for number, kind in enumerate(kinds)
    ]


@pytest.fixture(scope="session")
def bert(save: Save) -> Path:
    """A model with the usual files."""
    return save(
        **{
            "modules.json": modules("Transformer", "Pooling", "Normalize"),
            "1_Pooling/config.json": {"pooling_mode_mean_tokens": True},
            "sentence_bert_config.json": {"max_seq_length": 48, "do_lower_case": False},
        }
    )


@pytest.fixture
def make() -> Make:
    """An embedder with a model in a folder."""

    def make(folder: Path | str, **settings: Any) -> Embedder:
        host = plain_host()
        return host.make(host.find("embedder", "transformers"), {"model": str(folder), **settings}, Embedder)

    return make


@pytest.fixture(scope="session")
def weights() -> dict[str, Any]:
    """Of the model that `save` saves."""
    return weights_of_bert()


@pytest.fixture
def tokens_of() -> Callable[[Path, str], Any]:
    """The vectors of a text's tokens, one in each line, as the model in a folder has them before pooling."""

    def tokens_of(folder: Path, text: str) -> Any:
        from jackfield_local_embedder.config import TransformersEmbedderConfig
        from jackfield_local_embedder.encoder import NumpyEncoder
        from jackfield_local_embedder.model import SentenceModel

        model = SentenceModel(folder, TransformersEmbedderConfig(model=str(folder)))
        return NumpyEncoder(folder, "model").encode(model.tokens([text]))[0]

    return tokens_of
