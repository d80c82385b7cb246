"""Run Qwen-Agent on the same server, in its own environment, and print one figure in milliseconds."""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

from qwen_agent.agents import FnCallAgent
from qwen_agent.llm import get_chat_model
from qwen_agent.tools.base import BaseTool

ASK = [{"role": "user", "content": "go"}]
PARAMETERS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}


class Add(BaseTool):
    """Adds."""

    name = "add"
    description = "Add two numbers."
    parameters = PARAMETERS

    def call(self, params: Any, **_: Any) -> str:
        """Add."""
        arguments = self._verify_json_format_args(params)
        return str(arguments["a"] + arguments["b"])


class Wait(BaseTool):
    """Waits."""

    name = "wait"
    description = "Wait a tenth of a second."
    parameters = {"type": "object", "properties": {}, "required": []}  # noqa: RUF012

    def call(self, _params: Any, **_: Any) -> str:
        """Wait."""
        time.sleep(0.1)
        return "done"


def agent(url: str, model: str, *tools: BaseTool) -> FnCallAgent:
    """Create an agent that uses the server with native calls."""
    cfg = {
        "model": model,
        "model_type": "oai",
        "model_server": url,
        "api_key": "none",
        "generate_cfg": {"use_raw_api": True},
    }
    return FnCallAgent(function_list=list(tools), llm=get_chat_model(cfg))


def main() -> None:
    """Run the measurement named in the first argument."""
    what, url = sys.argv[1:3]
    bot, times, per, clock = {
        "one_call": (agent(url, "short"), 20, 1, time.process_time),
        "turns": (agent(url, "tools-15", Add()), 3, 15, time.process_time),
        "parallel": (agent(url, "parallel-8", Wait()), 3, 1, time.perf_counter),
    }[what]
    samples = []
    for _ in range(times + 1):
        started = clock()
        for _ in bot.run(list(ASK)):
            pass
        samples.append((clock() - started) * 1000 / per)
    print(statistics.median(samples[1:]))


if __name__ == "__main__":
    main()
