"""What backends share, whatever their protocol. It is a library, no plugin.

- `history`: a history as strict servers take it.
- `keys`: which key goes to which address.
- `refusals`: how long a server asks to wait, and what of its words may be shown.
- `batches`: texts embedded in requests of a bounded size.
"""
