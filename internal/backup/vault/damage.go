package vault

import (
	"errors"
	"fmt"
	"slices"

	"orrery/internal/problem"
	"orrery/internal/text/sanitize"
	"orrery/internal/tree"
)

// errDigest is the error for content that does not match its name.
var errDigest = errors.New("its digest does not match its name")

// ErrMissing is the error for a missing file.
var ErrMissing = errors.New("it is missing")

// Location returns the location of a backup.
type Location interface{ Where() string }

// Damaged returns the problem for a damaged file. The callers have not changed anything yet.
func Damaged(v Location, what string, err error) error {
	var p *problem.Problem
	if errors.As(err, &p) {
		return err
	}
	p = problem.New(problem.Failed, "the backup is damaged and was not used: %s", what).At(v.Where()).
		Because(err)
	switch v.(type) {
	case *Repository, *directory:
		return p.Try("repair it with orrery backup repair %s, or use another copy or an older backup", v.Where())
	}
	return p.Try("use another copy or an older backup")
}

// ErrStop ends a search.
var ErrStop = errors.New("found")

// damagedName returns the name of a damaged block and, if known, a file that uses it.
func damagedName(v Vault, m *Manifest, block Digest) string {
	name := blockName(block)
	broken := map[Digest]bool{}
	for _, p := range v.pieceIndex().blocks[block] {
		broken[p.digest] = true
	}
	if m == nil {
		return name
	}
	from := NewPieces(v)
	for i := range m.Trees {
		t := &m.Trees[i]
		found := ""
		err := from.Each(t, func(e *Entry) error {
			for _, x := range e.Data {
				if slices.ContainsFunc(x.Pieces, func(d Digest) bool { return broken[d] }) {
					found = sanitize.Line(tree.DisplayPath(string(e.Name)))
					return ErrStop
				}
			}
			return nil
		})
		switch {
		case found != "":
			return fmt.Sprintf("%s, which holds %s/%s", name, t.Name, found)
		case err != nil:
			return fmt.Sprintf("%s, which holds the list of %s", name, t.Name)
		}
	}
	return name
}

// blockName returns the path of a block in a repository, which is also its name in an archive.
func blockName(d Digest) string {
	text := d.String()
	return "blocks/" + text[:2] + "/" + text + ".zst"
}
