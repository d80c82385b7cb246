"""Search quality on a judged set in English and Chinese, measured with `make quality`."""
