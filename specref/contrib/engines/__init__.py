"""Adapters to engines and to public repositories, and the board of all that are installed.

An adapter is a module whose function `load_…` returns what is judged. That raises
`NotInstalledError` where a package or a clone is missing, or its function has other parameters.
"""
