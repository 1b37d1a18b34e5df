package backup

import (
	"bytes"
	"context"
	"os"

	"orrery/internal/backup/vault"
	"orrery/internal/site/sitefile"
	"orrery/internal/text/sanitize"
	"orrery/internal/tree"
)

// firstDifference returns the first path in which a directory differs from a tree, or "" if they are the
// same.
func firstDifference(ctx context.Context, from *vault.Pieces, t *vault.Tree, dir string) (string, error) {
	here, err := vault.OpenDirectory(dir)
	if err != nil {
		return "", err
	}
	defer here.Close()
	listed, why := map[string]bool{}, ""
	err = from.Each(t, func(e *vault.Entry) error {
		if len(listed) > vault.MaxNames {
			return from.Damaged("the list of "+t.Name, vault.ErrBounds)
		}
		listed[string(e.Name)] = true
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if e.IsFile() && e.IsFirst() && !sameContent(here, e, from) {
			why = sanitize.Line(tree.DisplayPath(string(e.Name)))
			return vault.ErrStop
		}
		return nil
	})
	if err != nil && why == "" {
		return "", err
	}
	if why != "" {
		return why, nil
	}
	err = here.Walk(ctx, tree.DefaultBounds, func(e *tree.Entry) error {
		switch {
		case e.Path == ".git", e.Path == sitefile.KeptBase:
			return tree.SkipDir
		case !e.IsDir() && !listed[e.Path]:
			why = sanitize.Line(tree.DisplayPath(e.Path)) + " is not in the backup"
			return vault.ErrStop
		}
		return nil
	})
	if why != "" {
		return why, nil
	}
	return "", err
}

// sameContent reports whether the local file has the same content as the entry.
func sameContent(here *tree.Root, e *vault.Entry, from *vault.Pieces) bool {
	f, err := here.OpenFile(string(e.Name))
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() != e.Size {
		return false
	}
	at := int64(0)
	for _, x := range e.Data {
		if !isHole(f, at, x.At) {
			return false
		}
		at = x.At
		for _, d := range x.Pieces {
			content, err := from.Get(d)
			buffer := make([]byte, len(content))
			if err != nil || int64(len(content)) != vault.Chunk(at, x.At+x.Size) {
				return false
			}
			if _, err := f.ReadAt(buffer, at); err != nil || !bytes.Equal(buffer, content) {
				return false
			}
			at += int64(len(content))
		}
	}
	return isHole(f, at, e.Size)
}

// isHole reports whether a part of a file is zero.
func isHole(f *os.File, from, to int64) bool {
	b := make([]byte, 64<<10)
	for ; from < to; from += int64(len(b)) {
		b = b[:min(int64(cap(b)), to-from)]
		if _, err := f.ReadAt(b, from); err != nil || len(bytes.TrimLeft(b, "\x00")) > 0 {
			return false
		}
	}
	return true
}
