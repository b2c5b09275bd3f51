"""The page: how long it takes to write, how large it is, and how soon Chromium has it open."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import gviz.engine as torch
from benchmarks.table import Row, duration, missing
from gviz.render.file_formats import exporter_for
from gviz.render.picture_request import ExportOptions
from gviz.trace import load
from gviz.trace.recording.record import record
from gviz.trace.timeline import Timeline

SEEKS = """
const slider = document.getElementById("slider"), times = [];
for (let turn = 0; turn < 60; turn += 1) {
  const before = performance.now();
  slider.value = Number(slider.min) + (turn * 9973) % (slider.max - slider.min);
  slider.dispatchEvent(new Event("input"));
  document.body.getBoundingClientRect();
  times.push(performance.now() - before);
}
return times.sort((one, other) => one - other)[30];
"""


def rows() -> Iterator[Row]:
    """A net of 300 nodes and one pass, and one of 1,000 nodes through which 37 passes go."""
    with TemporaryDirectory() as folder:
        for layers, passes, goals in ((60, 1, ("150 KB", "")), (202, 37, ("", "1 s"))):
            yield from _page(Path(folder), layers, passes, *goals)


def _page(folder: Path, layers: int, passes: int, size: str, soon: str) -> Iterator[Row]:
    path = folder / "page.html"
    timeline = recorded(folder / f"{layers}.gviz", layers, passes)
    what = f"page of {len(timeline.nodes):,} nodes, {len(timeline):,} steps"
    start = time.process_time()
    text = exporter_for(path.name).render(timeline, len(timeline), ExportOptions(note=lambda note: None))
    yield Row(f"{what}: writing it, CPU time", duration(time.process_time() - start))
    path.write_text(text, encoding="utf-8")
    yield Row(f"{what}: its size", f"{path.stat().st_size / 1000:.0f} KB", goal=size)
    if find_spec("selenium") is None or not all(map(shutil.which, ("chromium", "chromedriver"))):
        yield missing(f"{what}: open in a browser", "chromium or selenium", soon)
        return
    opened, sought = _in_browser(path)
    yield Row(f"{what}: open in Chromium, CPU time", duration(opened), goal=soon)
    yield Row(f"{what}: seeking, wall time", duration(sought))


def recorded(path: Path, layers: int, passes: int) -> Timeline:
    """A net of so many layers with a connection past every fourth, and passes over its one graph."""
    torch.manual_seed(0)
    with record(path):
        x = past = torch.randn(8, 16)
        kept = []
        for layer in range(1, layers + 1):
            weight, bias = torch.randn(16, 16, requires_grad=True), torch.zeros(16, requires_grad=True)
            x = torch.tanh(x @ weight + bias)
            if layer % 4 == 0:
                x = past = x + past
            kept += [weight, bias]
        loss = (x * x).mean()
        for _ in range(passes):
            loss.backward(retain_graph=True)
    return load(path)


def _in_browser(path: Path) -> tuple[float, float]:
    """Seconds of the page's thread until it is open, the least of three times, and for a jump to another moment."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"):
        options.add_argument(flag)
    with webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver"))) as browser:
        browser.implicitly_wait(60)
        times = []
        for _ in range(3):
            browser.get("about:blank")
            browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
            browser.get(path.as_uri())
            browser.find_element("css selector", "body[data-ready]")
            metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
            times.append(next(float(each["value"]) for each in metrics if each["name"] == "TaskDuration"))
            browser.execute_cdp_cmd("Performance.disable", {})
        return min(times), float(browser.execute_script(SEEKS)) / 1000
