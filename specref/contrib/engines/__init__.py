"""Adapters to engines and to public repositories, and the board of all that are installed."""
