"""A browser without a window, and what tests of pages ask it."""

import shutil
from contextlib import contextmanager

import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
needs_chromium = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver (apt install both)"
)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
CONTRAST = """
const parse = (text) => { const n = text.match(/[\\d.]+/g).map(Number); return [n[0], n[1], n[2], n[3] ?? 1]; };
const light = ([r, g, b]) => {
  const f = (c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
};
const behind = (node) => {
  for (; node; node = node.parentElement) {
    const found = parse(getComputedStyle(node).backgroundColor);
    if (found[3] > 0) return found;
  }
  return [255, 255, 255, 1];
};
const bad = [];
for (const node of document.querySelectorAll("main *")) {
  const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
  if (!own || node.tagName === "OPTION") continue;
  const style = getComputedStyle(node), colour = node instanceof SVGElement ? style.fill : style.color;
  const [a, b] = [light(parse(colour)), light(behind(node))].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5) bad.push([node.tagName, node.textContent.slice(0, 30), ratio.toFixed(2)]);
}
return bad;
"""


@contextmanager
def open_browser(profile, **logs):
    """A driver of Chromium with an empty profile. ``logs`` are kept beside the console's."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"} | logs)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


@contextmanager
def sized(browser, width, height=900):
    """The page as on a screen of this width; on a phone, if it is narrow."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@contextmanager
def preferring(browser, **wishes):
    """The page for somebody who prefers this: ``color_scheme="dark"``, ``reduced_motion="reduce"``."""
    features = [{"name": f"prefers-{name.replace('_', '-')}", "value": value} for name, value in wishes.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def errors(browser):
    """What the console has got since the last look: errors, and files that were not found."""
    return [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def unreadable(browser):
    """Texts with a contrast of less than 4.5, which WCAG AA asks for."""
    return browser.execute_script(CONTRAST)
