package register

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
)

// A declaration is the text of the site directory from which a site was last brought up. Verbs that
// only need the nodes of a site use it while the site directory cannot be read. It may contain what
// the site directory keeps from other users, so only root can read it.
type declaration struct {
	Dir    string            `json:"dir"`
	Images map[string]string `json:"images,omitempty"` // stamps of imported images, by name
	Files  map[string][]byte `json:"files"`            // by path in the site directory
}

func (r Register) declarationPath(key string) string {
	return filepath.Join(r.Dirs.Site(key), "declared.json")
}

// formerDeclarationPath returns the path of the declaration before the present one. Nodes that the
// last run did not reach are still as it declares them.
func formerDeclarationPath(r Register, key string) string {
	return filepath.Join(r.Dirs.Site(key), "declared-before.json")
}

// StoreDeclaration stores the text of the site directory of a site that is up. If the directory
// cannot be read any more, because someone is editing it, the former text stays.
func (r Register) StoreDeclaration(key, dir string) error {
	files, s, err := sitefile.Text(dir)
	if problem.Is(err, problem.Mistake) {
		return nil
	}
	if err != nil {
		return err
	}
	d := declaration{Dir: dir, Files: files}
	for _, img := range s.Images {
		if img.Import == "" {
			continue
		}
		if d.Images == nil {
			d.Images = map[string]string{}
		}
		d.Images[img.Name] = img.Stamp
	}
	stored, err := host.ReadJSON[declaration](r.declarationPath(key)) // one that is damaged is replaced
	if err == nil && !maps.EqualFunc(stored.Files, d.Files, bytes.Equal) {
		if err := host.WriteJSON(formerDeclarationPath(r, key), 0o600, stored); err != nil {
			return err
		}
	}
	return host.WriteJSON(r.declarationPath(key), 0o600, d)
}

// IsDeclarationOutdated reports whether site.toml, or a site file that it extends, is newer than the
// stored text of the site directory, or whether no text is stored.
func (r Register) IsDeclarationOutdated(s *site.Site, dir string) bool {
	stored, err := os.Stat(r.declarationPath(s.Key()))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return slices.ContainsFunc(append([]string{dir}, s.Extends...), func(dir string) bool {
		edited, err := os.Stat(filepath.Join(dir, sitefile.Name))
		return err == nil && edited.ModTime().After(stored.ModTime())
	})
}

// LoadDeclaration returns a site that is up, or its twin, as the stored text declares it.
func (r Register) LoadDeclaration(m UpRecord) (*site.Site, error) {
	return loadDeclaration(r, m, r.declarationPath(m.Key()))
}

// Declarations returns a site that is up as the last two stored texts declare it, the newer one
// first. It leaves out those that are missing or that this version cannot read.
func (r Register) Declarations(m UpRecord) (all []*site.Site) {
	for _, path := range []string{r.declarationPath(m.Key()), formerDeclarationPath(r, m.Key())} {
		if s, err := loadDeclaration(r, m, path); err == nil {
			all = append(all, s)
		}
	}
	return all
}

func loadDeclaration(r Register, m UpRecord, path string) (*site.Site, error) {
	d, err := host.ReadJSON[declaration](path)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "orrery-declared-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // all of it has been read
	for name, content := range d.Files {
		if !filepath.IsLocal(name) {
			return nil, problem.New(problem.Failed, "%q is not a path in a site directory", name).
				At(path)
		}
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(at, content, 0o600); err != nil {
			return nil, err
		}
	}
	s, err := sitefile.LoadStamped(dir, d.Dir, d.Images)
	if err != nil || m.Twin == "" {
		return s, err
	}
	return r.AsTwin(s, m.Twin, 0)
}
