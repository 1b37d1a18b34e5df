package register

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/twin"
)

// A TwinRecord says, beside the state of a twin, what it is a twin of.
type TwinRecord struct {
	Site    string       `json:"site"`
	Dir     string       `json:"dir"` // site directory of which it is made
	Options twin.Options `json:"options"`
	Volumes string       `json:"volumes"` // what its volumes began with: "empty", "snapshot" or a script
	Filled  bool         `json:"filled"`  // they have got it
	Created time.Time    `json:"created"`
	Expires time.Time    `json:"expires,omitzero"`
}

// Key is what the twin is known by on the host.
func (t TwinRecord) Key() string { return t.Site + "." + t.Options.Name }

// TwinPath is the record of a twin.
func (r Register) TwinPath(key string) string { return filepath.Join(r.Dirs.Site(key), "twin.json") }

// WriteTwin writes the record of a twin.
func (r Register) WriteTwin(t TwinRecord) error {
	path := r.TwinPath(t.Key())
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return err
		}
		return host.WriteJSON(path, 0o600, t)
	}
	// A new twin appears with its record: a directory without one would be nobody's to remove.
	fresh := filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+"-new")
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := host.WriteJSON(filepath.Join(fresh, filepath.Base(path)), 0o600, t); err != nil {
		return err
	}
	return os.Rename(fresh, dir)
}

// ReadTwin reads the record of a twin.
func (r Register) ReadTwin(key string) (TwinRecord, error) {
	return host.ReadJSON[TwinRecord](r.TwinPath(key))
}

// Twins gives all twins on this host, by key.
func (r Register) Twins() []TwinRecord {
	paths, _ := filepath.Glob(r.TwinPath("*"))
	all := []TwinRecord{}
	for _, path := range paths {
		if t, err := r.ReadTwin(filepath.Base(filepath.Dir(path))); err == nil {
			all = append(all, t)
		}
	}
	return all
}

// NoTwin says that there is no such twin, and which there are. The site is "" if it is not known which.
func (r Register) NoTwin(site, name string) error {
	var names []string
	for _, t := range r.Twins() {
		if site == "" || t.Site == site {
			names = append(names, t.Options.Name)
		}
	}
	p := problem.New(problem.Mistake, "there is no twin %q here", name)
	if site != "" {
		p = problem.New(problem.Mistake, "site %s has no twin %q here", site, name)
	}
	switch near := problem.Nearest(name, names); {
	case near != "":
		return p.Try("did you mean %s?", near)
	case len(names) > 0:
		return p.Try("there are %s", strings.Join(names, ", "))
	}
	return p.Try("orrery twin create SITE %s", name)
}

// AsTwin gives a twin of a site as a release makes it; 0: as it was created.
func (r Register) AsTwin(s *site.Site, name string, release int) (*site.Site, error) {
	key := s.Name + "." + name
	t, err := r.ReadTwin(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, r.NoTwin(s.Name, name)
	}
	if err != nil {
		return nil, problem.New(problem.Failed, "the record of twin %s cannot be read", name).At(r.TwinPath(key)).Because(err).
			Try("orrery twin destroy %s, and create it anew", name)
	}
	o := t.Options
	if release != 0 {
		o.Release = release
	}
	return twin.Of(s, o)
}
