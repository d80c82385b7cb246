"""Files of one user, shared by many processes. A library, not a plugin.

- `ownfile`: SQLite files that belong to one user.
- `cachefile`: cached values by key, up to a size and an age.
- `ledger`: amounts in a window of time, in memory or in a file that processes share.
"""
