"""Verification of a batch of drafts: token by token, jointly, in trees."""
