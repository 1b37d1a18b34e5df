package register

import (
	"errors"
	"io/fs"
	"strings"

	"orrery/internal/host/twins"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/twin"
)

// TwinPath returns the path of the record of a twin.
func (r Register) TwinPath(key string) string { return twins.Path(r.Dirs, key) }

// WriteTwin writes the record of a twin.
func (r Register) WriteTwin(t twin.Record) error { return twins.Write(r.Dirs, t) }

// ReadTwin reads the record of a twin.
func (r Register) ReadTwin(key string) (twin.Record, error) {
	if t, known := r.Known.Twin(key); known {
		return t, nil
	}
	return twins.Read(r.Dirs, key)
}

// Twins returns all twins on this host, sorted by key.
func (r Register) Twins() []twin.Record { return twins.List(r.Dirs) }

// NoTwinError returns the error that there is no twin of this name. It lists the existing twins of the
// site, or all twins if site is "".
func (r Register) NoTwinError(site, name string) error {
	var names []string
	for _, t := range r.Twins() {
		if site == "" || t.Site == site {
			names = append(names, t.Options.Name)
		}
	}
	p := problem.New(problem.Mistake, "no twin %q on this host", name)
	if site != "" {
		p = problem.New(problem.Mistake, "site %s has no twin %q on this host", site, name)
	}
	switch near := problem.Suggest(name, names); {
	case near != "":
		return p.Try("did you mean %s?", near)
	case len(names) > 0:
		return p.Try("existing twins: %s", strings.Join(names, ", "))
	}
	return p.Try("orrery twin create SITE %s", name)
}

// AsTwin returns a twin of a site as defined by a release, or as it was created if release is 0.
func (r Register) AsTwin(s *site.Site, name string, release int) (*site.Site, error) {
	key := s.Name + "." + name
	t, err := r.ReadTwin(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, r.NoTwinError(s.Name, name)
	}
	if err != nil {
		return nil, problem.New(problem.Failed, "the record of twin %s cannot be read", name).At(r.TwinPath(key)).
			Because(err).
			Try("run orrery twin destroy %s and create the twin again", name)
	}
	o := t.Options
	if release != 0 {
		o.Release = release
	}
	return twin.New(s, o)
}
