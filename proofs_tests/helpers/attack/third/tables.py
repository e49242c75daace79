"""All samplers of the third attack, by name."""

import runpy
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from proofs_tests.helpers.attack.second.entry import Entry

HERE = Path(__file__).parent
NAMES: Mapping[str, Mapping[str, str]] = {
    "verify": {
        "lossy": """
            smoothed_q bonus_tempered_twice min_p_left_on exponential_noise_floor
            bisects_sixteen_times vector_loads_drop_tail draft_ids_in_16_bits
            gives_up_after_16_tries small_residual_is_rounding ties_go_to_the_first
            reduceat_of_empty_segment ragged_offsets_one_row_late
            unsorted_by_the_wrong_permutation seeds_by_draft arithmetic_sampling
            odd_row_reuses_a_pair key_used_twice offset_grows_by_tokens sixteen_bit_seed
            stale_padded_q graph_captured_while_greedy memo_of_three_numbers
            second_chunk_takes_first_lengths guesses_the_layout mask_in_eight_signed_bits
            infers_a_greedy_drafter grammar_truncates_drafts reads_memory_as_it_lies
            ratios_in_a_map_by_token masks_all_proposals
        """,
        "lossless": """
            gumbel_and_logs alias_tables cdf_from_above draws_all_ends_first residual_by_trying
            one_uniform_for_a_row rows_of_the_coupling sorted_twice memo_of_whole_laws
            tiles_then_tokens recycles_unused_coins word_by_word sums_modulo_one
            a_stream_for_each_row padded_workspace
        """,
    },
    "step": {
        "lossy": """
            step_bonus_tile step_adapter_blind_cache step_stop_bits step_small_residual
            step_short_ids step_hybrid_lookup
        """,
        "lossless": """
            step_stale_drafter step_half_accepted step_one_uniform
        """,
    },
    "generate": {
        "lossy": """
            generate_page_rollback generate_unordered_fingerprint generate_short_seed
            generate_streak_fallback generate_chunk_of_one generate_default_no_repeat
        """,
        "lossless": """
            generate_reused_tail generate_lookup_match generate_adaptive_by_trial
        """,
    },
    "ragged": {
        "lossy": """
            ragged_noise_of_random_rows ragged_padded_coin_index ragged_seed_plus_position
            ragged_binary_temperature ragged_split_long_request ragged_ratio_table
        """,
        "lossless": """
            ragged_block_verification ragged_recovered_before ragged_exact_match
        """,
    },
    "tree": {
        "lossy": """
            tree_sixteen_siblings tree_captured_depths tree_cached_topology
            tree_assumes_breadth_first tree_stride_of_first tree_sixty_four_rows
        """,
        "lossless": """
            tree_one_random_path tree_target_leads tree_reversed_equals
        """,
    },
}
CLAIMS: Mapping[str, Mapping[str, Any]] = {
    "ragged_noise_of_random_rows": {"greedy_at_zero": True},
    "ragged_exact_match": {"greedy_at_zero": True},
}


def made(contract: str, name: str) -> Callable[..., Any]:
    """A new one, without what an earlier one kept."""
    file = "batches" if contract == "verify" else "others"
    sampler: Callable[..., Any] = runpy.run_path(str(HERE / f"{file}.py"))[name]
    return sampler


def entry(contract: str, name: str, expected: str) -> Entry:
    what = " ".join((made(contract, name).__doc__ or "").split())
    make = partial(made, contract, name)
    return Entry(name, contract, expected, what, make, CLAIMS.get(name, {}))


THIRD: dict[str, Entry] = {
    name: entry(contract, name, expected)
    for contract, kinds in NAMES.items()
    for expected, names in kinds.items()
    for name in names.split()
}
