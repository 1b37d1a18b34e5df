"""Downloads the source distribution NAME-VERSION.tar.gz from pip's index into this directory: sdist.py NAME VERSION.

`pip download --no-binary` does the same, but first compiles the whole package to learn its dependencies (minutes on two processors)."""

import hashlib
import html.parser
import os
import re
import subprocess
import sys
import urllib.parse
import urllib.request

MAX_BYTES = 64 << 20
TIMEOUT_SECONDS = 60


def index_url():
    """Returns the index that pip would ask (PIP_INDEX_URL, its configuration, PyPI)."""
    asked = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True)
    return os.environ.get("PIP_INDEX_URL") or asked.stdout.strip() or "https://pypi.org/simple"


def read(url):
    with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:
        data = answer.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        sys.exit(f"{url} is larger than {MAX_BYTES} bytes")
    return data


class Links(html.parser.HTMLParser):
    """The links of a page of PEP 503."""

    def __init__(self):
        super().__init__()
        self.urls = []

    def handle_starttag(self, tag, attrs):
        if tag == "a":
            self.urls += [value for key, value in attrs if key == "href" and value]


def main(name, version):
    page = f"{index_url().rstrip('/')}/{name}/"
    links = Links()
    links.feed(read(page).decode())
    wanted = f"{name}-{version}.tar.gz"
    for link in links.urls:
        url, fragment = urllib.parse.urldefrag(urllib.parse.urljoin(page, link))
        digest = re.fullmatch("sha256=([0-9a-f]{64})", fragment)
        if digest and urllib.parse.urlsplit(url).path.endswith("/" + wanted):
            data = read(url)
            if hashlib.sha256(data).hexdigest() != digest[1]:
                sys.exit(f"{url} does not have the digest that {page} says")
            with open(wanted, "wb") as file:
                file.write(data)
            return
    sys.exit(f"{page} has no {wanted} with a sha256")


main(*sys.argv[1:])
