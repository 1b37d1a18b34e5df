package backup

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"orrery/internal/problem"
)

// CheckSiteDir wants the directory for the site's files to be empty, missing, or to hold the same files.
func (r *Restoring) CheckSiteDir(ctx context.Context) error {
	if !exists(r.SiteDir) || empty(r.SiteDir) {
		return nil
	}
	for i := range r.Manifest.Trees {
		t := &r.Manifest.Trees[i]
		if t.Kind != SiteTree {
			continue
		}
		from := newPieces(r.From)
		entries, err := from.list(t)
		if err != nil {
			return err
		}
		if why := different(ctx, from, entries, r.SiteDir); why != "" {
			return problem.New(problem.Usage, "the directory for the site's files is not empty, and is another than in the backup: %s", why).
				At(r.SiteDir).Try("name another with --dir")
		}
	}
	return nil
}

// different names the first path in which a directory differs from a list; "": none.
func different(ctx context.Context, from *pieces, entries []Entry, dir string) string {
	listed := map[string]bool{}
	for i := range entries {
		e := &entries[i]
		listed[string(e.Name)] = true
		if ctx.Err() != nil || !e.isFile() || !e.isFirst() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, string(e.Name)))
		if err != nil || int64(len(text)) != e.Size || !e.holds(from, text) {
			return string(e.Name)
		}
	}
	added := ""
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		if err != nil || rel == ".git" {
			return fs.SkipDir
		}
		if !d.IsDir() && !listed[rel] {
			added = fmt.Sprintf("%s is not in the backup", rel)
			return fs.SkipAll
		}
		return nil
	})
	return added
}

// holds reports whether a text is what the file holds.
func (e *Entry) holds(from *pieces, text []byte) bool {
	at := int64(0)
	for _, x := range e.Data {
		if !zero(text[at:min(x.At, e.Size)]) {
			return false
		}
		at = x.At
		for _, d := range x.Pieces {
			content, err := from.get(d)
			if err != nil || at+int64(len(content)) > e.Size || !bytes.Equal(content, text[at:at+int64(len(content))]) {
				return false
			}
			at += int64(len(content))
		}
	}
	return zero(text[at:])
}
