"""Recognise the text of scanned pages and pictures."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from jackfield.config import Config, ProgramText
from jackfield.errors import DocParserError
from jackfield.retrieval import Block, Document, Parser
from jackfield_ocr.pictures import Limits, pictures_of
from jackfield_ocr.tesseract import choose_languages, find_program, recognise

NOTE = "[Read by OCR: letters and numbers may be wrong]"


class OcrConfig(Config):
    """Settings for text recognition."""

    languages: tuple[str, ...] = Field(
        default=(),
        description="Tesseract's language names, most frequent first: eng, chi_sim; if empty, those of "
        "eng and chi_sim that are installed",
    )
    tesseract: ProgramText = Field(default="", description="Path of the program; if empty, looked up on the PATH")
    dpi: int = Field(default=200, ge=72, le=600, description="Resolution at which PDF pages are read")
    max_pixels: int = Field(
        default=12_000_000, ge=10_000, description="Larger pages and images are scaled down to this size"
    )
    max_pages: int = Field(default=100, ge=1, description="Maximum number of pages read of a multi-page image (TIFF)")
    timeout_s: float = Field(default=60.0, gt=0, description="Time limit for reading one page")
    min_confidence: float = Field(
        default=40.0, ge=0, le=100, description="Paragraphs with a lower mean confidence are dropped as noise"
    )


class OcrParser(Parser):
    """Reads scanned pages and pictures with Tesseract, which runs once per page."""

    name: ClassVar[str] = "ocr"
    config_class = OcrConfig
    config: OcrConfig

    def parse(self, data: bytes, *, source: str) -> Document:
        """Turn a picture, or a PDF of scanned pages, into paragraphs. Each page starts with a note that OCR was used.

        Raises:
            DocParserError: The file is empty, damaged, not a picture, or without text, or Tesseract or a language is
                missing.
        """
        config = self.config
        pictures = pictures_of(data, source, Limits(config.dpi, config.max_pixels))
        program = find_program(config.tesseract, source)
        languages = choose_languages(program, config.languages, source)
        blocks: list[Block] = []
        unread: list[str] = []
        for page, picture in enumerate(pictures, start=1):
            if page > config.max_pages:
                unread = [f"the rest after page {config.max_pages}"]
                break
            texts = recognise(program, picture, languages, source, timeout_s=config.timeout_s)
            paragraphs = [text for text, confidence in texts if confidence >= config.min_confidence]
            if paragraphs:
                blocks.append(Block(NOTE, page=page))
            blocks += [Block(text, page=page) for text in paragraphs]
        if not blocks:
            raise DocParserError(f"{source} contains no text that OCR can recognize ({'+'.join(languages)})")
        metadata = {"ocr": "+".join(languages), "unread": unread}
        return Document(source, tuple(blocks), content_hash="", metadata=metadata)
