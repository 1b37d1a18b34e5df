package backup

import (
	"errors"
	"fmt"

	"orrery/internal/problem"
)

// errDigest: content is not what its name says.
var errDigest = errors.New("its digest is another than its name says")

// errMissing: something is not there at all.
var errMissing = errors.New("it is missing")

// damaged says which file is damaged; nothing has been touched then.
func damaged(v Vault, what string, err error) error {
	var p *problem.Problem
	if errors.As(err, &p) {
		return err
	}
	return problem.New(problem.Failed, "the backup is damaged, and nothing of it is used: %s", what).At(v.Where()).Because(err).
		Try("take another copy of it, or an older backup")
}

// hurt tells of which files a damaged block holds a part.
func hurt(v Vault, m *Manifest, block Digest) string {
	name := blockName(block)
	broken := map[Digest]bool{}
	for _, p := range v.has().blocks[block] {
		broken[p.digest] = true
	}
	if m == nil {
		return name
	}
	from := newPieces(v)
	for i := range m.Trees {
		t := &m.Trees[i]
		entries, err := from.list(t)
		if err != nil {
			return fmt.Sprintf("%s, which holds the list of %s", name, t.Name)
		}
		for _, e := range entries {
			for _, x := range e.Data {
				for _, d := range x.Pieces {
					if broken[d] {
						return fmt.Sprintf("%s, which holds %s/%s", name, t.Name, e.Name)
					}
				}
			}
		}
	}
	return name
}

// blockName is the path of a block in a repository, and its name in an archive.
func blockName(d Digest) string {
	text := d.String()
	return "blocks/" + text[:2] + "/" + text + ".zst"
}
