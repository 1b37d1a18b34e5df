package control

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/control/unattended"
	"orrery/internal/site"
	"orrery/internal/volume"
)

// scheduleMirrors lets hosts mirror the volumes of a site as often as the site file says.
func (c *Session) scheduleMirrors(ctx context.Context, s *site.Site, f *apply.Fleet) error {
	if s.Twin != "" {
		return nil
	}
	mirrors, err := c.Mirrors(s)
	if err != nil {
		return err
	}
	return unattended.SaveMirrorPlans(ctx, c.Call(s), f, mirrors)
}

// Mirrors gives what is mirrored of a site. Nothing is of a twin: its data is a copy, and must not go over that of the original.
func (c *Session) Mirrors(s *site.Site) ([]volume.Mirror, error) {
	if s.Twin != "" {
		return nil, nil
	}
	return volume.Mirrors(c.Dirs, s)
}
