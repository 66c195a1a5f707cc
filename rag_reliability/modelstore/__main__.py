"""``python -m rag_reliability.modelstore requirements NAME...``: pip requirements, one a line."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rag_reliability.modelstore.catalogue import model_requirements


def main(arguments: Sequence[str]) -> int:
    """``requirements NAME...``: print the pip requirements of those models, one a line."""
    if len(arguments) < 2 or arguments[0] != "requirements":
        print("usage: python -m rag_reliability.modelstore requirements NAME...", file=sys.stderr)
        return 2
    try:
        print("\n".join(model_requirements(arguments[1:])))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
