"""A vocabulary is found where it may be looked for; texts are cut into pieces as OpenAI's models do."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import regex
import tiktoken_ext.openai_public
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError
from jackfield_testkit.network import blocked
from jackfield_tiktoken.tokenizer import (
    CL100kBase,
    O200kBase,
    TiktokenTokenizer,
    check_cl100k_base,
    check_o200k_base,
)

BOTH = (O200kBase, CL100kBase)
PIECES = st.sampled_from(
    [
        "the",
        "Weather",
        "camelCase",
        "HTTPServer",
        "don't",
        "I'LL",
        "'s",
        "’s",
        "天气",
        "，",
        " ",
        "  ",
        "\n",
        "\r\n",
        "\t",
        "12",
        "3456",
        "²",
        "_",
        "é",
        "e\u0301",
        "\u0301",
        "🙂",
        "()",
        "//\n",
        "ǅ",
        "ʰ",
        "\u3000",
        "\u200d",
        "ſ",
        "ß",
        "И",
    ]
)


@pytest.fixture(scope="module")
def told() -> dict[str, dict[str, Any]]:
    """What tiktoken says of the encodings, vocabularies left out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiktoken_ext.openai_public, "load_tiktoken_bpe", lambda url, expected_hash: {url: expected_hash})
        return {made.name: tiktoken_ext.openai_public.ENCODING_CONSTRUCTORS[made.name]() for made in BOTH}


@pytest.mark.parametrize("made", BOTH)
def test_addresses_hashes_and_control_tokens_are_tiktokens(made: type[TiktokenTokenizer], told: dict[str, Any]) -> None:
    assert {made.url: made.hash} == told[made.name]["mergeable_ranks"]
    assert made.control_tokens == told[made.name]["special_tokens"]


@pytest.mark.parametrize("made", BOTH)
@given(text=st.lists(PIECES, max_size=20).map("".join) | st.text(max_size=30))
def test_texts_are_cut_into_the_pieces_into_which_tiktoken_cuts_them(
    made: type[TiktokenTokenizer], told: dict[str, Any], text: str
) -> None:
    # The commonest engine that knows these patterns; tiktoken's own shows no pieces.
    assert regex.findall(made.pattern, text) == regex.findall(told[made.name]["pat_str"], text)


# --- where a vocabulary is ---


@pytest.mark.parametrize("made", BOTH)
def test_without_a_vocabulary_it_says_what_to_do_and_asks_nobody(made: type[TiktokenTokenizer], cache: Path) -> None:
    with blocked("a tokenizer") as network, pytest.raises(ConfigError, match="is not on this machine") as caught:
        made().count("tea")
    assert network.refused == []
    assert all(word in str(caught.value) for word in (made.name, "path", "TIKTOKEN_CACHE_DIR", "download", made.url))
    assert not cache.exists()


def test_the_doctor_is_told_what_is_missing(cache: Path) -> None:
    assert "o200k_base.tiktoken" in check_o200k_base()[0]
    assert "cl100k_base.tiktoken" in check_cl100k_base()[0]
    cache.mkdir()
    for made in BOTH:
        path = made().cached()
        assert path
        path.write_text("it is there")
    assert check_o200k_base() == check_cl100k_base() == []


@pytest.fixture
def small(vocabulary: bytes) -> type[O200kBase]:
    """A tokenizer whose vocabulary, at OpenAI, is the small one."""

    class Small(O200kBase):
        hash = hashlib.sha256(vocabulary).hexdigest()

    return Small


def test_the_cache_of_tiktoken_is_read(small: type[O200kBase], vocabulary: bytes, cache: Path) -> None:
    cache.mkdir()
    # As tiktoken names it.
    (cache / hashlib.sha1(small.url.encode()).hexdigest()).write_bytes(vocabulary)
    assert small().count("weather") == 1


def test_the_cache_may_be_among_the_temporary_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert (O200kBase().cached() or Path()).parent == tmp_path / "data-gym-cache"
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(tmp_path / "gym"))
    assert (O200kBase().cached() or Path()).parent == tmp_path / "gym"
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    assert O200kBase().cached() is None
    assert O200kBase().missing() != []


def test_a_file_that_is_not_openais_must_be_named_by_its_hash(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="has the wrong SHA-256"):
        O200kBase(path=settings["path"]).count("tea")
    assert O200kBase(**settings).count("weather") == 1  # type: ignore[arg-type]


def test_a_path_may_begin_at_home(
    settings: dict[str, str], vocabulary: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.tiktoken").write_bytes(vocabulary)
    assert O200kBase(path="~/mine.tiktoken", sha256=settings["sha256"]).count("weather") == 1


def test_a_folder_in_the_cache_is_no_vocabulary(small: type[O200kBase], cache: Path) -> None:
    (cache / hashlib.sha1(small.url.encode()).hexdigest()).mkdir(parents=True)
    assert small().missing() != []
    with pytest.raises(ConfigError, match="is not on this machine"):
        small().count("tea")


def test_the_real_vocabulary_has_its_control_tokens(small: type[O200kBase], settings: dict[str, str]) -> None:
    assert small(path=settings["path"]).encoding.encoding.special_tokens_set == set(O200kBase.control_tokens)


def test_a_file_that_is_named_and_not_there_is_an_error_whatever_is_in_the_cache(
    small: type[O200kBase], vocabulary: bytes, cache: Path, tmp_path: Path
) -> None:
    cache.mkdir()
    (cache / hashlib.sha1(small.url.encode()).hexdigest()).write_bytes(vocabulary)
    with pytest.raises(ConfigError, match=r"gone\.tiktoken' cannot be read"):
        small(path=str(tmp_path / "gone.tiktoken"), download=True).count("tea")


def test_a_process_keeps_a_vocabulary_once(settings: dict[str, str]) -> None:
    first, second = O200kBase(**settings), O200kBase(**settings)  # type: ignore[arg-type]
    assert first.encoding is second.encoding
    assert CL100kBase(**settings).encoding is not first.encoding  # type: ignore[arg-type]


def test_control_tokens_are_those_of_the_real_vocabulary_alone(settings: dict[str, str]) -> None:
    tokens = O200kBase(**settings)  # type: ignore[arg-type]
    assert tokens.encoding.encoding.special_tokens_set == set()


# --- fetching it ---


@pytest.fixture
def fetched(vocabulary: bytes) -> Iterator[list[str]]:
    """A server that has the small vocabulary: its address, then the paths that it was asked for."""
    asked: list[str] = []

    class Files(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200 if "gone" not in self.path else 404)
            self.send_header("Content-Length", str(len(vocabulary)))
            self.end_headers()
            self.wfile.write(vocabulary)

        def log_message(self, *args: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        asked.append(f"http://127.0.0.1:{server.server_port}")
        yield asked
        server.shutdown()
        thread.join()


def test_it_is_fetched_once_if_that_is_asked_for_and_kept(
    small: type[O200kBase], fetched: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(small, "url", f"{fetched[0]}/small.tiktoken")
    assert small(download=True).count("weather") == 1
    assert small(download=True).count("weather") == 1
    assert small().count("weather") == 1
    assert fetched[1:] == ["/small.tiktoken"]
    assert small().cached() in list(cache.iterdir())


@pytest.mark.parametrize("path", ["/gone.tiktoken", "/another.tiktoken"])
def test_what_cannot_be_fetched_or_is_another_file_is_an_error_that_says_what_to_do(
    small: type[O200kBase], fetched: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(small, "url", fetched[0] + path)
    monkeypatch.setattr(small, "hash", "0" * 64)
    with pytest.raises(ConfigError, match=r"cannot be downloaded .* set `path` to it"):
        small(download=True).count("tea")
    assert not cache.exists()


def test_a_cache_that_cannot_be_written_is_an_error_that_says_what_to_do(
    small: type[O200kBase], fetched: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(small, "url", f"{fetched[0]}/small.tiktoken")
    cache.write_text("a file where the folder would be")
    with pytest.raises(ConfigError, match=r"cannot be downloaded \(\w+Error: .* set `path` to it"):
        small(download=True).count("tea")


def test_a_hash_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="sha256"):
        O200kBase(sha256="abc")
