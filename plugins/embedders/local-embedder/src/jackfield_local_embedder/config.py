"""Settings of the local embedder and reranker."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator

from jackfield.config import ComponentSettings, Config, PathText


class HubConfig(Config):
    """Settings for the model and where it comes from."""

    model: str = Field(min_length=1, description="A folder, or a name on the hub (org/name); required")
    revision: str | None = Field(default=None, description="Branch, tag or commit on the hub; a commit never changes")
    download: bool = Field(default=False, description="Fetch the model from the hub if it is not on this disk")
    api_key: SecretStr | None = Field(default=None, description="A token for the hub; better set as HF_TOKEN")
    onnx_file: PathText | None = Field(
        default=None,
        min_length=1,
        description="An ONNX file of the model, such as onnx/model_quint8_avx2.onnx, instead of the usual weights",
    )


class LocalRerankConfig(HubConfig):
    """Settings for the cross-encoder, and for the searcher whose hits it reranks."""

    searcher: str = Field(default="keyword_search", description="The name of the searcher that finds the candidates")
    searcher_settings: ComponentSettings = Field(default_factory=dict, description="The settings of that searcher")
    candidates: int = Field(
        default=30, ge=1, le=500, description="Number of hits to rerank; further hits follow in their own order"
    )
    max_tokens: int = Field(
        default=512, ge=8, description="Maximum number of tokens of a question with a passage; the rest is truncated"
    )
    tokens_at_once: int = Field(
        default=4096, ge=1, description="Approximate number of tokens computed at once; larger values use more memory"
    )


class TransformersEmbedderConfig(HubConfig):
    """Settings for the model, text prefixes and the engine. Defaults come from the model's own files where possible."""

    dimension: int | None = Field(
        default=None,
        ge=1,
        description="Truncate vectors to this dimension, for models trained for it (Matryoshka)",
    )
    document_prefix: str | None = Field(
        default=None, description="Prefix of texts that will be searched; unset: the model's own prompt"
    )
    query_prefix: str | None = Field(
        default=None, description="Prefix of queries; unset: the model's own prompt. Many models need one"
    )
    pooling: Literal["cls", "max", "mean", "lasttoken"] | None = Field(
        default=None,
        description="How token vectors become one vector; unset: as the model's files say, or else mean. BGE needs cls",
    )
    max_tokens: int | None = Field(
        default=None,
        ge=3,
        description="Maximum number of tokens of a text; the rest is truncated; unset: the model's limit",
    )
    tokens_at_once: int = Field(
        default=4096, ge=1, description="Approximate number of tokens computed at once; larger values use more memory"
    )
    engine: Literal["auto", "numpy", "onnx", "torch"] = Field(
        default="auto",
        description="Engine that runs the model; auto: ONNX Runtime if installed, else numpy, for models that "
        "they support, "
        "otherwise torch",
    )
    precision: Literal["full", "int8"] = Field(
        default="full",
        description="int8: multiply in 8 bits with ONNX Runtime; faster, same ranking, slightly different vectors",
    )
    device: str = Field(
        default="auto",
        min_length=1,
        description="With torch: cpu, cuda, cuda:1 …; auto: cuda if available. A device other than cpu requires torch",
    )
    trust_remote_code: bool = Field(
        default=False,
        description="With torch: run the Python code that comes with the model, with all your permissions",
    )

    @model_validator(mode="after")
    def _check_engine(self) -> Self:
        if self.engine not in ("auto", "onnx"):
            if self.onnx_file is not None:
                raise ValueError("onnx_file works only with engine 'onnx', its default: do not set `engine`")
            if self.precision == "int8":
                raise ValueError("precision 'int8' works only with engine 'onnx', its default: do not set `engine`")
        if self.onnx_file is not None and self.precision == "int8":
            raise ValueError(
                "precision only applies to safetensors models: set onnx_file to an 8-bit ONNX file instead"
            )
        if self.device not in ("auto", "cpu") and (self.engine == "onnx" or self.onnx_file or self.precision == "int8"):
            raise ValueError("ONNX Runtime only supports the CPU here: remove `device`, or set engine to torch")
        return self
