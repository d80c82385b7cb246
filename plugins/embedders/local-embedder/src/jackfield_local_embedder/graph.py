"""Write the layers of a BERT-like model as an ONNX graph, with full-precision or 8-bit weights.

Only the few protobuf messages that are needed get written, so the `onnx` package is not required.

Sources: the messages follow `onnx.proto`, the operators ONNX opset 17 and ONNX Runtime's `com.microsoft` domain.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jackfield_local_embedder.arrays import Floats

BLOCK = 64
"""The number of consecutive weights in a row that share a scale in 8 bits."""

_IR_VERSION, _OPSET = 8, 17
_MICROSOFT = "com.microsoft"
_TYPES = {"float32": 1, "uint8": 2, "int32": 6, "int64": 7}
_ACTIVATIONS = {
    "gelu": ("Gelu", _MICROSOFT),
    "gelu_new": ("FastGelu", _MICROSOFT),
    "gelu_pytorch_tanh": ("FastGelu", _MICROSOFT),
    "relu": ("Relu", ""),
}


@dataclass(frozen=True, slots=True)
class GraphValue:
    """An input or output of a graph: its name, element type and dimensions. Dimensions may be symbolic."""

    name: str
    type: str
    dims: tuple[int | str, ...]


class GraphWriter:
    """Collects the nodes and weights of a graph.

    Args:
        int8: Store and multiply the weights of linear layers in 8 bits.
    """

    def __init__(self, *, int8: bool = False) -> None:
        self._int8 = int8
        self._nodes: list[bytes] = []
        self._weights: list[bytes] = []

    def weight(self, name: str, numbers: np.ndarray[Any, Any]) -> str:
        """Add an array, and return its name."""
        dims = b"".join(_number(1, size) for size in numbers.shape)
        kind = _number(2, _TYPES[str(numbers.dtype)])
        self._weights.append(dims + kind + _text(8, name) + _bytes(9, numbers.tobytes()))
        return name

    def node(self, operator: str, inputs: Sequence[str], output: str, *, domain: str = "", **settings: float) -> str:
        """Add a node, and return the name of its output.

        An int and a float setting are different types in ONNX, so pass the type that the operator expects.
        """
        parts = [
            *(_text(1, name) for name in inputs),
            _text(2, output),
            _text(4, operator),
            *(_bytes(5, _attribute(key, value)) for key, value in settings.items()),
            _text(7, domain),
        ]
        self._nodes.append(b"".join(parts))
        return output

    def linear(self, numbers: str, name: str, weight: Floats, bias: Floats) -> str:
        """Add a linear layer. `weight` has a row per output."""
        bias_name = self.weight(f"{name}.bias", bias)
        if not self._int8:
            product = self.node("MatMul", [numbers, self.weight(f"{name}.weight", weight.T)], f"{name}.product")
            return self.node("Add", [product, bias_name], name)
        packed, scales = quantize(weight)
        return self.node(
            "MatMulNBits",
            [numbers, self.weight(f"{name}.weight", packed), self.weight(f"{name}.scales", scales), "", "", bias_name],
            name,
            domain=_MICROSOFT,
            K=weight.shape[1],
            N=weight.shape[0],
            bits=8,
            block_size=BLOCK,
            accuracy_level=4,  # numbers are multiplied in 8 bits as well, each block of a token with its own scale
        )

    def normalize_sum(self, inputs: Sequence[str], name: str, weight: Floats, bias: Floats, *, epsilon: float) -> str:
        """Add a layer normalisation of the sum of two inputs."""
        parameters = [self.weight(f"{name}.weight", weight), self.weight(f"{name}.bias", bias)]
        return self.node("SkipLayerNormalization", [*inputs, *parameters], name, domain=_MICROSOFT, epsilon=epsilon)

    def activate(self, numbers: str, name: str, activation: str) -> str:
        """Add an activation function, identified by its name in model configurations."""
        operator, domain = _ACTIVATIONS[activation]
        return self.node(operator, [numbers], name, domain=domain)

    def attend(self, states: Sequence[str], name: str, *, heads: int, relative: bool) -> str:
        """Add attention over queries, keys and values.

        The node uses the graph input `mask`, and also `bias` for models with relative positions.
        """
        inputs = [*states, "", "mask", "bias"] if relative else [*states, "", "mask"]
        return self.node("MultiHeadAttention", inputs, name, domain=_MICROSOFT, num_heads=heads)

    def model(self, inputs: Sequence[GraphValue], output: GraphValue) -> bytes:
        """Return the graph in the ONNX file format."""
        graph = [
            *(_bytes(1, node) for node in self._nodes),
            _text(2, "encoder"),
            *(_bytes(5, weight) for weight in self._weights),
            *(_bytes(11, _value(one)) for one in inputs),
            _bytes(12, _value(output)),
        ]
        versions = _bytes(8, _text(1, "") + _number(2, _OPSET)) + _bytes(8, _text(1, _MICROSOFT) + _number(2, 1))
        return _number(1, _IR_VERSION) + versions + _bytes(7, b"".join(graph))


def quantize(weight: Floats) -> tuple[np.ndarray[Any, Any], Floats]:
    """Quantize weights to integers from 1 to 255 in blocks along each row, where 128 is zero.

    Returns:
        The integers, and the scale of each block.
    """
    rows, width = weight.shape
    blocks = math.ceil(width / BLOCK)
    padded = np.zeros((rows, blocks * BLOCK), np.float32)
    padded[:, :width] = weight
    padded = padded.reshape(rows, blocks, BLOCK)
    scales = np.abs(padded).max(-1) / np.float32(127)
    safe = np.where(scales > 0, scales, np.float32(1))
    packed = (np.rint(padded / safe[..., None]) + 128).astype(np.uint8)
    return packed, safe.astype(np.float32)


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _attribute(name: str, value: float) -> bytes:
    if isinstance(value, int):
        return _text(1, name) + _number(3, value) + _number(20, 2)
    return _text(1, name) + _varint(2 << 3 | 5) + struct.pack("<f", value) + _number(20, 1)


def _value(value: GraphValue) -> bytes:
    sizes = [_number(1, size) if isinstance(size, int) else _text(2, size) for size in value.dims]
    shape = b"".join(_bytes(1, size) for size in sizes)
    return _text(1, value.name) + _bytes(2, _bytes(1, _number(1, _TYPES[value.type]) + _bytes(2, shape)))
