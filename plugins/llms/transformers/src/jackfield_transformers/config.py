"""The settings of this backend."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from jackfield.config import LLMConfig


class TransformersConfig(LLMConfig):
    """Which model, how it is loaded, and what it can do. `model` is a folder, or a name at the hub (`org/name`)."""

    device: str = Field(default="auto", min_length=1, description="cpu, cuda, cuda:1 …; auto: cuda if there, else cpu")
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = Field(
        default="auto", description="Of the weights; auto: as they were saved"
    )
    revision: str | None = Field(default=None, description="Branch, tag or commit at the hub; a commit never changes")
    local_files_only: bool = Field(default=False, description="Never ask the hub: what is not on this disk is missing")
    trust_remote_code: bool = Field(
        default=False, description="Run the Python code that comes with the model, with all your rights"
    )
    model_kwargs: dict[str, Any] = Field(
        default_factory=dict, description="For from_pretrained: attn_implementation, device_map, quantization_config …"
    )

    chat_template: str | None = Field(
        default=None, description="In place of the model's own: a Jinja text, or a file with one"
    )
    chat_template_kwargs: dict[str, Any] = Field(
        default_factory=dict, description="What the template takes besides messages: enable_thinking …"
    )
    native_tools: bool = Field(
        default=False, description="The model's own template tells it of tools, in place of a call format's prompt"
    )
    tool_call_format: str = Field(default="nous", description="With native_tools: the call format that reads the calls")

    images: bool = Field(default=False, description="Load the model with its image processor")
    reasoning: bool | None = Field(
        default=None, description="Give what is in <think> apart; unset: if the chat template knows the tag"
    )
    context_tokens: int | None = Field(default=None, ge=1, description="Unset: as the model's own configuration says")
