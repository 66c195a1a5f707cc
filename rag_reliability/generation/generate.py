"""Greedy generation of many answers at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from rag_reliability.records import InputError
from rag_reliability.text import plain, sentences, strip_citations

if TYPE_CHECKING:
    import torch

    from rag_reliability.generation.models import Generator


def generate(
    generator: Generator,
    prompts: Sequence[Sequence[int]],
    *,
    max_new_tokens: int = 96,
    batch_size: int = 8,
    language: str = "en",
    progress: bool = True,
) -> list[str]:
    """Answer to each prompt (token ids), greedily, in the order given.

    An answer cut off at ``max_new_tokens`` ends after its last complete sentence, if it has one;
    ``language`` is the code by which sentences are told apart.
    Equal prompts are generated once. Each distinct prompt is read alone, going on from what it
    has in common with the one before it in sorted order, and continued in a batch of at most
    ``batch_size`` rows, which a row leaves when it is finished.

    The same set of prompts and the same ``batch_size`` give the same answers in any order, on the
    same machine and thread count. Across batch sizes and other sets: in float32 logits agree to
    about 1e-4, so that answers differ only where two tokens are nearer than that; in bfloat16 the
    sums depend on a batch's shape to about ± 0.1, a near tie can fall either way, and all after
    it differs. No arithmetic whose sums are rounded by shape can promise more.

    Raises InputError for a prompt that does not fit the model's context, ValueError for an empty
    one or a ``batch_size`` or ``max_new_tokens`` below 1.
    """
    if batch_size < 1 or max_new_tokens < 1:
        raise ValueError("batch_size and max_new_tokens must be at least 1")
    answers: dict[tuple[int, ...], str] = {}
    total = len(set(map(tuple, prompts)))
    with tqdm(total=total, unit="answer", desc="generating", disable=not progress) as bar:
        tokens = 0
        for prompt, kept in _continued(generator, prompts, batch_size, max_new_tokens):
            tokens += len(kept)
            answers[prompt] = _text(
                generator, kept, language if len(kept) == max_new_tokens else None
            )
            bar.update()
            bar.set_postfix_str(f"{tokens / max(bar.format_dict['elapsed'], 1e-9):.0f} tokens/s")
    return [answers[tuple(prompt)] for prompt in prompts]


def first_logits(
    generator: Generator, prompts: Sequence[Sequence[int]], *, batch_size: int, progress: bool
) -> Iterator[tuple[tuple[int, ...], torch.Tensor]]:
    """Each distinct prompt and its next-token logits, float32 (vocabulary,).

    Raises as ``generate``.
    """
    total = len(set(map(tuple, prompts)))
    with tqdm(total=total, unit="prompt", desc="reading", disable=not progress) as bar:
        from rag_reliability.generation.decode import keeps_states, read

        if keeps_states(generator.model):
            for prompt, row, _ in read(generator.model, sorted(_checked(generator, prompts, 1))):
                yield prompt, row.float().cpu()
                bar.update()
            return
        for batch in batches(generator, prompts, batch_size, 1):
            logits = _run(generator, batch, 1, output_logits=True).logits[0].float().cpu()
            yield from zip(batch, logits, strict=True)
            bar.update(len(batch))


def batches(
    generator: Generator, prompts: Sequence[Sequence[int]], batch_size: int, new_tokens: int
) -> Iterator[list[tuple[int, ...]]]:
    """Distinct prompts, longest first, in batches; a batch that is too large fails at the start.

    Raises as ``generate``.
    """
    distinct = _checked(generator, prompts, new_tokens)
    for start in range(0, len(distinct), batch_size):
        yield distinct[start : start + batch_size]


def _checked(
    generator: Generator, prompts: Sequence[Sequence[int]], new_tokens: int
) -> list[tuple[int, ...]]:
    """Distinct prompts, longest first; refuses those that the model cannot hold."""
    distinct = sorted(set(map(tuple, prompts)), key=lambda p: (-len(p), p))
    if distinct and not distinct[-1]:
        raise ValueError("a prompt without tokens")
    context = getattr(generator.model.config, "max_position_embeddings", None)
    if distinct and context and len(distinct[0]) + new_tokens > context:
        raise InputError(
            f"a prompt of {len(distinct[0])} tokens and {new_tokens} new ones exceed "
            f"{generator.name}'s context of {context}: show fewer or shorter passages"
        )
    return distinct


def _continued(
    generator: Generator, prompts: Sequence[Sequence[int]], batch_size: int, new_tokens: int
) -> Iterator[tuple[tuple[int, ...], list[int]]]:
    """Each distinct prompt and the tokens that follow it, up to an end token."""
    from rag_reliability.generation.decode import decode, keeps_states

    model: Any = generator.model
    if keeps_states(model):
        distinct = _checked(generator, prompts, new_tokens)
        yield from decode(model, distinct, batch_size=batch_size, new_tokens=new_tokens)
        return
    for batch in batches(generator, prompts, batch_size, new_tokens):
        new = _run(generator, batch, new_tokens).sequences[:, len(batch[0]) :]
        for prompt, row in zip(batch, new.tolist(), strict=True):
            yield prompt, _until_end(row, generator)


def complete_sentences(text: str, language: str = "en") -> str:
    """``text`` up to its last complete sentence; all of it if there is none.

    A citation mark alone on the last line opened a sentence that was never written.
    """
    lines = text.strip().split("\n")
    if len(lines) > 1 and not strip_citations(lines[-1]):
        text = "\n".join(lines[:-1])
    parts = sentences(text, language)
    if len(parts) < 2 or strip_citations(parts[-1]).rstrip("\"'”’)*").endswith((".", "!", "?")):
        return text.strip()
    return " ".join(parts[:-1])


def _run(
    generator: Generator, batch: Sequence[Sequence[int]], new_tokens: int, **options: Any
) -> Any:
    """Greedy generation by transformers, left-padded, for models that remember in other ways.

    Positions are derived from the attention mask.
    """
    import torch

    model: Any = generator.model
    config = model.generation_config
    width = len(batch[0])
    pads = [width - len(prompt) for prompt in batch]
    ids = [[config.pad_token_id] * n + list(p) for n, p in zip(pads, batch, strict=True)]
    mask = [[0] * n + [1] * (width - n) for n in pads]
    with torch.inference_mode():
        return model.generate(
            input_ids=torch.tensor(ids, device=model.device),
            attention_mask=torch.tensor(mask, device=model.device),
            max_new_tokens=new_tokens,
            return_dict_in_generate=True,
            **options,
        )


def _until_end(row: list[int], generator: Generator) -> list[int]:
    ends = set(generator.model.generation_config.eos_token_id)
    stop = next((n for n, token in enumerate(row) if token in ends), len(row))
    return row[:stop]


def _text(generator: Generator, ids: list[int], cut: str | None) -> str:
    """The answer's text; where it was cut, its complete sentences in the language ``cut``."""
    text = plain(str(generator.tokenizer.decode(ids, skip_special_tokens=True))).strip()
    return complete_sentences(text, cut) if cut else text
