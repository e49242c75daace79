"""Texts of a system with speculation against texts without it: ``specref compare``.

`records` reads files, `pairing` makes pairs, `features` says what is counted in a text, `judging`
decides, `logprobs` judges what a system says of its own tokens, `report` shows.
"""
