"""Offer the questions that agents suggest as prompts."""

from __future__ import annotations

from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    PaginatedRequestParams,
    Prompt,
    PromptMessage,
    TextContent,
)

from jackfield_serving import Serving


class AgentPrompts:
    """Request handlers for prompts. An agent's suggestions are the prompts `AGENT-1`, `AGENT-2`, …

    Args:
        serving: The agents.
    """

    def __init__(self, serving: Serving) -> None:
        self._prompts = {
            f"{name}-{number}": (f"A question for {name}.", text)
            for name, agent in serving.agents.items()
            for number, text in enumerate(agent.suggestions, 1)
        }

    def __len__(self) -> int:
        return len(self._prompts)

    async def list_prompts(
        self,
        context: ServerRequestContext[Any, Any],  # noqa: ARG002
        params: PaginatedRequestParams | None,  # noqa: ARG002
    ) -> ListPromptsResult:
        """Return all prompts."""
        return ListPromptsResult(
            prompts=[
                Prompt(name=name, title=text, description=description)
                for name, (description, text) in self._prompts.items()
            ]
        )

    async def get_prompt(
        self,
        context: ServerRequestContext[Any, Any],  # noqa: ARG002
        params: GetPromptRequestParams,
    ) -> GetPromptResult:
        """Return a prompt by name.

        Raises:
            MCPError: There is no prompt with this name.
        """
        if params.name not in self._prompts:
            raise MCPError(
                INVALID_PARAMS, f"unknown prompt {params.name[:100]!r}: list the prompts to find valid names"
            )
        description, text = self._prompts[params.name]
        message = PromptMessage(role="user", content=TextContent(text=text))
        return GetPromptResult(description=description, messages=[message])
