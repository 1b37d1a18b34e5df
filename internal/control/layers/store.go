// Package layers is what can be done with the base images and role layers of this host, and with the mirror of the packages that they consist of.
package layers

import (
	"context"

	"orrery/internal/control"
	"orrery/internal/image"
	"orrery/internal/site"
	"orrery/internal/snapshot"
)

// An Info is what is known of a layer in the store of this host.
type Info = image.Info

// A Row is a layer in the store of this host.
type Row struct {
	Info
	Used bool `json:"-"` // a node stands on it, or stood on it in a snapshot
}

// List gives the layers in the store of this host.
func List(ctx context.Context, c *control.Session) ([]Row, error) {
	store := c.Store()
	infos, err := store.List()
	if err != nil {
		return nil, err
	}
	used, err := used(ctx, c)
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, i := range infos {
		rows = append(rows, Row{i, used[i.Digest]})
	}
	return rows, nil
}

// Remove removes the layers that no node stands on, and gives them. They are gone, also if there is an error.
func Remove(ctx context.Context, c *control.Session) ([]Info, error) {
	if err := c.Allowed(); err != nil {
		return nil, err
	}
	store := c.Store()
	used, err := used(ctx, c)
	if err != nil {
		return nil, err
	}
	return store.GC(ctx, used)
}

// Verify sees whether layers, those of these digests or all, are as they were built. Each is told of, with what is wrong with it, when it has been read.
func Verify(ctx context.Context, c *control.Session, digests []string, each func(digest string, wrong error)) error {
	if err := c.Allowed(); err != nil {
		return err
	}
	store := c.Store()
	if len(digests) == 0 {
		infos, err := store.List()
		if err != nil {
			return err
		}
		for _, i := range infos {
			digests = append(digests, i.Digest)
		}
	}
	for _, digest := range digests {
		each(digest, store.Verify(ctx, digest))
	}
	return nil
}

// used gives the digests of the layers that nodes of any site on this host stand on, or stood on in a snapshot.
func used(ctx context.Context, c *control.Session) (map[string]bool, error) {
	h, err := c.Bare(&site.Site{}) // it is about nodes of any
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	nodes, err := h.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	for i := range nodes {
		for _, digest := range nodes[i].Layers() {
			used[digest] = true
		}
	}
	kept, err := snapshot.Layers(c.Dirs)
	if err != nil {
		return nil, err
	}
	for _, digest := range kept {
		used[digest] = true
	}
	delete(used, "")
	return used, nil
}
