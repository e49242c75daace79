"""Reports for people (tables) and for machines (JSON)."""
