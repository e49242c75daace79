"""A drafter a method, and the laws that its drafts come with."""
