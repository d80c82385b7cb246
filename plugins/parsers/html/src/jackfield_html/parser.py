"""Parse an HTML file into a document."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from jackfield.config import Config
from jackfield.errors import DocParserError
from jackfield.retrieval import Document, Parser
from jackfield_markup import blocks_of, decode_html, html_tree, main_blocks, metadata_of, title_of


class HtmlConfig(Config):
    """Settings for parsing HTML."""

    whole_page: bool = Field(default=False, description="Also read menus, headers and footers")


class HtmlParser(Parser):
    """Extracts the main text of HTML pages in reading order. `metadata` includes the page's own metadata."""

    name: ClassVar[str] = "html"
    config_class = HtmlConfig
    config: HtmlConfig

    def parse(self, data: bytes, *, source: str) -> Document:
        """Parse a page into blocks.

        Raises:
            DocParserError: The page is empty, binary, in an unknown encoding, nested too deeply, or without text.
        """
        decoded = decode_html(data, source=source)
        root = html_tree(decoded.text, source=source)
        metadata = metadata_of(root)
        blocks = tuple(blocks_of(root)) if self.config.whole_page else tuple(main_blocks(root))
        if not blocks:
            raise DocParserError(
                f"{source} contains no text; a script may generate the page's content. Open the page in a browser and "
                "save it from there"
            )
        return Document(
            source,
            blocks,
            content_hash="",
            title=title_of(root, blocks),
            metadata={"encoding": decoded.encoding, **metadata},
        )
