"""Read HTML and XML from untrusted files.

- `trees`: bytes and texts as trees of lxml, without following entities or fetching anything.
- `blocks`: HTML as the blocks of a document.
- `content`: the main text of a page, its title and its author.
"""

from __future__ import annotations

from jackfield_markup.blocks import blocks_of
from jackfield_markup.content import main_blocks, metadata_of, title_of
from jackfield_markup.trees import Element, decode_html, html_tree, xhtml_tree, xml_tree

__all__ = [
    "Element",
    "blocks_of",
    "decode_html",
    "html_tree",
    "main_blocks",
    "metadata_of",
    "title_of",
    "xhtml_tree",
    "xml_tree",
]
