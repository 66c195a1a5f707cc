"""What a question on the command line loads, and what it must not wait for."""

from __future__ import annotations

import subprocess
import sys

import pytest

SLOW = ("ranx", "numba", "scipy.stats", "matplotlib", "torch", "transformers", "IPython", "pandas")
NOT_FOR_A_SEARCH = (
    *("ranx", "numba", "matplotlib", "scipy.stats", "sklearn"),
    *("sentence_transformers", "datasets", "pandas", "pyarrow"),
)


@pytest.mark.parametrize(
    "module", ["rag_reliability.cli", "rag_reliability.experiment.interactive"]
)
def test_the_interactive_path_imports_nothing_slow(module):
    """torch comes with the encoder, once there is something to encode; ranx and numba never do."""
    program = f"import sys, {module}; print([m for m in {SLOW!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


def test_a_search_loads_only_what_it_needs(health120):
    """A whole search, in a process of its own: transformers and faiss, and no tables or metrics."""
    program = f"""
import sys
from rag_reliability.cli import main
main(["search", "Is honey safe for infants?", "-p", "k", "2"])
print([m for m in {NOT_FOR_A_SEARCH!r} if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().splitlines()[-1] == "[]"
