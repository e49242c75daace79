"""The stored model pairs are those their card describes, and their builder repeats itself."""

import doctest
import importlib
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from click.testing import CliRunner
from transformers import AutoModelForCausalLM, AutoTokenizer

from fixtures import build_model_pairs
from fixtures.model_pairs import card as measuring
from fixtures.model_pairs import checking
from fixtures.model_pairs.building import Workshop
from fixtures.model_pairs.checking import file_problems, surroundings, tokenizer_problems
from fixtures.model_pairs.corpus import is_held_out, read_corpus
from fixtures.model_pairs.growing import deepened, initialise
from fixtures.model_pairs.recipes import PAIRS, RECIPES, TINY
from fixtures.model_pairs.samples import HELD_OUT, PROMPTS, read_documents
from fixtures.model_pairs.storing import MODELS, load_tokenizer, read_card
from fixtures.model_pairs.tokenization import EOS, PAD, train_tokenizer
from fixtures.model_pairs.training import train

CARD = read_card()
WEIGHTS = "model.safetensors"
MEGABYTE = 10**6
SOURCE = '''def double_{name}(number):
    """Return twice the number, which may be an integer, a float, or whatever else can be added."""
    return number + number
'''


@pytest.fixture
def library(tmp_path):
    """Sixty little modules, some of which are held out."""
    for place in range(60):
        (tmp_path / f"module_{place}.py").write_text(SOURCE.format(name=place))
    return tmp_path


@pytest.fixture
def copy(tmp_path):
    return Path(shutil.copytree(MODELS, tmp_path / "models"))


def flip_a_byte(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_files_are_those_of_the_card():
    assert list(file_problems(MODELS)) == []
    assert list(CARD["models"]) == list(RECIPES)


def test_a_changed_a_missing_and_a_stray_file_are_noticed(copy):
    flip_a_byte(copy / "target" / WEIGHTS)
    (copy / "companion" / "config.json").unlink()
    (copy / "drafter_bytes" / "notes.txt").write_text("")
    (copy / "README.md").write_text("another card")
    assert set(file_problems(copy)) == {
        "target/model.safetensors differs from its digest in the card",
        "companion/config.json is missing",
        "drafter_bytes/notes.txt is not in the card",
        "README.md is not what the card renders to",
    }


def test_check_fails_on_a_flipped_byte(copy, library, monkeypatch):
    monkeypatch.setattr(build_model_pairs, "read_corpus", lambda: read_corpus(library))
    command = ["--check", "--models", str(copy)]
    assert CliRunner().invoke(build_model_pairs.main, command).exit_code == 0
    flip_a_byte(copy / "drafter_bpe2k" / WEIGHTS)
    result = CliRunner().invoke(build_model_pairs.main, command)
    assert result.exit_code == 1
    assert "drafter_bpe2k/model.safetensors differs" in result.output
    assert "tokenisers not retrained: files 60 instead of" in result.output


def test_sizes():
    files = [file for file in MODELS.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) <= 40 * MEGABYTE


@pytest.mark.parametrize("name", RECIPES)
def test_loads_offline(name):
    entry, recipe = CARD["models"][name], RECIPES[name]
    model = AutoModelForCausalLM.from_pretrained(MODELS / name, local_files_only=True)
    tokenizer = AutoTokenizer.from_pretrained(MODELS / name, local_files_only=True)
    assert model.num_parameters() == entry["parameters"]
    assert model.dtype == torch.bfloat16
    assert len(tokenizer) == model.config.vocab_size == entry["vocabulary"]
    assert model.config.max_position_embeddings == recipe.positions >= 256
    specials = (tokenizer.eos_token_id, tokenizer.pad_token_id)
    assert specials == (model.generation_config.eos_token_id, model.generation_config.pad_token_id)
    assert specials == tuple(map(load_tokenizer(MODELS / name).token_to_id, (EOS, PAD)))


@pytest.mark.parametrize("name", RECIPES)
def test_encoding_adds_no_token(name):
    tokenizer, plain = AutoTokenizer.from_pretrained(MODELS / name), load_tokenizer(MODELS / name)
    for document in read_documents(MODELS / HELD_OUT):
        ids = tokenizer.encode(document.text)
        assert ids == tokenizer.encode(document.text, add_special_tokens=False)
        assert ids == plain.encode(document.text).ids
        assert name == "drafter_wordpiece" or tokenizer.decode(ids) == document.text
    assert tokenizer.encode("") == []


def test_wordpiece_is_not_injective():
    tokenizer = load_tokenizer(MODELS / "drafter_wordpiece")
    assert tokenizer.encode("If  x:\n").ids == tokenizer.encode("if x :").ids


@pytest.mark.deep
def test_held_out_losses_are_those_of_the_card():
    """Tolerance 0.005 nats, for the order of float32 sums; an untrained model loses log V."""
    losses = measuring.held_out_losses(MODELS, RECIPES)
    for name, entry in CARD["models"].items():
        assert losses[name] == pytest.approx(entry["held_out_nats_per_token"], abs=0.005)
        assert losses[name] < 0.75 * math.log(entry["vocabulary"])


def test_the_loss_of_an_untrained_model_is_noticed(copy):
    recipe, name = RECIPES["drafter_bytes"], "drafter_bytes"
    initialise(recipe, load_tokenizer(copy / name)).save_pretrained(copy / name)
    (loss,) = measuring.held_out_losses(copy, [name]).values()
    assert loss > 0.75 * math.log(258)


@pytest.mark.deep
def test_pairs_are_those_of_the_card():
    measured = measuring.pairs(MODELS, RECIPES)
    assert len(measured) == len(PAIRS) == len(CARD["pairs"])
    for pair, known in zip(measured, CARD["pairs"], strict=True):
        assert pair == known | {"acceptance": pytest.approx(known["acceptance"], abs=0.005)}


def test_overlaps_are_those_of_the_card():
    folders = {entry["recipe"]["tokenizer"]: name for name, entry in CARD["models"].items()}
    tokenizers = {name: load_tokenizer(MODELS / folders[name]) for name in CARD["tokenizers"]}
    assert measuring.overlaps(tokenizers) == CARD["overlaps"]


def test_samples_are_held_out():
    prompts, documents = (read_documents(MODELS / name) for name in (PROMPTS, HELD_OUT))
    tokenizer = load_tokenizer(MODELS / "target")
    lengths = [len(tokenizer.encode(prompt.text).ids) for prompt in prompts]
    assert len(prompts) == 40
    assert len(documents) == 20
    assert 20 <= min(lengths) <= max(lengths) <= 60
    assert all(is_held_out(sample.file) for sample in (*prompts, *documents))
    assert [sample.kind for sample in prompts].count("code") == 20


@pytest.mark.deep
def test_tokenizers_are_what_training_gives(tmp_path):
    corpus = read_corpus()
    if difference := surroundings(CARD, corpus):
        pytest.skip(f"not_run ({difference})")
    assert list(tokenizer_problems(MODELS, corpus, tmp_path)) == []


def test_other_surroundings_are_noticed(library, tmp_path, monkeypatch):
    corpus = read_corpus(library)
    assert "files 60 instead of" in surroundings(CARD, corpus)
    monkeypatch.setattr(checking, "version", lambda library: "0.1")
    assert "tokenizers 0.1 instead of" in surroundings(CARD, corpus)
    problems = list(tokenizer_problems(MODELS, corpus, tmp_path / "scratch"))
    assert "target/tokenizer.json is not what training gives here" in problems
    assert "drafter_bytes/tokenizer.json is not what training gives here" not in problems


def test_two_runs_give_the_same_weights(library):
    corpus, tokenizer = read_corpus(library), train_tokenizer("bytes", [])
    recipes = (TINY, TINY, replace(TINY, seed=1))
    first, second, other = (
        train(recipe, tokenizer, corpus.training)[0].state_dict() for recipe in recipes
    )
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_what_is_built_is_recognised(library, tmp_path):
    shop = Workshop(read_corpus(library), tmp_path / "built")
    assert not shop.is_built(TINY)
    entry = shop.build(TINY, lambda step, loss: None)
    build_model_pairs.write_json(tmp_path / "built" / "card.json", {"models": {"tiny": entry}})
    assert shop.is_built(TINY)
    assert not shop.is_built(replace(TINY, learning_rate=0.5))
    flip_a_byte(tmp_path / "built" / "tiny" / WEIGHTS)
    assert not shop.is_built(TINY)


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_a_deepened_model_computes_what_the_shallow_one_does(family):
    recipe, tokenizer = replace(TINY, family=family, layers=4), train_tokenizer("bytes", [])
    shallow, ids = initialise(recipe, tokenizer, 2), torch.arange(9)[None]
    deep = deepened(shallow, recipe, tokenizer)
    assert deep.config.num_hidden_layers == 4
    assert torch.equal(shallow(ids).logits, deep(ids).logits)
    with pytest.raises(ValueError, match="2 layers do not divide 3"):
        deepened(shallow, replace(recipe, layers=3), tokenizer)


def test_names_that_do_not_exist(tmp_path):
    with pytest.raises(ValueError, match="name: 'bpe3k' is not one of"):
        train_tokenizer("bpe3k", [])
    with pytest.raises(ValueError, match="no Python files under"):
        read_corpus(tmp_path)


@pytest.mark.parametrize("module", ["corpus", "tokenization", "recipes", "storing", "overlaps"])
def test_examples(module):
    result = doctest.testmod(importlib.import_module(f"fixtures.model_pairs.{module}"))
    assert result.attempted
    assert not result.failed
