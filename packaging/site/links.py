"""Adapts the documents to mkdocs, which calls this for each page."""

import posixpath
import re

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"^```(\w+) .*$", re.M)


def on_page_markdown(markdown, page, config, files):
    """Leads links to directories to their README, and takes away links to source code, which the site does not have."""

    def adapt(link):
        text, target, heading = link.group(1), link.group(2), link.group(3) or ""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_path), target))
        for name in (path, path + "/README.md", path + "/site.toml"):
            if files.get_file_from_path(name):
                relative = posixpath.relpath(name, posixpath.dirname(page.file.src_path) or ".")
                return f"[{text}]({relative}{heading})"
        return link.group(0) if target.endswith(".md") else text  # mkdocs reports a missing page

    return LINK.sub(adapt, FENCE.sub(r"```\1", markdown))
