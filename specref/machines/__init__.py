"""Each rule as a state machine, through which the batched twin walks."""
