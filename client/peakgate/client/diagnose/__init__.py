"""Out-of-memory failures after the fact: what ran out, when, which tensor asked for it, and what acts on it."""
