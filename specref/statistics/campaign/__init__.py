"""One sampler against a known law: bets on blocks, verdicts at any time, planning."""
