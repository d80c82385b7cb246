"""Count and estimate tokens. A library, not a plugin.

- `requests`: count the tokens of requests, and remember the counts of messages.
- `estimating`: estimate the tokens of a text without a vocabulary, and learn from the counts of servers.
"""
