"""What a sweep looks at before it starts, and how many runs it sends at once."""

from __future__ import annotations

import pytest

from rag_reliability.records import InputError
from rag_reliability.sweep.main import run_sweeps
from rag_reliability.sweep.schedule import room

from .test_sweep import BASE, written


def test_no_more_is_sent_than_there_are_workers():
    assert [room(2, 0), room(2, 1), room(2, 2), room(0, 0)] == [2, 1, 0, 1]
    assert room(1, 3) == room(0, 2) == 0  # workers have left


def test_each_language_is_looked_at_before_any_run_starts(tmp_path):
    path = written(tmp_path, BASE.replace("spread: [none, current]", "language: [en, xx]"))
    out = tmp_path / "out"
    with pytest.raises(InputError, match=r"language-xx.*'xx'"):
        run_sweeps([path], str(out), scheduler="tcp://127.0.0.1:1")
    assert not out.exists()
