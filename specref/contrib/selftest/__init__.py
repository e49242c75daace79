"""Tries of the kit itself: which checks find which planted bug, and in which situation."""
