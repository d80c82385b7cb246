"""Settings of this backend."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from jackfield.config import LLMConfig


class TransformersConfig(LLMConfig):
    """The model, its loading options and its capabilities. `model` is a directory or a hub name (`org/name`)."""

    device: str = Field(
        default="auto", min_length=1, description="cpu, cuda, cuda:1 …; auto: cuda if available, else cpu"
    )
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = Field(
        default="auto", description="Data type of the weights; auto: as saved"
    )
    revision: str | None = Field(default=None, description="Branch, tag or commit on the hub; a commit never changes")
    local_files_only: bool = Field(default=False, description="Never contact the hub; use only files on this disk")
    trust_remote_code: bool = Field(
        default=False, description="Run the Python code that comes with the model, with all your permissions"
    )
    model_kwargs: dict[str, Any] = Field(
        default_factory=dict, description="For from_pretrained: attn_implementation, device_map, quantization_config …"
    )

    chat_template: str | None = Field(
        default=None,
        description="Replaces the model's own template: a Jinja template, or the path of a file that contains one",
    )
    chat_template_kwargs: dict[str, Any] = Field(
        default_factory=dict, description="Further variables for the template: enable_thinking …"
    )
    native_tools: bool = Field(
        default=False, description="Describe tools with the model's own template instead of a call format's prompt"
    )
    tool_call_format: str = Field(default="nous", description="With native_tools: the call format that reads the calls")

    images: bool = Field(default=False, description="Load the model with its image processor")
    reasoning: bool | None = Field(
        default=None, description="Separate the text in <think> as reasoning; unset: if the chat template has the tag"
    )
    context_tokens: int | None = Field(default=None, ge=1, description="Unset: as in the model's own configuration")
