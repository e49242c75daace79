"""Mutants and controls that exist only in batched verification."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from specref.batched import verifier
from specref.zoo.entry import Entry
from specref.zoo.parts.batched import (
    altered,
    bonus_of_longest,
    bonus_of_row_before,
    cartesian,
    committed_together,
    counted,
    dead_row_written,
    first_recovered,
    from_p_without_q,
    one_behind,
    padding_read,
    same_in_all_rows,
    sorted_by_length,
)

# How many drafts each row has: shapes of a batch on which a mutant may be blind.
BATCHES: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {"one": (2,), "even": (2, 2, 2), "ragged": (1, 2, 0, 2, 1)}
)
ONE, EVEN = frozenset({"one"}), frozenset({"one", "even"})
EVERY = frozenset(BATCHES)
LONG = "Needs rows with fewer drafts than others."
TWO_ROWS = "Needs a second row."

ENTRIES = (
    Entry(
        "rows-share-uniforms",
        "randomness",
        formula="u_i of row 0 decides in all rows",
        symptom="Every row is exact; the rows of a batch are accepted or rejected together.",
        hint="Draw uniforms of shape (B, K), or give every request a stream of its own.",
        make=lambda: verifier(
            read=altered(lambda b: replace(b, accept=same_in_all_rows(b.accept)))
        ),
        shows="rows",
        cites=("NVIDIA/TensorRT-LLM#19487", "vllm-project/vllm-omni#4261"),
        blind=ONE,
        note=TWO_ROWS,
    ),
    Entry(
        "rows-share-noise",
        "randomness",
        formula="the noise of row 0 draws the last token of all rows",
        symptom="Every row is exact; requests with the same prompt get the same tokens.",
        hint="Draw noise of shape (B, V), or give every request a stream of its own.",
        make=lambda: verifier(read=altered(lambda b: replace(b, race=same_in_all_rows(b.race)))),
        shows="rows",
        cites=("vllm-project/vllm#50440",),
        blind=ONE,
        note=TWO_ROWS,
    ),
    Entry(
        "q-of-row-before",
        "batch",
        formula="row b is verified with q of row b - 1 if the batch has more than two rows",
        symptom="Right for small batches; acceptance is normal, the text is not.",
        hint="Move q with its request whenever a batch is reordered or padded.",
        make=lambda: verifier(read=altered(one_behind)),
        shows="row",
        cites=("vllm-project/vllm#40269", "local-inference-lab/vllm#209"),
        blind=ONE,
        note="Needs three rows.",
    ),
    Entry(
        "dead-row-overwrites-q",
        "batch",
        formula="q of row 0 is overwritten by that of a row without drafts",
        symptom="Row 0 is wrong when the batch holds an idle request.",
        hint="Mask padded rows in every kernel that writes draft rows.",
        make=lambda: verifier(read=altered(dead_row_written)),
        shows="row",
        cites=("local-inference-lab/vllm#209",),
        blind=EVEN,
        note="Needs a row without drafts.",
    ),
    Entry(
        "padding-is-last-token",
        "batch",
        formula="a missing draft, -1, is read as token V - 1, and lengths are ignored",
        symptom="Short rows get a draft that nobody made.",
        hint="Reject at the first position without a draft, and draw the bonus token there.",
        make=lambda: verifier(read=altered(padding_read)),
        shows="row",
        blind=EVEN,
        note=LONG,
    ),
    Entry(
        "bonus-of-longest-row",
        "batch",
        formula="bonus token ~ p_K instead of p_n, n the number of drafts of the row",
        symptom="Short rows end with a token of another position.",
        hint="Take the bonus row at each row's own length.",
        make=lambda: verifier(weights=bonus_of_longest),
        shows="row",
        blind=EVEN,
        note=LONG,
    ),
    Entry(
        "bonus-of-row-before",
        "batch",
        formula="bonus token of row b ~ p_n of row b - 1, n the number of drafts there",
        symptom="The last token of a fully accepted block belongs to another request.",
        hint="Index the bonus rows by request, as the drafts are; watch requests without drafts.",
        make=lambda: verifier(weights=bonus_of_row_before),
        shows="row",
        blind=ONE,
        note=TWO_ROWS,
    ),
    Entry(
        "min-commit",
        "batch",
        formula="all rows keep as many drafts as the row with the fewest, then draw from p",
        symptom="A row's block depends on the verdicts of other rows; right for a single row.",
        hint="Keep the next accepted draft as the last token, or let rows have their own lengths.",
        make=lambda: verifier(write=committed_together),
        shows="row",
        cites=("Blaizzy/mlx-vlm#2113", "jundot/omlx#3533"),
        blind=ONE,
        note=TWO_ROWS,
    ),
    Entry(
        "order-not-restored",
        "batch",
        formula="rows are sorted by their number of drafts, and returned in that order",
        symptom="Requests get each other's tokens.",
        hint="Apply the inverse permutation to everything that is returned.",
        make=lambda: sorted_by_length,
        shows="row",
        blind=EVEN,
        note=LONG,
    ),
    Entry(
        "cartesian-write",
        "batch",
        formula="tokens[:, count] = last: every row's last token is written into all rows",
        symptom="Accepted drafts are overwritten by other rows' tokens.",
        hint="Index with a pair, tokens[arange(B), count].",
        make=lambda: verifier(write=cartesian),
        shows="row",
        cites=("Dao-AILab/flash-attention#2779",),
        blind=ONE,
        note=TWO_ROWS,
    ),
    Entry(
        "only-first-row-recovers",
        "batch",
        formula="recovered tokens of rows 1, 2, … are left at 0",
        symptom="Token 0, often an exclamation mark, wherever a draft was rejected.",
        hint="Fill the noise of every row, seeded or not.",
        make=lambda: verifier(write=first_recovered),
        shows="row",
        cites=("vllm-project/vllm#10863", "vllm-project/vllm#9441"),
        blind=ONE,
        note=TWO_ROWS,
    ),
    Entry(
        "counts-without-last",
        "length",
        formula="counts = accepted drafts: the recovered or bonus token is cut off",
        symptom="Blocks can be empty; what was rejected is drafted again until it passes.",
        hint="Count the token after the accepted drafts.",
        make=lambda: verifier(write=counted(lambda batch, count: count)),
        shows="row",
    ),
    Entry(
        "counts-one-too-many",
        "length",
        formula="counts = accepted drafts + 2 after a rejection",
        symptom="Padding is read as a token.",
        hint="A rejected draft is replaced, not followed.",
        make=lambda: verifier(
            write=counted(lambda batch, count: count + 1 + (count < batch.lens))
        ),
        shows="row",
    ),
    Entry(
        "missing-q-recovers-from-p",
        "residual",
        formula="without q: accept with p(x), then recovered token ~ p",
        symptom="Drafted tokens have two chances, when drafts come without probabilities.",
        hint="Without q the residual is p without x.",
        make=lambda: from_p_without_q,
        shows="row",
        blind=EVERY,
        note="Needs a call with draft_probs None.",
    ),
)
