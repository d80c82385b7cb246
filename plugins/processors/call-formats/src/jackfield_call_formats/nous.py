"""The call format `nous`: tools in `<tools>`, calls in `<tool_call>`, results in `<tool_response>`."""

from __future__ import annotations

from typing import ClassVar

from jackfield.processors import CallFormat, StreamTransform
from jackfield.request import ChatRequest
from jackfield_call_formats.reader import NousReader
from jackfield_call_formats.render import render_request


class NousFormat(CallFormat):
    """Hermes-style calls: the grammar of the chat templates of Qwen 2.5 and Qwen 3."""

    name: ClassVar[str] = "nous"

    def render(self, request: ChatRequest) -> ChatRequest:
        """The request with tools and tool traffic as text; the same object where there is neither."""
        return render_request(request)

    def reader(self, request: ChatRequest) -> StreamTransform:
        """What finds the calls in one answer's text. A call shows as soon as its name is whole, and its arguments
        when it ends."""
        return NousReader(functions=request.functions, begins_in_thought=request.config.thought_in_content)
