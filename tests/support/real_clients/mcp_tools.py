"""Ask the face `mcp` with the command line of the MCP inspector, and with the conformance suite of the protocol."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SCENARIOS = ("server-initialize", "ping", "tools-list", "server-sse-multiple-streams", "dns-rebinding-protection")
# These call tools of `conformance_agent`. The README of the face has the reasons for the others.
TOOL_SCENARIOS = (
    *("tools-call-simple-text", "tools-call-image", "tools-call-audio", "tools-call-error", "tools-call-with-progress"),
    *("tools-call-elicitation", "json-schema-2020-12", "server-sse-polling"),
    *("tools-call-embedded-resource", "tools-call-mixed-content", "elicitation-sep1034-defaults"),
    *("elicitation-sep1330-enums", "resources-list", "prompts-list"),
)


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
    suite = [node, programs / "conformance", "server", "--url"]
    faults = sum(not passes([*suite, url, "--scenario", scenario]) for scenario in SCENARIOS)
    with serving_tools() as own_url:
        faults += sum(not passes([*suite, own_url, "--scenario", scenario]) for scenario in TOOL_SCENARIOS)
    return int(faults > 0)


def passes(command: list[str | Path]) -> bool:
    """Run a scenario, and show its output if it finds a fault."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-2000:])
    return done.returncode == 0


@contextlib.contextmanager
def serving_tools() -> Iterator[str]:
    """Serve the tools that the suite calls, and yield the address."""
    face = json.dumps({"name": "mcp", "tools": True})
    serve = [sys.executable, "-m", "jackfield", "serve", "conformance_agent:agent", "--face", face, "--port", "0"]
    with subprocess.Popen(serve, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield next(line.split()[1] for line in process.stdout or () if line.split()[:1] == ["mcp"])
        finally:
            process.terminate()


sys.exit(main())
