package register

import (
	"os"
	"path/filepath"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
)

// A UpRecord records, beside the state of a site, from which directory the site was brought up. While
// the site is up, it has one file name, and afterwards another.
type UpRecord struct {
	Site string `json:"site"`
	Twin string `json:"twin,omitempty"`
	// Production reports whether the site is in production, or is nil if an earlier version wrote
	// the record.
	Production *bool  `json:"production,omitempty"`
	Dir        string `json:"dir"`
}

// Key returns the key of the site or twin.
func (m UpRecord) Key() string { return (&site.Site{Name: m.Site, Twin: m.Twin}).Key() }

// Exists reports whether the directory still has a site file.
func (m UpRecord) Exists() bool {
	_, err := os.Stat(filepath.Join(m.Dir, sitefile.Name))
	return err == nil
}

// formerUpPath returns the path of the record of a site that was taken down.
func (r Register) formerUpPath(key string) string {
	return filepath.Join(r.Dirs.Site(key), "down.json")
}

// MarkDown records that a site is no longer up.
func (r Register) MarkDown(key string) {
	_ = os.Rename(r.upPath(key), r.formerUpPath(key))
	_ = os.Remove(r.declarationPath(key)) // the declarations are of use only while the site is up
	_ = os.Remove(formerDeclarationPath(r, key))
}

func readUpRecord(path string) (m UpRecord, ok bool) {
	m, err := host.ReadJSON[UpRecord](path)
	return m, err == nil
}

func (r Register) upPath(key string) string { return filepath.Join(r.Dirs.Site(key), "up.json") }

// SitesUp returns the sites that were brought up on this host and not taken down.
func (r Register) SitesUp() []UpRecord {
	paths, _ := filepath.Glob(r.upPath("*"))
	var up []UpRecord
	for _, path := range paths {
		if m, ok := readUpRecord(path); ok {
			up = append(up, m)
		}
	}
	return up
}

// MarkUp records that a site was brought up, and from which directory.
func (r Register) MarkUp(s *site.Site, dir string) error {
	return host.WriteJSON(r.upPath(s.Key()), 0o600,
		UpRecord{Site: s.Name, Twin: s.Twin, Dir: dir, Production: &s.Production})
}

// Up returns the record of a site that is up.
func (r Register) Up(key string) (m UpRecord, up bool) { return readUpRecord(r.upPath(key)) }

// FormerUp returns the last record of a site that was taken down.
func (r Register) FormerUp(key string) (m UpRecord, ok bool) {
	return readUpRecord(r.formerUpPath(key))
}
