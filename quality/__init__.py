"""How well searchers find: a judged set in English and Chinese, measured by `make quality`."""
