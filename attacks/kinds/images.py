"""Files that are not images, lie about themselves, or are damaged, given to the tool that shows parts of images."""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Iterator
from functools import partial

from PIL import Image

from attacks.kind import Attempt, Kind, law
from jackfield.errors import ToolServiceError
from jackfield_image_zoom_in.zooming import crop_and_enlarge

MOST_PIXELS = 2_000_000
TRIES = 40
KINDS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "I", "F")
SIZES = (0, 1, 31, 255, 256, 32_767, 50_000, 65_535, 2**31 - 1)
CUTS = (0, 1, 8, 16, 64, 300)


def attempts(dice: random.Random) -> Iterator[Attempt]:
    """Yield images of every format and mode, intact and damaged in a few ways, without end."""
    while True:
        for kind in KINDS:
            seed = dice.randrange(2**32)
            yield Attempt(f"damaged {kind} (seed {seed})", partial(_damaged, kind, seed), counts=TRIES)


def _damaged(kind: str, seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(TRIES):
        content = bytearray(_image(kind, dice))
        for _ in range(dice.randrange(4)):
            _damage(content, dice)
        _look_at(bytes(content), [dice.uniform(0, 1000) for _ in range(4)])


def _image(kind: str, dice: random.Random) -> bytes:
    """Return a small image in a random mode, or in RGB if the format lacks that mode. Some have several frames."""
    size = (dice.randint(1, 80), dice.randint(1, 80))
    options = {"save_all": True, "append_images": [Image.new("RGB", size)] * dice.randint(1, 3)}
    written = io.BytesIO()
    try:
        Image.new(dice.choice(MODES), size).save(written, kind, **(options if dice.random() < 0.3 else {}))
    except (OSError, ValueError, KeyError):
        written = io.BytesIO()
        Image.new("RGB", size).save(written, kind)
    return written.getvalue()


def _damage(content: bytearray, dice: random.Random) -> None:
    """Change bytes or sizes, cut off the end, or add surplus bytes."""
    place = dice.randrange(max(1, min(len(content), dice.choice((30, 400, 100_000)))))
    match dice.randrange(5):
        case 0:
            content[place : place + 1] = dice.randbytes(dice.randint(0, 4))
        case 1:
            content[place : place + 4] = struct.pack(dice.choice("<>") + "I", dice.choice(SIZES))
        case 2:
            del content[len(content) - dice.choice(CUTS) :]
        case 3:
            content += dice.randbytes(dice.choice(CUTS))
        case _:
            content[place:place] = content[: dice.choice(CUTS)]


def _look_at(content: bytes, bbox: list[float]) -> None:
    try:
        part = crop_and_enlarge(content, bbox, max_pixels=MOST_PIXELS)
    except ToolServiceError as error:
        law(str(error).strip(), "an error says nothing")
        return
    with Image.open(io.BytesIO(part)) as shown:
        law(shown.format == "PNG" and not shown.info, f"a part has more than its pixels: {list(shown.info)}")
        law(shown.width * shown.height < 1.2 * 4096 * 1024, f"a part has {shown.size} pixels")


KIND = Kind(
    "Any image is displayed only as pixels, or an error gives the reason, in bounded memory.",
    attempts,
    memory_mb=600,
)
