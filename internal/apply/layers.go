package apply

import (
	"context"
	"io"

	"orrery/internal/image"
)

// A LayerHost has the layers in the host's store, of all sites. Only a host that was opened without
// a site knows which of them are used.
type LayerHost interface {
	// List returns the layers in the store.
	List(ctx context.Context) ([]image.StoredLayer, error)
	// Verify returns a problem if a layer has changed since it was built.
	Verify(ctx context.Context, digest string) error
	// RemoveUnused removes the layers that no node of any site uses, and returns those that it
	// removed, even if there is an error.
	RemoveUnused(ctx context.Context) ([]image.Info, error)
	// Describe returns the records of layers.
	Describe(ctx context.Context, layers []string) ([]image.Record, error)
	// ContentInfo returns the content digest of a layer, or fs.ErrNotExist.
	ContentInfo(ctx context.Context, layer string) (image.ContentInfo, error)
	// Receive stores the file with this digest, from which a layer will be built (package
	// imported).
	Receive(ctx context.Context, digest string, rw io.ReadWriter) error
}
