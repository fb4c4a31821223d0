"""Build the documentation site: `python -m ci.site`, which `make site` calls.

Exit code: 0 it was built, 1 a page is wrong.
"""

from __future__ import annotations

import sys

from ci.site.build import build
from ci.site.links import SiteError


def main() -> int:
    """Build, and say where it is."""
    try:
        made = build()
    except SiteError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"the site is in {made}: open {made / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
