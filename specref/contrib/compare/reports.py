"""The JSON report of this wing."""

from specref.contrib.compare.checking import Looks
from specref.contrib.compare.judging import Comparison
from specref.contrib.compare.logprobs import Agreement
from specref.contrib.compare.repeated import Greedy, Seeds
from specref.contrib.compare.reported import ReportedLogprobs
from specref.contrib.compare.speculation import Speculation
from specref.contrib.real_models.entropy import EntropyReport
from specref.report.forms import (
    WHOLE,
    YES,
    Reports,
    form_of,
    listed,
    optional,
    record,
    said,
    table,
)

_OF_TWO = {
    **form_of(Comparison)["properties"],
    "logprobs": said("Where both files report log-probabilities.", optional(form_of(Agreement))),
    "reported": said(
        "Of each file that reports log-probabilities.", listed(form_of(ReportedLogprobs))
    ),
    "speculation": said("Where drafts are counted.", optional(form_of(Speculation))),
    "greedy": said("Of a server: texts at temperature 0.", optional(form_of(Greedy))),
    "seeds": said(
        "Of a server: texts under one seed, with speculation and without.",
        optional(listed(form_of(Seeds))),
    ),
    "looks": said("Of a server: how far the run came.", optional(form_of(Looks))),
}
# By hand, as the class itself, `by_model.ByModel`, comes with torch.
_BY_MODEL = record(
    report=form_of(EntropyReport),
    texts=said("Those that were read until the verdict, or the end of the time.", WHOLE),
    given=said("All texts of the file.", WHOLE),
    at_cut=said("Tokens that the declared filter excludes by no more than rounding.", WHOLE),
    finds=said(
        "The nearest temperatures below and above 1 that so many tokens are expected to find.",
        form_of(tuple[float | None, float | None]),
    ),
    stages=said("Of reported log-probabilities, how many agree, by stage.", table(WHOLE)),
    reported=said("How many there are.", WHOLE),
    stopped=said("Why not all were read, though nothing was found.", form_of(str | None)),
    lossy=said("Whether the bets have decided.", YES),
)
REPORTS: Reports = {
    "compare": (
        "specref compare SPEC PLAIN, specref check URL",
        record(
            ("by_model", *_OF_TWO),
            **_OF_TWO,
            by_model=said("With --model: the first file by the model.", _BY_MODEL),
        ),
    ),
}
