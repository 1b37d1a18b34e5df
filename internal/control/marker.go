package control

import (
	"encoding/json"
	"os"
	"path/filepath"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
)

// A Marker says, beside the state of a site, from which directory it was brought up; it is there while the site is up, and afterwards under another name.
type Marker struct {
	Site string `json:"site"`
	Twin string `json:"twin,omitempty"`
	// Production: whether it is in production; nil: whoever wrote this down did not say so.
	Production *bool  `json:"production,omitempty"`
	Dir        string `json:"dir"`
}

// Key is what the site, or the twin, is known by on the host.
func (m Marker) Key() string { return (&site.Site{Name: m.Site, Twin: m.Twin}).Key() }

// There reports whether a site file is still in the directory.
func (m Marker) There() bool {
	_, err := os.Stat(filepath.Join(m.Dir, sitefile.Name))
	return err == nil
}

// FormerPath is the Marker of a site that was taken down.
func (c *Session) FormerPath(key string) string { return filepath.Join(c.Dirs.Site(key), "down.json") }

// Unmark notes that a site is not up any more.
func (c *Session) Unmark(key string) {
	_ = os.Rename(c.MarkerPath(key), c.FormerPath(key))
}

func readMarker(path string) (m Marker, ok bool) {
	text, err := os.ReadFile(path)
	return m, err == nil && json.Unmarshal(text, &m) == nil
}

func (c *Session) MarkerPath(key string) string { return filepath.Join(c.Dirs.Site(key), "up.json") }

// SitesUp gives the sites that were brought up on this host and not taken down.
func (c *Session) SitesUp() []Marker {
	paths, _ := filepath.Glob(c.MarkerPath("*"))
	var up []Marker
	for _, path := range paths {
		if m, ok := readMarker(path); ok {
			up = append(up, m)
		}
	}
	return up
}

func (c *Session) MarkUp(s *site.Site) error {
	dir, err := c.Directory()
	if err != nil {
		return err
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	text, err := json.Marshal(Marker{Site: s.Name, Twin: s.Twin, Dir: absolute, Production: &s.Production})
	if err != nil {
		return err
	}
	return host.WriteFile(host.File{Path: c.MarkerPath(s.Key()), Content: text, Mode: 0o600})
}
