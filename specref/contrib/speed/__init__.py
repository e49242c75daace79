"""Speed: formulas, latency profiles, schedulers, and their simulation."""
