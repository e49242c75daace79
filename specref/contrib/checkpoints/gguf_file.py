"""A checkpoint as a GGUF file, which llama.cpp and what is made of it load."""

from pathlib import Path

import gguf

from specref.contrib.checkpoints.law import START, Law
from specref.contrib.checkpoints.weights import HEAD, Float32s, Weights


def write_gguf(law: Law, weights: Weights, folder: Path) -> None:
    """Write `model.gguf`, in float32, into a folder that exists."""
    config = weights.config
    writer = gguf.GGUFWriter(folder / "model.gguf", "llama")
    writer.add_name("specref law")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(1)
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_rope_dimension_count(HEAD)
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(law.size)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    tokens = [*map(str, law.vocabulary.tokens), START]
    control = {law.eos, law.start}
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([float(len(token)) for token in tokens])
    writer.add_token_types(
        [
            gguf.TokenType.CONTROL if token in control else gguf.TokenType.NORMAL
            for token in range(law.size)
        ]
    )
    writer.add_bos_token_id(law.start)
    writer.add_unk_token_id(law.start)
    if law.eos is not None:
        writer.add_eos_token_id(law.eos)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.add_add_space_prefix(False)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 1)
    for name, tensor in weights.tensors.items():
        rotated = name.endswith(("q_proj.weight", "k_proj.weight"))
        known = names.get_name(name, try_suffixes=(".weight",))
        assert known is not None, name
        writer.add_tensor(known, interleaved(tensor) if rotated else tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def interleaved(rows: Float32s) -> Float32s:
    """Rows of queries or keys in the order that GGUF wants: the pairs that rotate are neighbours.

    Hugging Face pairs the halves of a head.
    """
    heads = rows.reshape(-1, 2, HEAD // 2, rows.shape[1])
    return heads.swapaxes(1, 2).reshape(rows.shape)
