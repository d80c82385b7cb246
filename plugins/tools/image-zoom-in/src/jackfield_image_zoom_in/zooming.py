"""Crop and enlarge images from untrusted files, within limits."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence

from PIL import Image, ImageOps

from jackfield.errors import ToolArgumentError, ToolServiceError

# Excludes formats that start other programs (EPS) and those used neither by cameras nor on the web.
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
_FACTOR = 32  # vision models divide images into squares of this size
_LEAST_PIXELS = 256 * _FACTOR**2
_MOST_PIXELS = 4096 * _FACTOR**2
_MOST_RATIO = 200  # of the longer side to the shorter one


def crop_and_enlarge(content: bytes, bbox: Sequence[float], *, max_pixels: int) -> bytes:
    """Return a region of an image as a PNG without the file's metadata. Blocks while decoding.

    The image is rotated as its metadata demands, and only the first frame of an animation is used. The region is
    widened to at least 32 pixels per side if the image is large enough, then scaled to a size that suits vision models.

    Args:
        content: The image file.
        bbox: Left, top, right and bottom of the region, each from 0 to 1000 in relation to the image size.
        max_pixels: The maximum size of the decoded image, in pixels.

    Raises:
        ToolArgumentError: The region is invalid.
        ToolServiceError: The file is not a supported image, or the image is too large.
    """
    if not all(map(math.isfinite, bbox)) or bbox[0] >= bbox[2] or bbox[1] >= bbox[3]:
        raise ToolArgumentError("bbox_2d is not a valid region: pass left, top, right, bottom, each from 0 to 1000")
    image = _decode(content, max_pixels)
    left, right = _widen(bbox[0], bbox[2], image.width)
    top, bottom = _widen(bbox[1], bbox[3], image.height)
    size = _size_for_models(right - left, bottom - top)
    written = io.BytesIO()
    part = image.crop((left, top, right, bottom)).resize(size, Image.Resampling.BICUBIC)
    part.info.clear()  # a damaged GIF keeps a transparent colour that none of its pixels has
    part.save(written, "PNG")
    return written.getvalue()


def _decode(content: bytes, max_pixels: int) -> Image.Image:
    try:
        image: Image.Image = Image.open(io.BytesIO(content), formats=_FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise _too_large(max_pixels) from error
    except Exception as error:  # decoders may raise anything on foreign bytes
        raise ToolServiceError("cannot read the image: unsupported format") from error
    if image.width * image.height > max_pixels:
        raise _too_large(max_pixels)
    try:
        image.load()
        ImageOps.exif_transpose(image, in_place=True)
        return _plain(image)
    except Exception as error:
        raise ToolServiceError("cannot read the image: the data is corrupted") from error


def _plain(image: Image.Image) -> Image.Image:
    """Convert an image to 8 bits per channel, preserving transparency."""
    if image.mode.startswith(("I", "F")):  # more than eight bits, which a conversion would truncate instead of scaling
        lowest, highest = image.getextrema()
        scale = 255 / max(1e-9, float(highest) - float(lowest))  # type: ignore[arg-type]
        return image.convert("F").point(lambda value: (value - float(lowest)) * scale).convert("L")  # type: ignore[arg-type]
    if image.mode in ("RGB", "RGBA", "L"):
        return image
    return image.convert("RGBA" if image.has_transparency_data else "RGB")


def _widen(start: float, end: float, side: int) -> tuple[int, int]:
    """Convert a range from thousandths to pixels, and widen it to at least 32 pixels, or to the whole side."""
    first, last = math.floor(start / 1000 * side), math.ceil(end / 1000 * side)
    missing = min(_FACTOR, side) - (last - first)
    if missing > 0:
        first = min(max(0, first - missing // 2), side - min(_FACTOR, side))
        last = first + min(_FACTOR, side)
    return first, last


def _size_for_models(width: int, height: int) -> tuple[int, int]:
    """Return a size in multiples of 32 with about the same aspect ratio, within the range suited to vision models.

    Source: `smart_resize` of Qwen's vision models.
    """
    if max(width, height) > _MOST_RATIO * min(width, height):
        raise ToolArgumentError(
            f"the selected part, {width} by {height} pixels, is too narrow: choose a part closer to a square"
        )
    if width * height > _MOST_PIXELS:
        return _scale(width, height, _MOST_PIXELS, math.floor)
    if _round_to_32(width) * _round_to_32(height) < _LEAST_PIXELS:
        return _scale(width, height, _LEAST_PIXELS, math.ceil)
    return _round_to_32(width), _round_to_32(height)


def _scale(width: int, height: int, pixels: int, to_whole: Callable[[float], int]) -> tuple[int, int]:
    squares = math.sqrt(pixels / (width * height)) / _FACTOR
    return max(1, to_whole(width * squares)) * _FACTOR, max(1, to_whole(height * squares)) * _FACTOR


def _round_to_32(side: int) -> int:
    return max(_FACTOR, round(side / _FACTOR) * _FACTOR)


def _too_large(max_pixels: int) -> ToolServiceError:
    return ToolServiceError(f"the image is too large: the limit is {max_pixels:,} pixels")
