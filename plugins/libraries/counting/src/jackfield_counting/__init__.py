"""Count and estimate tokens. A library, not a plugin.

- `requests`: count the tokens of requests, with caching.
- `estimating`: estimate token counts without a vocabulary, and learn from the counts that servers report.
"""
