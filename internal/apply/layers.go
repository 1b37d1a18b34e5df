package apply

import (
	"context"
	"io"

	"orrery/internal/image"
)

// A LayerHost has the layers in the host's store, whichever sites they are for. Which of them are
// used, only a host knows that is asked about no site in particular.
type LayerHost interface {
	// List returns the layers in the store.
	List(ctx context.Context) ([]image.Kept, error)
	// Verify returns a problem if a layer is not as it was built.
	Verify(ctx context.Context, digest string) error
	// RemoveUnused removes the layers that no node stands on, of any site, and returns them. They are
	// gone, even if there is an error.
	RemoveUnused(ctx context.Context) ([]image.Info, error)
	// Describe returns what is on record of layers.
	Describe(ctx context.Context, layers []string) ([]image.Record, error)
	// Word returns the content digest of a layer, or fs.ErrNotExist.
	Word(ctx context.Context, layer string) (image.Word, error)
	// Receive stores a file with this digest from which a layer is to be built, see package imported.
	Receive(ctx context.Context, digest string, rw io.ReadWriter) error
}
