"""Infini-AI-Lab/Sequoia: `SpecTree.verify` on trees that its own function samples."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from specref.adapters.needs import require, require_parameters
from specref.contrib.engines.checkouts import from_checkout
from specref.vocabulary import Tokens

REPOSITORY = "Infini-AI-Lab/Sequoia"
PACKAGES = ("torch", "transformers")
# Its engines, whose models need an older Transformers.
ABSENT = ("Engine.Engine.GraphInferenceEngine", "Engine.Engine.GraphInferenceEngineTG")
GIVEN = ("sampling_logits", "rand", "num_samples", "temperature")
START = 3  # its tokens 0 and 2 end a text: those of the kit begin behind them
CACHE = SimpleNamespace(kv_cache=SimpleNamespace(gather_kv_incremental=lambda *given: None))


def load_step() -> Callable[..., Any]:
    """One iteration under the contract ``step``, in float32, at temperature 1.

    The root has two children, every other node one. The constructor of the class, which wants
    engines, is not called: its attributes are set.
    """
    require(PACKAGES, "pip install torch transformers")
    import torch

    from specref.contrib.engines.toys import on_toys

    (made,) = from_checkout(REPOSITORY, "Tree.SpecTree", "SpecTree", absent=ABSENT)
    names = ("get_residual", "sampling_without_replacement")
    residual, sample = from_checkout(REPOSITORY, "utils", *names)
    require_parameters(made.verify, "SpecTree.verify", ("self", "benchmark"))
    require_parameters(
        made.accept_step, "SpecTree.accept_step", ("self", "parent_id"), by_position=2
    )
    require_parameters(sample, names[1], GIVEN, by_position=4)

    def decode(target: Any, drafter: Any, prompt: Any, lookahead: int) -> Any:
        paths: list[Tokens] = [()]
        children, p, q = [], list[Any](), list[Any]()
        for path in paths:
            ids = torch.cat([prompt, prompt.new_tensor([path])], dim=1)
            for rows, model in ((p, target), (q, drafter)):
                row = model(ids).logits[0, -1]
                rows.append(torch.nn.functional.pad(row, (START, 0), value=-torch.inf))
            drafted = int((q[-1].softmax(-1) > 0).sum())  # no more can be drawn
            width = min(1 if path else 2, drafted) * (len(path) < lookahead)
            children.append([len(paths) + n for n in range(width)])
            if width:
                drafts = sample(q[-1], torch.rand_like(q[-1]), width, 1.0).tolist()
                paths.extend((*path, x - START) for x in drafts)
        nodes, logits = torch.arange(len(paths)), torch.stack(p)[None]
        tree, engine = object.__new__(made), {"engine": CACHE, "dtype": torch.float32}
        vars(tree).update(
            dtype=torch.float32, temperature=1.0, top_p=1.0, residual_graph=residual,
            Successors=children, ground_truth_len=1, target_kv_len=0, num_nodes=len(nodes),
            seq_to_use=nodes.tolist(), storage_ids=nodes, position_ids=nodes,
            attn_mask=nodes[:, None] * 0.0, r=torch.rand(len(nodes)), draft_logits=torch.stack(q),
            tokens=torch.tensor([0, *(path[-1] + START for path in paths[1:]), 0]),
            prepare_for_next_iter=lambda *given: None,
            draft_model_engine=SimpleNamespace(**engine),
            target_model_engine=SimpleNamespace(**engine, inference=lambda **given: logits),
        )  # fmt: skip
        return (tree.verify()[0][1:] - START).tolist()

    return on_toys(decode)
