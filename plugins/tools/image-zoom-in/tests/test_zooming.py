"""What becomes of images that files of many kinds hold, and of files that only seem to hold one."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin

from jackfield import FnCallAgent
from jackfield.errors import ToolArgumentError, ToolServiceError
from jackfield.messages import ContentItem, Message
from jackfield.request import ModelFacts
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import ToolContext, Workspace
from jackfield_image_zoom_in.plugin import tools
from jackfield_image_zoom_in.tool import ImageZoomIn
from jackfield_image_zoom_in.zooming import _size_for_models, _widen, crop_and_enlarge
from jackfield_testkit.web import WebAnswer, WebServer

WHOLE = (0, 0, 1000, 1000)


def written(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def zoom(content: bytes, bbox: tuple[float, ...] = WHOLE, *, max_pixels: int = 50_000_000) -> Image.Image:
    return Image.open(io.BytesIO(crop_and_enlarge(content, bbox, max_pixels=max_pixels)))


def halves(mode: str = "RGB") -> Image.Image:
    """Red on the left, blue on the right."""
    image = Image.new("RGB", (200, 100), "red")
    image.paste("blue", (100, 0, 200, 100))
    return image.convert(mode)


def colour(image: Image.Image, x: float, y: float = 0.5) -> str:
    seen = image.convert("RGB").getpixel((int(image.width * x), int(image.height * y)))
    assert isinstance(seen, tuple)
    return "red" if seen[0] > 150 and seen[2] < 100 else "blue" if seen[2] > 150 and seen[0] < 100 else str(seen)


# --- which part ---


def test_a_part_is_what_its_box_says_and_scaled_for_models() -> None:
    assert zoom(written(halves()), (0, 0, 500, 500)).size == (736, 384)
    assert [colour(zoom(written(halves()), box), 0.5) for box in ((0, 0, 499, 999), (501, 0, 1000, 999))] == [
        "red",
        "blue",
    ]


@pytest.mark.parametrize(
    "bbox",
    [(0, 0, 0, 500), (500, 0, 400, 500), (0, 9, 9, 9), (float("nan"), 0, 9, 9), (0, 0, float("inf"), 9)],
)
def test_a_box_without_a_part_is_refused(bbox: tuple[float, ...]) -> None:
    with pytest.raises(ToolArgumentError, match="bbox_2d is not a valid region"):
        zoom(written(halves()), bbox)


@given(side=st.integers(1, 5000), ends=st.lists(st.floats(0, 1000), min_size=2, max_size=2, unique=True).map(sorted))
def test_a_part_lies_within_the_image_and_has_32_pixels_if_there_are_as_many(side: int, ends: list[float]) -> None:
    first, last = _widen(ends[0], ends[1], side)
    assert 0 <= first < last <= side
    assert last - first >= min(32, side)
    assert first <= ends[0] / 1000 * side + 1e-6
    assert last >= ends[1] / 1000 * side - 1e-6


@given(width=st.integers(1, 20_000), height=st.integers(1, 20_000))
def test_a_size_for_models_is_of_whole_squares_and_neither_small_nor_huge(width: int, height: int) -> None:
    if max(width, height) > 200 * min(width, height):
        with pytest.raises(ToolArgumentError, match="choose a part closer to a square"):
            _size_for_models(width, height)
        return
    new = _size_for_models(width, height)
    assert [side % 32 for side in new] == [0, 0]
    assert 256 * 1024 <= new[0] * new[1] <= 1.1 * 4096 * 1024


# --- files of many kinds ---


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        ("PNG", "RGB"), ("PNG", "P"), ("PNG", "RGBA"), ("JPEG", "RGB"), ("JPEG", "CMYK"), ("GIF", "P"),
        ("WEBP", "RGBA"), ("BMP", "RGB"), ("TIFF", "CMYK"), ("TIFF", "LAB"), ("TIFF", "YCbCr"),
    ],
)  # fmt: skip
def test_colours_stay_what_they_are(kind: str, mode: str) -> None:
    if mode == "LAB":
        from PIL import ImageCms

        profiles = (ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"))
        image = ImageCms.profileToProfile(halves(), *profiles, outputMode="LAB")
        assert isinstance(image, Image.Image)
    else:
        image = halves(mode)
    seen = zoom(written(image, kind))
    assert seen.mode in ("RGB", "RGBA")
    if mode != "LAB":  # Pillow converts it without its white point
        assert [colour(seen, 0.2), colour(seen, 0.8)] == ["red", "blue"]


@pytest.mark.parametrize("mode", ["1", "L", "LA", "I;16", "I", "F"])
def test_grey_of_any_depth_is_seen(mode: str) -> None:
    grey = Image.new("L", (64, 64), 0)
    grey.paste(255, (32, 0, 64, 64))
    if mode == "I;16":
        data = b"".join(struct.pack("<H", 65_535 if x >= 32 else 0) for _ in range(64) for x in range(64))
        grey = Image.frombytes("I;16", (64, 64), data)
    elif mode != "L":
        grey = grey.convert(mode)
    seen = zoom(written(grey, "TIFF")).convert("L")
    assert seen.getpixel((20, 200)) == 0
    assert seen.getpixel((seen.width - 20, 200)) == 255


def test_grey_of_more_than_eight_bits_is_stretched_from_its_darkest_to_its_lightest() -> None:
    data = b"".join(struct.pack("<H", 40_000 if x >= 32 else 30_000) for _ in range(64) for x in range(64))
    assert zoom(written(Image.frombytes("I;16", (64, 64), data), "TIFF")).convert("L").getextrema() == (0, 255)


@pytest.mark.parametrize(("options", "mode"), [({}, "RGB"), ({"transparency": 0}, "RGBA")])
def test_an_image_of_a_palette_keeps_its_transparency(options: dict[str, int], mode: str) -> None:
    assert zoom(written(halves("P"), **options)).mode == mode


@pytest.mark.parametrize(
    ("size", "scaled"), [((3000, 2000), (2496, 1664)), ((6400, 32), (7264, 64)), ((640, 480), (640, 480))]
)
def test_a_size_for_models_never_exceeds_the_range(size: tuple[int, int], scaled: tuple[int, int]) -> None:
    assert _size_for_models(*size) == scaled
    with pytest.raises(ToolArgumentError, match="6401 by 32 pixels, is too narrow"):
        _size_for_models(6401, 32)


def test_an_image_is_turned_as_its_file_says() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turn it to the right to see it
    seen = zoom(written(halves(), "JPEG", exif=exif))
    assert seen.height > seen.width
    assert [colour(seen, 0.5, 0.1), colour(seen, 0.5, 0.9)] == ["red", "blue"]


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_of_an_animation_the_first_frame_is_shown(kind: str) -> None:
    frames = [Image.new("RGB", (64, 64), "blue")] * 3
    content = written(Image.new("RGB", (64, 64), "red"), kind, save_all=True, append_images=frames)
    assert colour(zoom(content), 0.5) == "red"


# --- files that only seem to hold one ---


def test_nothing_is_left_of_a_file_but_its_pixels() -> None:
    """A file that is an image and an archive, with a place and a text in it."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("evil.html", "<script>alert(1)</script>")
    facts = PngImagePlugin.PngInfo()
    facts.add_text("Comment", "<script>secret place")
    content = written(halves(), "PNG", pnginfo=facts) + archive.getvalue()
    assert zipfile.is_zipfile(io.BytesIO(content))
    part = crop_and_enlarge(content, WHOLE, max_pixels=50_000_000)
    assert not zipfile.is_zipfile(io.BytesIO(part))
    assert b"script" not in part
    assert set(Image.open(io.BytesIO(part)).info) == set()


def bomb(width: int, height: int) -> bytes:
    """A PNG that says it is so large; decoding it would take what it says."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b"\0" * 10_000))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(
    "content",
    [
        bomb(50_000, 50_000),
        bomb(10_001, 10_000),  # of which Pillow only warns
        bomb(2**31 - 1, 1),
        b"GIF89a\xff\xff\xff\xff\x00\x00\x00" + written(halves(), "GIF")[13:],
        b"BM" + struct.pack("<IHHIIiiHHIIiiII", 54, 0, 0, 54, 40, 50_000, 50_000, 1, 24, 0, 0, 0, 0, 0, 0),
    ],
)
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_a_bomb_is_not_decoded(content: bytes) -> None:
    with pytest.raises(ToolServiceError, match="the limit is 50,000,000 pixels"):
        zoom(content)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "content",
    [
        b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0 no jpeg", b"GIF89a=1;alert(1)//", b"<svg/>", b"%PDF-1.7",
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", b"RIFF\x00\x00\x00\x00WEBPVP8 ", bomb(100, 100),
        written(halves(), "JPEG")[:300], written(halves(), "PNG")[:-30], b"II*\0\x08\0\0\0\xff\xff",
    ],
)  # fmt: skip
def test_what_is_not_an_image_is_an_error_that_says_so(content: bytes) -> None:
    with pytest.raises(ToolServiceError, match=r"cannot read the image: (unsupported format|the data is corrupted)"):
        zoom(content)


@pytest.mark.filterwarnings("ignore::UserWarning")
@given(
    place=st.integers(0, 400), change=st.binary(min_size=1, max_size=8), kind=st.sampled_from(["PNG", "GIF", "TIFF"])
)
def test_a_damaged_file_gives_an_image_or_an_error_for_the_model(place: int, change: bytes, kind: str) -> None:
    content = bytearray(written(halves("P" if kind == "GIF" else "RGB").resize((40, 20)), kind))
    content[place : place + len(change)] = change
    with contextlib.suppress(ToolServiceError):
        zoom(bytes(content), max_pixels=10_000)


# --- the tool ---


def test_an_image_of_a_tool_counts_and_the_part_is_kept_in_the_workspace(tmp_path: Path) -> None:
    uri = f"data:image/png;base64,{base64.b64encode(written(halves())).decode()}"
    messages = (Message("user", "?"), Message("function", [ContentItem(image=uri)], name="plot"))
    context = ToolContext(messages=messages, workspace=Workspace(tmp_path))
    arguments = {"bbox_2d": [500, 0, 1000, 1000], "label": "the right", "img_idx": 0}
    result = asyncio.run(ImageZoomIn().call(json.dumps(arguments), context=context))
    said, shown = result.content
    path = result.metadata["path"]
    assert said.text == f"the right (saved in the workspace as {path})"
    assert shown.image == f"data:image/png;base64,{base64.b64encode((tmp_path / path).read_bytes()).decode()}"
    assert colour(Image.open(tmp_path / path), 0.5) == "blue"


def test_files_of_the_conversation_and_servers_that_the_settings_allow_count(tmp_path: Path) -> None:
    (tmp_path / "sea.png").write_bytes(written(halves()))
    with WebServer() as web:
        web.put("/sea.png", WebAnswer(written(halves())))
        messages = (Message("user", [ContentItem(image=f"{web.url}/sea.png")]),)
        context = ToolContext(
            messages=messages, files=(str(tmp_path / "sea.png"),), workspace=Workspace(tmp_path / "work")
        )
        one = ImageZoomIn({"fetch_cfg": {"allow": ["127.0.0.1"]}})
        for number in (0, 1):
            arguments = {"bbox_2d": [500, 0, 1000, 1000], "label": "the right", "img_idx": number}
            result = asyncio.run(_awaited(one.call(arguments, context=context)))
            assert colour(Image.open(tmp_path / "work" / result.metadata["path"]), 0.5) == "blue"


@pytest.mark.parametrize(
    "arguments",
    [
        '{"bbox_2d": [NaN, 0, 9, 9], "label": "x", "img_idx": 0}',
        '{"bbox_2d": [0, 0, Infinity, 9], "label": "x", "img_idx": 0}',
        '{"bbox_2d": [0, 0, 1e999, 9], "label": "x", "img_idx": 0}',
        '{"bbox_2d": [0, 0, 9, 9], "label": "x", "img_idx": NaN}',
        '{"bbox_2d": [0, 0, 9, 9], "label": "x", "img_idx": -1}',
        '{"bbox_2d": [0, 0, 9, 9, 9], "label": "x", "img_idx": 0}',
        '{"bbox_2d": [0, 0, 9, 9], "label": "' + "x" * 10_000_000 + '", "img_idx": 0}',
        '{"bbox_2d": ' + "[" * 5000 + "]" * 5000 + ', "label": "x", "img_idx": 0}',
    ],
)
def test_arguments_that_are_no_box_are_refused(tmp_path: Path, arguments: str) -> None:
    uri = f"data:image/png;base64,{base64.b64encode(written(halves())).decode()}"
    context = ToolContext(messages=(Message("user", [{"image": uri}]),), workspace=Workspace(tmp_path))
    with pytest.raises(ToolArgumentError) as caught:
        asyncio.run(_awaited(ImageZoomIn().call(arguments, context=context)))
    assert len(str(caught.value)) < 2000
    assert list(tmp_path.iterdir()) == []


def test_an_agent_shows_its_model_the_part(tmp_path: Path) -> None:
    (tmp_path / "sea.png").write_bytes(written(halves()))
    arguments = {"bbox_2d": [0, 0, 500, 500], "label": "left", "img_idx": 0}
    model = ScriptedModel([calls(("image_zoom_in_tool", arguments)), answer("Red.")], facts=ModelFacts(images=True))
    agent = FnCallAgent(["image_zoom_in_tool"], model, workspace=str(tmp_path / "workspace"))
    question = [{"role": "user", "content": [{"image": str(tmp_path / "sea.png")}, {"text": "?"}]}]
    list(agent.run(question))
    result = model.requests[-1].messages[-1]
    assert result.role == "function"
    assert result.items[1].image is not None
    assert result.items[1].image.startswith("data:image/png;base64,")


@pytest.mark.parametrize(
    ("image", "said"),
    [
        ("http://127.0.0.1:9/x.png", "private network"),
        ("http://[::ffff:10.0.0.1]/x.png", "private network"),
        ("http://2130706433/x.png", "private network"),
        ("http://0177.0.0.1/x.png", "private network"),
        ("http://0x7f.1/x.png", "private network"),
        ("http://169.254.169.254/latest/x.png", "private network"),
        ("http://public.example@127.0.0.1/x.png", "user name or a password"),
        ("https://127.0.0.1\\@public.example/x.png", "cannot be fetched"),
        ("file:///etc/passwd", "expected an image"),
        ("gopher://x.example/x.png", "cannot read"),
        ("/no/such.png", "cannot read"),
    ],
)
def test_what_cannot_be_reached_is_named(image: str, said: str) -> None:
    context = ToolContext(messages=(Message("user", [{"image": image}]),))
    call = ImageZoomIn().call({"bbox_2d": [0, 0, 9, 9], "label": "x", "img_idx": 0}, context=context)
    with pytest.raises(ToolServiceError, match=said):
        asyncio.run(_awaited(call))


async def _awaited(call: Any) -> Any:
    return await call


def test_a_colour_that_the_file_calls_transparent_is_shown() -> None:
    grey = Image.new("L", (64, 64), 7)
    content = written(grey, "PNG", transparency=7, dpi=(300, 300))
    part = Image.open(io.BytesIO(crop_and_enlarge(content, WHOLE, max_pixels=50_000_000)))
    assert (part.mode, part.getpixel((5, 5)), part.info) == ("L", 7, {})


def test_an_image_of_exactly_the_largest_size_is_decoded() -> None:
    content = written(Image.new("RGB", (40, 50)), "PNG")
    assert crop_and_enlarge(content, WHOLE, max_pixels=2000)
    with pytest.raises(ToolServiceError, match="the limit is 1,999 pixels"):
        crop_and_enlarge(content, WHOLE, max_pixels=1999)


@pytest.mark.parametrize(
    ("images", "said"),
    [
        (0, "this conversation contains no images"),
        (2, "no image 2: the images in this conversation are numbered from 0 to 1"),
    ],
)
def test_an_image_that_is_not_there_is_named_with_their_number(images: int, said: str) -> None:
    uris = [
        f"data:image/png;base64,{base64.b64encode(written(halves().resize((9, number)))).decode()}" for number in (8, 9)
    ]
    context = ToolContext(messages=tuple(Message("user", [{"image": uri}]) for uri in uris[:images]))
    call = ImageZoomIn().call({"bbox_2d": [0, 0, 9, 9], "label": "x", "img_idx": 2}, context=context)
    with pytest.raises(ToolArgumentError, match=f"^{said}$"):
        asyncio.run(_awaited(call))


@pytest.mark.filterwarnings("error::PIL.Image.DecompressionBombWarning")
def test_a_bomb_is_too_large_where_warnings_are_errors() -> None:
    with pytest.raises(ToolServiceError, match="the limit is 50,000,000 pixels"):
        zoom(bomb(10_001, 10_000))


def test_the_descriptor_states_its_effects() -> None:
    (spec,) = tools()
    assert spec.effects == {"files", "network"}


def test_the_largest_image_is_that_of_the_settings() -> None:
    assert ImageZoomIn().config.max_pixels == 50_000_000
    uri = f"data:image/png;base64,{base64.b64encode(written(halves())).decode()}"
    context = ToolContext(messages=(Message("user", [{"image": uri}]),))
    call = ImageZoomIn(max_pixels=19_999).call({"bbox_2d": [0, 0, 9, 9], "label": "x", "img_idx": 0}, context=context)
    with pytest.raises(ToolServiceError, match="the limit is 19,999 pixels"):
        asyncio.run(_awaited(call))


@pytest.mark.parametrize(
    "wrong",
    [
        {"bbox_2d": [0, 0, 9]}, {"bbox_2d": [0, 0, 9, 9, 9]}, {"bbox_2d": [0, 0, 9, 1001]}, {"bbox_2d": [-1, 0, 9, 9]},
        {"label": "x" * 501}, {"img_idx": -1}, {"img_idx": 0.5}, {"more": 1},
    ],
)  # fmt: skip
def test_each_argument_has_its_bounds(wrong: dict[str, Any]) -> None:
    fits = {"bbox_2d": [0, 0, 1000, 1000], "label": "x" * 500, "img_idx": 0}
    assert ImageZoomIn().parse_arguments(fits) == fits
    with pytest.raises(ToolArgumentError, match="invalid arguments for 'image_zoom_in_tool'"):
        ImageZoomIn().parse_arguments({**fits, **wrong})
