package pkgmirror

import (
	"errors"
	"fmt"
	"html"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"orrery/internal/host"
	"orrery/internal/text/pattern"
)

var anchor = pattern.New(`<a href="([^"#]+)#sha256=([0-9a-f]{64})">`)

// links parses a page of the index and returns the digest of each file.
func links(page string) map[string]string {
	all := map[string]string{}
	for _, found := range anchor().FindAllStringSubmatch(page, -1) {
		if file, err := url.PathUnescape(html.UnescapeString(found[1])); err == nil {
			if file == filepath.Base(file) && !strings.HasPrefix(file, ".") {
				all[file] = found[2]
			}
		}
	}
	return all
}

const pageTemplate = `<!DOCTYPE html>
<html>
<head><meta charset="utf-8"><meta name="pypi:repository-version" content="1.0"><title>%s</title></head>
<body>
%s</body>
</html>
`

// pageOf returns the page of a package or, without digests, that of all packages.
func pageOf(title string, hrefs []string, digests map[string]string) []byte {
	var b strings.Builder
	for _, name := range hrefs {
		href := url.PathEscape(strings.TrimSuffix(name, "/"))
		if strings.HasSuffix(name, "/") {
			href += "/"
		}
		if digest := digests[name]; digest != "" {
			href += "#sha256=" + digest
		}
		fmt.Fprintf(&b, "<a href=\"%s\">%s</a><br>\n", html.EscapeString(href),
			html.EscapeString(strings.TrimSuffix(name, "/")))
	}
	return fmt.Appendf(nil, pageTemplate, html.EscapeString(title), b.String())
}

// publish writes the pages of packages whose files were added or removed, each atomically. The
// files are already in place.
func (w *wheels) publish() error {
	root := filepath.Join(w.simple, "index.html")
	_, err := os.Stat(root)
	if len(w.changed) == 0 && err == nil {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(w.changed)) {
		files := slices.Sorted(maps.Keys(w.known[name]))
		path := filepath.Join(w.simple, name, "index.html")
		if len(files) == 0 {
			delete(w.known, name)
			w.doomed = append(w.doomed, path)
			continue
		}
		if err := host.WriteFile(host.File{Path: path, Content: pageOf(name, files, w.known[name]),
			Mode: 0o644}); err != nil {
			return err
		}
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(w.known)) {
		names = append(names, name+"/")
	}
	return host.WriteFile(host.File{Path: root, Content: pageOf("Python packages", names, nil), Mode: 0o644})
}
