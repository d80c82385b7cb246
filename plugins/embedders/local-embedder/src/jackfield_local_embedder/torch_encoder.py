"""Run any model supported by transformers, with torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jackfield.errors import JackfieldError, ModelRequestError, ModelServiceError
from jackfield.quoting import quote_text
from jackfield_local_embedder.config import TransformersEmbedderConfig
from jackfield_local_embedder.onnx_encoder import longest_of
from jackfield_local_embedder.recipe import BACKEND, unusable

if TYPE_CHECKING:
    from jackfield_local_embedder.arrays import Floats

_MOST_SHOWN = 300
_ENCODERS = {"t5": "T5EncoderModel", "mt5": "MT5EncoderModel"}  # only the encoders of these models are used


class TorchEncoder:
    """A model loaded by transformers.

    Args:
        folder: The model folder.
        config: The embedder's settings.

    Raises:
        ModelServiceError: The model cannot be loaded.
    """

    def __init__(self, folder: Path, config: TransformersEmbedderConfig) -> None:
        name = config.model
        try:
            import torch
            import transformers
        except ImportError as error:
            raise _needs_torch(name, str(error)) from error
        auto: Any = transformers  # some of its annotations are wrong
        options = {"trust_remote_code": config.trust_remote_code, "local_files_only": True}
        try:
            settings = auto.AutoConfig.from_pretrained(folder, **options)
            model_class = getattr(auto, _ENCODERS.get(settings.model_type, "AutoModel"))
            # The same type on every processor, so that the vectors of an index match those of another machine.
            self._model = model_class.from_pretrained(folder, dtype=torch.float32, **options)
            self._model.to(_device(config.device)).eval()
        except (Exception, MemoryError) as error:
            raise _cannot_be_loaded(error, name) from error
        self._padding = int(getattr(settings, "pad_token_id", None) or 0)
        self.longest = longest_of(settings.to_dict())

    def encode(self, rows: Sequence[Sequence[int]]) -> list[Floats]:
        """Return an array per row, with a vector for each token."""
        import torch

        longest = max(len(row) for row in rows)
        ids = torch.full((len(rows), longest), self._padding, dtype=torch.long)
        mask = torch.zeros((len(rows), longest), dtype=torch.long)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = torch.tensor(row, dtype=torch.long)
            mask[number, : len(row)] = 1
        with torch.inference_mode():
            device = self._model.device
            hidden = self._model(input_ids=ids.to(device), attention_mask=mask.to(device)).last_hidden_state.cpu()
        return [hidden[number, : len(row)].float().numpy() for number, row in enumerate(rows)]


def tokenizer_by_transformers(folder: Path, config: TransformersEmbedderConfig) -> Any:
    """Build a tokenizer from the other files of a folder that has no `tokenizer.json`.

    Raises:
        ModelServiceError: The tokenizer cannot be built.
    """
    try:
        import transformers
    except ImportError as error:
        raise _needs_torch(config.model, str(error)) from error
    auto: Any = transformers
    try:
        built = auto.AutoTokenizer.from_pretrained(
            folder, trust_remote_code=config.trust_remote_code, local_files_only=True
        )
    except Exception as error:
        raise _cannot_be_loaded(error, config.model) from error
    tokenizer = getattr(built, "backend_tokenizer", None)
    if tokenizer is None:
        raise unusable(config.model, "has a tokenizer that needs Python code to run: add a tokenizer.json")
    return tokenizer


def _device(name: str) -> str:
    import torch

    if name != "auto":
        return name
    return "cuda" if torch.cuda.is_available() else "cpu"


def _needs_torch(name: str, why: str) -> ModelServiceError:
    return ModelServiceError(
        f'{BACKEND}: {name!r} needs torch ({why}): pip install "jackfield-local-embedder[torch]"', backend=BACKEND
    )


def _cannot_be_loaded(error: BaseException, name: str) -> JackfieldError:
    text = quote_text(str(error), "", _MOST_SHOWN) or type(error).__name__
    if "trust_remote_code" in str(error):
        return ModelRequestError(
            f"{BACKEND}: {name!r} contains its own Python code, which is not run: review the code, "
            f"then set trust_remote_code to true and revision to the commit you reviewed",
            backend=BACKEND,
        )
    return unusable(name, f"cannot be loaded: {text}")
