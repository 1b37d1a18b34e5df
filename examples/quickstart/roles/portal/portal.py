#!/usr/bin/python3
"""Serves one page: what every worker of /etc/portal.json says. If one of them does not answer, the page is an error."""

import http.server
import json
import urllib.request


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        try:
            with open("/etc/portal.json") as file:
                text = b"".join(urllib.request.urlopen(f"http://{worker}/", timeout=2).read() for worker in json.load(file))
            status = 200
        except OSError as error:
            text, status = f"{error}\n".encode(), 503
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text)


http.server.ThreadingHTTPServer(("", 80), Page).serve_forever()
