"""What a question on the command line loads, and what it must not wait for."""

from __future__ import annotations

import subprocess
import sys

import pytest

SLOW = ("ranx", "numba", "scipy.stats", "matplotlib", "torch", "transformers", "IPython")


@pytest.mark.parametrize(
    "module", ["rag_reliability.cli", "rag_reliability.experiment.interactive"]
)
def test_the_interactive_path_imports_nothing_slow(module):
    """torch comes with the encoder, once there is something to encode; ranx and numba never do."""
    program = f"import sys, {module}; print([m for m in {SLOW!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


def test_a_search_compiles_nothing(health120):
    """A whole search, in a process of its own, without ranx, numba or scipy.stats of ours."""
    program = """
import sys
from rag_reliability.cli import main
main(["search", "Is honey safe for infants?", "-p", "k", "2"])
print([m for m in ("ranx", "numba", "matplotlib") if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().splitlines()[-1] == "[]"
