"""Run models with ONNX Runtime, either BERT-like models from their weights or models in ONNX format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from jackfield.errors import ModelServiceError
from jackfield.quoting import quote_text
from jackfield_local_embedder.arrays import Floats
from jackfield_local_embedder.encoder import NumpyEncoder
from jackfield_local_embedder.graph import GraphValue, GraphWriter
from jackfield_local_embedder.hub import USUAL_ONNX_FILES
from jackfield_local_embedder.recipe import BACKEND, read_json, unusable

_MOST_SHOWN = 300
_TOKEN_OUTPUTS = ("last_hidden_state", "token_embeddings")


def has_onnxruntime() -> bool:
    """Return True if ONNX Runtime is installed, without importing it."""
    return find_spec("onnxruntime") is not None


class GraphEncoder(NumpyEncoder):
    """A BERT-like model from safetensors weights. numpy embeds the tokens, and ONNX Runtime computes the layers.

    Args:
        folder: The folder with `config.json` and the weights.
        name: The model's name, for errors.
        int8: Multiply in 8 bits, which is cheaper and affects the third digit of vectors.

    Raises:
        ModelServiceError: The files are damaged or incomplete, or ONNX Runtime is not installed.
    """

    def __init__(self, folder: Path, name: str, *, int8: bool) -> None:
        super().__init__(folder, name)
        self._has_bias = "encoder.relative_attention_bias.weight" in self._weights
        self._session = open_session(self._graph(int8=int8), name) if self._layers else None
        # The graph has its own copy of the layers' weights.
        for number in range(self._layers):
            prefix = self._family.layer.format(number)
            for key in [key for key in self._weights if key.startswith(prefix)]:
                del self._weights[key]

    def _graph(self, *, int8: bool) -> bytes:
        graph, hidden = GraphWriter(int8=int8), "hidden"
        for number in range(self._layers):
            hidden = self._add_layer(graph, hidden, self._family.layer.format(number))
        width = self._weights["embeddings.LayerNorm.weight"].size
        inputs = [
            GraphValue("hidden", "float32", ("rows", "length", width)),
            GraphValue("mask", "int32", ("rows", "length")),  # 1 for a token, 0 for padding
        ]
        if self._has_bias:
            inputs.append(GraphValue("bias", "float32", (1, "heads", "length", "length")))
        return graph.model(inputs, GraphValue(hidden, "float32", ("rows", "length", width)))

    def _add_layer(self, graph: GraphWriter, hidden: str, layer: str) -> str:
        query, key, value, output, norm, wide, narrow, last = (layer + part for part in self._family.parts)

        def weights(part: str) -> tuple[Floats, Floats]:
            return self._weights[f"{part}.weight"], self._weights[f"{part}.bias"]

        states = [graph.linear(hidden, part, *weights(part)) for part in (query, key, value)]
        attended = graph.attend(states, f"{layer}attended", heads=self._heads, relative=self._has_bias)
        mixed = graph.linear(attended, output, *weights(output))
        hidden = graph.normalize_sum([mixed, hidden], norm, *weights(norm), epsilon=self._epsilon)
        inner = graph.linear(hidden, wide, *weights(wide))
        inner = graph.activate(inner, f"{layer}activated", self._activation_name)
        inner = graph.linear(inner, narrow, *weights(narrow))
        return graph.normalize_sum([inner, hidden], last, *weights(last), epsilon=self._epsilon)

    def _compute_layers(self, hidden: Floats, lengths: Sequence[int], longest: int) -> Floats:
        if self._session is None:
            return hidden
        mask = (np.arange(longest)[None, :] < np.array(lengths)[:, None]).astype(np.int32)
        inputs: dict[str, Any] = {"hidden": hidden.reshape(len(lengths), longest, -1), "mask": mask}
        if self._has_bias:
            inputs["bias"] = self._relative_bias(longest)
        computed: Floats = self._session.run(None, inputs)[0]
        return computed


class OnnxFileEncoder:
    """A model in ONNX format, which many Hugging Face repositories offer in addition to the weights.

    Args:
        root: The model folder.
        file: The path of the ONNX file in the folder, or '' for the usual one.
        name: The model's name, for errors.

    Raises:
        ModelServiceError: The file is missing or unusable, or ONNX Runtime is not installed.
    """

    def __init__(self, root: Path, file: str, name: str) -> None:
        path = find_onnx_file(root, file, name)
        self._session = open_session(path, name)
        self._inputs = [one.name for one in self._session.get_inputs()]
        self._output = self._output_of_tokens(name)
        config = read_json(root / "config.json", name, otherwise={})
        self._padding = int(config.get("pad_token_id") or 0)
        self.longest = longest_of(config)

    def _output_of_tokens(self, name: str) -> str:
        outputs: dict[str, int] = {one.name: len(one.shape) for one in self._session.get_outputs()}
        for known in _TOKEN_OUTPUTS:
            if known in outputs:
                return known
        for output, dimensions in outputs.items():
            if dimensions == 3:
                return output
        raise unusable(name, f"has no token vectors among its outputs: {', '.join(outputs)}")

    def encode(self, rows: Sequence[Sequence[int]]) -> list[Floats]:
        """Return an array per row, with a vector for each token."""
        inputs = pad_rows(rows, self._padding)
        hidden = self._session.run([self._output], {key: inputs[key] for key in self._inputs})[0]
        return [hidden[number, : len(row)].astype(np.float32, copy=False) for number, row in enumerate(rows)]


def pad_rows(
    rows: Sequence[Sequence[int]], padding: int, types: Sequence[Sequence[int]] | None = None
) -> dict[str, np.ndarray[Any, Any]]:
    """Return all common model inputs by name.

    Args:
        rows: Token ids.
        padding: The id of the padding token.
        types: The segment of each token. If None, all tokens are in the first segment.
    """
    shape = len(rows), max(len(row) for row in rows)
    ids = np.full(shape, padding, np.int64)
    mask, segments = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
        mask[number, : len(row)] = 1
        if types is not None:
            segments[number, : len(row)] = types[number]
    positions = np.broadcast_to(np.arange(shape[1]), shape)
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments, "position_ids": positions}


def longest_of(config: Mapping[str, Any]) -> int | None:
    """Return the maximum number of tokens per text according to a `config.json`, or None if it states no limit."""
    positions = config.get("max_position_embeddings")
    if not isinstance(positions, int):
        return None
    # The positions of these begin after the id of the padding.
    is_offset = str(config.get("model_type")) in ("roberta", "xlm-roberta", "camembert", "mpnet")
    return positions - (int(config.get("pad_token_id") or 0) + 1 if is_offset else 0)


def find_onnx_file(root: Path, file: str, name: str) -> Path:
    """Return the path of a model's ONNX file: the named one, else the usual one, else the only one.

    Raises:
        ModelRequestError: The file does not exist, or the choice is ambiguous.
    """
    files = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.onnx"))
    listed = ", ".join(files) or "none"
    if file:
        if file not in files:
            raise unusable(
                name, f"has no file {file!r}; ONNX files on this disk: {listed}. Set download to true to fetch others"
            )
        return root / file
    for usual in USUAL_ONNX_FILES:
        if usual in files:
            return root / usual
    if len(files) != 1:
        raise unusable(
            name, f"needs onnx_file, the path of its ONNX file in the folder; ONNX files on this disk: {listed}"
        )
    return root / files[0]


def has_onnx_file(root: Path) -> bool:
    """Return True if the folder contains an ONNX file."""
    return any(root.rglob("*.onnx"))


def open_session(model: bytes | Path, name: str) -> Any:
    """Open a CPU session for a model file or its content. Idle threads sleep instead of spinning.

    Raises:
        ModelServiceError: ONNX Runtime is not installed, or cannot load the model.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise ModelServiceError(
            f'{BACKEND}: {name!r} needs ONNX Runtime ({error}): pip install "jackfield-local-embedder[onnx]"',
            backend=BACKEND,
        ) from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # Threads that spin while waiting take processor time from other programs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    source = model if isinstance(model, bytes) else str(model)
    try:
        return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its exceptions have no common base class of their own
        text = quote_text(str(error), "", _MOST_SHOWN) or type(error).__name__
        raise unusable(name, f"cannot be loaded by ONNX Runtime: {text}") from error
