"""What this distribution offers: three backends, which differ in what they take an unknown model for."""

from __future__ import annotations

from jackfield.plugins import LLMSpec, hook

_CONFIG = "jackfield_dashscope.config:DashScopeConfig"
_HOSTS = ("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "*.maas.aliyuncs.com")


@hook.llms
def llms() -> list[LLMSpec]:
    """The backends, by the names that people know from Qwen-Agent."""
    return [
        LLMSpec(
            name="qwen_dashscope",
            target="jackfield_dashscope.backend:QwenChat",
            config=_CONFIG,
            summary="Qwen and other models at DashScope, by its own protocol",
            secrets=("DASHSCOPE_API_KEY",),
            effects=frozenset({"network"}),
            network=_HOSTS,
        ),
        LLMSpec(
            name="qwenvl_dashscope",
            target="jackfield_dashscope.backend:QwenVLChat",
            config=_CONFIG,
            summary="The same, for models that see images and video",
            secrets=("DASHSCOPE_API_KEY",),
            effects=frozenset({"network"}),
            network=_HOSTS,
        ),
        LLMSpec(
            name="qwenaudio_dashscope",
            target="jackfield_dashscope.backend:QwenAudioChat",
            config=_CONFIG,
            summary="The same, for models that hear",
            secrets=("DASHSCOPE_API_KEY",),
            effects=frozenset({"network"}),
            network=_HOSTS,
        ),
    ]
