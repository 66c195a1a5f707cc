"""Finds model files: own paths, the local cache, carrier wheels, the hub; checked by hash."""

from rag_reliability.modelstore.catalogue import (
    Carriers,
    Entry,
    catalogue_path,
    model_requirements,
    read_catalogue,
)
from rag_reliability.modelstore.describe import describe_models
from rag_reliability.modelstore.files import cache_dir, file_sha256
from rag_reliability.modelstore.locate import ModelFiles, resolve

__all__ = [
    "Carriers",
    "Entry",
    "ModelFiles",
    "cache_dir",
    "catalogue_path",
    "describe_models",
    "file_sha256",
    "model_requirements",
    "read_catalogue",
    "resolve",
]
