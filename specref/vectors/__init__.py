"""Published test vectors: JSON for implementations in any language, and those who run it."""
