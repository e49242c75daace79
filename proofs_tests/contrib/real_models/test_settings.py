"""The judge's filters: on a head of the vocabulary they are the package's on all of it."""

import numpy as np
import pytest

from specref.contrib.real_models import settings
from specref.contrib.real_models.settings import Setting, softmax
from specref.distributions import top_k, top_p, with_temperature

LOGITS = np.random.default_rng(1).normal(0, 3, (20, 200))


@pytest.mark.parametrize("head", [8, 60, 4096])
def test_a_head_changes_nothing(monkeypatch, head):
    monkeypatch.setattr(settings, "HEAD", head)
    monkeypatch.setattr(settings._on_head, "__defaults__", (head,))
    for logits in (*LOGITS, np.round(LOGITS[0])):
        p = softmax(logits)
        expected = {
            Setting(): p,
            Setting(0.7): with_temperature(p, 0.7),
            Setting(top_k=10): top_k(p, 10),
            Setting(top_p=0.9): top_p(p, 0.9),
            Setting(0.5, 20, 0.8): top_p(top_k(with_temperature(p, 0.5), 20), 0.8),
        }
        for setting, law in expected.items():
            np.testing.assert_allclose(setting.law(logits), law, rtol=1e-12)


@pytest.mark.parametrize(
    "setting", [Setting(), Setting(0.7), Setting(top_k=9), Setting(top_p=0.8)]
)
def test_torch_says_the_same(setting):
    torch = pytest.importorskip("torch", reason="not_run (torch is not installed)")
    found = setting.shape(torch.from_numpy(LOGITS)).numpy()
    for logits, row in zip(LOGITS, found, strict=True):
        np.testing.assert_allclose(row, setting.law(logits), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (Setting(), 0),
        (Setting(top_k=1), 0),  # the first is apart from the second
        (Setting(top_k=2), 0.4 / 0.8),  # the second and the third are equal
        (Setting(top_p=0.6), 0.2 / 0.6),  # what comes before the second is 0.6
        (Setting(top_p=0.7), 0),
        (Setting(top_k=2, top_p=0.75), (0.4 + 0.2) / (0.8 * 0.75)),
    ],
)
def test_only_tokens_at_a_cut_are_undecided(setting, expected):
    logits = np.log([0.2, 0.6, 0.2])
    found = setting.undecided_mass(logits, gap=1e-3, mass=1e-4)
    assert found == pytest.approx(expected, abs=1e-12)
