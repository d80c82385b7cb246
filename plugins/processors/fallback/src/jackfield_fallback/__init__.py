"""Falls back to other models when one fails, depending on the cause of the failure."""
