"""Call tools with any model, which writes its calls as plain text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Unpack

from jackfield.agents import AgentOptions, FnCallAgent, ToolEntry
from jackfield.config import GenerateConfig, LLMConfig
from jackfield.models import BaseChatModel

FORMAT = {"fncall_prompt_type": "react", "use_raw_api": False}


class ReActChat(FnCallAgent):
    """Agent that calls tools like `FnCallAgent`, but in the call format `react`, which any model can follow.

    Args:
        function_list, llm, system_message, name, description: See `Agent`.
        options: See `Agent`. `extra_generate_cfg` may select another call format.

    Source: Yao et al., ReAct: Synergizing Reasoning and Acting in Language Models, ICLR 2023.
    """

    def __init__(
        self,
        function_list: Iterable[ToolEntry] | None = None,
        llm: str | Mapping[str, Any] | LLMConfig | BaseChatModel | None = None,
        system_message: str | None = "",
        name: str | None = None,
        description: str | None = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        format_first = GenerateConfig.parse(FORMAT).merged(options.get("extra_generate_cfg"))
        options = {**options, "extra_generate_cfg": format_first}
        super().__init__(function_list, llm, system_message, name, description, **options)
