"""Answer a server's model requests (sampling), which are refused unless the configuration names a model."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from jackfield.errors import JackfieldError
from jackfield.messages import Message
from jackfield.models import get_chat_model
from jackfield.plugins import Plugins

if TYPE_CHECKING:
    import mcp_types

_log = logging.getLogger(__name__)

_MOST_ANSWERS = 100  # per start of a server, because each one costs money


class Sampler:
    """Answers a server's model requests. Only text is supported.

    Args:
        server: The server's name in messages.
        llm: The model, in any form that an agent accepts.
        host: The plugin host that provides the model's backend.
    """

    def __init__(self, server: str, llm: Any, host: Plugins) -> None:
        self._server = server
        self._model = get_chat_model(llm, host=host)
        self._left = _MOST_ANSWERS

    async def __call__(self, context: Any, params: Any) -> mcp_types.CreateMessageResult | mcp_types.ErrorData:  # noqa: ARG002 - the SDK's form of such a function
        """Return the model's answer, or an error."""
        from mcp_types import CreateMessageResult, TextContent

        self._left -= 1
        if self._left < 0:
            return _refused(f"limit of {_MOST_ANSWERS} model responses reached")
        try:
            messages = [Message(one.role, _text(one.content)) for one in params.messages]
            if params.system_prompt:
                messages.insert(0, Message("system", params.system_prompt))
            options = {
                "max_tokens": params.max_tokens,
                "temperature": params.temperature,
                "stop": params.stop_sequences,
            }
            config = {name: value for name, value in options.items() if value is not None}
            answer = await self._model.aask(messages, config=config)
        except (JackfieldError, ValueError) as error:
            _log.warning("a model request from MCP server %r failed", self._server, exc_info=True)
            return _refused(f"the model request failed: {type(error).__name__}")
        return CreateMessageResult(
            role="assistant", content=TextContent(text=answer.text), model=self._model.address, stop_reason="endTurn"
        )


def _text(content: Any) -> str:
    blocks = content if isinstance(content, list) else [content]
    if any(block.type != "text" for block in blocks):
        raise ValueError("only text content is supported")
    return "\n".join(block.text for block in blocks)


def _refused(reason: str) -> mcp_types.ErrorData:
    from mcp_types import INVALID_REQUEST, ErrorData

    return ErrorData(code=INVALID_REQUEST, message=reason)
