"""A note on each flag: the mechanism, what goes wrong without it, and where it did."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Note(NamedTuple):
    """A flag explained; links are ``owner/repo#number``."""

    mechanism: str
    effect: str
    cites: tuple[str, ...] = ()

    @property
    def links(self) -> list[str]:
        pairs = (cite.split("#") for cite in self.cites)
        return [f"https://github.com/{name}/issues/{number}" for name, number in pairs]


NOTES: Mapping[str, Note] = MappingProxyType(
    {
        "BonusToken": Note(
            "Every draft is accepted, and one more token is drawn from the target's last row.",
            "From another row, the drafter or a residual, the joint law is wrong and the first "
            "token right.",
            ("huggingface/transformers#28166", "SafeAILab/EAGLE#47"),
        ),
        "ResidualToken": Note(
            "A draft is rejected, and replaced by a draw from norm((p - q)+) of its own row.",
            "Drawn from p, tokens that q likes come too often.",
            ("huggingface/transformers#28508", "SafeAILab/EAGLE#20"),
        ),
        "DisjointSupport": Note(
            "p and q share no token: acceptance has probability 0, and the residual is p.",
            "A ratio with a floor, or a test with <=, emits what the target never says.",
        ),
        "ZeroDraftMass": Note(
            "q is 0 where p is not: such a token is never drafted, and only a residual emits it.",
            "A residual on the tokens of the drafter alone loses it.",
        ),
        "ZeroTargetMass": Note(
            "p of a draft is 0: it is rejected, whatever the coin.",
            "u <= p / q accepts it at u = 0.",
            ("sgl-project/sglang#35771",),
        ),
        "EqualDistributions": Note(
            "p = q: every draft is accepted, and no residual exists.",
            "0 / 0 where the residual is computed all the same.",
            ("jaymody/speculative-sampling#5",),
        ),
        "PointMass": Note(
            "A law is certain of one token.",
            "Logarithms of 0, and inverse CDFs that stop at a token of weight 0.",
        ),
        "TieAtOne": Note(
            "p = q at the draft though not everywhere: the ratio is 1, and no coin rejects.",
            "A rejection with u in (0, 1], or by p < q turned round.",
        ),
        "RatioAboveOne": Note(
            "p > q at the draft: accepted, whatever the coin.",
            "An inverted ratio rejects; an uncapped product of ratios carries the excess on.",
        ),
        "SubnormalRatio": Note(
            "0 < p / q < 2^-126: smaller than the least normal float32, and not 0.",
            "Flushed to 0 a rare token becomes impossible; in half precision 0 / 0 accepts it.",
            ("lablup/mlxcel#992",),
        ),
        "ResidualZero": Note(
            "Nothing is left of p - q (block: of P p - q): no coin may stop there.",
            "A coin of 0 tested with <=, or rounding, asks for a token of an empty law.",
            ("jaymody/speculative-sampling#5",),
        ),
        "OneHotDraft": Note(
            "There is no q: every draft is certain, so that it is accepted with p.",
            "A missing q that is read as 1 for the test and as 0 for the residual.",
        ),
        "TruncatedDraft": Note(
            "The row has fewer drafts than places: -1 after the last.",
            "-1 read as the last token, or a bonus token from the last row of the batch.",
        ),
        "NoDraft": Note(
            "Nothing is drafted: one token of the target's first row.",
            "An empty maximum, or a residual of a row that is not there.",
        ),
        "CoinZero": Note("A coin is 0.", "u <= p / q, or log u.", ("sgl-project/sglang#35771",)),
        "CoinAtThreshold": Note(
            "A coin is exactly the probability it is compared with: that is no acceptance.",
            "With <= it is; one coin in 2^53 is decided otherwise, which nobody minds unless p "
            "is 0.",
        ),
        "CoinNextToThreshold": Note(
            "A coin is one double away from the probability it is compared with.",
            "Coins or ratios in less precision than float64 are rounded to the other side.",
        ),
        "FinalZero": Note(
            "The last uniform is 0: the first token of positive weight.",
            "A search for cumulative >= u stops at a leading token of weight 0.",
            ("Lightning-AI/litgpt#2323",),
        ),
        "FinalAtEdge": Note(
            "The last uniform is exactly a cumulative probability: the next token.",
            "A search for cumulative >= u takes the one before.",
        ),
        "FinalNextToEdge": Note(
            "The last uniform is one double away from a cumulative probability, or from 1.",
            "A sum that rounds below u runs off the end of the vocabulary.",
        ),
        "NoiseZero": Note(
            "In a race, some noise is 0 where the weight is 0.",
            "0 / 0 is NaN, and NaN comes first.",
            ("NVIDIA/FasterTransformer#183",),
        ),
        "LaterAcceptance": Note(
            "After the first rejected draft, a later coin would accept its own.",
            "Counting acceptances in place of the accepted prefix.",
            ("vllm-project/vllm#2658",),
        ),
        "FailureOverruled": Note(
            "Token verification would have rejected a draft that block verification keeps.",
            "A loop that stops at the first failure, which is lossy with block verification's "
            "probabilities.",
            ("vllm-project/vllm-ascend#11985",),
        ),
        "EndOfText": Note(
            "A block can end with EOS.",
            "Tokens after the end, or an end that comes too rarely.",
            ("openvinotoolkit/openvino.genai#1951",),
        ),
        "AcceptedEos": Note(
            "A drafted EOS is accepted: it ends the block, without a bonus token.",
            "A bonus token after the end, or an EOS that is drawn again.",
            ("LostRuins/koboldcpp#1276", "huggingface/transformers#28508"),
        ),
        "IntersectionEmpty": Note(
            "The vocabularies share no token.",
            "TLI has nothing to draft, and 0 / 0 where it drafts all the same.",
        ),
        "DrafterOnlyToken": Note(
            "The drafter has a token that the target lacks.",
            "Its id is taken for one of the target's.",
            ("ggml-org/llama.cpp#17480",),
        ),
        "TargetOnlyToken": Note(
            "The target has a token that the drafter lacks.",
            "A target that is cut down to the shared tokens is another law.",
        ),
        "ReorderedIds": Note(
            "A shared token has another id in the drafter.",
            "Drafts are mapped and q is not, or the other way round.",
            ("vllm-project/vllm-ascend#16166",),
        ),
        "NothingShared": Note(
            "Somewhere the drafter says none of the shared tokens.",
            "0 / 0 where q is renormalised over them.",
        ),
        "UnreadableContext": Note(
            "The drafter can neither name nor spell a token of the context.",
            "Read as id 0 it costs acceptance; as an error, the request.",
        ),
        "Retokenised": Note(
            "The target reads a drafted text as other pieces than were drafted.",
            "The law of a drafted target token is that of the text, not a product of q.",
        ),
        "RefusedWithoutCoin": Note(
            "A residual token though no coin refused: what came next is no target token, or the "
            "drafted text has ended where longer ones might go on.",
            "A bonus token in its place is lossy.",
        ),
    }
)
