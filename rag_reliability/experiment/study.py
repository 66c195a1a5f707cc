"""A study: one config, corpus and run folder, and the keys by which its artefacts are known."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rag_reliability import modelstore
from rag_reliability.artefacts import StageResult, Store, stage_key
from rag_reliability.config import ExperimentConfig, load_config
from rag_reliability.datasets.read import read_corpus
from rag_reliability.files import sha256_file, shipped
from rag_reliability.language import Language, load_language
from rag_reliability.records import Corpus, InputError
from rag_reliability.reliability.priors import PriorTables, load_priors
from rag_reliability.reliability.taxonomy import Taxonomy, load_taxonomy

PACKAGE = Path(__file__).resolve().parents[1]


def project_root() -> Path:
    """The folder that holds ``configs/``: the nearest above the working directory, else ours.

    Ours is the checkout, or what an installed package brings along (``files.shipped``).
    """
    for folder in (Path.cwd(), *Path.cwd().parents):
        if (folder / "configs" / "priors.yaml").is_file():
            return folder
    return shipped()


def outputs_root(root: Path) -> Path:
    """Where relative output folders lie: the project, or the working directory if there is none."""
    return Path.cwd() if root == shipped() and root != PACKAGE.parent else root


@dataclass(frozen=True, eq=False)
class Study:
    """A run's config and folder. Cheap to make; what it reads is read once, on first use."""

    config: ExperimentConfig
    store: Store
    root: Path
    _done: dict[str, tuple[str, StageResult]] = field(default_factory=dict, repr=False)

    @cached_property
    def priors(self) -> PriorTables:
        """The prior tables named by the config."""
        return load_priors(self.path(self.config.priors))

    @cached_property
    def corpus(self) -> Corpus:
        """The corpus, checked; every source type needs a prior unless ``unknown_prior`` is set."""
        known = None if self.config.unknown_prior else self.priors.known_types
        folder, priors = self.path(self.config.corpus), self.path(self.config.priors)
        return read_corpus(folder, known_types=known, known_in=priors)

    def need_topics(self) -> None:
        """Refuse a corpus that can be searched but not experimented on.

        Raises InputError naming the folder.
        """
        if not self.corpus.topics or not self.corpus.qrels:
            raise InputError(f"{self.config.corpus}: an experiment needs topics and qrels")

    @cached_property
    def corpus_digest(self) -> str:
        """sha256 over the corpus folder's data files, by name and content."""
        folder = self.path(self.config.corpus)
        digest = hashlib.sha256()
        for file in sorted(folder.rglob("*")):
            if file.suffix in {".jsonl", ".txt", ".tsv"}:
                digest.update(f"{file.relative_to(folder)} {sha256_file(file)}\n".encode())
        return digest.hexdigest()

    @cached_property
    def taxonomy(self) -> Taxonomy:
        """Names and words of source types, and which count as low or trusted."""
        return load_taxonomy(self.path(self.config.priors), self.priors, self.config.spread)

    @cached_property
    def language(self) -> Language:
        """Prompts and word lists, with this taxonomy's words for its source types."""
        spoken = load_language(self.path(self.config.languages), self.config.language)
        own = {kind: words.prompt for kind, words in self.taxonomy.types.items() if words.prompt}
        trusted, doubted = self.taxonomy.whom or ("", "")
        if not trusted and not set(self.priors.known_types) <= set(spoken.source_types):
            names = {**spoken.source_types, **own}
            trusted, doubted = (
                ", ".join(names.get(kind, kind.replace("_", " ")) for kind in kinds)
                for kinds in self._by_tier()
            )
        return spoken.believing(own, trusted, doubted)

    def _by_tier(self) -> tuple[list[str], list[str]]:
        """Source types above the low tier and in it, in the table's order."""
        table = self.priors.table(self.taxonomy.reference)
        high = [kind for kind, prior in table.items() if prior > self.taxonomy.low_at]
        return high, [kind for kind in table if kind not in high]

    @property
    def table(self) -> Mapping[str, float]:
        """Prior of each source type under the config's spread."""
        return self.priors.table(self.config.spread)

    @property
    def run_dir(self) -> Path:
        """The run's folder."""
        return self.store.run_dir

    def path(self, name: str) -> Path:
        """A config path, read relative to the project's root.

        A file under ``configs/`` that the project has not got is the package's own.
        """
        own = self.root / Path(name).expanduser()
        return shipped(name) if name.startswith("configs/") and not own.exists() else own

    def model_sha(self, name: str) -> str:
        """Hash of a model's weights: what an artefact made with it depends on."""
        return modelstore.resolve(name).sha256

    def key(self, stage: str) -> str:
        """Key of a stage that has been made or reused in this run's folder."""
        return str(self.store.sidecar(stage)["key"])

    def stage(
        self,
        name: str,
        *,
        inputs: Mapping[str, Any],
        code: tuple[str, ...],
        libraries: tuple[str, ...] = (),
        outputs: tuple[str, ...],
        build: Callable[[Path], None],
    ) -> StageResult:
        """Make a stage's outputs, or reuse them when inputs, code and libraries are unchanged.

        ``code`` names the package's folders and files whose source the outputs depend on.
        """
        known = {**inputs, "libraries": {name: version(name) for name in libraries}}
        key = stage_key(name, known, source_files(code))
        # Many stages ask for the same earlier one; it is checked, and spoken of, once a process.
        if self._done.get(name, (None,))[0] != key:
            result = self.store.stage(name, key, outputs, build, meta={"inputs": known})
            self._done[name] = (key, result)
        return self._done[name][1]


def source_files(code: tuple[str, ...]) -> list[Path]:
    """Python sources of the package's folders and files in ``code``, sorted."""
    files: set[Path] = set()
    for part in code:
        path = PACKAGE / part
        files.update(path.rglob("*.py") if path.is_dir() else [path])
    return sorted(files)


def parameters_from(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """The plain scalars a notebook's parameters cell has set; None means "as the config says".

    Names that start with an underscore and IPython's own are passed over. Whatever else is a
    scalar must be a parameter, so a misspelt ``papermill -p`` is refused and not merely warned of.
    """
    own = {"In", "Out", "exit", "quit"}
    scalars = {
        name: value
        for name, value in namespace.items()
        if not name.startswith("_")
        and name not in own
        and isinstance(value, str | int | float | bool)
    }
    return scalars


def prepare_notebook() -> None:
    """In a notebook, show figures made without pyplot, long cells whole, corpora as displays."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        return
    import pandas as pd
    from IPython.core.pylabtools import select_figure_formats

    from rag_reliability.experiment.displays import register

    register(shell)
    select_figure_formats(shell, {"retina"})
    pd.set_option("display.max_colwidth", 200, "display.max_columns", 30)


def open_study(parameters: Mapping[str, Any], *, say: Callable[[str], None] = print) -> Study:
    """Study from scalars: ``config_file``, ``out``, and any field of ExperimentConfig.

    A notebook passes ``globals()``. Raises InputError for unknown names and bad values, also of a
    language: what never looks at it, as a search, would else answer to a name that does not exist.
    """
    prepare_notebook()
    given = parameters_from(parameters)
    root = project_root()
    file = given.pop("config_file", "configs/paper.yaml")
    out = given.pop("out", "reports/paper")
    config = load_config(root / str(file), **given)
    study = Study(config, Store(outputs_root(root) / str(out), say=say), root)
    load_language(study.path(config.languages), config.language)
    return study
