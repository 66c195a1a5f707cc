"""One experiment's parameters: plain scalars, checked once, then never changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from rag_reliability.records import InputError


class ExperimentConfig(BaseModel):
    """Everything a run depends on. Unknown names are refused; paths are relative to the project.

    Raises (through ``load_config``): InputError naming the parameter, its value and what it takes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    corpus: str = Field(
        "corpus/health120", description="folder of documents.jsonl, topics.jsonl, qrels.txt"
    )
    priors: str = Field("configs/priors.yaml", description="prior tables by source type and spread")
    spread: str = Field("current", description="named spread of the priors")
    language: str = Field("en", description="language of prompts and word lists, by its code")
    languages: str = Field(
        "configs/languages.yaml", description="file of the languages' prompts and word lists"
    )
    unknown_prior: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="prior of a source type the table lacks; null refuses such documents"
    )
    encoder: str = Field("all-minilm-l6-v2", description="name in models.yaml, or a path")
    encoder_dtype: Literal["float32", "auto", "bfloat16", "int8"] = Field(
        "float32",
        description="the encoder's arithmetic; float32 gives the same vectors on any machine, auto "
        "what was measured to be fastest on this one and stays within .99 cosine of it",
    )
    index_kind: Literal["flat", "ivf", "hnsw"] = Field(
        "flat",
        description="search in each partition: flat is exact, ivf (clusters) and hnsw (a graph) "
        "may miss documents; partitions of few documents are always flat",
    )
    index_nlist: int = Field(0, ge=0, description="ivf: clusters a partition; 0 takes √n")
    index_nprobe: int = Field(16, ge=1, description="ivf: clusters looked into; all of them: exact")
    index_m: int = Field(32, ge=2, description="hnsw: links a document")
    index_ef_search: int = Field(128, ge=1, description="hnsw: candidates kept while searching")
    backend: Literal["faiss", "milvus"] = Field(
        "faiss", description="who searches: faiss in this process, or Milvus at milvus_uri"
    )
    milvus_uri: str | None = Field(
        None,
        description="http(s)://host:port, or a file ending in .db (Milvus Lite); "
        "credentials belong in the environment variable MILVUS_TOKEN",
    )
    generator: str = Field(
        "qwen2.5-coder-1.5b-instruct", description="name in models.yaml, hub id or path"
    )
    stance_model: str | None = Field(
        None, description="model that reads stances: generator or NLI; null takes the generator"
    )
    k: int = Field(5, ge=1, le=100, description="documents kept for each topic")
    window: int | Literal["exact"] = Field(
        "exact",
        description="rank window of source_aware: only the most similar this many are reranked",
    )
    expansion: int = Field(3, ge=1, description="window of the study's systems, in multiples of k")
    smoothing_alpha: float = Field(
        0.3, ge=0, le=1, description="weight of the neighbours' mean prior"
    )
    smoothing_neighbours: int = Field(5, ge=1, description="neighbours of each document")
    feedback_rate: float = Field(0.2, gt=0, le=1, description="step of the post-query prior update")
    feedback_epochs: int = Field(3, ge=1, description="passes over the learning topics")
    folds: int = Field(5, ge=2, description="folds that keep learning and reported topics apart")
    answer_systems: tuple[str, ...] = Field(
        ("similarity", "source_aware_3k", "source_aware"),
        description="systems whose answers are generated",
    )
    arms: tuple[str, ...] = Field(("plain", "credibility_in_prompt"), description="prompts tried")
    max_new_tokens: int = Field(96, ge=8, le=1024, description="longest answer, in tokens")
    batch_size: int = Field(20, ge=1, description="prompts generated together")
    threat_rules: tuple[str, ...] = Field(
        (), description="rules that notebook 08 sets against spoofed labels; none given: its own"
    )
    testbed: str | None = Field(
        None,
        description="folder of a second, real corpus for notebooks 08 and 10; null leaves it out",
    )
    answer_topics: int = Field(
        8, ge=1, description="topics of that corpus which notebook 10 answers and reads stances of"
    )
    n_resamples: int = Field(10_000, ge=100, description="bootstrap and permutation resamples")
    labelled_pairs: str | None = Field(
        None, description="labelled pairs (JSON Lines) for notebook 11; null leaves them out"
    )
    check_pairs: int = Field(
        400, ge=10, description="pairs of each labelled set that notebook 11 scores, about"
    )
    seed: int = Field(7, ge=0, description="seed of every random draw")

    @field_validator("window")
    @classmethod
    def _window(cls, value: int | str) -> int | str:
        if isinstance(value, int) and value < 1:
            raise ValueError("takes a whole number >= 1, or exact")
        return value

    @field_validator("milvus_uri")
    @classmethod
    def _no_secrets(cls, value: str | None) -> str | None:
        # Configs are recorded beside every artefact.
        if value and "@" in value:
            raise ValueError("holds credentials: set MILVUS_TOKEN instead")
        return value

    @model_validator(mode="after")
    def _window_holds_k(self) -> ExperimentConfig:
        if isinstance(self.window, int) and self.window < self.k:
            raise ValueError(f"window = {self.window} is smaller than k = {self.k}")
        return self

    @field_validator("arms", "answer_systems", "threat_rules", mode="before")
    @classmethod
    def _words(cls, value: Any) -> Any:
        """Papermill hands over scalars, so lists may come as one comma-separated string."""
        if isinstance(value, str):
            return tuple(word.strip() for word in value.split(",") if word.strip())
        return tuple(value) if isinstance(value, list) else value


def load_config(path: str | Path | None = None, /, **overrides: Any) -> ExperimentConfig:
    """Config from a YAML file and overrides (overrides win).

    Raises InputError, one line, for a missing or malformed file, an unknown name or a bad value.
    """
    values: dict[str, Any] = {}
    if path is not None:
        try:
            loaded = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise InputError(
                f"{path}: cannot be read as YAML: {' '.join(str(error).split())}"
            ) from error
        if loaded is not None and not isinstance(loaded, Mapping):
            raise InputError(f"{path}: expected a mapping of parameter: value")
        values.update(loaded or {})
    values.update(overrides)
    try:
        return ExperimentConfig(**values)
    except ValidationError as error:
        raise InputError(_one_line(error, path)) from error


def _one_line(error: ValidationError, path: str | Path | None) -> str:
    first = error.errors()[0]
    where = f"{path}: " if path else ""
    if not first["loc"]:
        return f"{where}{first['msg'].removeprefix('Value error, ')}"
    name = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        known = ", ".join(sorted(ExperimentConfig.model_fields))
        return f"{where}unknown parameter {name!r}; known: {known}"
    message = first["msg"].removeprefix("Value error, ")
    return f"{where}parameter {name!r} = {json.dumps(first['input'], default=str)}: {message}"
