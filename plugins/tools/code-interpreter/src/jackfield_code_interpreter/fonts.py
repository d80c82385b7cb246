"""Fonts for plots with Chinese text, which matplotlib's bundled fonts cannot render."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

FOLDERS = tuple(map(Path, ("/usr/share/fonts", "/usr/local/share/fonts", "/Library/Fonts", "/System/Library/Fonts")))

# Prefix of the font's file name: name of the first font in the file, which is the name that matplotlib uses.
_FAMILIES = {
    "NotoSansCJKsc": "Noto Sans CJK SC",
    "NotoSansCJK-": "Noto Sans CJK JP",
    "NotoSansSC": "Noto Sans SC",
    "SourceHanSansSC": "Source Han Sans SC",
    "SourceHanSansCN": "Source Han Sans CN",
    "wqy-microhei": "WenQuanYi Micro Hei",
    "wqy-zenhei": "WenQuanYi Zen Hei",
    "DroidSansFallback": "Droid Sans Fallback",
    "PingFang": "PingFang HK",
    "Hiragino Sans GB": "Hiragino Sans GB",
    "STHeiti": "Heiti TC",
    "simhei": "SimHei",
    "SimHei": "SimHei",
    "msyh": "Microsoft YaHei",
    "uming": "AR PL UMing CN",
}


def write_matplotlibrc(folder: Path) -> None:
    """Configure matplotlib to render Chinese if the machine has a suitable font. Other text keeps the default font."""
    families = chinese_families(FOLDERS)
    if not families:
        return
    folder.mkdir(parents=True, exist_ok=True)
    # Each character uses the first font that has it.
    (folder / "matplotlibrc").write_text(f"font.family: {', '.join(['DejaVu Sans', *families])}\n", encoding="utf-8")


@cache
def chinese_families(folders: Sequence[Path]) -> tuple[str, ...]:
    """Return the preferred Chinese font family installed in these folders, as a tuple of one; () if there is none."""
    files = [file.name for folder in folders for file in folder.rglob("*.[to]t[fc]")]
    for start, family in _FAMILIES.items():
        if any(name.startswith(start) for name in files):
            return (family,)
    return ()
