"""Ask the face `mcp` with the command line of the MCP inspector, and with the conformance suite of the protocol."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

# The other scenarios of the suite call tools, resources and prompts that only its own example server has.
SCENARIOS = ("server-initialize", "ping", "tools-list", "server-sse-multiple-streams", "dns-rebinding-protection")


def main() -> int:
    """Return 1 if one of them finds a fault."""
    node, modules, url = sys.argv[1:]
    programs = Path(modules) / ".bin"

    def inspect(*arguments: str) -> object:
        command = [node, programs / "mcp-inspector", "--cli", url, "--transport", "http", *arguments]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    tools = inspect("--method", "tools/list")
    assert isinstance(tools, dict)
    assert [tool["name"] for tool in tools["tools"]] == ["helper"], tools
    result = inspect("--method", "tools/call", "--tool-name", "helper", "--tool-arg", "message=Hi")
    assert isinstance(result, dict)
    assert result["structuredContent"]["text"] == "You said: Hi", result
    faults = 0
    for scenario in SCENARIOS:
        command = [node, programs / "conformance", "server", "--url", url, "--scenario", scenario]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            print(done.stdout[-2000:], done.stderr[-2000:])
        faults += done.returncode != 0
    return int(faults > 0)


sys.exit(main())
