package control

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
func (r TwinRecord) Key() string { return r.Site + "." + r.Options.Name }

func (c *Session) TwinPath(key string) string { return filepath.Join(c.Dirs.Site(key), "twin.json") }

func (c *Session) WriteTwin(r TwinRecord) error {
	path := c.TwinPath(r.Key())
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

func (c *Session) ReadTwin(key string) (TwinRecord, error) {
	var r TwinRecord
	text, err := os.ReadFile(c.TwinPath(key))
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
}

// Twins gives all twins on this host, by key.
func (c *Session) Twins() []TwinRecord {
	paths, _ := filepath.Glob(c.TwinPath("*"))
	all := []TwinRecord{}
	for _, path := range paths {
		if r, err := c.ReadTwin(filepath.Base(filepath.Dir(path))); err == nil {
			all = append(all, r)
		}
	}
	return all
}

// NoTwin says that there is no such twin, and which there are. The site is "" if it is not known which.
func (c *Session) NoTwin(site, name string) error {
	var names []string
	for _, r := range c.Twins() {
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

// TwinDirectory gives the site directory of the twin that is meant, if only one is called so.
func (c *Session) TwinDirectory() (string, error) {
	found := slices.DeleteFunc(c.Twins(), func(r TwinRecord) bool { return r.Options.Name != c.Twin })
	switch len(found) {
	case 0:
		return "", c.NoTwin("", c.Twin)
	case 1:
		return found[0].Dir, nil
	}
	return "", problem.New(problem.Usage, "twins of %d sites are called %s", len(found), c.Twin).Try("say -C %s, for instance", found[0].Dir)
}

// AsTwin gives a twin of a site as a release makes it; 0: as it was created.
func (c *Session) AsTwin(s *site.Site, name string, release int) (*site.Site, error) {
	key := s.Name + "." + name
	r, err := c.ReadTwin(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, c.NoTwin(s.Name, name)
	}
	if err != nil {
		return nil, problem.New(problem.Failed, "what is known of twin %s cannot be read", name).At(c.TwinPath(key)).Because(err).
			Try("orrery twin destroy %s, and create it anew", name)
	}
	o := r.Options
	if release != 0 {
		o.Release = release
	}
	return twin.Of(s, o)
}

// MayChange refuses to change a twin that is somebody else's.
func (c *Session) MayChange(s *site.Site) error {
	if s.Twin == "" || c.Force {
		return nil
	}
	r, err := c.ReadTwin(s.Key())
	if err != nil || r.Options.Owner == Who() {
		return nil
	}
	return problem.New(problem.Refused, "twin %s belongs to %s; nothing was done", s.Twin, r.Options.Owner).Try("ask them, or say --force")
}

// Original loads the site of which a twin is to be made: a directory, or the name of a site that is up here.
func (c *Session) Original(text string) (*site.Site, string, error) {
	dir := text
	if c.Member != nil {
		dir = c.SiteDir // that was settled
	} else if _, err := os.Stat(filepath.Join(text, sitefile.Name)); err != nil {
		for _, m := range c.SitesUp() {
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
