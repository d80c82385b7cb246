"""Read HTML and XML from untrusted files.

- `trees`: parse bytes and text into lxml trees, without expanding entities or fetching anything.
- `blocks`: convert HTML to document blocks.
- `content`: extract a page's main text, title and metadata.
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
