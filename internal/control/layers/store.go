// Package layers has the operations on the base images and role layers in the stores of hosts, and
// on the mirror of their packages.
package layers

import (
	"context"
	"errors"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/image"
	"orrery/internal/site"
)

// An Info is what is known of a layer in a store.
type Info = image.Info

// A Row is a layer in the store of a host.
type Row struct {
	Host string `json:"host,omitempty"` // "": this machine, of which no site was asked
	Info
	Used bool `json:"-"` // a node stands on it, or stood on it in a snapshot
}

// All stands for all hosts of the site.
const All = "all"

// A store is that of a host.
type store struct {
	host string
	apply.LayerHost
}

// stores returns those of some hosts of the site that is meant, as far as they answer; without
// names, that of this machine, which takes no site.
func stores(ctx context.Context, c *control.Session, names []string) (all []store, err error) {
	if len(names) == 0 {
		f, err := c.Bare(ctx, &site.Site{}) // it is about nodes of any
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
		layers, wrong := c.Call(s).Layers(ctx, name)
		if wrong != nil {
			err = errors.Join(err, wrong)
			continue
		}
		all = append(all, store{name, layers})
	}
	return all, err
}

// List returns the layers in the stores of some hosts of the site, or of this machine. What hosts
// have that answer is given also if there is an error.
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

// Remove removes the layers that no node stands on, and gives them. They are gone, also if there is an error.
func Remove(ctx context.Context, c *control.Session, names ...string) (gone []Row, err error) {
	if err := may(c, names); err != nil {
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

// Verify sees whether layers, those of these digests or all, are as they were built. Each is told
// of, with what is wrong with it, when it has been read.
func Verify(ctx context.Context, c *control.Session, names, digests []string,
	each func(host, digest string, wrong error)) error {
	if err := may(c, names); err != nil {
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

// may returns an Unable problem if the caller may not see or change the store of this machine, if
// that is meant.
func may(c *control.Session, names []string) error {
	if len(names) == 0 {
		return c.Allowed()
	}
	return nil // whether one may on hosts is asked of each
}
