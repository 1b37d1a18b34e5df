package hosts

import (
	"errors"
	"io/fs"
	"path/filepath"

	"orrery/internal/image/foreign"
	"orrery/internal/plan"
	"orrery/internal/site"
)

// CheckDisks looks at the disk images of a site, so that one that cannot be booted is found before
// anything is made.
func CheckDisks(s *site.Site) error {
	for i := range s.Images {
		if err := checkDisk(&s.Images[i]); err != nil {
			return err
		}
	}
	return nil
}

// CheckPlannedDisks looks at those from which a plan makes layers. For what was made before, no
// file is needed again.
func CheckPlannedDisks(p *plan.Plan) error {
	for _, s := range p.Steps {
		if s.Kind != plan.BuildLayer || !s.Layer.IsDisk() {
			continue
		}
		if err := checkDisk(&s.Layer.Image); err != nil {
			return err
		}
	}
	return nil
}

// checkDisk looks at one, unless its file is on another host, or is not for the caller to read.
func checkDisk(i *site.Image) error {
	file := i.File()
	if !i.IsDisk() || i.Told || !filepath.IsAbs(file) {
		return nil
	}
	f, err := foreign.Open(file)
	switch {
	case err == nil:
		return f.Close()
	case errors.Is(err, fs.ErrPermission):
		return nil
	}
	return err
}
