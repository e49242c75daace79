"""The contract ``tree``: batches of token trees, the trees that a verifier is tried on, bugs."""
