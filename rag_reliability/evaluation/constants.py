"""The numbers in ``configs/grounding.yaml`` that scorers of answers are built with."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from rag_reliability.records import InputError


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Banded(_Frozen):
    """Platt's slope and intercept, and the two thresholds that part the bands."""

    slope: float = Field(gt=0)
    intercept: float
    unsupported_below: float = Field(ge=0, le=1)
    supported_from: float = Field(ge=0, le=1)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.unsupported_below > self.supported_from:
            raise ValueError("unsupported_below must not be above supported_from")
        return self


class BlendConstants(_Banded):
    """Means and deviations of the blend's two parts, Platt's constants, and bands."""

    cosine_mean: float
    cosine_std: float = Field(gt=0)
    alignment_mean: float
    alignment_std: float = Field(gt=0)


class CoverageConstants(_Banded):
    """Mean and deviation of the alignment, weight of the gap, Platt's constants, and bands."""

    alignment_mean: float
    alignment_std: float = Field(gt=0)
    gap_weight: float = Field(ge=0)


class ContrastConstants(_Frozen):
    """Constants of the contrastive verdict: see ``contrast.PairJudge``."""

    temperature: float = Field(gt=0)
    cue_weight: float = Field(ge=0)
    band: float = Field(ge=0)
    floor: float = Field(ge=-1, le=1)


class ScoringConstants(_Frozen):
    """What ``configs/grounding.yaml`` holds; fields that report its measurement are not read.

    Where ``coverage`` is there it is the default scorer's, and ``blend`` the one before it.
    """

    blend: BlendConstants
    coverage: CoverageConstants | None = None
    contrast: ContrastConstants


def load_constants(path: str | Path) -> ScoringConstants:
    """Constants written by ``benchmarks/calibrate_grounding.py``.

    Raises: InputError, one line, naming the file and the field.
    """
    try:
        loaded = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        return ScoringConstants.model_validate(loaded)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(
            f"{path}: cannot be read as YAML: {' '.join(str(error).split())}"
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "file"
        raise InputError(f"{path}: {field}: {first['msg']}") from error
