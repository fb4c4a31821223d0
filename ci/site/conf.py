"""Sphinx' configuration; build.py lays out the sources and calls Sphinx."""

import os

_version = os.environ["SITE_VERSION"]

project = "dra-conformance"
version = release = _version
language = "en"
html_title = f"dra-conformance {_version}"

extensions = ["myst_parser", "sphinxcontrib.mermaid"]
myst_heading_anchors = 4  # as the forge makes them
myst_fence_as_directive = ["mermaid"]

html_theme = "pydata_sphinx_theme"
templates_path = ["templates"]
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = False
html_sidebars = {"**": ["navigation.html"]}
html_theme_options = {
    "navbar_center": [],
    "navbar_persistent": [],
    "navbar_end": ["search-button-field", "version-switcher", "theme-switcher"],
    "switcher": {"json_url": "../versions.json", "version_match": _version},
    "check_switcher": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
}
