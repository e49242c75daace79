"""Programs to start from, printed by `specref write`: they speak docs/runner-contract.md."""
