"""Programs to start from, printed by `specref init`: they speak docs/other-languages.md."""
