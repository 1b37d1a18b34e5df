package local

import (
	"context"

	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/snapshot"
)

// A layerStore is the layer store of a host. A layer is used if a node of any site, or a snapshot of
// one, needs it.
type layerStore struct {
	dirs  host.Dirs
	nodes func(context.Context) ([]observe.Node, error)
}

// newLayerStore returns the layer store of a host. Nodes returns the host's nodes of all sites.
func newLayerStore(dirs host.Dirs, nodes func(context.Context) ([]observe.Node, error)) layerStore {
	return layerStore{dirs, nodes}
}

// List returns the layers in the store.
func (r layerStore) List(ctx context.Context) ([]image.StoredLayer, error) {
	infos, err := image.Open(r.dirs.State).List()
	if err != nil {
		return nil, err
	}
	used, err := r.used(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]image.StoredLayer, len(infos))
	for i, info := range infos {
		all[i] = image.StoredLayer{Info: info, Used: used[info.Digest]}
	}
	return all, nil
}

// Verify reads a layer, and returns a problem if it has changed since it was built.
func (r layerStore) Verify(ctx context.Context, digest string) error {
	if !image.IsDigest(digest) {
		return problem.New(problem.Usage, "%q is not the digest of a layer", digest).Try("`orrery image ls` lists them")
	}
	return image.Open(r.dirs.State).Verify(ctx, digest)
}

// RemoveUnused removes the unused layers and returns those that it removed, even if there is an
// error.
func (r layerStore) RemoveUnused(ctx context.Context) ([]image.Info, error) {
	used, err := r.used(ctx)
	if err != nil {
		return nil, err
	}
	return image.Open(r.dirs.State).GC(ctx, used)
}

// used returns the digests of the layers that nodes use, or used in a snapshot.
func (r layerStore) used(ctx context.Context) (map[string]bool, error) {
	used := map[string]bool{}
	nodes, err := r.nodes(ctx)
	if err != nil {
		return nil, err
	}
	for i := range nodes {
		for _, digest := range nodes[i].Layers() {
			used[digest] = true
		}
	}
	kept, err := snapshot.Layers(r.dirs)
	if err != nil {
		return nil, err
	}
	for _, digest := range kept {
		used[digest] = true
	}
	delete(used, "")
	return used, nil
}
