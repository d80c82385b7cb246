"""Chunks, cuts, encodings, archives and parts at their limits, and in their order."""

from __future__ import annotations

import codecs
import io
import zipfile
from pathlib import Path

import pytest

from jackfield.errors import DocParserError, ToolArgumentError
from jackfield.retrieval import Block, Chunk, Document, Part
from jackfield.tools import Workspace
from jackfield_documents import Archive, chunk_document, corpus_of, decode
from jackfield_documents.cutting import cut_and_count, cut_to_fit, tail_from_a_sentence
from jackfield_documents.decoding import _detect, _detect_chinese_or_korean, _detect_short_latin, _is_of_pairs
from jackfield_documents.encodings import as_marked_utf8, codec_of
from jackfield_documents.naming import file_meant
from jackfield_documents.parts import PartBudget, _runs
from jackfield_documents.places import cells_of, headings_in_part, places_of
from jackfield_documents.tables import pipe_table
from jackfield_documents.wholes import asks_for_whole, outline_of, overview


def cut(*blocks: Block, size: int, overlap: int = 0, title: str = "") -> list[Chunk]:
    """The chunks of a document, in which each character is a token."""
    document = Document("a.txt", blocks, "h", title=title)
    return chunk_document(document, size_tokens=size, overlap_chars=overlap, count_tokens=len)


def texts(chunks: list[Chunk]) -> list[str]:
    return [chunk.text for chunk in chunks]


# --- chunks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "is_repeated"), [(45, True), (44, False)])
def test_a_table_header_is_repeated_if_it_takes_no_more_than_a_third(size: int, is_repeated: bool) -> None:
    header = "| aaaaa |\n|---|"  # fifteen characters, with the line end sixteen
    table = f"{header[:-1]}\n" + "\n".join(f"| {n:04} |" for n in range(20))
    assert len(f"{header[:-1]}\n") == 15
    chunks = cut(Block(table, kind="table"), size=size)
    assert len(chunks) > 3
    assert all(chunk.text.startswith(header[:-1]) == is_repeated for chunk in chunks[1:])


@pytest.mark.parametrize("kind", ["table", "code"])
def test_tables_and_code_are_cut_between_lines(kind: str) -> None:
    lines = [f"{n:02} one two, three" for n in range(12)]
    for chunk in cut(Block("\n".join(lines), kind=kind), size=60):  # type: ignore[arg-type]
        assert set(chunk.text.strip().split("\n")) <= set(lines)


def test_the_first_part_of_a_table_does_not_repeat_its_header() -> None:
    table = "| aaaaa |\n|---|\n" + "\n".join(f"| {n:04} |" for n in range(20))
    chunks = cut(Block("x" * 49), Block(table, kind="table"), size=50)
    assert [chunk.text.count("aaaaa") for chunk in chunks] == [0, *[1] * (len(chunks) - 1)]
    assert chunks[1].overlap == 0


def test_values_that_are_given_replace_those_that_the_file_states() -> None:
    document = Document("a.txt", (Block("b"),), "h", metadata={"author": "Ada"})
    assert chunk_document(document)[0].metadata == {"author": "Ada"}
    assert chunk_document(document, metadata={"team": "x"})[0].metadata == {"team": "x"}
    assert chunk_document(document, metadata={})[0].metadata == {}


@pytest.mark.parametrize(("kind", "end"), [("paragraph", " "), ("list", " "), ("table", "a"), ("code", "a")])
def test_a_line_that_is_too_long_is_cut_after_a_word_in_prose_only(kind: str, end: str) -> None:
    chunks = cut(Block("aaaaaaaaa " * 30, kind=kind), size=74)  # type: ignore[arg-type]
    assert chunks[0].text[-1] == end


@pytest.mark.parametrize(
    ("first", "second", "is_repeated"),
    [
        (Block("One. Two."), Block("Three and four."), True),
        (Block("- One. Two.", kind="list"), Block("- Three.", kind="list"), True),
        (Block("One. Two."), Block("- Three.", kind="list"), True),
        (Block("x = 1. y", kind="code"), Block("Three and four."), False),
        (Block("One. Two."), Block("z = 3; w = 4", kind="code"), False),
        (Block("One. Two."), Block("Three and four.", kind="heading", level=1), False),
        (Block("One. Two.", page=1), Block("Three and four.", page=1), True),
        (Block("One. Two.", page=1), Block("Three and four.", page=2), False),
    ],
)
def test_the_end_of_prose_is_repeated_in_the_next_chunk_of_its_page(
    first: Block, second: Block, is_repeated: bool
) -> None:
    lead = Block("x" * 30, page=first.page)
    room = 10 if first.page else 0
    size = 30 + 2 + len(first.text) + 2 + len(second.text) - 1 + room
    chunks = cut(lead, first, second, size=size, overlap=6)
    assert len(chunks) == 2
    shown = chunks[1].text.removeprefix(f"[page: {second.page}]\n").removeprefix("# ")
    assert shown.startswith("Two." if is_repeated else second.text)
    assert (chunks[1].overlap > 0) == is_repeated


def test_only_the_text_that_the_previous_chunk_added_is_repeated() -> None:
    first, second, third = "a " * 47 + "a", "Twenty characters it", "c " * 14 + "cc"
    chunks = cut(Block(first), Block(second), Block(third), size=100, overlap=80)
    assert [len(chunk.text) > chunk.overlap > 0 for chunk in chunks] == [False, True, True]
    assert chunks[2].text == f"{second}\n\n{third}"


def test_chunks_of_two_files_in_one_are_apart_even_without_headings_between() -> None:
    blocks = (Block("a"), Block("b", part="b"), Block("c", part="b › c"), Block("d", part="d"), Block("e", part="d"))
    assert [(chunk.part, chunk.text) for chunk in cut(*blocks, size=100)] == [
        ("", "a"), ("b", "b"), ("b › c", "c"), ("d", "d\n\ne"),
    ]  # fmt: skip


@pytest.mark.parametrize("white", [" " * 200, "\n" * 90 + " " * 90])
def test_long_white_space_within_a_text_is_kept_where_chunks_are_joined(white: str) -> None:
    text = f"{'a' * 30}{white}{'b' * 30}"
    chunks = cut(Block(text), size=40)
    assert len(chunks) > 1
    assert "".join(f"{chunk.joint or ''}{chunk.text}" for chunk in chunks) == text


def test_a_corpus_is_counted_as_its_chunks_are() -> None:
    documents = [Document(name, (Block("word " * 40),), "h") for name in "ab"]
    corpus = corpus_of(documents, size_tokens=50, overlap_chars=0, count_tokens=len)
    chunks = [chunk for one in documents for chunk in cut(*one.blocks, size=50)]
    assert [(chunk.text, chunk.tokens) for chunk in corpus.chunks] == [(chunk.text, chunk.tokens) for chunk in chunks]
    assert [chunk.source for chunk in corpus.chunks] == sorted(chunk.source for chunk in corpus.chunks)


def test_headings_that_follow_each_other_stay_together_with_their_text() -> None:
    blocks = (
        Block("x" * 20),
        Block("One", kind="heading", level=1),
        Block("Two", kind="heading", level=2),
        Block("y" * 12),
    )
    chunks = cut(*blocks, size=44)
    assert [chunk.text.split("\n")[0] for chunk in chunks] == ["x" * 20, "# One"]
    assert chunks[1].text == "# One\n\n## Two\n\n" + "y" * 12


@pytest.mark.parametrize(("length", "count"), [(24, 1), (25, 1), (26, 2)])
def test_a_heading_opens_a_chunk_if_the_current_one_is_more_than_half_full(length: int, count: int) -> None:
    blocks = (Block("x" * (length - 1)), Block("A", kind="heading", level=1), Block("y"))
    assert len(cut(*blocks, size=50)) == count


@pytest.mark.parametrize(("level", "marks"), [(0, ""), (1, "# "), (6, "###### "), (7, "###### "), (9, "###### ")])
def test_a_heading_has_at_most_six_marks(level: int, marks: str) -> None:
    assert texts(cut(Block("A", kind="heading", level=level), size=50)) == [f"{marks}A"]


def test_the_id_of_a_chunk_has_all_that_is_shown_of_it() -> None:
    body, heading = Block("b"), Block("h", kind="heading", level=1)
    one, titled = cut(body, size=50), cut(body, size=50, title="t")
    ids = {one[0].id, titled[0].id, cut(Block("c"), size=50)[0].id, cut(heading, Block("x" * 60), size=40)[-1].id}
    ids.add(chunk_document(Document("b.txt", (body,), "h"), size_tokens=50, count_tokens=len)[0].id)
    ids |= {chunk.id for chunk in cut(Block("same " * 20), size=10)}
    assert len(ids) == 5 + len(cut(Block("same " * 20), size=10))


# --- cuts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [*"，、：,;:", " ", "\t", ", "])
def test_a_text_is_cut_after_a_word(sign: str) -> None:
    assert next(iter(cut_to_fit("a" * 20 + sign + "b" * 20, 22, len))) == "a" * 20 + sign


@pytest.mark.parametrize(
    "end", [". ", "! ", "? ", "… ", '." ', ".) ", "?! ", "。", "！", "？", "；", "。」", "\n", ".”\n"]
)
def test_a_text_is_cut_after_a_sentence_rather_than_a_word(end: str) -> None:
    head = "a" * (40 - len(end)) + end
    assert next(iter(cut_to_fit(f"{head}b c d e f", 43, len))) == head


@pytest.mark.parametrize(("before", "length"), [(85, 85), (84, 98)])
def test_a_boundary_is_used_if_the_part_fills_85_percent(before: int, length: int) -> None:
    text = "a" * (before - 1) + " " + "b" * 100
    assert len(next(iter(cut_to_fit(text, 100, len)))) == length


@pytest.mark.parametrize(
    ("text", "chars", "tail"),
    [
        ("abc", 3, "abc"), ("abcd", 3, "bcd"), ("One. Two.", 6, "Two."), ("one: two", 6, " two"),
        ("aa. bbbbb", 6, "bbbbb"),        ("aaaa. b", 4, "a. b"), ("ab cde ", 3, "de "), ("abcd efg. ", 5, "efg. "),
    ],
)  # fmt: skip
def test_the_end_of_a_text_begins_with_a_sentence_or_a_word(text: str, chars: int, tail: str) -> None:
    assert tail_from_a_sentence(text, chars) == tail


def test_a_character_that_is_too_long_is_a_part_with_all_of_its_tokens() -> None:
    assert list(cut_and_count("ab", 1, lambda text: 5 * len(text))) == [("a", 5), ("b", 5)]


# --- encodings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mark", "codec", "name"),
    [
        (codecs.BOM_UTF8, "utf-8", "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16-le", "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16-be", "utf-16"), (codecs.BOM_UTF32_LE, "utf-32-le", "utf-32"),
        (codecs.BOM_UTF32_BE, "utf-32-be", "utf-32"),
    ],
)  # fmt: skip
def test_a_mark_at_the_beginning_names_the_encoding(mark: bytes, codec: str, name: str) -> None:
    decoded = decode(mark + "größe 数据".encode(codec), source="x")
    assert (decoded.text, decoded.encoding) == ("größe 数据", name)
    with pytest.raises(DocParserError, match=r"^x (cannot be read: unknown encoding|is empty|contains binary)"):
        decode(mark, source="x")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\x1a", "a"),
        (b"a\x1a\x1a", "a"),
        (b"a\r\r\nb\rc", "a\n\nb\nc"),
        (b"a\x0cb\x08c\x1b[0m\td", "a\x0cb\x08c\x1b[0m\td"),
    ],
)
def test_what_a_text_may_have_beside_letters(data: bytes, text: str) -> None:
    assert decode(data, source="x").text == text


@pytest.mark.parametrize("control", ["\x01", "\x07", "\x0b", "\x0e", "\x19", "\x1c", "\x1f", "\x7f"])
def test_one_control_character_in_a_hundred_is_allowed(control: str) -> None:
    assert decode(("a" * 99 + control).encode(), source="x").text == "a" * 99 + control
    with pytest.raises(DocParserError, match=r"^x contains binary data"):
        decode(("a" * 98 + control).encode(), source="x")


def test_zeros_are_left_out_of_a_text_and_make_unknown_bytes_binary() -> None:
    assert decode(b"a" * 150 + b"\0" + b"b" * 50, source="x").text == "a" * 150 + "b" * 50
    with pytest.raises(DocParserError, match=r"^x contains binary data, not text"):
        decode(b"\xff\xfd\0\x81\x8d" * 9, source="x")
    with pytest.raises(DocParserError, match=r"^x cannot be read: unknown encoding"):
        decode(codecs.BOM_UTF8 + b"\xff", source="x")


def test_a_text_of_white_space_is_empty() -> None:
    for data in (b"", b" \n\t", "\u3000".encode()):
        with pytest.raises(DocParserError, match=r"^x is empty or contains only whitespace"):
            decode(data, source="x")


@pytest.mark.parametrize(("count", "encoding"), [(19, "gb18030"), (20, "cp949")])
def test_korean_needs_twenty_syllables(count: int, encoding: str) -> None:
    assert _detect(("한" * count).encode("cp949")) == encoding


@pytest.mark.parametrize(("kana", "codec"), [(1, "gb18030"), (2, "gb18030"), (3, None)])
def test_more_than_a_tenth_of_kana_is_japanese(kana: int, codec: str | None) -> None:
    assert _detect_chinese_or_korean(("漢" * (20 - kana) + "か" * kana).encode("euc_jp")) == codec


@pytest.mark.parametrize(("odd", "are_pairs"), [(1, True), (2, False)])
def test_nine_of_ten_runs_of_characters_are_pairs(odd: int, are_pairs: bool) -> None:
    runs = [b"\xc4\xe3"] * (10 - odd) + [b"\xe9"] * odd
    assert _is_of_pairs(b" ".join(runs), is_all=True) is are_pairs
    cut_off = b" ".join([*runs[odd - 1 :], b"\xc4"])  # the sample ends within a character
    assert _is_of_pairs(cut_off, is_all=False) is are_pairs


def test_padding_does_not_make_another_encoding() -> None:
    for count in (1, 2, 3):
        assert decode(b"a" + bytes(count), source="x").encoding == "utf-8"


@pytest.mark.parametrize(("count", "is_latin"), [(8, True), (9, False)])
def test_few_accents_are_western_european(count: int, is_latin: bool) -> None:
    data = ("caf\xe9 " * count).encode("latin-1")
    assert (_detect_short_latin(data) == "cp1252") == is_latin


@pytest.mark.parametrize(
    ("label", "codec"),
    [
        ("gbk", "gb18030"), ("gb2312", "gb18030"), ("gb18030", "gb18030"), ("latin1", "cp1252"), ("UTF8", "utf-8"),
        ("replacement", None), ("iso-2022-kr", None), ("x-user-defined", None), ("punycode", None), ("ütf-8", None),
    ],
)  # fmt: skip
def test_labels_are_those_of_browsers(label: str, codec: str | None) -> None:
    assert codec_of(label) == codec


def test_bytes_that_are_not_of_an_encoding_are_replaced() -> None:
    assert as_marked_utf8(b"a\xffb", "utf-8") == codecs.BOM_UTF8 + "a\ufffdb".encode()
    assert as_marked_utf8(b"gr\xf6\xdfe", "cp1252") == codecs.BOM_UTF8 + "größe".encode()


# --- tables and places ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "table"),
    [
        ([["a", "b"], ["c"]], "| a | b |\n|---|---|\n| c |"),
        ([["a"], ["b", "c", ""]], "| a |  |\n|---|---|\n| b | c |"),
        ([["", "a"], ["b"], ["", "c"]], "|  | a |\n|---|---|\n| b |\n|  | c |"),
        ([["a\r b"]], "| a<br>b |\n|---|"),
        ([["a\rb\n\n c\u2028d"]], "| a<br>b<br>c<br>d |\n|---|"),
        ([[" a\\|b "]], "| a\\\\|b |\n|---|"),
    ],
)
def test_a_table_keeps_its_columns_and_drops_empty_lines(rows: list[list[str]], table: str) -> None:
    assert pipe_table(rows) == table


def test_cells_are_read_as_they_were_written() -> None:
    rows = [["a|b", "c"], ["d\ne", "f"]]
    assert cells_of(Block(pipe_table(rows), kind="table")) == rows
    assert cells_of(Block("| a |\n|---|", kind="paragraph")) == []


@pytest.mark.parametrize(
    ("table", "cells"),
    [
        ("||a|\n|---|---|\n|b||", [["", "a"], ["b", ""]]),
        (" | a | b | \n|---|---|\n| c \\| d | e |", [["a", "b"], ["c | d", "e"]]),
        ("a | b\n---|---\nc | d", [["a", "b"], ["c", "d"]]),
    ],
)
def test_cells_of_a_table_that_another_program_wrote_are_read(table: str, cells: list[list[str]]) -> None:
    assert cells_of(Block(table, kind="table")) == cells


@pytest.mark.parametrize("level", [-1, 0, 1])
def test_a_heading_without_a_level_is_of_the_first(level: int) -> None:
    blocks = [Block("a", kind="heading", level=level), Block("b", kind="heading", level=1), Block("c")]
    assert [place.headings for place in places_of(Document("x", tuple(blocks), ""))] == [("a",), ("b",), ("b",)]


@pytest.mark.parametrize(
    ("headings", "own"),
    [(("a.zip", "b.md", "One"), ("One",)), (("One", "Two"), ("One", "Two")), (("a.zip", "One", "Two"), None), ((), ())],
)
def test_headings_of_a_part_are_those_below_its_names(headings: tuple[str, ...], own: tuple[str, ...] | None) -> None:
    chunk = Chunk("1", "a.zip", "text", 0, 1, headings=headings, part="a.zip › b.md")
    assert headings_in_part(chunk) == (headings if own is None else own)


def test_headings_of_deep_levels_replace_each_other_and_are_cut() -> None:
    blocks = [
        Block(name, kind="heading", level=level) for name, level in (("a", 0), ("b", 9), ("c", 12), ("d" * 201, 2))
    ]
    places = list(places_of(Document("x", (Block("z", page=3), *blocks, Block(" "), Block("e")), "")))
    assert [place.headings for place in places] == [
        (), ("a",), ("a", "b"), ("a", "c"), ("a", "d" * 200), ("a", "d" * 200)
    ]  # fmt: skip
    assert [place.start for place in places] == [0, 3, 6, 9, 12, 215]
    assert {place.page for place in places} == {3}


# --- archives ---------------------------------------------------------------------------------------------------------


def zipped(**files: bytes) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return data.getvalue()


def test_one_encrypted_file_makes_an_archive_encrypted() -> None:
    data = bytearray(zipped(a=b"tea", b=b"time"))
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(DocParserError, match=r"^x is encrypted: save it without a password"):
        Archive(bytes(data), source="x")


@pytest.mark.parametrize(
    ("ratio", "size", "is_read"), [(1, 16 * 2**20, True), (1, 16 * 2**20 + 1, False), (2000, 17 * 2**20, True)]
)
def test_sixteen_mebibytes_are_read_whatever_the_ratio(ratio: int, size: int, is_read: bool) -> None:
    data = zipped(a=bytes(size))
    if is_read:
        assert Archive(data, source="x", max_ratio=ratio).names == {"a": size}
    else:
        with pytest.raises(DocParserError, match=r"^x cannot be read: it decompresses to 16 MiB"):
            Archive(data, source="x", max_ratio=ratio)


@pytest.mark.parametrize("offset", [8, 5000, 10**6])
def test_an_office_file_with_a_password_is_encrypted_wherever_it_says_so(offset: int) -> None:
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".ljust(offset, b"\0")
    with pytest.raises(DocParserError, match=r"^x is encrypted: save it without a password"):
        Archive(head + "EncryptedPackage".encode("utf-16-le") + bytes(100), source="x")
    with pytest.raises(DocParserError, match=r"^x is in the format of Office before 2007"):
        Archive(head + bytes(100), source="x")


def test_an_archive_holds_as_many_files_as_allowed() -> None:
    data = zipped(a=b"", b=b"")
    assert len(Archive(data, source="x", max_entries=2).names) == 2
    with pytest.raises(DocParserError, match=r"^x cannot be read: it contains more than 1 files"):
        Archive(data, source="x", max_entries=1)


def test_a_file_may_have_more_in_its_header_than_its_name() -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        entry = zipfile.ZipInfo("a")
        entry.extra = b"\x99\x99\x04\x00more"
        archive.writestr(entry, b"tea")
    assert Archive(data.getvalue(), source="x").read("a") == b"tea"


def test_far_too_many_entries_are_refused_before_the_list_is_read() -> None:
    with pytest.raises(DocParserError, match=r"^x cannot be read: it contains more than 1 files"):
        Archive(b"PK\x01\x02" * 3, source="x", max_entries=1)
    with pytest.raises(DocParserError, match=r"^x is corrupted or truncated"):
        Archive(b"PK\x01\x02" * 2, source="x", max_entries=1)


def test_one_file_that_is_packed_in_another_way_is_enough_to_refuse() -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, method in (("a", zipfile.ZIP_STORED), ("b", zipfile.ZIP_BZIP2)):
            archive.writestr(zipfile.ZipInfo(name), b"tea", method)
    with pytest.raises(DocParserError, match=r"^x cannot be read: unsupported compression method"):
        Archive(data.getvalue(), source="x")


# --- files in files ---------------------------------------------------------------------------------------------------


def spend(budget: PartBudget, *sizes: int) -> None:
    for size in sizes:
        budget.spend(Part("a", bytes(size)), "a")


def test_budgets_allow_as_much_as_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    from jackfield_documents import parts

    monkeypatch.setattr(parts, "MAX_FILES", 2)
    monkeypatch.setattr(parts, "MAX_BYTES", 10)
    spend(PartBudget(60), 4, 6)
    for sizes, reason in (((1, 1, 1), "only the first 2 files"), ((4, 7), "only the first 0 MiB")):
        with pytest.raises(DocParserError, match=rf"^a was not read: {reason}"):
            spend(PartBudget(60), *sizes)
    third = PartBudget(60).deeper().deeper()
    spend(third, 1)
    with pytest.raises(DocParserError, match=r"^a was not read: nested more than 3 levels deep"):
        spend(third.deeper(), 1)


def test_pages_without_text_are_named_together_if_they_follow_each_other_for_one_reason() -> None:
    assert _runs([(1, "a"), (2, "a"), (3, "b"), (5, "b"), (6, "b")]) == [[1, 2], [3], [5, 6]]


@pytest.mark.parametrize(("count", "end"), [(50, "49)"), (51, "49 and 1 more)"), (1051, "49 and 1,001 more)")])
def test_fifty_files_without_a_parser_are_named(monkeypatch: pytest.MonkeyPatch, count: int, end: str) -> None:
    from jackfield_documents import parts

    def read(part: Part) -> Document:
        raise parts.NoParserError(part.name)

    monkeypatch.setattr(parts, "MAX_FILES", 2000)
    document = Document("x", (), "", parts=tuple(Part(str(number), b"a") for number in range(count)))
    assert parts.with_parts(document, read, PartBudget(60)).blocks[-1].text.endswith(f", {end}")


# --- names and wholes -------------------------------------------------------------------------------------------------


def test_a_file_is_named_by_its_path_its_name_or_a_path_in_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("x")
    (tmp_path / "folder").mkdir()
    workspace = Workspace(tmp_path)
    files = ["/a/one.txt", "/b/one.txt", "/b/two.txt"]
    assert file_meant("/b/one.txt", files, workspace) == "/b/one.txt"
    assert file_meant("two.txt", files, workspace) == "/b/two.txt"
    assert file_meant("own.txt", files, workspace) == str(tmp_path / "own.txt")
    with pytest.raises(ToolArgumentError, match=r"2 documents are named 'one.txt': say which"):
        file_meant("one.txt", files, workspace, if_several="say which")
    for name in ("gone.txt", "../own.txt", "folder", "x" * 300, "x" * 5000, "a\0b"):
        with pytest.raises(ToolArgumentError, match=r"no document named .* available: one.txt, two.txt$"):
            file_meant(name, files, workspace)
    with pytest.raises(ToolArgumentError, match=r"available: none$"):
        file_meant("x", [], workspace)


def test_a_file_that_may_not_be_looked_at_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_file", refuse)
    with pytest.raises(ToolArgumentError, match=r"no document named 'own.txt'"):
        file_meant("own.txt", [], Workspace(tmp_path))


@pytest.mark.parametrize(
    ("question", "is_whole"),
    [
        ("总结茶", True),
        ("总结茶叶", False),
        ("总结全文的茶叶", True),
        ("Summarise tea", False),
        ("Summarise 2024", True),
        ("Tea", False),
    ],
)
def test_a_question_about_a_topic_is_not_about_the_whole(question: str, is_whole: bool) -> None:
    assert asks_for_whole(question) == is_whole


def chunks(source: str, count: int) -> list[Chunk]:
    return [Chunk(f"{source}{n}", source, f"{source} {n}", n, 10, headings=(f"h{n}",)) for n in range(count)]


def test_an_overview_is_in_the_order_of_each_document_and_ends_with_its_end() -> None:
    chosen = overview([*chunks("a", 20), *chunks("b", 20)], max_tokens=100, count_tokens=len)
    of_one = [[chunk.index for chunk in chosen if chunk.source == source] for source in "ab"]
    assert of_one[0] == of_one[1] == sorted(of_one[0])
    assert (of_one[0][0], of_one[0][-1]) == (0, 19)


def test_an_outline_is_as_deep_as_fits() -> None:
    deep = [Chunk("a", "s", "t", 0, 1, headings=("A", "B")), Chunk("b", "s", "t", 1, 1, headings=("A", "C"))]
    full = "- A\n  - B\n  - C"
    assert outline_of(deep, max_tokens=len(full), count_tokens=len) == full
    assert outline_of(deep, max_tokens=len(full) - 1, count_tokens=len) == "- A"
    assert outline_of(deep, max_tokens=2, count_tokens=len) == ""
    nine = Chunk("a", "s", "t", 0, 1, headings=tuple("ABCDEFGHI"))
    assert outline_of([nine], max_tokens=200, count_tokens=len).splitlines()[-1] == "                - I"


def test_a_chunk_of_headings_only_has_as_many_as_fit() -> None:
    chunks = cut(*[Block("x" * 8, kind="heading", level=1)] * 4, size=25)
    assert [chunk.text.count("#") for chunk in chunks] == [2, 2]
