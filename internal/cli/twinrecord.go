package cli

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/site/twin"
)

// A twinRecord says, beside the state of a twin, what it is a twin of.
type twinRecord struct {
	Site    string       `json:"site"`
	Dir     string       `json:"dir"` // site directory of which it is made
	Options twin.Options `json:"options"`
	Volumes string       `json:"volumes"` // what its volumes began with: "empty", "snapshot" or a script
	Filled  bool         `json:"filled"`  // they have got it
	Created time.Time    `json:"created"`
	Expires time.Time    `json:"expires,omitzero"`
}

func (r twinRecord) key() string { return r.Site + "." + r.Options.Name }

func (a *app) twinPath(key string) string { return filepath.Join(a.dirs.Site(key), "twin.json") }

func (a *app) writeTwin(r twinRecord) error {
	path := a.twinPath(r.key())
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return err
		}
		return host.WriteJSON(path, 0o600, r)
	}
	// A new twin appears with its record: a directory without one would be nobody's to remove.
	fresh := filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+"-new")
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := host.WriteJSON(filepath.Join(fresh, filepath.Base(path)), 0o600, r); err != nil {
		return err
	}
	return os.Rename(fresh, dir)
}

func (a *app) readTwin(key string) (twinRecord, error) {
	var r twinRecord
	text, err := os.ReadFile(a.twinPath(key))
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
}

// twins gives all twins on this host, by key.
func (a *app) twins() []twinRecord {
	paths, _ := filepath.Glob(a.twinPath("*"))
	all := []twinRecord{}
	for _, path := range paths {
		if r, err := a.readTwin(filepath.Base(filepath.Dir(path))); err == nil {
			all = append(all, r)
		}
	}
	return all
}

// noTwin says that there is no such twin, and which there are. The site is "" if it is not known which.
func (a *app) noTwin(site, name string) error {
	var names []string
	for _, r := range a.twins() {
		if site == "" || r.Site == site {
			names = append(names, r.Options.Name)
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

// twinDirectory gives the site directory of the twin that is meant, if only one is called so.
func (a *app) twinDirectory() (string, error) {
	found := slices.DeleteFunc(a.twins(), func(r twinRecord) bool { return r.Options.Name != a.twin })
	switch len(found) {
	case 0:
		return "", a.noTwin("", a.twin)
	case 1:
		return found[0].Dir, nil
	}
	return "", problem.New(problem.Usage, "twins of %d sites are called %s", len(found), a.twin).Try("say -C %s, for instance", found[0].Dir)
}

// asTwin gives a twin of a site as a release makes it; 0: as it was created.
func (a *app) asTwin(s *site.Site, name string, release int) (*site.Site, error) {
	key := s.Name + "." + name
	r, err := a.readTwin(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, a.noTwin(s.Name, name)
	}
	if err != nil {
		return nil, problem.New(problem.Failed, "what is known of twin %s cannot be read", name).At(a.twinPath(key)).Because(err).
			Try("orrery twin destroy %s, and create it anew", name)
	}
	o := r.Options
	if release != 0 {
		o.Release = release
	}
	return twin.Of(s, o)
}

// mayChange refuses to change a twin that is somebody else's.
func (a *app) mayChange(s *site.Site) error {
	if s.Twin == "" || a.force {
		return nil
	}
	r, err := a.readTwin(s.Key())
	if err != nil || r.Options.Owner == who() {
		return nil
	}
	return problem.New(problem.Refused, "twin %s belongs to %s; nothing was done", s.Twin, r.Options.Owner).Try("ask them, or say --force")
}

// original loads the site of which a twin is to be made: a directory, or the name of a site that is up here.
func (a *app) original(text string) (*site.Site, string, error) {
	dir := text
	if a.member != nil {
		dir = a.siteDir // that was settled
	} else if _, err := os.Stat(filepath.Join(text, sitefile.Name)); err != nil {
		for _, m := range a.sitesUp() {
			if m.Site == text && m.Twin == "" {
				dir = m.Dir
			}
		}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, "", err
	}
	if _, err := os.Stat(filepath.Join(abs, sitefile.Name)); err != nil {
		return nil, "", problem.New(problem.Usage, "%s is neither a site directory nor a site that is up here", text).Try("say the directory of its site.toml")
	}
	s, err := sitefile.Load(abs)
	return s, abs, err
}
