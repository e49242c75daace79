"""Judging other people's samplers."""
