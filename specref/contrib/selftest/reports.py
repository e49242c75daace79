"""The JSON reports of this wing."""

from specref.contrib.selftest.kills_report import KillsRecord
from specref.contrib.selftest.triggers_report import TriggersRecord
from specref.report.forms import Reports, form_of

REPORTS: Reports = {
    "zoo": ("specref zoo", form_of(KillsRecord)),
    "zoo-triggers": ("specref zoo --triggers", form_of(TriggersRecord)),
}
