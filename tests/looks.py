"""Pages in a browser: which one, with the network closed, and the contrast of what it shows."""

from pathlib import Path

CHROMIUM = Path("/usr/bin/chromium")
PATIENCE = 240_000
"""Milliseconds; a loaded machine takes its time, and nothing here is timed."""
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # the network is closed
)

# Contrast ratio (WCAG 2) of an element's text with what lies behind it; a canvas reads any colour.
CONTRAST = """element => {
  const pixel = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = c => { pixel.clearRect(0, 0, 1, 1); pixel.fillStyle = c; pixel.fillRect(0, 0, 1, 1);
    return [...pixel.getImageData(0, 0, 1, 1).data].map((v, i) => i < 3 ? v : v / 255); };
  const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3]));
  const light = c => { const l = c.map(v => v / 255).map(v =>
    v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2]; };
  const layers = [];
  for (let e = element; e; e = e.parentElement)
    layers.unshift(rgba(getComputedStyle(e).backgroundColor));
  const ground = layers.reduce((below, layer) => over(layer, below), [255, 255, 255]);
  const ink = over(rgba(getComputedStyle(element).color), ground);
  const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
}"""
