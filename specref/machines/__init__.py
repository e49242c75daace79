"""Seven of the rules as state machines, through which the batched twin walks."""
