"""Programs to start from, printed by `specref write`: they speak docs/other-languages.md."""
