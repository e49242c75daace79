"""Published models, and the cross-check of generated texts on pairs of them.

`published` has the models, `conversion` makes folders of them, `pairs` loads what is put together.
"""
