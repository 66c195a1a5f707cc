"""A new study's folder: a corpus to replace, configs, notebooks and what to do next."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from rag_reliability.files import atomic_write_text, shipped, write_errors
from rag_reliability.records import InputError

TEMPLATE = Path(__file__).resolve().parents[1] / "template"
CONFIG, OUT = "configs/study.yaml", "reports/mine"
WEIGHTS = "$(python -m rag_reliability.modelstore requirements qwen2.5-coder-0.5b-instruct)"
_TAXONOMY = """
# A taxonomy of your own: rename the types above in every spread, then say how they are called,
# drawn and told to the model, which spread says what is low tier, and whom adversaries claim to be.
#
# taxonomy:
#   reference: current
#   low_at: 0.5
#   trusted: [peer_reviewed, government]
#   prompt: {trusted: research and government agencies, doubted: blogs and internet users}
#   types:
#     blog: {label: Blog, prompt: personal blog, colour: "#E69F00", marker: D}
"""


def lay_out(folder: str | Path) -> str:
    """Lay a study out in a new or empty folder; returns what to do next, as text.

    Raises InputError for a folder that holds anything, or a place that takes no files.
    """
    target = Path(folder).expanduser()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target}: is not an empty folder; init never writes over files")
    with write_errors(target):
        shutil.copytree(TEMPLATE, target, dirs_exist_ok=True)
        priors = shipped("configs/priors.yaml").read_text(encoding="utf-8")
        atomic_write_text(target / "configs" / "priors.yaml", priors + _TAXONOMY)
        (target / "notebooks").mkdir()
        for notebook in sorted(shipped("notebooks").glob("*.ipynb")):
            text = notebook.read_text(encoding="utf-8")
            atomic_write_text(target / "notebooks" / notebook.name, _own_config(text))
    return (
        f"{target}: a study of three questions, to be replaced by yours (README.md says how)\n"
        f"next: cd {target}\n"
        "      rag-reliability validate corpus/mine\n"
        '      rag-reliability search "Can coffee grounds be composted?"\n'
        f"      pip install {WEIGHTS}\n"
        f"      rag-reliability run --config {CONFIG} --out {OUT}"
    )


def _own_config(text: str) -> str:
    """A notebook whose cell of parameters names this study's config."""
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        if "parameters" in cell["metadata"].get("tags", []):
            source = "".join(cell["source"]).replace('"configs/paper.yaml"', f'"{CONFIG}"')
            cell["source"] = source.splitlines(keepends=True)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
