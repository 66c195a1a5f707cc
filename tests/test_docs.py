"""The documentation's site builds strictly, holds together, and asks nothing of the network."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pandas as pd
import pytest
import yaml

from rag_reliability.config import ExperimentConfig

from .conftest import ROOT
from .looks import CHROMIUM, CONTRAST, FLAGS, PATIENCE

pytest.importorskip("material", reason="needs the extra docs: pip install -e '.[docs]'")
pytest.importorskip("mkdocstrings", reason="needs the extra docs: pip install -e '.[docs]'")

# In a process of its own: a connection is an error, and what was imported can be counted. Not
# --quiet, which would hide the warnings from --strict.
BUILD = """
import sys
def closed(event, args):
    if event in ("socket.connect", "socket.getaddrinfo"):
        raise RuntimeError(f"the build asked the network: {args}")
sys.addaudithook(closed)
from mkdocs.__main__ import cli
cli(["build", "--strict", "--site-dir", sys.argv[1]], standalone_mode=False)
print([m for m in ("torch", "faiss", "numba", "transformers", "pymilvus") if m in sys.modules])
"""


class Page(HTMLParser):
    """A page's anchors, links and whatever a browser would load by itself."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and given.get("rel") not in {"canonical", "next", "prev"}:
            self.loaded.append(given["href"])
        self.loaded += [
            given[name] for name in ("src", "srcset", "poster", "data") if name in given
        ]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() == "[]", "the API reference is read, not imported"
    return folder


@pytest.fixture(scope="module")
def pages(site) -> dict[Path, Page]:
    return {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}


def test_every_page_has_its_place_and_its_title(site):
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    named = set(re.findall(r"[\w/-]+\.md", json.dumps(nav)))
    assert {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")} <= named
    for page in named:
        text = (site / page).with_suffix(".html").read_text("utf-8")
        assert re.search(r"<h1[ >]", text), page


def test_every_link_within_the_site_leads_somewhere(site, pages):
    broken = []
    for path, page in pages.items():
        for link in page.links + page.loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target  # as a server does
            if not target.is_file():
                broken.append(f"{path.relative_to(site)}: {link}")
            elif parts.fragment and target.suffix == ".html":
                ids = pages[target].ids
                if unquote(parts.fragment) not in ids:
                    broken.append(f"{path.relative_to(site)}: {link}")
    assert not broken
    assert sum(len(page.links) for page in pages.values()) > 500


def test_a_browser_loads_nothing_from_elsewhere(site, pages):
    for path, page in pages.items():
        for address in page.loaded:
            assert not re.match(r"(?:[a-z]+:)?//", address), (path, address)
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", sheet.read_text("utf-8"))


@pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not there")
def test_search_works_in_pages_opened_from_a_folder_and_code_reads_in_the_dark(site):
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        page, wrong = browser.new_page(color_scheme="dark"), []
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto((site / "index.html").as_uri())
        for token in (".mf", ".nb", ".s2", ".c1"):
            assert page.locator(f".highlight {token}").first.evaluate(CONTRAST) >= 4.5, token
        page.keyboard.press("/")
        page.keyboard.type("verified floor")
        found = page.locator(".md-search-result__item a", has_text="Rules for when the label lies")
        found.first.wait_for()
        browser.close()
    assert not wrong


def test_the_reference_names_every_public_package(site):
    text = "".join(p.read_text("utf-8") for p in (site / "reference").glob("*.html"))
    packages = {p.parent.name for p in (ROOT / "rag_reliability").glob("*/__init__.py")}
    for name in packages - {"commands"}:
        assert f'id="rag_reliability.{name}"' in text, name
    assert 'id="rag_reliability.reliability.rerank.source_aware"' in text
    assert "usage: rag-reliability search" in (site / "reference" / "command.html").read_text()
    parameters = (site / "reference" / "config.html").read_text("utf-8")
    assert all(f"<code>{name}</code>" in parameters for name in ExperimentConfig.model_fields)


# ---- "should I deploy this?" holds the numbers of the sweeps --------------------------------

BEDS = {
    "TREC answers": "trec-hm-answers-alone",
    "LiveQA-Med": "liveqa-flipped",
    "HealthVer": "healthver-flipped",
    "health120": "health120",
}
RULES = {
    "similarity": "Similarity only",
    "source_aware": "Source-aware",
    "verified_floor": "Verified floor",
    "stance_consistent": "Stance-consistent",
    "stance_verified": "Stance × verified",
}
COLUMNS = ("Largest adv. share@5", 0, "Worst Δ P@5 ↑", "Least true low-tier kept ↑")


def numbers(cell: str) -> list[float]:
    return [float(n.replace("−", "-")) for n in re.findall(r"[−+]?\d*\.\d+", cell)]


def test_the_deployment_page_s_table_is_what_the_sweeps_found():
    page = (ROOT / "docs" / "deploy.md").read_text("utf-8")
    rows = re.findall(r"^\|([^|]*)\| `(\w+)` \|(.*\d.*)\|$", page, re.MULTILINE)
    table, topics = None, 0
    assert len(rows) == len(BEDS) * len(RULES)
    for corpus, rule, cells in rows:
        if corpus.strip():
            (bed,) = (folder for name, folder in BEDS.items() if corpus.strip().startswith(name))
            path = ROOT / "reports" / "threats" / bed / "tables" / "no_regret.csv"
            table = pd.read_csv(path, dtype=str).set_index("Rule")
            topics = int(re.search(r"\((\d+)\)", corpus)[1])
        found = table.loc[RULES[rule]]
        largest, change, precision, kept, calls, seconds = cells.split("|")
        for shown, column in zip((largest, change, precision, kept), COLUMNS, strict=True):
            measured = numbers(found.iloc[0] if column == 0 else found[column])
            if rule == "similarity" and shown.strip() == "–":  # against itself
                continue
            expected = measured if "[" in shown else measured[:1]
            assert numbers(shown) == expected, (corpus, rule, column)
        for shown, column in ((calls, "Model calls"), (seconds, "Seconds")):
            assert abs(int(shown) - float(found[column].replace(",", "")) / topics) <= 0.5


def test_the_page_of_rules_shows_ndcg_as_the_sweeps_found_it():
    page = (ROOT / "docs" / "robust-rules.md").read_text("utf-8")
    block = page.partition("**Δ NDCG@5, leak ≤ .05**")[2].partition("| **")[0]
    rows = re.findall(r"^\| ([^|]+) \| (.+) \|$", block, re.MULTILINE)
    assert len(rows) == 4
    for name, cells in rows:
        rule = {v.lower(): k for k, v in RULES.items()}[name]
        for cell, bed in zip(cells.split("|"), BEDS.values(), strict=True):
            frame = pd.read_csv(ROOT / "reports" / "threats" / bed / "threat_cells.csv")
            own = frame[(frame["rule"] == rule) & (frame["metric"] == "ndcg")]
            worst = own[own["leak"] <= 0.05].sort_values("diff").iloc[0]
            measured = [worst[c] for c in ("diff", "diff_low", "diff_high")]
            assert numbers(cell) == pytest.approx(measured, abs=0.0051)
