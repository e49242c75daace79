"""Monte Carlo twin of the algorithms: many independent one-iteration blocks at once.

It never calls a `step`. A pair of models is compiled once into tables (`machines` says what each
algorithm does in which state, `tables` numbers the states), and NumPy walks all trials through
them, one uniform for each random decision, as the `Sampled` reading spends them. `markov` does
the same for standard speculative decoding over first-order models, where V may be large.
"""

from specref.simulate.markov import (
    MarkovTables,
    draw_markov,
    markov_columns,
    markov_tables,
    simulate_markov,
)
from specref.simulate.sampling import (
    BATCH,
    CHUNK,
    Simulation,
    count_blocks,
    draw_blocks,
    simulate,
    simulate_counts,
    tally,
)
from specref.simulate.tables import MAX_NODES, Tables, tabulate

__all__ = [
    "BATCH",
    "CHUNK",
    "MAX_NODES",
    "MarkovTables",
    "Simulation",
    "Tables",
    "count_blocks",
    "draw_blocks",
    "draw_markov",
    "markov_columns",
    "markov_tables",
    "simulate",
    "simulate_counts",
    "simulate_markov",
    "tabulate",
    "tally",
]
