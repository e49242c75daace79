"""The contract `tree`: drafted trees of a batch in, blocks out."""
