package image

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"orrery/internal/host"
	"orrery/internal/site/distro"
	"orrery/internal/site/spec"
)

// A Record describes a layer. It is stored beside the tree as layer.json.
type Record struct {
	Digest   string           `json:"digest"` // digest of the recipe
	Title    string           `json:"title"`
	Base     string           `json:"base,omitempty"`
	Below    []string         `json:"below,omitempty"` // role layers between the layer and its base, the topmost first
	Parts    spec.PartDigests `json:"parts"`           // parts of the recipe
	Content  string           `json:"content"`         // digest of the tree
	Size     int64            `json:"size"`            // bytes that the tree occupies on disk
	Files    int              `json:"files"`           // paths in the tree
	Packages []string         `json:"packages"`        // Debian packages, NAME=VERSION, all that the node sees
	Python   []string         `json:"python,omitempty"`
	Starts   []string         `json:"starts,omitempty"` // services that start when a node boots
	Built    time.Time        `json:"built"`
	Seconds  float64          `json:"seconds"` // duration of the build
	By       string           `json:"by"`      // version of the builder
}

func newRecord(l *spec.Layer, begun time.Time) *Record {
	return &Record{
		Digest: l.Digest, Title: l.Title, Base: l.Base, Below: l.Below, Parts: l.Parts, Starts: l.BootServices(),
		Built: time.Now().UTC().Truncate(time.Second), Seconds: time.Since(begun).Seconds(), By: builder(),
	}
}

// lower returns the layers below, the topmost first.
func (r *Record) lower() []string {
	if r.Base == "" {
		return nil
	}
	return append(slices.Clone(r.Below), r.Base)
}

// Suite returns the distribution release of a base image. For an imported image, this is what the
// tree says, or "" if it says nothing.
func (r *Record) Suite(tree string) string {
	if suite := r.Parts["suite"]; suite != "" {
		return suite
	}
	return distro.OsRelease(tree)["VERSION_CODENAME"]
}

func (r *Record) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

// Record returns the record of a layer.
func (s *Store) Record(digest string) (*Record, error) {
	r, err := host.ReadJSON[Record](filepath.Join(s.Dir, digest, "layer.json"))
	return &r, err
}

// Took returns how long the last build of a layer with this title took, or 0 if the store has none.
func (s *Store) Took(title string) time.Duration {
	whole, err := s.Layers()
	if err != nil {
		return 0
	}
	var last *Record
	for digest := range whole {
		if r, err := s.Record(digest); err == nil && r.Title == title && r.Seconds > 0 &&
			(last == nil || r.Built.After(last.Built)) {
			last = r
		}
	}
	if last == nil {
		return 0
	}
	return time.Duration(last.Seconds * float64(time.Second))
}

// builder returns the name of this program with its module version, or the commit it was built
// from.
func builder() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "orrery"
	}
	version := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (version == "" || version == "(devel)") {
			version = s.Value[:min(12, len(s.Value))]
		}
	}
	return "orrery " + version
}
