"""The contract `verify`: drafts of a batch in, blocks out."""
