"""What backends share, whatever their protocol. This is a library, not a plugin.

- `history`: a history in the form that strict servers accept.
- `keys`: which API key may go to which address.
- `refusals`: how long a server asks to wait, and how much of its message may be shown.
- `prompts`: what a conversation means to a model that makes images.
- `batches`: texts embedded in requests of a bounded size.
- `retries`: a request other than a chat, repeated by the same rule.
- `media`: images, audio and video in files, read and checked.
- `mending`, `cutting`: the slips of models that write JSON, and JSON that is too long for one.
- `tags`, `stops`: fixed texts found in a text that arrives in pieces, and an answer that ends at one.
- `openai_forms`: messages as OpenAI's clients write them.
- `blocking`: the base class of backends whose SDK blocks.
"""
