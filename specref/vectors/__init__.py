"""Published test vectors: JSON for implementations in any language, and code that runs them."""
