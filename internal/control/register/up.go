package register

import (
	"os"
	"path/filepath"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
)

// A Marker records, beside the state of a site, from which directory the site was brought up. While
// the site is up, it has one file name, and afterwards another.
type Marker struct {
	Site string `json:"site"`
	Twin string `json:"twin,omitempty"`
	// Production reports whether the site is in production, or is nil if an earlier version wrote
	// the marker.
	Production *bool  `json:"production,omitempty"`
	Dir        string `json:"dir"`
}

// Key returns the key of the site or twin.
func (m Marker) Key() string { return (&site.Site{Name: m.Site, Twin: m.Twin}).Key() }

// Exists reports whether the directory still has a site file.
func (m Marker) Exists() bool {
	_, err := os.Stat(filepath.Join(m.Dir, sitefile.Name))
	return err == nil
}

// formerPath returns the path of the marker of a site that was taken down.
func (r Register) formerPath(key string) string { return filepath.Join(r.Dirs.Site(key), "down.json") }

// MarkDown records that a site is no longer up.
func (r Register) MarkDown(key string) {
	_ = os.Rename(r.markerPath(key), r.formerPath(key))
	_ = os.Remove(r.declarationPath(key)) // the declarations are of use only while the site is up
	_ = os.Remove(formerDeclarationPath(r, key))
}

func readMarker(path string) (m Marker, ok bool) {
	m, err := host.ReadJSON[Marker](path)
	return m, err == nil
}

func (r Register) markerPath(key string) string { return filepath.Join(r.Dirs.Site(key), "up.json") }

// SitesUp returns the sites that were brought up on this host and not taken down.
func (r Register) SitesUp() []Marker {
	paths, _ := filepath.Glob(r.markerPath("*"))
	var up []Marker
	for _, path := range paths {
		if m, ok := readMarker(path); ok {
			up = append(up, m)
		}
	}
	return up
}

// MarkUp records that a site was brought up, and from which directory.
func (r Register) MarkUp(s *site.Site, dir string) error {
	return host.WriteJSON(r.markerPath(s.Key()), 0o600,
		Marker{Site: s.Name, Twin: s.Twin, Dir: dir, Production: &s.Production})
}

// Marker returns the marker of a site that is up.
func (r Register) Marker(key string) (m Marker, up bool) { return readMarker(r.markerPath(key)) }

// FormerMarker returns the marker of a site that was taken down.
func (r Register) FormerMarker(key string) (m Marker, ok bool) { return readMarker(r.formerPath(key)) }
