"""Opens pages in Chromium, if it is installed, and says what they look like there."""

import json
import re
import subprocess
from html import unescape
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import TypedDict, cast

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")

BROWSER = next(filter(None, map(which, NAMES)), None)
"""The path of Chromium, None if there is none."""

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--enable-logging=stderr --dump-dom"
).split()

PROBE = """
<pre id="probe"></pre>
<script>
const paper = () => getComputedStyle(document.body).backgroundColor;
const lit = () => document.querySelectorAll(".here").length;
const found = {
  wide: document.documentElement.scrollWidth - innerWidth,
  hidden: [...document.querySelectorAll("figure svg")]
    .filter(plot => plot.getBoundingClientRect().width < 500).length,
  papers: [paper()], sorted: [], marked: [],
};
const toggle = document.querySelector("nav button");
for (let n = 0; n < 2; ++n) { toggle.click(); found.papers.push(paper()); }
const column = document.querySelector("#more th[title=sort]:last-child");
for (let n = 0; n < 2; ++n) {
  column.click();
  found.sorted.push([...column.closest("table").tBodies[0].rows]
    .map(row => parseFloat(row.cells[column.cellIndex].textContent)));
}
for (const node of document.querySelectorAll("#tree li")) {
  node.dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
  const on = lit();
  node.dispatchEvent(new MouseEvent("mouseout", {bubbles: true}));
  found.marked.push([on, lit()]);
}
document.querySelector("#probe").textContent = JSON.stringify(found);
</script>
"""
"""What a page is asked, after its own script."""


class Seen(TypedDict):
    """What a page looks like in a browser."""

    wide: int
    """By how many pixels it is wider than the window."""
    hidden: int
    """How many plots are narrower than one can read."""
    papers: list[str]
    """The colour behind the text, at first and after two clicks on the button."""
    sorted: list[list[float]]
    """A column of numbers after its head was clicked once, and twice."""
    marked: list[list[int]]
    """Of each node of the tree: marked slices below the mouse, and after it."""
    errors: list[str]
    """What the console says."""


def seen(page: str, *, dark: bool, width: int) -> Seen:
    """Open a page in a window of so many pixels."""
    assert BROWSER is not None
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder, "page.html")
        path.write_text(page.replace("</body>", f"{PROBE}</body>"), encoding="utf-8")
        scheme = ["--force-dark-mode"] if dark else []
        done = subprocess.run(
            [
                *(BROWSER, *FLAGS, *scheme),
                f"--window-size={width},800",
                f"--user-data-dir={folder}/user",
                path.as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
    found = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout)
    errors = re.findall(r"CONSOLE.*", done.stderr)
    assert found is not None, errors
    assert found[1], errors
    answer = cast(Seen, json.loads(unescape(found[1])))
    answer["errors"] = errors
    return answer


def expect_readable(page: str, *, dark: bool, width: int) -> Seen:
    """A page fits its window, has its colours, sorts, and its script runs."""
    it = seen(page, dark=dark, width=width)
    assert it["errors"] == []
    assert it["wide"] <= 0
    assert it["hidden"] == 0
    colours = ["rgb(13, 17, 23)", "rgb(255, 255, 255)"]
    first, second = colours if dark else reversed(colours)
    assert it["papers"] == [first, second, first]
    down, up = it["sorted"]
    assert len(set(down)) > 1
    assert down == sorted(down, reverse=True)
    assert up == sorted(up)
    return it
