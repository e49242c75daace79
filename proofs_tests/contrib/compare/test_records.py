"""Files of texts: every fault is named with its line; nothing is dropped unsaid."""

import bz2
import gzip
import json
import lzma

import numpy as np
import pytest
from click.testing import CliRunner

from specref.cli import main
from specref.contrib.compare import command
from specref.contrib.compare.pairing import paired
from specref.contrib.compare.records import read_texts


def written(path, *records):
    lines = [one if isinstance(one, str) else json.dumps(one) for one in records]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_records_are_read_plain_and_gzipped(tmp_path):
    records = [
        {"prompt_id": "a", "token_ids": [3, 4], "logprobs": [-1.0, -2.0], "seed": 1},
        {"prompt_id": 7, "token_ids": [5], "finish_reason": "stop", "seed": 1},
    ]
    plain = written(tmp_path / "one.jsonl", *records)
    packed = tmp_path / "one.gz"
    packed.write_bytes(gzip.compress((tmp_path / "one.jsonl").read_bytes()))
    for path in (plain, str(packed)):
        texts = read_texts(path)
        assert texts.tokens.tolist() == [3, 4, 5]
        assert texts.starts.tolist() == [0, 2, 3]
        assert texts.ids == ["a", "7"]
        assert texts.endings == [None, "stop"]
        assert np.isnan(texts.logprobs).tolist() == [False, False, True]


WRONG = {
    "cut short": '{"token_ids": [1, 2',
    "expected an object": "[1, 2]",
    r"prompt_id = \[1\]": {"prompt_id": [1], "token_ids": [1]},
    "seed = 1.5": {"token_ids": [1], "seed": 1.5},
    "seed = True": {"token_ids": [1], "seed": True},
    "token_ids = None: expected a list": {"token_ids": None},
    "token_ids is empty": {"token_ids": []},
    r"token_ids\[1\] = True": {"token_ids": [0, True]},
    r"token_ids\[1\] = 9: expected an integer from 0 to 8": {"token_ids": [0, 9]},
    r"token_ids\[0\] = -1": {"token_ids": [-1]},
    "it has text: expected token_ids, or --tokenizer FOLDER or words": {"text": "a"},
    "logprobs = 1: expected 2 numbers": {"token_ids": [1, 2], "logprobs": [-1]},
    r"logprobs\[0\] = 0.5": {"token_ids": [1], "logprobs": [0.5]},
    r"logprobs\[0\] = -inf": '{"token_ids": [1], "logprobs": [-Infinity]}',
    r"logprobs\[1\] = nan": '{"token_ids": [1, 2], "logprobs": [-1, NaN]}',
    r"logprobs\[0\] = -1000": {"token_ids": [1], "logprobs": [-(10**400)]},
    r"logprobs\[1\] = False": {"token_ids": [1, 2], "logprobs": [-1, False]},
    r"prompt_token_ids = 5": {"token_ids": [1], "prompt_token_ids": 5},
    "a list: expected an object, `jq": [{"token_ids": [1]}],
    "no token_ids and no text, but prompt, completion: expected fields prompt_id": {
        "prompt": "a",
        "completion": "b",
    },
    "finish_reason = 3": {"token_ids": [1], "finish_reason": 3},
}


@pytest.mark.parametrize("message", WRONG)
def test_a_wrong_line_is_named(tmp_path, message):
    path = written(tmp_path / "texts.jsonl", {"token_ids": [1]}, WRONG[message])
    with pytest.raises(ValueError, match=rf"texts\.jsonl:2: .*{message}"):
        read_texts(path, vocabulary=9)


def test_an_empty_file_and_a_broken_archive_are_refused(tmp_path):
    with pytest.raises(ValueError, match="it has no record"):
        read_texts(written(tmp_path / "empty.jsonl", ""))
    broken = tmp_path / "broken.gz"
    whole = gzip.compress(b'{"token_ids": [1]}\n' * 2000)
    for content, line in ((whole[:30], 1), (whole + b"more", 2001)):
        broken.write_bytes(content)
        with pytest.raises(
            ValueError, match=rf"broken\.gz:{line}: .*expected a whole gzipped file"
        ):
            read_texts(str(broken))


RECORDS = '{"token_ids": [1]}\n' * 9
OTHERS = {
    "UTF-16: `iconv": RECORDS.encode("utf-16"),
    "UTF-16: `iconv -f UTF-16LE": RECORDS.encode("utf-16-le"),
    "UTF-16: `iconv -f UTF-16BE": RECORDS.encode("utf-16-be"),
    "packed by zstd: `zstd -d` unpacks it": b"\x28\xb5\x2f\xfd\x04\x00",
    "packed by bzip2": bz2.compress(RECORDS.encode()),
    "packed by xz": lzma.compress(RECORDS.encode()),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_file_of_another_kind_is_told_by_its_name_with_what_to_do(tmp_path, what):
    for name, content in (("plain", OTHERS[what]), ("gz", gzip.compress(OTHERS[what]))):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=rf"{name}: it is {what}.*; expected UTF-8"):
            read_texts(str(tmp_path / name))


def test_bytes_that_are_no_text_are_named_with_their_line_and_a_mark_is_passed_over(tmp_path):
    file = tmp_path / "t.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + RECORDS.encode())
    assert len(read_texts(str(file))) == 9
    file.write_bytes(RECORDS.encode() + b'{"prompt_id": "\xff"}\n')
    with pytest.raises(ValueError, match=r"t\.jsonl:10: .*position 15.*: expected UTF-8"):
        read_texts(str(file))


def test_texts_without_ids_are_compared_by_their_words_and_prompts(tmp_path):
    """A visitor's files: a prompt and a text; after "b" the first word is another one."""
    files = []
    for name in ("spec", "plain"):
        rows = [{"prompt": "a", "text": f"w{i % 7} and"} for i in range(400)]
        first = "never" if name == "spec" else "seldom"
        rows += [{"prompt": "b", "text": f"{first} and"} for _ in range(400)]
        files.append(written(tmp_path / name, *rows))
    told = CliRunner().invoke(main, ["compare", *files])
    assert told.exit_code == 2
    assert "it has text: expected token_ids, or --tokenizer FOLDER or words" in told.output
    told = CliRunner().invoke(main, ["compare", *files, "--tokenizer", "words"])
    assert told.exit_code == 1
    said = " ".join(told.output.split())
    assert "word 'never': 0.5 a text" in said or "word 'seldom': 0 a text" in said
    assert "most in prompt b" in said
    told = CliRunner().invoke(main, ["compare", *files, "--tokenizer", "nowhere"])
    assert "expected a folder with a tokenizer, or words" in told.output


def test_the_same_prompt_and_seed_counts_once(tmp_path):
    one = {"prompt_id": "a", "token_ids": [3], "seed": 1}
    texts = read_texts(written(tmp_path / "t.jsonl", one, one, {**one, "prompt_id": "b"}))
    assert (len(texts), texts.repeated) == (2, 1)
    files = [written(tmp_path / name, one, *more) for name, more in (("s", [one]), ("p", []))]
    said = " ".join(CliRunner().invoke(main, ["compare", *files]).output.split())
    assert "1 pairs of texts" in said
    assert "1 records of" in said
    assert "COUNTED ONCE" in said


def test_texts_are_paired_prompt_by_prompt(tmp_path):
    spec = [{"prompt_id": p, "token_ids": [t]} for p, t in [("a", 1), ("b", 2), ("a", 3)]]
    plain = [{"prompt_id": p, "token_ids": [t]} for p, t in [("b", 4), ("a", 5), ("c", 6)]]
    one, other = (
        read_texts(written(tmp_path / name, *rows))
        for name, rows in (("s.jsonl", spec), ("p.jsonl", plain))
    )
    pairs = paired(one, other)
    found = {*zip(one.tokens[pairs.spec], other.tokens[pairs.plain], strict=True)}
    assert found in ({(1, 5), (2, 4)}, {(3, 5), (2, 4)})
    assert pairs.left == (1, 1)
    assert pairs.alone == ["c"]


def test_files_that_do_not_go_together_are_refused(tmp_path):
    def read(name, **record):
        return read_texts(written(tmp_path / name, record))

    one = read("a.jsonl", prompt_id="a", token_ids=[1, 2], finish_reason="length")
    with pytest.raises(ValueError, match="expected prompts in common"):
        paired(one, read("b.jsonl", prompt_id="b", token_ids=[1]))
    shorter = read("c.jsonl", prompt_id="a", token_ids=[1], finish_reason="length")
    with pytest.raises(ValueError, match=r"cut after 2 tokens and .* after 1: .*--max-tokens"):
        paired(one, shorter)
    assert len(paired(one.cut(1), shorter)) == 1


def test_texts_that_do_not_say_why_they_ended_seem_cut_where_most_of_them_end(tmp_path):
    def read(name, *lengths):
        return read_texts(written(tmp_path / name, *({"token_ids": [1] * n} for n in lengths)))

    one = read("a.jsonl", 4, 4, 2)
    with pytest.raises(ValueError, match=r"cut after 4 tokens and .* after 3: .*--max-tokens"):
        paired(one, read("b.jsonl", 3, 3, 2))
    assert len(paired(one, read("c.jsonl", 1, 2, 3))) == 3  # each may have ended by itself


def test_two_tokenizers_are_refused(tmp_path):
    def read(name, shift, **more):
        rows = [
            {"text": str(i), "token_ids": [i + shift * (i < last)], **more} for i in range(1, 9)
        ]
        return read_texts(written(tmp_path / name, *rows))

    last = 9
    one = read("a.jsonl", 0)
    with pytest.raises(ValueError, match=r"'1' has the tokens \[1\] .* \[3\] .*one tokenizer"):
        paired(one, read("b.jsonl", 2))
    last = 8  # a text may be spelled in several ways
    assert len(paired(one, read("c.jsonl", 2))) == 8
    asked = read("d.jsonl", 0, prompt_id="a", prompt_token_ids=[1])
    with pytest.raises(ValueError, match=r"prompt a is \[1\] in .*d\.jsonl and \[2\]"):
        paired(asked, read("e.jsonl", 0, prompt_id="a", prompt_token_ids=[2]))


def test_what_a_cut_text_ended_by_depends_on_its_tokens_alone(tmp_path):
    """Of the longer file it says stop, of the one that was cut there length: the same text."""
    ended = [
        read_texts(written(tmp_path / name, {"token_ids": [1, 2], "finish_reason": name})).cut(2)
        for name in ("stop", "length")
    ]
    assert ended[0].endings == ended[1].endings == ["length"]
    unchanged = read_texts(written(tmp_path / "t", {"token_ids": [1], "finish_reason": "stop"}))
    assert unchanged.cut(2).endings == ["stop"]


def test_a_large_second_file_is_read_in_a_process_of_its_own(tmp_path, monkeypatch):
    files = [
        written(tmp_path / name, *({"token_ids": [i % 3], "logprobs": [-1]} for i in range(90)))
        for name in ("spec.jsonl", "plain.jsonl")
    ]
    told = CliRunner().invoke(main, ["compare", *files]).output
    monkeypatch.setattr(command, "LARGE", 0)
    monkeypatch.setattr(command, "cores", lambda: 2)
    monkeypatch.setattr(command, "worker_processes", pools := Pools(command.worker_processes))
    assert CliRunner().invoke(main, ["compare", *files]).output == told
    written(tmp_path / "plain.jsonl", {"token_ids": []})
    wrong = CliRunner().invoke(main, ["compare", *files])
    assert "plain.jsonl:1: token_ids is empty" in wrong.output
    assert pools.asked == [2, 2]


RECORD = {"token_ids": [1]}
WRONG_EXTRAS = {
    "faults = 3: expected a list": {**RECORD, "faults": 3},
    "drafted = -3: expected a number of tokens": {**RECORD, "drafted": -3},
    "drafted = True: ": {**RECORD, "drafted": True},
    "drafted = '3': ": {**RECORD, "drafted": "3"},
}


@pytest.mark.parametrize("message", WRONG_EXTRAS)
def test_what_a_record_says_besides_its_text_is_named_with_its_line(tmp_path, message):
    wrong = written(tmp_path / "wrong.jsonl", RECORD, WRONG_EXTRAS[message])
    right = written(tmp_path / "right.jsonl", RECORD)
    told = CliRunner().invoke(main, ["compare", wrong, right])
    assert f"wrong.jsonl:2: {message}" in told.output
    assert told.exit_code == 2


@pytest.mark.parametrize(
    "option",
    ["--temperature=-1", "--temperature=nan", "--top-p=2", "--logprob-tolerance=nan", "--seed=-1"],
)
def test_numbers_that_mean_nothing_are_refused(tmp_path, option):
    files = [written(tmp_path / name, RECORD) for name in ("spec.jsonl", "plain.jsonl")]
    told = CliRunner().invoke(main, ["compare", *files, option])
    assert option.partition("=")[0] in told.output
    assert "expected" in told.output or "range" in told.output


def test_a_file_is_not_compared_with_itself(tmp_path):
    one = written(tmp_path / "one.jsonl", RECORD)
    (tmp_path / "link.jsonl").symlink_to(one)
    for other in (one, str(tmp_path / "link.jsonl")):
        told = CliRunner().invoke(main, ["compare", one, other])
        assert "are one file: expected texts of two systems" in told.output
        assert told.exit_code == 2


class Pools:
    """Starts processes, and notes how many were asked for."""

    def __init__(self, start):
        self.start, self.asked = start, []

    def __call__(self, count):
        self.asked.append(count)
        return self.start(count)
