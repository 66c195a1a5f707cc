"""The report and the notebooks as a reader meets them: in a browser, with the network closed."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

from .conftest import ROOT, SMALL
from .looks import CHROMIUM, CONTRAST, FLAGS, PATIENCE

if not CHROMIUM.exists():
    pytest.skip(f"{CHROMIUM} is not there; .ci/run installs it", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

expect.set_options(timeout=PATIENCE)
# What JupyterLab itself writes as errors to the console, with nothing wrong in a notebook of ours.
ALLOWED: tuple[str, ...] = ()
NOTEBOOKS = ("explore", "01_corpus", "03_rerank")
BANDS = {"supported", "unclear", "unsupported", "abstained"}
PARAMETERS = {"generator": SMALL, "max_new_tokens": 24, "folds": 3}


@pytest.fixture(scope="module")
def browser() -> Iterator:
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser) -> Iterator:
    """A page that fails the test for an error in its console or a request beyond this machine."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    shown, wrong = context.new_page(), []
    shown.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
    shown.on("pageerror", lambda error: wrong.append(str(error)))
    shown.on("request", lambda r: None if ours(r.url) else wrong.append(f"asked for {r.url}"))
    yield shown
    found = [text for text in wrong if not any(known in text for known in ALLOWED)]
    context.close()
    assert not found


def ours(url: str) -> bool:
    return url.startswith(("file:", "data:", "blob:", "about:", "http://127.0.0.1:"))


# ---- the report ----------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_reads_in_both_schemes_and_fits_its_window(page, scheme):
    page.emulate_media(color_scheme=scheme)
    page.goto((ROOT / "reports" / "paper" / "index.html").as_uri())
    links = page.locator("nav a[href^='#']")
    assert links.count() >= 10
    for target in links.evaluate_all("all => all.map(a => a.getAttribute('href'))"):
        assert page.locator(f"section{target} h2").count() == 1, target
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        over = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert over <= 0, (width, over)
    for element in ("h1", "main p", "nav a", "caption", "td"):
        assert page.locator(element).first.evaluate(CONTRAST) >= 4.5, element
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor").strip("rgb()")
    assert (sum(map(int, dark.split(","))) < 200) == (scheme == "dark")


# ---- JupyterLab ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lab(three_topics, tmp_path_factory) -> Iterator[str]:
    """Address of a JupyterLab of our own on copies of the notebooks, small model, three topics."""
    home = tmp_path_factory.mktemp("lab")
    folder = home / "notebooks"
    folder.mkdir()
    given = {**PARAMETERS, "corpus": str(three_topics), "out": str(home / "run")}
    for name in NOTEBOOKS:
        notebook = load_notebook_node(str(ROOT / "notebooks" / f"{name}.ipynb"))
        nbformat.write(parameterize_notebook(notebook, given), folder / f"{name}.ipynb")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (home / "log.txt").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *_options(folder, port)],
            cwd=folder,
            env={**os.environ, **_private(home)},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_for(f"{address}/api", server, home / "log.txt")
            yield address
        finally:
            server.terminate()  # it shuts its kernels down
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()


def _options(folder: Path, port: int) -> list[str]:
    return [
        "--no-browser", "--allow-root", f"--ServerApp.root_dir={folder}",
        "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0",
        "--IdentityProvider.token=", "--LabApp.extension_manager=readonly",
        "--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]  # fmt: skip


def _private(home: Path) -> dict[str, str]:
    """Settings, workspaces and history of this server's own; nobody's notebooks are touched."""
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    quiet = {"fetchNews": "false", "checkForUpdates": False}
    (settings / "notification.jupyterlab-settings").write_text(json.dumps(quiet))
    return {
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "IPYTHONDIR": str(home / "ipython"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).strip(":"),
    }


def _wait_for(url: str, server: subprocess.Popen, log: Path) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < end:
        assert server.poll() is None, log.read_text()[-2000:]
        try:
            opener.open(url, timeout=5).close()
            return
        except OSError:
            time.sleep(0.3)
    raise AssertionError(log.read_text()[-2000:])


def run_all(page, address: str, name: str) -> None:
    """Open a notebook and run it from the menu, as a reader would; back when it has run."""
    page.goto(f"{address}/lab/tree/{name}.ipynb?reset")
    expect(page.locator(".jp-StatusBar-Widget").get_by_text("| Idle")).to_be_visible()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    last = page.locator(".jp-CodeCell .jp-InputPrompt").last
    expect(last).to_have_text(re.compile(r"\[\d+\]:"))
    assert not page.locator("[data-mime-type='application/vnd.jupyter.error']").count()


def slider(page, label: str):
    """The handle of a slider, by its label."""
    return page.locator(".widget-slider").filter(has_text=label).locator("[role=slider]")


def ranked(page) -> list[str]:
    """Docnos of the explorer's ranking, best first."""
    rows = page.locator(".rr-explorer tr[data-docno]")
    return rows.evaluate_all("all => all.map(row => row.dataset.docno)")


def test_the_explorer_from_the_menu_to_an_answer(page, lab):
    run_all(page, lab, "explore")
    rows = page.locator(".rr-explorer tr[data-docno]")
    expect(rows.first).to_be_visible()
    first, facts = ranked(page), page.locator(".rr-explorer .facts")
    liar = page.locator(".rr-explorer tr", has_text="adversarial").get_attribute("data-docno")
    expect(facts).to_contain_text("adversarial in the top 5 1 → 0")
    assert first.index(liar) >= 5
    # a prior is moved with the keyboard: all the way up, then a step down
    handle = slider(page, "AI-generated")
    handle.focus()
    handle.press("End")
    expect(facts).to_contain_text("adversarial in the top 5 1 → 1")
    assert ranked(page)[0] == liar and ranked(page) != first
    handle.press("ArrowLeft")
    expect(handle).to_have_attribute("aria-valuetext", "0.99")
    expect(rows.first).to_contain_text("λ 0.99")
    # what if: the table as it was, and the liar lies
    page.get_by_label("Spread of λ").select_option("current")
    expect(facts).to_contain_text("1 → 0")
    assert ranked(page) == first
    page.get_by_label("Document", exact=True).select_option(value=None, index=0)
    page.get_by_role("button", name="Spoof its label").press("Enter")
    expect(rows.first).to_contain_text("label spoofed, was ai generated")
    assert ranked(page)[0] == liar
    page.get_by_role("button", name="Reset").press("Enter")
    expect(facts).to_contain_text("1 → 0")
    # both answers, side by side, with passages to look up
    page.get_by_role("button", name="Generate both answers").press("Enter")
    answers = page.locator(".rr-explorer section")
    expect(answers).to_have_count(2)
    assert answers.locator("h4").all_inner_texts() == ["Similarity only", "Source aware"]
    said = answers.locator(".said small")
    assert said.count() >= 2
    for text in said.all_inner_texts():
        assert text.split()[0] in "✓?✗–" and text.split()[1].strip(",") in BANDS
    link = answers.locator(".said a").first
    link.click()
    passage = page.locator(link.get_attribute("href"))
    expect(passage).to_be_in_viewport()
    # and all of it can be read in the dark theme
    page.get_by_role("menuitem", name="Settings", exact=True).click()
    page.get_by_text("Theme", exact=True).first.click()
    page.get_by_text("JupyterLab Dark", exact=True).first.click()
    expect(page.locator("body")).to_have_attribute("data-jp-theme-light", "false")
    for element in (
        ".why",
        ".soft",
        "caption",
        ".chip",
        ".said",
        ".said small",
        ".facts b",
        "td a",
    ):
        found = page.locator(f".rr-explorer {element}")
        if found.count():
            assert found.first.evaluate(CONTRAST) >= 4.5, element


@pytest.mark.parametrize(
    ("name", "told"),
    [("01_corpus", "source checked"), ("03_rerank", "document, and why it stands here")],
)
def test_notebooks_run_from_the_menu_and_show_their_displays(page, lab, name, told):
    run_all(page, lab, name)
    display = page.locator(".jp-OutputArea-output .rr").filter(has_text=told)
    expect(display.first).to_be_visible()
    assert display.first.locator("td").first.evaluate(CONTRAST) >= 4.5
    assert page.locator(".jp-OutputArea-output img").count() >= 1  # and figures
