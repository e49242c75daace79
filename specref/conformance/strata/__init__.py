"""Situations that engines meet: shapes, laws and ways of calling, each judged on its own."""
