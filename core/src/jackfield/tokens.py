"""Its names have moved to the library for counting."""

from jackfield._lazy import fetching

__getattr__, _ = fetching(
    __name__,
    {},
    moved={
        "EstimatingTokenizer": "jackfield_metering.estimating",
        **dict.fromkeys(("TokenCounter", "Tokenizer", "estimate_tokens"), "jackfield_metering.tokens"),
    },
)
