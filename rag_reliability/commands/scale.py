"""Encode a large corpus on Dask workers."""

from __future__ import annotations

import argparse
from typing import Any

from rag_reliability.commands.base import here


def add(commands: Any) -> None:
    """Declare ``encode``."""
    encode = commands.add_parser("encode", help="encode a corpus, shard by shard, on Dask workers")
    encode.add_argument("--data", required=True, help="corpus folder, BEIR's layout or our own")
    encode.add_argument("--out", required=True, help="folder of shards; begun work goes on")
    encode.add_argument("--workers", type=int, help="processes of this machine (default: 2)")
    encode.add_argument("--scheduler", metavar="ADDRESS", help="a running Dask cluster instead")
    encode.add_argument("--encoder", default="all-minilm-l6-v2", help="default: %(default)s")
    encode.add_argument(
        "--dtype", default="auto", help="auto, float32, bfloat16 or int8 (default: %(default)s)"
    )
    encode.add_argument(
        "--shard", type=int, default=4096, help="documents of a shard (default: %(default)s)"
    )
    encode.set_defaults(run=_encode)


def _encode(args: argparse.Namespace) -> None:
    from rag_reliability.records import InputError
    from rag_reliability.scale.encode import encode_corpus
    from rag_reliability.sweep.cluster import connected

    if args.shard < 1:
        raise InputError(f"--shard {args.shard}: expected a whole number >= 1")
    with connected(args.workers, args.scheduler, None, print) as client:
        n = encode_corpus(
            here(args.data),
            here(args.out, written=True),
            client,
            encoder=args.encoder,
            dtype=args.dtype,
            size=args.shard,
        )
    print(f"{args.out}: {n} documents encoded")
