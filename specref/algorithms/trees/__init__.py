"""Several drafts of a token, and trees of them."""
