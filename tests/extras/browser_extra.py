"""The page of --report in Chromium, as Qt has it: what is seen, folded out, asked for and said on the console."""

import json
import os
import time

# Before Qt: no display, no GPU, and no sandbox, which containers do not allow.
os.environ |= {"QT_QPA_PLATFORM": "offscreen", "QT_QUICK_BACKEND": "software",
               "QTWEBENGINE_CHROMIUM_FLAGS": "--no-sandbox --disable-gpu --disable-dev-shm-usage"}

import numpy as np  # noqa: E402  (after the environment is set)
from pages import HOSTILE, make_page  # noqa: E402
from PySide6.QtCore import QEventLoop, QTimer, QUrl  # noqa: E402
from PySide6.QtWebEngineCore import QWebEnginePage, QWebEngineProfile, QWebEngineUrlRequestInterceptor  # noqa: E402
from PySide6.QtWebEngineWidgets import QWebEngineView  # noqa: E402
from PySide6.QtWidgets import QApplication  # noqa: E402
import pytest  # noqa: E402

TIMEOUT_S = 60
LONG = "temperature of the water that flows into the second vessel, in degrees Celsius, " + "x" * 80


class _Requests(QWebEngineUrlRequestInterceptor):
  def __init__(self):
    super().__init__()
    self.urls = []

  def interceptRequest(self, info):  # noqa: N802  (Qt's name)
    self.urls.append(info.requestUrl().toString())


class _Page(QWebEnginePage):
  def __init__(self, profile):
    super().__init__(profile)
    self.said, self.alerts = [], []

  def javaScriptConsoleMessage(self, level, message, line, source):  # noqa: N802  (Qt's name)
    self.said.append(message)

  def javaScriptAlert(self, origin, message):  # noqa: N802  (Qt's name)
    self.alerts.append(message)


class Browser:
  """A window with one page, which is asked in JavaScript; the page itself may run none."""

  def __init__(self):
    self.profile, self.requests, self.view = QWebEngineProfile(), _Requests(), QWebEngineView()
    self.profile.setUrlRequestInterceptor(self.requests)
    self.page = _Page(self.profile)
    self.view.setPage(self.page)

  def open(self, path, *, width=1100, height=1600):
    """Loads a page in a window of some size, pixels."""
    self.view.resize(width, height)
    self.view.show()
    self.page.said.clear()
    self.requests.urls.clear()
    assert self._await(self.page.loadFinished, lambda: self.page.load(QUrl.fromLocalFile(str(path)))) == [True]
    deadline = time.monotonic() + TIMEOUT_S
    while self.ask("innerWidth") != width:  # the window tells the page of its size when it pleases
      assert time.monotonic() < deadline
      self.wait(0.05)

  def ask(self, script):
    """The value of an expression."""
    found = []
    loop = QEventLoop()
    # As text, since Qt loses lists of lists.
    self.page.runJavaScript(f"JSON.stringify({script})", lambda value: (found.append(value), loop.quit()))
    self._run(loop)
    return json.loads(found[0] or "null")

  def wait(self, seconds):
    loop = QEventLoop()
    QTimer.singleShot(int(1000 * seconds), loop.quit)
    loop.exec()

  def close(self):
    self.view.close()
    self.view.setPage(None)
    self.page.deleteLater()
    self.wait(0.1)

  def _await(self, signal, begin):
    found, loop = [], QEventLoop()
    signal.connect(connected := lambda *values: (found.extend(values), loop.quit()))
    begin()
    self._run(loop)
    signal.disconnect(connected)
    return found

  def _run(self, loop):
    QTimer.singleShot(1000 * TIMEOUT_S, loop.quit)
    loop.exec()


@pytest.fixture(scope="module")
def browser():
  application = QApplication.instance() or QApplication([])
  shown = Browser()
  yield shown
  shown.close()
  application.processEvents()


@pytest.fixture
def write(tmp_path):
  def make(names=("x", "z", "u", "v"), target="y"):
    (tmp_path / "p.html").write_text(make_page(np.random.default_rng(0), names, target)[0], encoding="utf-8")
    return tmp_path / "p.html"

  return make


def test_the_page_is_seen_asks_for_nothing_and_says_nothing(browser, write):
  browser.open(write())
  assert browser.page.said == []
  assert {url.split(":")[0] for url in browser.requests.urls} <= {"file", "data"}
  assert [url for url in browser.requests.urls if url.startswith("file:")] == [browser.page.url().toString()]
  sizes = browser.ask("[...document.images].map(i => [i.complete, i.naturalWidth, i.offsetWidth, i.offsetHeight])")
  (_, _, *formula), (_, _, *figure) = sizes
  assert all(is_complete and width > 0 for is_complete, width, *_ in sizes)
  assert formula[0] > 80 and formula[1] > 15 and figure[0] > 900 and figure[1] > 500
  assert browser.ask("[...document.querySelectorAll('.front tbody tr')].map(r => r.cells[2].innerText)") == [
    "8.2", "2.3*x + 1.1", "2.3*x*z + 0.7*u - 0.1*v"]
  assert browser.ask("[...document.querySelectorAll('.front tbody tr')].every(row => row.offsetHeight > 15)")


def test_parts_fold_open(browser, write):
  browser.open(write())
  height = "[...document.querySelectorAll('pre')].map(text => text.checkVisibility() && text.offsetHeight > 15)"
  closed = browser.ask(height)
  assert len(closed) == 8 and not any(closed)
  browser.ask("document.querySelectorAll('summary').forEach(summary => summary.click())")
  assert all(browser.ask(height))
  assert browser.ask("document.querySelector('details table').innerText.includes('least')")


def test_names_of_columns_run_nothing(browser, write):
  browser.open(write(HOSTILE, "</title><script>alert(3)</script>"))
  browser.wait(0.5)  # for what would come after the page
  assert browser.page.alerts == [] and browser.page.said == []
  assert browser.ask("document.title").startswith("</title><script>alert(3)</script> = 2.3*")
  assert browser.ask("document.scripts.length") == 0
  # Were there a script, the policy of the page would hold it back.
  browser.ask("document.body.insertAdjacentHTML('beforeend', '<img src=nowhere.png onerror=alert(4)>')")
  browser.wait(0.5)
  assert browser.page.alerts == [] and any("Content Security Policy" in said for said in browser.page.said)


@pytest.mark.parametrize("width", [360, 1100])
def test_nothing_is_wider_than_the_screen_or_too_small_to_read(browser, write, width):
  browser.open(write((LONG, "z" * 80, "u", "v"), target="girth (in)"), width=width)
  assert browser.ask("document.documentElement.scrollWidth") <= width
  formula, figure = browser.ask("[...document.images].map(image => [image.offsetWidth, image.offsetHeight])")
  assert formula[1] > 15 and figure[0] >= 700
  wide = browser.ask("[...document.querySelectorAll('.formula, .drawing')].map(e => [e.scrollWidth, e.clientWidth])")
  assert wide[0][0] > wide[0][1] and (wide[1][0] > wide[1][1]) == (width < 700)


def test_dark_pages_can_be_read(browser, write):
  """What the browser is told that the user prefers cannot be set here: the dark rules are made to apply."""
  browser.open(write())
  light = browser.ask(COLOURS)
  assert browser.ask(APPLY_DARK) == ["all"]
  dark = browser.ask(COLOURS)
  assert contrast(*light) > 7 and contrast(*dark) > 7 and sum(light[1]) > sum(dark[1])
  assert browser.ask("getComputedStyle(document.images[0]).filter") == "invert(1)"


APPLY_DARK = """[...document.styleSheets[0].cssRules].filter(
  rule => rule.conditionText == '(prefers-color-scheme: dark)').map(rule => rule.media.mediaText = 'all')"""
COLOURS = """['color', 'backgroundColor'].map(
  name => getComputedStyle(document.body)[name].match(/[0-9]+/g).map(Number))"""


def contrast(text, page):
  """Ratio of luminances after WCAG 2; 7 is its stricter bound."""
  def luminance(colour):
    share = np.array(colour) / 255
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]

  low, high = sorted(map(luminance, (text, page)))
  return (high + 0.05) / (low + 0.05)
