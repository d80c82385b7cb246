"""Questions about a real manual, the Debian Reference in English and Chinese, whose text is fetched on demand.

The manual is not part of this repository. Sections have the same ids in both languages, so a question in one
language can also be asked of the manual in the other.
"""
