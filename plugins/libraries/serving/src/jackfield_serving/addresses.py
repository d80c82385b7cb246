"""Addresses that clients may send and see, because they name no file of the server."""

from __future__ import annotations

from urllib.parse import urlsplit

from jackfield.messages import ContentItem


def is_public_url(url: str) -> bool:
    """Return True for web addresses and `data:` URIs; False for anything that may name a file of the server."""
    try:
        return urlsplit(url).scheme.lower() in ("http", "https", "data")
    except ValueError:
        return False


def public_address(item: ContentItem) -> str:
    """Return the address of a medium; '' for a text, for frames of a video, and for a file of the server."""
    is_address = item.text is None and isinstance(item.value, str)
    return item.value if is_address and is_public_url(item.value) else ""


def markdown_of(item: ContentItem) -> str:
    """Return a medium as an image of Markdown, or only its kind if its address is not public."""
    address = public_address(item)
    return f"![{item.type}]({address})" if address else f"[{item.type}]"
