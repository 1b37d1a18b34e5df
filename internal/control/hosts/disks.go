package hosts

import (
	"errors"
	"io/fs"
	"path/filepath"

	"orrery/internal/image/foreign"
	"orrery/internal/plan"
	"orrery/internal/site"
)

// CheckDisks opens the disk images of a site, so that an image that cannot be booted is found
// before anything is created.
func CheckDisks(s *site.Site) error {
	for i := range s.Images {
		if err := checkDisk(&s.Images[i]); err != nil {
			return err
		}
	}
	return nil
}

// CheckPlannedDisks opens the disk images from which a plan builds layers. Layers that exist
// already do not need the file again.
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

// checkDisk opens the file of one image. It skips files on other hosts, and files that the caller
// may not read.
func checkDisk(i *site.Image) error {
	file := i.SourceFile()
	if !i.IsDisk() || i.Remote || !filepath.IsAbs(file) {
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
