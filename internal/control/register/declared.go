package register

import (
	"os"
	"path/filepath"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/treesync/sitearchive"
)

// A declaration is stored beside the copy of the site directory from which a site was brought up.
type declaration struct {
	Dir string `json:"dir"` // the directory that was copied
	// Images are the stamps of imported images by name. The copy lacks their files.
	Images map[string]string `json:"images,omitempty"`
}

func (r Register) declared(key string) string { return filepath.Join(r.Dirs.Site(key), "declared") }

// StoreDeclared stores a copy of the site directory from which a site is brought up. Verbs for running
// nodes use it while the directory has mistakes or is gone.
func (r Register) StoreDeclared(s *site.Site, dir string) error {
	to := r.declared(s.Key())
	fresh := to + "-new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := os.MkdirAll(fresh, 0o700); err != nil { // users of the host may have no access to the site directory
		return err
	}
	kept, err := sitefile.CopyText(dir, filepath.Join(fresh, sitearchive.Site))
	if err != nil {
		return err
	}
	d := declaration{Dir: dir}
	for _, img := range kept.Images {
		if img.Stamp != "" {
			if d.Images == nil {
				d.Images = map[string]string{}
			}
			d.Images[img.Name] = img.Stamp
		}
	}
	if err := host.WriteJSON(filepath.Join(fresh, sitearchive.Record), 0o600, d); err != nil {
		return err
	}
	return host.ReplaceParts(fresh, to, sitearchive.Site, sitearchive.Record)
}

// Declared returns a site that is up as it was declared when it was last brought up.
func (r Register) Declared(m Marker) (*site.Site, error) {
	at := r.declared(m.Key())
	d, err := host.ReadJSON[declaration](filepath.Join(at, sitearchive.Record))
	if err != nil {
		return nil, err
	}
	kept, err := sitefile.LoadStamped(filepath.Join(at, sitearchive.Site), d.Dir, d.Images)
	if err != nil || m.Twin == "" {
		return kept, err
	}
	return r.AsTwin(kept, m.Twin, 0)
}
