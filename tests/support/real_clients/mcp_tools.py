"""Ask the face `mcp` with the command line of the MCP inspector, and with the conformance suite of the protocol."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

VERSIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
# The README of the face has the reasons.
EXCUSED = {
    *("resources-read-text", "resources-read-binary", "resources-templates-read"),
    *("resources-subscribe", "resources-unsubscribe", "completion-complete"),
    *("prompts-get-simple", "prompts-get-with-args", "prompts-get-embedded-resource", "prompts-get-with-image"),
    *("tools-call-sampling", "logging-set-level", "tools-call-with-logging"),
    *("input-required-result-basic-elicitation", "input-required-result-non-tool-request"),
    *("input-required-result-basic-sampling", "input-required-result-basic-list-roots"),
    *("input-required-result-multiple-input-requests", "input-required-result-capability-check"),
}
EXCUSED_CHECKS = {"sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400"}
_RESULT = re.compile(r"server-(.+?)-\d{4}-\d\d-\d\dT.*")
"""The folder of a result: the scenario, and a time."""


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
    suite = [node, programs / "conformance", "server", "--suite", "all", "--url"]
    with serving_tools() as own_url:
        faults = [fault for version in VERSIONS for fault in faults_of([*suite, own_url], version)]
    print("\n".join(faults))
    return int(bool(faults))


def faults_of(suite: list[str | Path], version: str) -> list[str]:
    """Run the scenarios of a version of the protocol; return the checks that fail and have no excuse."""
    faults: list[str] = []
    passed, failed = set[str](), set[str]()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*suite, "--spec-version", version, "-o", folder], check=False, capture_output=True)
        for result in Path(folder).rglob("checks.json"):
            scenario = _RESULT.sub(r"\1", result.parent.name)
            checks = [one for one in json.loads(result.read_text()) if one["status"] == "FAILURE"]
            (failed if checks else passed).add(scenario)
            if scenario not in EXCUSED:
                unexcused = [one for one in checks if one["id"] not in EXCUSED_CHECKS]
                faults += [f"{version} {scenario}: {one['id']}: {one.get('errorMessage')}" for one in unexcused]
    print(f"{version}: {len(passed)} scenarios passed; {len(failed)} failed: {', '.join(sorted(failed))}")
    return faults if passed else [f"{version}: no scenario passed"]


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
