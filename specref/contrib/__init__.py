"""Wings: what uses the package and what the core does without."""
