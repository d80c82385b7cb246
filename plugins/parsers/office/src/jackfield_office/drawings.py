"""Charts and diagrams in office files: their texts, and the data of charts as tables."""

from __future__ import annotations

from collections.abc import Iterator

from jackfield.retrieval import Block
from jackfield_documents import pipe_table
from jackfield_markup import Element
from jackfield_office.package import Package

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_UNREAD_KINDS = {"chartEx": "Chart of a kind that is not read"}


def drawings_of(package: Package, part: str, *, page: int | None = None) -> Iterator[Block]:
    """Yield the charts and diagrams that a part refers to, as blocks.

    A chart is a line with its title, and a table with a column for each series. A chart that cannot be read is named.
    """
    for relation in package.relations(part).values():
        if relation.kind in _UNREAD_KINDS:
            yield Block(f"({_UNREAD_KINDS[relation.kind]})", page=page)
        elif relation.target in package.names and not relation.is_external:
            if relation.kind == "chart":
                yield from _chart(package.part(relation.target), page)
            elif relation.kind == "diagramData":
                yield from _diagram(package.part(relation.target), page)


def _chart(root: Element, page: int | None) -> Iterator[Block]:
    title = root.find(f"{_C}chart/{_C}title")
    parts = () if title is None else title.iter(_A + "t", _C + "v")
    text = " ".join("".join(part.text or "" for part in parts).split())
    yield Block(f"Chart: {text}" if text else "Chart", page=page)
    series = list(root.iter(_C + "ser"))
    for table in [_table(series)] if _share_categories(series) else [_table([one]) for one in series]:
        if table:
            yield Block(table, kind="table", page=page)


def _share_categories(series: list[Element]) -> bool:
    """Return False for charts of points, in which each series has x values of its own."""
    return all(one.find(_C + "xVal") is None for one in series)


def _table(series: list[Element]) -> str:
    labels: dict[str, str] = {}
    columns: list[dict[str, str]] = []
    for one in series:
        labels = _points(one, "cat", "xVal") | labels
        columns.append(_points(one, "val", "yVal"))
    places = dict.fromkeys(place for column in (labels, *columns) for place in column)
    header = ["", *(_name(one) for one in series)]
    rows = [[labels.get(place, ""), *(column.get(place, "") for column in columns)] for place in places]
    return pipe_table([header, *rows]) if rows else ""


def _name(series: Element) -> str:
    name = series.find(_C + "tx")
    return "" if name is None else "".join(node.text or "" for node in name.iter(_C + "v"))


def _points(series: Element, *names: str) -> dict[str, str]:
    """Return the values of a series by their indexes, as the file has kept them; of labels in levels, the lowest."""
    for name in names:
        data = series.find(_C + name)
        if data is not None:
            level = next(data.iter(_C + "lvl"), data)
            return {point.get("idx", ""): point.findtext(_C + "v", "") for point in level.iter(_C + "pt")}
    return {}


def _diagram(root: Element, page: int | None) -> Iterator[Block]:
    texts = ["".join(node.text or "" for node in one.iter(_A + "t")).strip() for one in root.iter(_A + "p")]
    if lines := [f"- {text}" for text in texts if text]:
        yield Block("\n".join(lines), kind="list", page=page)
