"""From a key on a slider of the explorer to the new ranking on the screen, in JupyterLab.

    python -m pytest -s -q benchmarks/slider_in_browser.py

Chromium and JupyterLab are those of tests/test_browser.py, over three topics of health120. Prints
milliseconds over 30 moves of one slider: median, 95th percentile, slowest. The clock is the
page's: it starts with the key and stops when rows of the ranking are put into the page.
"""

from __future__ import annotations

import statistics

from playwright.sync_api import expect

from tests.conftest import health120, three_topics  # noqa: F401 (fixtures)
from tests.test_browser import browser, lab, page, run_all, slider  # noqa: F401 (fixtures)

MOVES = 30
WATCH = """() => {
  window.took = []; let pressed = null;
  addEventListener("keydown", () => { pressed = performance.now(); }, true);
  const rows = node => node.querySelector && node.querySelector("tr[data-docno]");
  new MutationObserver(seen => {
    if (pressed !== null && seen.some(one => [...one.addedNodes].some(rows))) {
      window.took.push(performance.now() - pressed); pressed = null;
    }
  }).observe(document.body, {subtree: true, childList: true});
}"""


def test_slider(page, lab):  # noqa: F811 (fixtures)
    """Move the slider of one type up and down, and print what each move took."""
    run_all(page, lab, "explore")
    expect(page.locator(".rr-explorer tr[data-docno]").first).to_be_visible()
    page.evaluate(WATCH)
    handle = slider(page, "AI-generated")
    handle.focus()
    for move in range(MOVES):
        handle.press("ArrowRight" if move % 2 else "ArrowLeft")
        page.wait_for_function(f"window.took.length > {move}")
        page.wait_for_timeout(200)
    took = sorted(page.evaluate("window.took"))
    print(f"\n{len(took)} moves: median {statistics.median(took):.0f} ms, ", end="")
    print(f"95 % within {took[int(0.95 * len(took))]:.0f} ms, slowest {took[-1]:.0f} ms")
