"""A corpus encoded shard by shard on Dask workers: streaming, resumable, safe against dead ones.

The folder of results must be one that all workers see. A shard's files are written under another
name and renamed, its record last, so a worker that dies leaves nothing half written; Dask gives
its shard to another. What is there is not made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tqdm import tqdm

from rag_reliability import modelstore
from rag_reliability.experiment.shards import (
    MANIFEST,
    SHARD,
    Recipe,
    done,
    encode_shard,
    plan,
    write_manifest,
)
from rag_reliability.files import run_lock
from rag_reliability.records import InputError

if TYPE_CHECKING:
    from distributed import Client

AHEAD = 3
"""Tasks that the scheduler holds for each worker: none waits, and a million need not fit."""
T = TypeVar("T")


def encode_corpus(
    data: str | Path,
    out: str | Path,
    client: Client,
    *,
    encoder: str,
    dtype: str = "auto",
    size: int = SHARD,
    progress: bool = True,
) -> int:
    """Encode a corpus folder into ``out`` on ``client``'s workers; returns its documents' number.

    ``dtype`` auto is settled here, once, so that all workers compute in the same arithmetic.

    Raises InputError for bad documents, by file and line; for a shard that killed several workers.
    """
    folder = Path(out)
    recipe = _recipe(encoder, dtype)
    with run_lock(folder):
        shards = list(plan(Path(data), size))
        if not shards:
            raise InputError(f"{data}: no documents")
        todo = [shard for shard in shards if not done(shard, folder, recipe)]
        total, left = (sum(s.rows for s in part) for part in (shards, todo))
        if todo:  # until all are made, old and new shards lie side by side
            (folder / MANIFEST).unlink(missing_ok=True)
        with tqdm(total=total, initial=total - left, unit="document", disable=not progress) as bar:
            where = str(folder.resolve())
            for record in on_workers(client, encode_shard, ((s, where, recipe) for s in todo)):
                bar.update(record["rows"])
        return write_manifest(folder, recipe, shards)


def on_workers(
    client: Client, task: Callable[..., T], calls: Iterable[tuple[Any, ...]]
) -> Iterator[T]:
    """Results of ``task(*call)`` as workers finish them; few are under way at any time.

    Workers that join later get their share, as those of a batch system do. A worker that dies
    loses its task to another one. Works for loading as for encoding:
    ``on_workers(client, load, ((folder, name) for name in shards))``.

    Raises InputError where a task killed several workers; whatever ``task`` raises.
    """
    from distributed import KilledWorker, as_completed

    waiting, running = iter(calls), as_completed()

    def top_up() -> None:
        free = AHEAD * max(1, len(client.nthreads())) - running.count()
        for call in islice(waiting, max(0, free)):
            running.add(client.submit(task, *call, pure=False))

    top_up()
    for future in running:
        try:
            yield future.result()
        except KilledWorker as error:
            raise InputError(
                f"several workers died of one task ({error}); was there memory enough?"
            ) from error
        future.release()
        top_up()


def _recipe(encoder: str, dtype: str) -> Recipe:
    from rag_reliability.experiment.encoding import settled

    files = modelstore.resolve(encoder)
    return Recipe(str(files.path), files.sha256, settled(files.path, dtype))
