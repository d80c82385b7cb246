"""Decide which addresses clients may send and see: those that do not name a file on the server."""

from __future__ import annotations

from urllib.parse import urlsplit

from jackfield.messages import ContentItem


def is_public_url(url: str) -> bool:
    """Return True for web addresses and `data:` URIs, and False for anything that could name a file on the server."""
    try:
        return urlsplit(url).scheme.lower() in ("http", "https", "data")
    except ValueError:
        return False


def public_address(item: ContentItem) -> str:
    """Return an item's public address, or '' for text, video frames and files on the server."""
    is_address = item.text is None and isinstance(item.value, str)
    return item.value if is_address and is_public_url(item.value) else ""


def markdown_of(item: ContentItem) -> str:
    """Format a media item as a Markdown image, or as just its type if its address is not public."""
    address = public_address(item)
    return f"![{item.type}]({address})" if address else f"[{item.type}]"
