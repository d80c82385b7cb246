"""What `make demo` and `make test` install with: it reaches an index wherever pip does."""

from __future__ import annotations

import base64
import hashlib
import http.server
import os
import shutil
import ssl
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OPENSSL = shutil.which("openssl")

pytestmark = pytest.mark.skipif(OPENSSL is None, reason="makes certificates with openssl")


@dataclass(frozen=True, slots=True)
class Index:
    """A package index on this machine, and the certificate that it can be believed by."""

    url: str
    authority: Path


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing."""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """An index with one package, whose certificate is of an authority nobody knows."""
    folder = tmp_path_factory.mktemp("index")
    _publish(folder / "simple/tiny-jack", name="tiny_jack")
    authority, certificate, key = _certificates(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield Index(f"https://127.0.0.1:{server.server_port}/simple", authority)
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder with the script and nothing to install of its own but an empty package."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/bootstrap.sh", tmp_path / "scripts")
    core = tmp_path / "core"
    core.mkdir()
    (core / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "build_here"\nbackend-path = ["."]\n'
        '[project]\nname = "empty-core"\nversion = "1"\n'
    )
    (core / "build_here.py").write_text(
        "import zipfile\n"
        "def build_editable(folder, config_settings=None, metadata_directory=None):\n"
        "    name = 'empty_core-1-py3-none-any.whl'\n"
        "    with zipfile.ZipFile(f'{folder}/{name}', 'w') as wheel:\n"
        "        info = 'empty_core-1.dist-info'\n"
        "        wheel.writestr(f'{info}/METADATA', 'Metadata-Version: 2.1\\nName: empty-core\\nVersion: 1\\n')\n"
        "        wheel.writestr(f'{info}/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n"
        "        wheel.writestr(f'{info}/RECORD', '')\n"
        "    return name\n"
    )
    return tmp_path


def bootstrap(workspace: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the script with no setting of pip, uv or TLS but those given."""
    foreign = ("PIP_", "UV_", "SSL_", "REQUESTS_", "CURL_", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    environment = {
        **kept,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",  # uv is there
        "PYTHON": sys.executable,
        "CONSTRAINTS": "/dev/null",
        "UV_CACHE_DIR": str(workspace / "cache"),
        "PIP_CONFIG_FILE": os.devnull,
        "NO_PROXY": "127.0.0.1",
        **more,
    }
    return subprocess.run(
        ["bash", "scripts/bootstrap.sh", *arguments],
        cwd=workspace,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("variable", ["PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_a_certificate_that_pip_believes_is_believed(index: Index, workspace: Path, variable: str) -> None:
    done = bootstrap(workspace, "tiny-jack", **{"PIP_INDEX_URL": index.url, variable: str(index.authority)})
    assert done.returncode == 0, done.stderr
    assert list(workspace.glob(".venv/lib/*/site-packages/tiny_jack"))


def test_a_certificate_nobody_vouches_for_is_refused(index: Index, workspace: Path) -> None:
    done = bootstrap(workspace, "tiny-jack", PIP_INDEX_URL=index.url, UV_HTTP_RETRIES="0")
    assert done.returncode != 0
    assert "certificate" in done.stderr


def test_the_files_of_pip_count_as_its_variables_do(index: Index, workspace: Path) -> None:
    python = shutil.which("python3", path=os.defpath) or ""
    if not python or subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        pytest.skip("needs a Python with pip")
    settings = workspace / "pip.conf"
    settings.write_text(f"[global]\nindex-url = {index.url}\ncert = {index.authority}\n")
    done = bootstrap(workspace, "tiny-jack", PYTHON=python, PIP_CONFIG_FILE=str(settings))
    assert done.returncode == 0, done.stderr
    assert list(workspace.glob(".venv/lib/*/site-packages/tiny_jack"))


def test_the_certificates_of_the_system_are_asked_and_the_users_own_choice_wins(tmp_path: Path) -> None:
    script = (ROOT / "scripts/bootstrap.sh").read_text().partition("works() {")[0]
    said = 'as_pip_does; echo "$UV_SYSTEM_CERTS $UV_NATIVE_TLS"'
    for given, expected in (
        ({}, "1 1"),
        ({"UV_SYSTEM_CERTS": "0"}, "0 0"),
        ({"UV_NATIVE_TLS": "false"}, "false false"),
    ):
        (tmp_path / "scripts").mkdir(exist_ok=True)
        (tmp_path / "scripts/ask.sh").write_text(script + said)
        done = subprocess.run(
            ["bash", str(tmp_path / "scripts/ask.sh")],
            env={"PATH": os.environ["PATH"], "PYTHON": sys.executable, **given},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert done.stdout.strip() == expected


def _publish(folder: Path, *, name: str) -> None:
    folder.mkdir(parents=True)
    wheel = folder / f"{name}-1-py3-none-any.whl"
    info = f"{name}-1.dist-info"
    files = {
        f"{name}/__init__.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        record = ""
        for path, text in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(text)}\n"
            archive.writestr(path, text)
        archive.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")
    (folder / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')


def _certificates(folder: Path) -> tuple[Path, Path, Path]:
    """The certificate of an authority; one for this machine that it signed, and its key."""
    authority, authority_key = folder / "ca.pem", folder / "ca.key"
    certificate, key, request = folder / "here.pem", folder / "here.key", folder / "here.csr"
    extensions = folder / "here.ext"
    extensions.write_text("subjectAltName = IP:127.0.0.1\nbasicConstraints = CA:FALSE\n")
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for arguments in (
        ("req", "-x509", *new_key, "-keyout", authority_key, "-out", authority, "-subj", "/CN=Nobody", "-days", "2"),
        ("req", *new_key, "-keyout", key, "-out", request, "-subj", "/CN=127.0.0.1"),
        ("x509", "-req", "-in", request, "-CA", authority, "-CAkey", authority_key, "-CAcreateserial",
         "-out", certificate, "-extfile", extensions, "-days", "2"),
    ):  # fmt: skip
        subprocess.run([str(OPENSSL), *map(str, arguments)], capture_output=True, timeout=60, check=True)
    return authority, certificate, key
