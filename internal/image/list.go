package image

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"orrery/internal/problem"
)

// Info is what `orrery image ls` shows of a layer.
type Info struct {
	Digest   string    `json:"digest"`
	Title    string    `json:"title"`
	Base     string    `json:"base,omitempty"`
	Lower    []string  `json:"lower,omitempty"` // digests of the layers below, the topmost first
	Content  string    `json:"content"`
	Size     int64     `json:"size"` // bytes on disk
	Built    time.Time `json:"built"`
	Seconds  float64   `json:"seconds"`
	By       string    `json:"by"`
	Packages int       `json:"packages"`
	Python   int       `json:"python"`
	UsedBy   []string  `json:"usedBy,omitempty"` // digests of the layers on top of it
}

// StoredLayer is a layer in a store, and whether it is in use.
type StoredLayer struct {
	Info
	Used bool `json:"used"` // a node or a snapshot uses the layer
}

// List returns the layers of the store: base images first, then by title and age.
func (s *Store) List() ([]Info, error) {
	whole, err := s.Layers()
	if err != nil {
		return nil, err
	}
	byDigest := map[string]*Info{}
	for digest := range whole {
		r, err := s.Record(digest)
		if err != nil {
			return nil, broken(s, digest, err)
		}
		byDigest[digest] = &Info{
			Digest: digest, Title: r.Title, Base: r.Base, Lower: r.lower(), Content: r.Content, Size: r.Size, Built: r.Built,
			Seconds: r.Seconds,
			By:      r.By, Packages: len(r.Packages), Python: len(r.Python),
		}
	}
	var all []Info
	for _, digest := range slices.Sorted(maps.Keys(byDigest)) {
		for _, below := range byDigest[digest].Lower {
			if lower := byDigest[below]; lower != nil {
				lower.UsedBy = append(lower.UsedBy, digest)
			}
		}
	}
	for _, info := range byDigest {
		all = append(all, *info)
	}
	slices.SortFunc(all, func(a, b Info) int {
		kind := func(i Info) int { return min(len(i.Base), 1) }
		return cmp.Or(cmp.Compare(kind(a), kind(b)), cmp.Compare(a.Title, b.Title), a.Built.Compare(b.Built),
			cmp.Compare(a.Digest, b.Digest))
	})
	return all, nil
}

// broken returns a problem for a layer whose record cannot be read.
func broken(s *Store, digest string, err error) error {
	return problem.New(problem.Failed, "layer %s: its record cannot be read", digest).At(s.Dir).Because(err).
		Try("remove %s/%s if no node uses it; `orrery up` builds it again", s.Dir, digest)
}
