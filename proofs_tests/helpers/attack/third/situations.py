"""Where the lossy samplers of the third attack are off, and how far, as their authors say.

(m): measured by them, at the time.
"""

from collections.abc import Mapping

SITUATIONS: Mapping[str, str] = {
    "smoothed_q": (
        "everywhere with declared q; K = 3, V = 5 random laws: TV 0.06 to 0.08 of the block (m)"
    ),
    "bonus_tempered_twice": (
        "everywhere but small: TV 0.05 of the block at K = 3, V = 6 and a good drafter (m); 0.1 "
        "or more of the bonus token alone, more with Zipf-like laws"
    ),
    "min_p_left_on": (
        "laws with a long tail (Zipf, V >= 100): TV 0.25 to 0.3 of the bonus token (m), less of "
        "a block whose drafts are seldom all kept; nearly none at V < 10 (0 where every p >= "
        "0.05 max p)"
    ),
    "exponential_noise_floor": (
        "flat laws of V near 150k (bonus, or flat residual): TV above 0.37 of the bonus token "
        "(m); none below V of about 2,000"
    ),
    "bisects_sixteen_times": (
        "V > 65,536 (128k, 152k vocabularies), any law: TV 0.1 to 0.6 by where the ids fall "
        "(0.12 m); 0 up to 65,536 tokens"
    ),
    "vector_loads_drop_tail": (
        "V >= 4,096 and V % 4 != 0, mass on the last ids (V = 50,257 whose last id is EOS): TV "
        "= what residual and bonus give those ids (0.11 m at p(EOS) = 0.2)"
    ),
    "draft_ids_in_16_bits": (
        "V > 65,536 and drafts of ids from 65,536 on: TV about the mass of such drafts that q "
        "and p disagree on (0.2 m)"
    ),
    "gives_up_after_16_tries": (
        "a good drafter that lacks 3 to 5% of the target's mass (trimmed vocabulary: q = 0 "
        "there), K = 4 to 8: TV 0.07 to 0.11 (m, noise subtracted); nearly 0 with poor drafters"
    ),
    "small_residual_is_rounding": (
        "a good drafter, TV(p, q) < 0.03 at each place, trimmed vocabulary, K = 4 to 8: TV 0.1 "
        "to 0.18 (m); exactly 0 if TV(p, q) >= 0.03"
    ),
    "ties_go_to_the_first": (
        "laws with equal probabilities (rounded logits, uniform tails, uniform laws): TV 0.4 "
        "(m); 0 without ties"
    ),
    "reduceat_of_empty_segment": (
        "ragged batch with declared q or None, a row without drafts followed by a row with "
        "drafts of which the first is rejected: TV 0.09 of that row (m), up to 0.4; 0 if no row "
        "is without drafts, or only the last ones are"
    ),
    "ragged_offsets_one_row_late": (
        "ragged batch, a row longer than the next one (lens 2, 1, 2, 0): each row is right, the "
        "joint law of the two rows is off by 0.07 (m), more with many good drafts; 0 with equal "
        "lengths"
    ),
    "unsorted_by_the_wrong_permutation": (
        "ragged batch of 3 rows or more whose stable order by falling length is not its own "
        "inverse (lens 1, 3, 2): TV 0.27 (m); 0 with equal lengths, or B <= 2"
    ),
    "seeds_by_draft": (
        "rows of one batch with the same drafts (n samples of one prompt, greedy or n-gram "
        "drafter): each row right, the two rows equal: joint TV 0.5 to 0.9 (0.7 m)"
    ),
    "arithmetic_sampling": (
        "any batch of 2 rows or more: each row right, joint law of two rows off by 0.25 at B = "
        "2, 0.06 at B = 8 (m), nearly 0 for a pair at B >= 64, where the number of rows that "
        "keep a given draft is nearly constant instead (std 0.2 for 3.9 (m): TV about 0.9 of "
        "the count)"
    ),
    "odd_row_reuses_a_pair": (
        "odd batches (3, 5, 7, ...): each row right, the last two rows share all coins: joint "
        "TV 0.5 of these two (m); 0 in even batches, and for all other pairs"
    ),
    "key_used_twice": (
        "K = 1: in every row, the last token depends on its own coin; K >= 2: in row 0 only (B "
        "= 1: TV 0.06 m) and between rows (rows 1 and 2 at K = 2: joint TV 0.15 m)"
    ),
    "offset_grows_by_tokens": (
        "two calls in succession with one generator: each is right, the joint law of two "
        "successive calls at B = 1 is off by 0.06 to 0.08 (m, K = 1, V = 6); 0 if all drafts "
        "are kept, or each call has a fresh generator"
    ),
    "sixteen_bit_seed": (
        "B = 1 with a flat law of 152k tokens: at most 65,536 can come out, TV >= 0.57; any "
        "batch with more than 2^20 likely answers (B = 8, K = 4): joint TV near 1; two of 300 "
        "calls are likely to be equal"
    ),
    "stale_padded_q": (
        "two calls of one shape, the second with fewer drafts in a row (adaptive draft length, "
        "continuous batching): the bonus token of that row is drawn from max(p - old q, 0): TV "
        "up to 0.65 (m); 0 in the first call, or with K drafts in all rows"
    ),
    "graph_captured_while_greedy": (
        "the first call of a shape is greedy (one-hot laws, as in warm-up), later ones of this "
        "shape sample: TV = 1 - P(the argmax block), 0.3 to 0.9"
    ),
    "memo_of_three_numbers": (
        "mixed batch, two rows whose rejected drafts are the same token with the same p and q "
        "(greedy rows, or top-k rows with p = 0, and draft_probs=None or a greedy drafter): the "
        "later row answers by the law of the earlier: TV up to 1 in that row"
    ),
    "second_chunk_takes_first_lengths": (
        "B x V > 4 Mi (B >= 28 at V = 152k, B >= 132 at V = 32k): rows of the second chunk on "
        "draw by other rows' lengths: TV 0.5 (m); 0 below"
    ),
    "guesses_the_layout": (
        "B = K + 1 (4 rows with 3 drafts), rows with different laws: TV 0.4 (m); with equal "
        "rows each place has the law of the row's number: also off if places differ; 0 "
        "otherwise"
    ),
    "mask_in_eight_signed_bits": (
        "K = 8 and all 8 kept with a probability of 0.1 or more: TV of 0.07 (m) to 0.4; 0 with "
        "K < 8, and with K > 8"
    ),
    "infers_a_greedy_drafter": (
        "B = 1 (or small) and K = 1 to 3, peaked sampled drafter (q max 0.6 to 0.8, p alike): "
        "TV 0.17 to 0.24 (m); 0 in batches where some draft is not its drafter's likeliest"
    ),
    "grammar_truncates_drafts": (
        "target laws with zeros (top-k, top-p, grammar) under a sampling drafter with mass "
        "there (0.3): TV 0.15 (m); 0 with p > 0, or with draft_probs=None"
    ),
    "reads_memory_as_it_lies": (
        "laws passed as a transposed view (memory [K + 1, B, V]), rows or places with different "
        "laws: TV 0.2 to 0.5 (m); 0 for contiguous arrays and for slices"
    ),
    "ratios_in_a_map_by_token": (
        "a token drafted twice in a row whose places have different laws: TV 0.15 (V = 4, K = "
        "3) to 0.3 (V = 2, K = 8) (m); 0 without repeats, and where all places have one law"
    ),
    "masks_all_proposals": (
        "draft_probs=None, K >= 2, other drafts of the row likely at the rejected place: TV up "
        "to 0.6 (m)"
    ),
    "step_bonus_tile": (
        "lookahead exactly 16 (or 32): the bonus token has the law of the first; 0.44 (all "
        "accepted at 95% each) times the distance of the two rows: about 0.2 to 0.4"
    ),
    "step_adapter_blind_cache": (
        "two targets over one vocabulary (LoRA adapters, base and chat), one after the other on "
        "the same prompt of 16 tokens or more: the whole distance of their rows, 0.2 to 0.7 in "
        "the first token of the second call"
    ),
    "step_stop_bits": (
        "lookahead of 10 to 16, a good drafter, texts that end about there (p of EOS 0.15 at "
        "the 9th to 13th token): EOS comes about half as often there, about 0.1 to 0.3 of the "
        "block"
    ),
    "step_small_residual": (
        "a very good drafter (TV of p and q 0.05 to 0.1, acceptance above 90%): 0.03 to 0.045 "
        "in the first token, about 0.08 to 0.15 in a block of 5 to 8 drafts"
    ),
    "step_short_ids": (
        "vocabularies above 65,536 (Llama 3, Qwen): acceptance 0.6 and a third of p at high ids "
        "(other scripts): 0.13 in the first token"
    ),
    "step_hybrid_lookup": (
        "the last 8 tokens came twice before and went on alike (logs, tables, code): the copied "
        "token is kept by min(1, p / q) in place of p: about 0.2 to 0.5 in the first token"
    ),
    "generate_page_rollback": (
        "texts that cross a multiple of 256 tokens while drafts are rejected, with about 1 in "
        "3: some 8 rows are then read after a context with one wrong token: about 0.3 of the "
        "text of 16 tokens across the page"
    ),
    "generate_unordered_fingerprint": (
        "a second prompt with the words of a first in another order and the same last 4 tokens "
        "(options A and B exchanged): conditioned on the first, 0.3 to 1"
    ),
    "generate_short_seed": (
        "many samples of one prompt (best of n, evaluations), 20 tokens and more: only 65,536 "
        "texts can come, so nearly 1; in 1,000 texts some 8 pairs are equal. The law of single "
        "tokens is right"
    ),
    "generate_streak_fallback": (
        "texts of 100 tokens and more with a poor drafter (20 to 40% kept): 0.12 to 0.2 in the "
        "token after five refusals, about 0.1 to 0.3 in the text"
    ),
    "generate_chunk_of_one": (
        "prompts of 129, 257, 385, 513, 1025, ... tokens: the first token has the law of the "
        "one before: 0.3 to 0.8"
    ),
    "generate_default_no_repeat": (
        "peaked targets whose text repeats (a list, padding, a line of code): after 12 "
        "generated tokens have come again the likeliest token is banned: 0.5 to 0.9 there, 0.25 "
        "of a text that loops with p = 0.9 a token"
    ),
    "ragged_noise_of_random_rows": (
        "requests at temperature 0 come before at least two others in the batch: the last of "
        "these share their noise; joint law of two alike at least 0.15"
    ),
    "ragged_padded_coin_index": (
        "16 requests with 1 to 4 drafts, 40 in all: requests 10 apart share first coins; 0.05 "
        "in the first tokens of each such pair, above 0.15 in those of the batch"
    ),
    "ragged_seed_plus_position": (
        "requests with seeds 1, 2, 3, ...: position 1 of one and 0 of the next share a coin; "
        "0.07 to 0.2 for two, more for all"
    ),
    "ragged_binary_temperature": (
        "temperatures that are no power of two: 0.7 becomes 0.5, 0.8 becomes 1, 1.5 becomes 2; "
        "0.06 to 0.19 in the first token (logits of deviation 2.5)"
    ),
    "ragged_split_long_request": (
        "one request of 9 to 16 drafts (copied or n-gram) among requests of 0 to 2, with a good "
        "drafter: from the ninth draft on p is compared with another position's q: 0.07 in the "
        "ninth token if it is reached (0.64), about 0.1 in a block of 16 drafts"
    ),
    "ragged_ratio_table": (
        "over 1,024 tokens and a good drafter (acceptance 0.9): 0.058 in the first token, about "
        "0.12 with 5 drafts; 0.03 to 0.04 in the first token with a mediocre one"
    ),
    "tree_sixteen_siblings": (
        "20 certain drafts (top 20, no laws) or 17 and more siblings, flat p: 0.07 to 0.2 in "
        "the first token"
    ),
    "tree_captured_depths": (
        "trees or chains of depth 6 or 7 with a good drafter: the bonus token after the deepest "
        "node has its parent's law; P(whole path) times the distance of rows, about 0.15"
    ),
    "tree_cached_topology": (
        "dynamic trees as of EAGLE-2 (60 nodes, 10 below the root) that agree in the first 16 "
        "parents only, in a batch or one after the other: a wrong edge in 20% of walks, about "
        "0.13"
    ),
    "tree_assumes_breadth_first": (
        "nodes in depth-first order, two siblings of which the first has children: 0.08 to 0.19 "
        "in the first token"
    ),
    "tree_stride_of_first": (
        "a batch whose first tree is smaller than others: row b + 1 has coins of row b; 0.05 to "
        "0.2 in the joint law of two, more for all"
    ),
    "tree_sixty_four_rows": (
        "trees of 65 to 128 nodes (a binary one of depth 6, say): a node from 64 on is accepted "
        "in over half of the walks, and the law after it is another node's: 0.3 and more"
    ),
}
