"""Extract charts and diagrams from office files: their text, and chart data as tables."""

from __future__ import annotations

from collections.abc import Iterator

from jackfield.retrieval import Block
from jackfield_documents import pipe_table
from jackfield_markup import Element
from jackfield_office.package import Package

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_KINDS = {"chart": "a chart", "chartEx": "a chart", "diagramData": "a diagram"}
_AXES = ("catAx", "valAx", "dateAx", "serAx")


def drawings_of(package: Package, part: str, *, page: int | None = None) -> Iterator[Block]:
    """Yield blocks for the charts and diagrams that a part refers to.

    A chart becomes a line with its titles and a table with a column per series. Unreadable drawings are listed in
    `package.unread`.
    """
    for kind, root in _drawings(package, part, page):
        if kind == "chart":
            yield Block(_titles(root), page=page)
            yield from _data(root, page)
        else:
            yield from _texts(kind, root, page)


def drawings_of_sheet(package: Package, sheet: str, *, page: int) -> Iterator[Block]:
    """Yield blocks for the charts, diagrams and text boxes of a sheet.

    A chart becomes a line with its titles and the cell ranges of its data.
    """
    for relation in package.relations(sheet).values():
        if relation.kind != "drawing":
            continue
        root = package.part_or_none(relation.target, f"the drawings of sheet {page}")
        for shape in () if root is None else root.iter("{*}sp"):
            if texts := _paragraphs(shape):
                yield Block("\n".join(texts), page=page)
        for kind, drawing in _drawings(package, relation.target, page):
            if kind == "chart":
                cells = ", ".join(dict.fromkeys(node.text for node in drawing.iter(_C + "f") if node.text))
                yield Block(f"{_titles(drawing)} (of {cells})" if cells else _titles(drawing), page=page)
            else:
                yield from _texts(kind, drawing, page)


def _drawings(package: Package, part: str, page: int | None) -> Iterator[tuple[str, Element]]:
    """Yield the kind and XML tree of each readable chart and diagram."""
    for relation in package.relations(part).values():
        if relation.kind in _KINDS and not relation.is_external:
            where = "" if page is None else f" on page {page}"
            root = package.part_or_none(relation.target, f"{_KINDS[relation.kind]}{where}")
            if root is not None:
                yield relation.kind, root


def _titles(root: Element) -> str:
    """Return a chart's titles as `Chart: Title (Axis, Axis)`."""
    title = _title(root.find(f"{_C}chart/{_C}title"))
    axes = [_title(axis.find(_C + "title")) for axis in root.iter(*(_C + kind for kind in _AXES))]
    names = ", ".join(filter(None, axes))
    return "Chart" + (f": {title}" if title else "") + (f" ({names})" if names else "")


def _title(title: Element | None) -> str:
    parts = () if title is None else title.iter(_A + "t", _C + "v")
    return " ".join("".join(part.text or "" for part in parts).split())


def _data(root: Element, page: int | None) -> Iterator[Block]:
    series = list(root.iter(_C + "ser"))
    for table in [_table(series)] if _share_categories(series) else [_table([one]) for one in series]:
        if table:
            yield Block(table, kind="table", page=page)


def _share_categories(series: list[Element]) -> bool:
    """Return False for scatter charts, where each series has its own x values."""
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
    """Return the cached values of a series by index. For multi-level labels, only the lowest level is used."""
    for name in names:
        data = series.find(_C + name)
        if data is not None:
            level = next(data.iter(_C + "lvl"), data)
            return {point.get("idx", ""): point.findtext(_C + "v", "") for point in level.iter(_C + "pt")}
    return {}


def _texts(kind: str, root: Element, page: int | None) -> Iterator[Block]:
    """Yield the text of a diagram, or of a new-style chart (waterfall, treemap) whose data is not supported."""
    texts = _paragraphs(root)
    if kind == "chartEx":
        yield Block(f"Chart: {', '.join(texts)} (unsupported kind of data)", page=page)
    elif texts:
        yield Block("\n".join(f"- {text}" for text in texts), kind="list", page=page)


def _paragraphs(root: Element) -> list[str]:
    texts = ("".join(node.text or "" for node in one.iter(_A + "t")).strip() for one in root.iter(_A + "p"))
    return [text for text in texts if text]
