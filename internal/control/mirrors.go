package control

import (
	"orrery/internal/site"
	"orrery/internal/volume"
)

// Mirrors gives what is mirrored of a site. Nothing is of a twin: its data is a copy, and must not go over that of the original.
func Mirrors(c *Session, s *site.Site) ([]volume.Mirror, error) {
	if s.Twin != "" {
		return nil, nil
	}
	return volume.Mirrors(c.Dirs, s)
}
