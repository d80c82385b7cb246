"""URLs in an index: pages that are followed as files are."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from jackfield.errors import ConfigError
from jackfield_documents import DocumentReader
from jackfield_knowledge import Built, KnowledgeIndex


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "a.md").write_text("High water comes twice a day.")
    (folder / "b.md").write_text("The ferry goes at noon.")
    return folder


@pytest.fixture
def url(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a real server that gives the files of `site`."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


Change = Callable[..., Built]


@pytest.fixture
def change() -> Change:
    """Changes the index `notes` as another process would, without what this one has fetched before."""

    def change(how: str, *names: str) -> Built:
        index = KnowledgeIndex("notes")
        reader = DocumentReader(fetch_cfg={"allow": ["127.0.0.1"]})
        try:
            return asyncio.run(getattr(index, how)(names, reader=reader))
        finally:
            index.close()

    return change


def texts() -> list[str]:
    index = KnowledgeIndex("notes")
    try:
        return [chunk.text for chunk in index.corpus().chunks]
    finally:
        index.close()


def test_a_page_is_read_again_when_it_has_changed(url: str, site: Path, change: Change) -> None:
    assert change("build", f"{url}/a.md", f"{url}/b.md").read == 2
    assert change("build").unchanged == 2
    (site / "a.md").write_text("Low water, too.")
    built = change("build")
    assert (built.read, built.unchanged) == (1, 1)
    assert texts() == ["Low water, too.", "The ferry goes at noon."]


def test_a_page_that_cannot_be_had_now_is_found_as_it_was(url: str, site: Path, change: Change) -> None:
    change("build", f"{url}/a.md", f"{url}/b.md")
    (site / "a.md").unlink()
    built = change("build")
    assert list(built.failed) == [f"{url}/a.md"]
    assert "HTTP 404" in built.failed[f"{url}/a.md"]
    assert len(texts()) == 2
    assert change("remove", f"{url}/a.md").removed == 1
    assert texts() == ["The ferry goes at noon."]


def test_a_url_is_no_folder_of_others(url: str, change: Change) -> None:
    change("build", f"{url}/a.md", f"{url}/b.md")
    with pytest.raises(ConfigError, match="does not contain"):
        change("remove", url)
    assert len(texts()) == 2
    change("add", url)  # a list of the files
    assert len(texts()) == 3
