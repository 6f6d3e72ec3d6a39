"""The documentation as a site: sphinx-build -W docs docs/_build (extra [docs])."""

import pathlib
import re
import sys

_ROOT = pathlib.Path(__file__).parents[1]
_INIT = (_ROOT / "symformer_jax" / "__init__.py").read_text(encoding="utf-8")

sys.path.insert(0, str(_ROOT))  # the docstrings of this checkout, whatever is installed

project = "SymFormer-JAX"
author = "The SymFormer-JAX authors"
copyright = author  # the name that Sphinx reads
version = release = re.search(r'__version__ = "(.+)"', _INIT)[1]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
# Results are raw figures, read beside the code.
exclude_patterns = ["_build", "results"]
html_theme = "furo"
html_title = f"{project} {version}"
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say what arguments are, in words
napoleon_use_ivar = True

_SECTIONS = ("Args:", "Attributes:", "Raises:", "Returns:")
# A link with a target that is no address and no anchor.
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!\w+:|#)([^)#]+)(#[^)]*)?\)")


def _point_into_the_repository(app, docname, source):
  """What is not part of the site becomes text that says where it lies."""
  def replaced(match):
    text, target = match[1], match[2]
    path = (_ROOT / "docs" / target).resolve().relative_to(_ROOT)
    is_page = path.parent == pathlib.Path("docs") and path.suffix == ".md"
    if is_page:
      return match[0]
    bare = text.strip("`")
    return f"`{path}`" if bare in (str(path), path.name) else f"{text} (`{path}`)"

  source[0] = _LINK.sub(replaced, source[0])


def _escape(app, what, name, obj, options, lines):
  """Docstrings are plain text with Markdown's code marks, where `|y|**2` is no markup and sections follow at once."""
  found = []
  for line in lines:
    if line.strip() in _SECTIONS:
      found.append("")  # as napoleon wants it
    # Outside of code marks stars and bars are what they look like.
    parts = line.split("`")
    found.append("``".join(re.sub(r"([*|_])", r"\\\1", part) if k % 2 == 0 else part for k, part in enumerate(parts)))
  lines[:] = found


def setup(app):
  app.connect("source-read", _point_into_the_repository)
  app.connect("autodoc-process-docstring", _escape, priority=400)  # before napoleon, at 500
