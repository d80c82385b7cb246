"""Read HTML and XML from untrusted files.

- `trees`: bytes and texts as trees of lxml: no entity is followed, nothing is fetched.
- `blocks`: HTML as the blocks of a document.
- `content`: where on a page the text is, what it is called, and who wrote it.
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
