"""Sphinx extension: everything that depends on where the book and its repository live.

One place to set it: the environment variables ``POSENC_REPOSITORY`` (such as
``https://github.com/owner/name``), ``POSENC_BRANCH`` and ``POSENC_SITE`` (the address of the
published book). Without them there are no launch buttons, no links to a repository and no
canonical addresses, so that no button leads nowhere.
"""

import os
from urllib.parse import urlsplit

from sphinx.application import Sphinx
from sphinx.config import Config


def site_of(repository: str) -> str:
    """Guess the address of a project page from its repository on GitHub."""
    parts = urlsplit(repository)
    owner, _, name = parts.path.strip("/").partition("/")
    return f"https://{owner}.github.io/{name}/" if parts.netloc == "github.com" else ""


REPOSITORY = os.environ.get("POSENC_REPOSITORY", "").rstrip("/")
SITE = os.environ.get("POSENC_SITE", "") or site_of(REPOSITORY)


def use_address(app: Sphinx, config: Config) -> None:
    """Switch on what needs an address."""
    # The 404 page is shown at any address, so its links start at the root of the site.
    config.notfound_urls_prefix = urlsplit(SITE).path.rstrip("/") + "/"
    if SITE:
        config.html_baseurl = config.ogp_site_url = SITE.rstrip("/") + "/"
        config.sitemap_url_scheme = "{link}"
    if REPOSITORY:
        options = config.html_theme_options
        options["repository_url"] = REPOSITORY
        options["repository_branch"] = os.environ.get("POSENC_BRANCH", "main")
        options["use_repository_button"] = True
        options["use_issues_button"] = True
        options["launch_buttons"] = {
            "binderhub_url": "https://mybinder.org",
            "colab_url": "https://colab.research.google.com",
            "notebook_interface": "jupyterlab",
        }


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the switch."""
    app.connect("config-inited", use_address, priority=400)
    if SITE:  # a sitemap is a list of addresses
        app.setup_extension("sphinx_sitemap")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
