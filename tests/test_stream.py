"""Streaming vectors to disk: whole, repeated, killed midway and taken up again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from rag_reliability.modelstore import resolve
from rag_reliability.records import InputError
from rag_reliability.retrieval.encode import load_encoder
from rag_reliability.retrieval.stream import encode_to, forget

TEXTS = [f"Text {i} says that {i % 7} of {i} people slept well." for i in range(40)]
TEXTS[33] = TEXTS[2]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder(resolve("all-minilm-l6-v2").path)


@pytest.fixture(scope="module")
def whole(encoder, tmp_path_factory):
    """The file of a run that nothing disturbed."""
    path = tmp_path_factory.mktemp("whole") / "vectors.npy"
    encode_to(path, iter(TEXTS), encoder, block=8, about="test")
    return path


def test_the_file_holds_what_encode_gives(encoder, whole):
    vectors = np.load(whole, mmap_mode="r")
    assert vectors.shape == (40, 384) and vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, encoder.encode(TEXTS), atol=1e-6)
    np.testing.assert_array_equal(vectors[33], vectors[2])  # of different blocks
    assert {p.name for p in whole.parent.iterdir()} == {"vectors.npy", "vectors.npy.json"}


PROGRAM = """
import sys, time
from pathlib import Path
from rag_reliability.modelstore import resolve
from rag_reliability.retrieval.encode import load_encoder
from rag_reliability.retrieval.stream import encode_to
from tests.test_stream import TEXTS

def slowly():
    for i, text in enumerate(TEXTS):
        if i == 24:
            Path(sys.argv[1] + ".waiting").touch()
            time.sleep(600)
        yield text

encoder = load_encoder(resolve("all-minilm-l6-v2").path)
encode_to(sys.argv[1], slowly(), encoder, block=8, about="test")
"""


def test_a_killed_run_goes_on_and_ends_in_the_same_bytes(encoder, whole, tmp_path):
    path, begun = tmp_path / "vectors.npy", tmp_path / "vectors.npy.partial"
    child = subprocess.Popen([sys.executable, "-c", PROGRAM, str(path)], cwd=Path.cwd())
    deadline = time.monotonic() + 300
    while not (tmp_path / "vectors.npy.waiting").exists() and time.monotonic() < deadline:
        assert child.poll() is None
        time.sleep(0.1)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert not path.exists()
    assert json.loads((tmp_path / "vectors.npy.json").read_text())["rows"] == 24
    with begun.open("ab") as file:
        file.write(b"half a row")

    read = []

    class Counting:
        dim = encoder.dim

        def encode(self, texts):
            read.extend(texts)
            return encoder.encode(texts)

    encode_to(path, iter(TEXTS), Counting(), block=8, about="test")
    assert read == TEXTS[24:]
    assert path.read_bytes() == whole.read_bytes()
    assert not begun.exists()
    # Finished, and killed before anybody took the file: found again, under either of its names.
    encode_to(path, iter(TEXTS), Counting(), block=8, about="test")
    path.replace(begun)
    encode_to(path, iter(TEXTS), Counting(), block=8, about="test")
    assert read == TEXTS[24:] and path.read_bytes() == whole.read_bytes()
    for other in (TEXTS[::-1], TEXTS[:8], [*TEXTS, "one more"]):
        with pytest.raises(InputError, match=r"vectors\.npy: was begun with other texts"):
            encode_to(path, other, Counting(), block=8, about="test")
    assert path.read_bytes() == whole.read_bytes()
    path.write_bytes(whole.read_bytes()[:-1])  # rows that are not there count for nothing
    encode_to(path, iter(TEXTS), Counting(), block=8, about="test")
    assert read == TEXTS[24:] + TEXTS and path.read_bytes() == whole.read_bytes()
    forget(path)
    assert not list(tmp_path.glob("vectors.npy")) + list(tmp_path.glob("*.json"))


def broken_off(path, encoder, texts=TEXTS):
    """Work that a text without words stopped after two blocks."""
    with pytest.raises(InputError, match="in the texts from number 16 on: text 1 is empty"):
        encode_to(path, [*texts[:17], " ", *texts[18:]], encoder, block=8, about="test")


def test_other_texts_are_not_mixed_into_begun_work(encoder, tmp_path):
    path = tmp_path / "vectors.npy"
    broken_off(path, encoder)
    for other in (TEXTS[::-1], TEXTS[:9]):
        with pytest.raises(InputError, match="was begun with other texts"):
            encode_to(path, other, encoder, block=8, about="test")
    assert not path.exists()


def test_more_texts_do_not_hide_that_they_are_others(encoder, tmp_path):
    """All rows are there but for the last one's name; what follows would begin inside a block."""
    path = tmp_path / "vectors.npy"
    path.mkdir()  # in the way when the file gets its name
    with pytest.raises(OSError, match="directory"):
        encode_to(path, TEXTS[:12], encoder, block=8, about="test")
    path.rmdir()
    with pytest.raises(InputError, match="was begun with other texts"):
        encode_to(path, TEXTS[::-1][:16], encoder, block=8, about="test")


def test_work_of_another_model_is_thrown_away(encoder, whole, tmp_path):
    path = tmp_path / "vectors.npy"
    broken_off(path, encoder, TEXTS[::-1])
    assert encode_to(path, TEXTS, encoder, block=8, about="another").shape == (40, 384)
    np.testing.assert_array_equal(np.load(path), np.load(whole))


def test_no_texts_make_an_empty_file(encoder, tmp_path):
    assert encode_to(tmp_path / "none.npy", [], encoder).shape == (0, 384)
    assert np.load(tmp_path / "none.npy").shape == (0, 384)
