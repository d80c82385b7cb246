from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import DocParserError
from jackfield_documents import decode

ENGLISH = "The café served naïve tourists, who paid in pounds (£) and said so in a long letter to the editor. " * 3
CHINESE = "今天的会议讨论了检索系统的设计，包括分词、索引和排序。大家同意下周再做一次测试。"
TRADITIONAL = "今天的會議討論了檢索系統的設計，包括分詞、索引和排序。大家同意下週再做一次測試，並且寫成報告。"
JAPANESE = "今日の会議では検索システムの設計について話し合いました。来週もう一度テストを行う予定です。"
KOREAN = "오늘 회의에서는 검색 시스템의 설계에 대해 이야기했습니다. 다음 주에 다시 시험을 하기로 했습니다."
RUSSIAN = "Сегодня на совещании обсуждали устройство поисковой системы, а на следующей неделе будет проверка. " * 2
POLISH = "Zażółć gęślą jaźń, mówił król do swoich rycerzy przy wieczerzy. " * 2
FRENCH = "L'été dernier, les élèves de première année ont étudié la littérature française à l'université. " * 2


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (CHINESE, "utf-8"),
        (ENGLISH, "utf-8-sig"),
        (CHINESE, "utf-16"),
        (CHINESE, "utf-32"),
        (ENGLISH, "utf-16-le"),
        (ENGLISH, "utf-16-be"),
        (CHINESE, "gb18030"),
        ("标题：" + ENGLISH.replace("é", "e").replace("ï", "i").replace("£", "$"), "gbk"),
        (TRADITIONAL, "big5"),
        (JAPANESE, "shift_jis"),
        (KOREAN, "cp949"),
        (JAPANESE, "euc_jp"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8_r"),
        (POLISH, "cp1250"),
        (CHINESE * 2000, "gb18030"),
        (FRENCH, "cp1252"),
    ],
)
def test_a_text_comes_back_from_its_encoding(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding), source="a.txt").text == text


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    "text", ["hi", "hello", "a\nb", "héllo", "数据 ok", "Привет мир", "mixed 中文 text", "한국어 문장입니다"]
)
def test_a_short_text_in_utf16_needs_no_mark(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding), source="a.txt").text == text


@pytest.mark.parametrize(
    "text", ["café", "naïve", "Müller", "Größe", "l'été", "à", "Straße 5 €", "Ça va?", "déjà vu", "£5", "«oui»"]
)
def test_a_few_accents_are_western_european(text: str) -> None:
    assert decode(text.encode("cp1252"), source="a.txt").text == text


@pytest.mark.parametrize("text", ["hello world", "hell", "a"])
def test_zeros_at_the_end_are_padding(text: str) -> None:
    for count in (1, 2, 3):
        assert decode(text.encode() + b"\0" * count, source="a.txt").text == text


@given(st.text(st.characters(min_codepoint=0x20, exclude_categories=["Cs", "Cc"]), min_size=1))
def test_whatever_is_utf8_is_read_as_utf8(text: str) -> None:
    if text.strip("\ufeff").strip():
        assert decode(text.encode(), source="a.txt").text == text.removeprefix("\ufeff")


@pytest.mark.parametrize("ends", ["a\r\nb", "a\rb", "a\nb"])
def test_line_ends_become_newlines(ends: str) -> None:
    assert decode(ends.encode(), source="a.txt").text == "a\nb"


@pytest.mark.parametrize(
    "data",
    [
        b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 8,
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)),
        b"PK\x03\x04" + bytes(range(256)) * 3,
        b"text that turns " + b"\x01\x02\x03\x04" * 20,
    ],
)
def test_binary_data_is_refused_whatever_its_name(data: bytes) -> None:
    with pytest.raises(DocParserError, match=r"^garbage\.txt (contains binary data|cannot be read)"):
        decode(data, source="garbage.txt")


def test_a_pdf_is_no_text_though_it_may_be_all_letters() -> None:
    with pytest.raises(DocParserError, match=r"^report\.txt is a PDF file, not text: rename it to \.pdf$"):
        decode(b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n", source="report.txt")


@given(st.binary(max_size=300))
def test_every_byte_sequence_is_read_or_refused_with_its_name(data: bytes) -> None:
    try:
        outcome = decode(data, source="x.txt").text
    except DocParserError as refusal:
        outcome = str(refusal)
        refused = True
    else:
        refused = False
    assert outcome.startswith("x.txt ") if refused else outcome.strip()
