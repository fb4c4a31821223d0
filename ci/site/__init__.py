"""The documentation site: pages of docs/, and pages made from the code and from what was measured.

`python -m ci.site` (`make site`) builds it. ``pages.py`` makes the pages that git does not track,
``links.py`` turns links of the repository into links of the site, ``build.py`` runs Sphinx.
"""
