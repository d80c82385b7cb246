"""Which images a conversation has, what is in them, and where a tool's own are written."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
from pathlib import Path
from urllib.parse import quote

import pytest

from jackfield.errors import ToolServiceError
from jackfield.messages import Message
from jackfield.tools import Workspace
from jackfield_fetch import Fetcher
from jackfield_fetch.images import data_uri, image_bytes, images_in, save_image
from jackfield_testkit.web import WebAnswer, WebServer

PNG = b"\x89PNG\r\n\x1a\n and more"
BOMB = gzip.compress(PNG + b"\0" * 50_000_000)
URI = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
ALLOWED = Fetcher(allow=["127.0.0.1"], max_bytes=1000)


def read(address: str, fetcher: Fetcher = ALLOWED) -> bytes:
    return asyncio.run(image_bytes(address, fetcher))


def test_images_stand_in_the_order_in_which_they_came_each_once() -> None:
    conversation = [
        Message("system", [{"image": "/logo.png"}]),
        Message("user", [{"text": "?"}, {"image": "/a/cat.png"}, {"image": "https://x.example/dog"}]),
        Message("function", [{"image": URI}, {"image": "/etc/secret.png"}], name="plot"),
        Message("assistant", [{"image": "file:///etc/secret.png"}, {"image": "https://x.example/dog"}]),
        Message("user", "text"),
    ]
    more = [f"/c/x{ending}" for ending in (".jpg", ".gif", ".bmp", ".tif", ".tiff")]
    files = ["/a/cat.png", "/a/plan.pdf", "/b/Tree.JPEG", "https://x.example/bird.webp?w=1", "/c/x.svg", *more]
    assert images_in(conversation, files) == [
        "/logo.png", "/a/cat.png", "https://x.example/dog", URI, "/b/Tree.JPEG", "https://x.example/bird.webp?w=1",
        *more,
    ]  # fmt: skip


def test_an_image_is_read_from_a_file_a_url_and_a_data_uri(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    with WebServer() as web:
        # Whatever the server calls it.
        url = web.put("/image", WebAnswer(PNG, {"content-type": "text/html"}))
        addresses = [
            str(tmp_path / "a.png"),
            (tmp_path / "a.png").as_uri(),
            url,
            URI,
            "DATA:,%89PNG%0D%0A%1A%0A and more",
        ]
        assert [read(address) for address in addresses] == [PNG] * 5


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("data:image/png;base64,!!", "is not valid base64"),
        ("data:image/png;base64," + "A" * 10_000, "is larger than 0.000954 MiB"),
        ("data:,", "is not an image"),
        ("data:image/png;base64,aGVsbG8=", "is not an image in a known format"),
        ("data:image/svg+xml,<svg/>", "is not an image in a known format"),
        ("data:image/png,%25PDF-1.7", "is not an image in a known format"),
        ("/no/such.png", "cannot read the image 'such.png'"),
        ("https://127.0.0.2/x.png", "in a private network"),
        ("http://0x7f000002/x.png", "in a private network"),
        ("http://[::ffff:127.0.0.2]/x.png", "in a private network"),
        ("http://user:pw@x.example/x.png", "a user name or a password"),
    ],
)
def test_what_is_not_an_image_or_may_not_be_read_is_named(address: str, said: str) -> None:
    with pytest.raises(ToolServiceError, match=said) as caught:
        read(address)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("size", [1000, 1001])
@pytest.mark.parametrize("form", ["base64", "percent"])
def test_an_image_inside_a_conversation_may_have_just_the_limit(form: str, size: int) -> None:
    content = PNG.ljust(size, b"x")
    uri = f"data:,{quote(content)}" if form == "percent" else f"data:;BASE64,{base64.b64encode(content).decode()}"
    if size == 1000:
        assert read(uri) == content
    else:
        with pytest.raises(ToolServiceError, match="the image in the conversation is larger than"):
            read(uri)


def test_a_text_that_must_be_too_large_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base64, "b64decode", lambda *_, **__: pytest.fail("it is decoded"))
    with pytest.raises(ToolServiceError, match="the image in the conversation is larger than"):
        read("data:;base64," + "A" * 3001)


def test_an_image_of_a_file_or_server_may_have_just_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG.ljust(1000, b"x"))
    with WebServer() as web:
        url = web.put("/a", WebAnswer(PNG.ljust(1000, b"x")))
        assert [len(read(address)) for address in (str(tmp_path / "a.png"), url)] == [1000, 1000]
        pdf = web.put("/b.png", WebAnswer(b"%PDF-1.7", {"content-type": "image/png"}))
        with pytest.raises(ToolServiceError, match=r"/b.png is not an image in a known format"):
            read(f"{pdf}?key=secret")


def test_a_file_that_is_too_large_or_no_image_is_refused(tmp_path: Path) -> None:
    (tmp_path / "large.png").write_bytes(PNG + b"x" * 1000)
    (tmp_path / "text.png").write_text("private")
    for name, said in (("large.png", "is larger than 1,000 bytes"), ("text.png", "expected an image")):
        with pytest.raises(ToolServiceError, match=said):
            read(str(tmp_path / name))


@pytest.mark.parametrize("there", ["http://127.0.0.2:1/x.png", "file:///etc/passwd", "http://169.254.169.254/latest"])
def test_no_redirect_leads_into_a_private_network(there: str) -> None:
    with WebServer() as web:
        url = web.put("/x.png", WebAnswer(headers={"location": there}, status=302))
        with pytest.raises(ToolServiceError, match="cannot be fetched"):
            read(url)


@pytest.mark.parametrize(
    ("answer", "timeout_s", "said"),
    [
        (WebAnswer(PNG, ending="never"), 60, r"is larger than 0.000954 MiB"),
        (WebAnswer(BOMB, {"content-encoding": "gzip"}), 60, r"is larger than 0.000954 MiB"),
        (WebAnswer(PNG, ending="drip"), 0.3, r"did not arrive within 0.3 seconds"),
    ],
)
def test_an_image_without_end_is_left(answer: WebAnswer, timeout_s: float, said: str) -> None:
    with WebServer() as web:
        url = web.put("/x.png", answer)
        with pytest.raises(ToolServiceError, match=said):
            read(url, Fetcher(allow=["127.0.0.1"], max_bytes=1000, timeout_s=timeout_s))


def test_an_image_is_saved_under_a_name_of_its_content(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    name = save_image(PNG, workspace, "tools/plot", ending=".png")
    assert save_image(PNG, workspace, "tools/plot", ending=".png") == name
    assert [path.name for path in (tmp_path / "tools/plot").iterdir()] == [Path(name).name]
    assert workspace.resolve(name).read_bytes() == PNG


def test_images_that_begin_alike_have_names_of_their_own_and_a_workspace_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "link").symlink_to("workspace")
    workspace = Workspace(tmp_path / "link")
    images = [PNG + bytes(100_000) + end for end in (b"1", b"2")]
    names = [save_image(image, workspace, "tools/plot", ending=".png") for image in images]
    assert [workspace.resolve(name).read_bytes() for name in names] == images


@pytest.mark.parametrize("linked", ["tools", "tools/plot"])
def test_no_image_is_written_through_a_link(tmp_path: Path, linked: str) -> None:
    root, outside = tmp_path / "workspace", tmp_path / "outside"
    outside.mkdir()
    (root / linked).parent.mkdir(parents=True)
    (root / linked).symlink_to(outside)
    with pytest.raises(ToolServiceError, match="cannot be saved"):
        save_image(PNG, Workspace(root), "tools/plot", ending=".png")
    assert list(outside.iterdir()) == []


def test_a_link_in_the_place_of_the_file_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim.png"
    victim.write_bytes(b"precious")
    name = save_image(PNG, Workspace(tmp_path / "workspace"), "tools", ending=".png")
    path = tmp_path / "workspace" / name
    path.unlink()
    path.symlink_to(victim)
    save_image(PNG, Workspace(tmp_path / "workspace"), "tools", ending=".png")
    assert (victim.read_bytes(), path.read_bytes(), path.is_symlink()) == (b"precious", PNG, False)


def test_an_image_that_cannot_be_saved_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "tools").write_text("a file where a folder should be")
    with pytest.raises(ToolServiceError, match="cannot be saved"):
        save_image(PNG, Workspace(tmp_path), "tools/plot", ending=".png")
    assert [path.name for path in tmp_path.iterdir()] == ["tools"]


def test_an_image_that_cannot_replace_what_has_its_name_leaves_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / save_image(PNG, Workspace(tmp_path), "tools", ending=".png")
    path.unlink()
    path.mkdir()
    with pytest.raises(ToolServiceError, match="cannot be saved"):
        save_image(PNG, Workspace(tmp_path), "tools", ending=".png")
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs the list of open files")
def test_no_descriptor_stays_open_when_an_image_is_saved_or_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    before = len(list(Path("/proc/self/fd").iterdir()))
    save_image(PNG, Workspace(tmp_path), "tools/plot", ending=".png")
    for folder in ("file/plot", "tools/../tools"):
        with contextlib.suppress(ToolServiceError):
            save_image(PNG, Workspace(tmp_path), folder, ending=".png")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_saved_image_may_be_read_by_others_as_the_user_has_set_it(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    name = save_image(PNG, Workspace(tmp_path), "tools", ending=".png")
    assert (tmp_path / name).stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_data_uri_has_the_type_of_its_content() -> None:
    assert data_uri(PNG) == URI
    assert data_uri(b"\xff\xd8\xff").startswith("data:image/jpeg;base64,")
