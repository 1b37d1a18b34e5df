// Package layers has the operations on base images and role layers in the hosts' stores. It also has
// the operations on the mirror of their packages.
package layers

import (
	"context"
	"errors"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/image"
	"orrery/internal/site"
)

// An Info describes a layer in a store.
type Info = image.Info

// A Row is a layer in the store of a host.
type Row struct {
	Host string `json:"host,omitempty"` // "" for this machine, without a site
	Info
	Used bool `json:"-"` // a node or a snapshot of a node needs it
}

// All selects all hosts of the site.
const All = "all"

// A store is the layer store of a host.
type store struct {
	host string
	apply.LayerHost
}

// stores returns the stores of the named hosts of the session's site that answer. Without names, it
// returns the store of this machine, which needs no site.
func stores(ctx context.Context, c *control.Session, names []string) (all []store, err error) {
	if len(names) == 0 {
		f, err := c.HostsWithoutReleases(ctx, &site.Site{}) // the store holds layers of all sites
		if err != nil {
			return nil, err
		}
		return []store{{"", f.All[0].Layers}}, nil
	}
	s, err := c.Load()
	if err != nil {
		return nil, err
	}
	if names[0] == All {
		names = nil
		for _, h := range s.Hosts {
			names = append(names, h.Name)
		}
	}
	for _, name := range names {
		layers, wrong := c.Connector(s).Layers(ctx, name)
		if wrong != nil {
			err = errors.Join(err, wrong)
			continue
		}
		all = append(all, store{name, layers})
	}
	return all, err
}

// List returns the layers in the stores of the named hosts, or of this machine. It returns the
// layers of hosts that answer even if there is an error.
func List(ctx context.Context, c *control.Session, names ...string) ([]Row, error) {
	all, err := stores(ctx, c, names)
	var rows []Row
	for _, s := range all {
		layers, wrong := s.List(ctx)
		err = errors.Join(err, wrong)
		for _, l := range layers {
			rows = append(rows, Row{s.host, l.Info, l.Used})
		}
	}
	return rows, err
}

// Remove removes the layers that no node needs, and returns them. Even if there is an error, the
// returned layers are removed.
func Remove(ctx context.Context, c *control.Session, names ...string) (gone []Row, err error) {
	if err := checkAllowed(c, names); err != nil {
		return nil, err
	}
	all, err := stores(ctx, c, names)
	for _, s := range all {
		layers, wrong := s.RemoveUnused(ctx)
		err = errors.Join(err, wrong)
		for _, l := range layers {
			gone = append(gone, Row{Host: s.host, Info: l})
		}
	}
	return gone, err
}

// Verify checks whether layers, either those with the given digests or all, are unchanged since
// they were built. It calls each for every layer that was read, with its error or nil.
func Verify(ctx context.Context, c *control.Session, names, digests []string,
	each func(host, digest string, wrong error)) error {
	if err := checkAllowed(c, names); err != nil {
		return err
	}
	all, err := stores(ctx, c, names)
	for _, s := range all {
		of := digests
		if len(of) == 0 {
			layers, wrong := s.List(ctx)
			err = errors.Join(err, wrong)
			for _, l := range layers {
				of = append(of, l.Digest)
			}
		}
		for _, digest := range of {
			each(s.host, digest, s.Verify(ctx, digest))
		}
	}
	return err
}

// checkAllowed returns an Unable problem if the caller may not see or change the store of this machine. It
// checks nothing if hosts are named.
func checkAllowed(c *control.Session, names []string) error {
	if len(names) == 0 {
		return c.Allowed()
	}
	return nil // each host decides that itself
}
