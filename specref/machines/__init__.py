"""Each rule as a machine: what it decides in which state. The batched twin walks through it."""
