"""Real model pairs, and the same tests on every device: small on a CPU, large on CUDA."""
