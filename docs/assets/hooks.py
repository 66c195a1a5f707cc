"""What MkDocs is told besides its config: pages and links that lie outside ``docs/``.

Data cards stay beside their corpora and become pages here; links from a page to a file of the
repository lead to that page, or to a copy of the file; the command's help is the parser's own, and
the table of parameters the config's.
"""

from __future__ import annotations

import argparse
import json
import os
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

INTERVAL = re.compile(r"\[([−+]?[\d.]+), ([−+]?[\d.]+)\]")
BOUND = re.compile(r"([≤≥]) (?=[\d.])")
CARD = re.compile(r"corpus/([\w-]+)/README\.md")
LINK = re.compile(r"(\]\()(?![a-z]+:|#)([^)\s#]+)((?:#[^)]*)?\))")


def site_path(path: str) -> str:
    """Where a file of the repository lies in the site's sources."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    card = CARD.fullmatch(path)
    return f"data/{card[1]}.md" if card else f"files/{path}"


def repository_path(src: str) -> str:
    """The contrary: which file of the repository a source of the site is."""
    card = re.fullmatch(r"data/([\w-]+)\.md", src)
    return f"corpus/{card[1]}/README.md" if card else f"docs/{src}"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the data cards, and every file outside ``docs/`` that a page links to."""
    root = Path(config.config_file_path).parent
    for card in sorted(root.glob("corpus/*/README.md")):
        src = site_path(card.relative_to(root).as_posix())
        files.append(File.generated(config, src, content=card.read_text("utf-8")))
    for file in list(files.documentation_pages()):
        for target in _targets(file.content_string, repository_path(file.src_uri)):
            src = site_path(target)
            if src not in files.src_uris and (root / target).is_file():
                files.append(File.generated(config, src, abs_src_path=str(root / target)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead the page's links to where their targets lie in the site."""
    here = repository_path(page.file.src_uri)
    folder = posixpath.dirname(page.file.src_uri)

    def lead(link: re.Match[str]) -> str:
        target = _join(here, link[2])
        return f"{link[1]}{posixpath.relpath(site_path(target), folder or '.')}{link[3]}"

    markdown = LINK.sub(lead, markdown)
    for mark, made in MADE.items():
        if mark in markdown:
            markdown = markdown.replace(mark, made())
    return markdown


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Keep an interval's two ends on one line, and a bound with its sign."""
    html = INTERVAL.sub("[\\1,\N{NO-BREAK SPACE}\\2]", html)
    return BOUND.sub("\\1\N{NO-BREAK SPACE}", html)


def command_help() -> str:
    """Every subcommand's help, as the parser prints it."""
    from rag_reliability.cli import build_parser

    os.environ["COLUMNS"] = "90"
    actions = build_parser()._actions
    (commands,) = (a for a in actions if isinstance(a, argparse._SubParsersAction))
    parts = (
        f"## {name}\n\n```text\n{p.format_help()}```\n" for name, p in commands.choices.items()
    )
    return "\n".join(parts)


def parameters() -> str:
    """The config's parameters: name, default and what its field says."""
    from rag_reliability.config import ExperimentConfig

    rows = ["| parameter | default | what |", "|---|---|---|"]
    for name, field in ExperimentConfig.model_fields.items():
        default = json.dumps(field.default, ensure_ascii=False).strip('"')
        rows.append(f"| `{name}` | `{default}` | {field.description} |")
    return "\n".join(rows)


MADE = {"<!-- command help -->": command_help, "<!-- parameters -->": parameters}


def _join(here: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(here), link))


def _targets(markdown: str, here: str) -> list[str]:
    found = (_join(here, link[2]) for link in LINK.finditer(markdown))
    return sorted({target for target in found if not target.startswith(("docs/", ".."))})
