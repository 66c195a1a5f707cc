"""The measurement against other libraries runs, and all sides return what they must."""

import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT


def test_other_stores_agree(tmp_path):
    pytest.importorskip("haystack")
    pytest.importorskip("llama_index.core")
    out = tmp_path / "stores.json"
    script = ROOT / "benchmarks" / "other_stores.py"
    options = ["--sizes", "500", "--seconds", "0", "--no-memory"]
    subprocess.run([sys.executable, script, out, *options], check=True, capture_output=True)

    found = json.loads(out.read_text())["sizes"]["500"]
    assert found["orders_equal"] == {
        "faiss": 1.0,
        "llamaindex": 1.0,
        "haystack, our ranker": 1.0,
        "haystack, our metadata_linear": 1.0,
    }
    assert set(found["wall"]["over_ours"]) == {
        *("ours", "ours_exact", "faiss", "haystack", "llamaindex")
    }
