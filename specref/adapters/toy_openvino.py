"""An OpenVINO model whose next-token law is known, and reads its cache.

The law depends on the last token and on the one two before it. The second is found by attention:
at position i the query is the position, and the key of a cached token its position and two more,
so a cache that is shifted, cropped or filled wrongly changes the law.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from openvino import opset13 as op

from specref.arrays import Floats
from specref.checkpoints.openvino_parts import (
    attention,
    cached,
    constant,
    heads,
    inputs,
    rows,
    save,
)
from specref.models import Model
from specref.vocabulary import Vocabulary

BACK, POSITIONS, SHARP = 2, 64, 60.0


def toy_law(vocabulary: Vocabulary, last: Floats, earlier: Floats) -> Model:
    """The law that `write_model` writes: softmax(last[x] + earlier[y]), y two tokens before x.

    Parameters
    ----------
    last, earlier : ndarray, shape (V, V)
        Logits.
    """

    def next_token(context: Sequence[int]) -> Floats:
        logits = last[context[-1]] + earlier[context[-1 - BACK]]
        weights = np.exp(logits - logits.max())
        return np.asarray(weights / weights.sum())

    return Model(vocabulary, next_token)


def write_model(folder: Path, last: Floats, earlier: Floats) -> Path:
    """Make a folder with a model of this law, for contexts of 3 to 61 tokens.

    The tokenizer beside it, which pipelines ask for, gives 0 for every text.
    """
    folder.mkdir()
    size = len(last)
    token, mask, position, beam = inputs()
    places, kinds = np.eye(POSITIONS), np.eye(size, POSITIONS)
    sinks: list[Any] = []
    one_head = (1, POSITIONS)
    new = (rows(np.roll(places, -BACK, axis=0), position), rows(kinds, token))
    key, value = (
        cached(part, heads(one, POSITIONS), beam, one_head, sinks)
        for part, one in zip(("key", "value"), new, strict=True)
    )
    query = heads(rows(places * SHARP * POSITIONS**0.5, position), POSITIONS)
    read = np.zeros((POSITIONS, size))
    read[:size] = earlier
    found = op.matmul(attention(query, key, value, mask), constant(read), False, False)
    save(op.add(rows(last, token), found), sinks, (token, mask, position, beam), folder)
    for name in ("config", "generation_config"):
        (folder / f"{name}.json").write_text(json.dumps({"vocab_size": size}), encoding="utf-8")
    return folder
