package apply

import (
	"context"

	"orrery/internal/image"
)

// A Storeroom has the layers of a host, whichever sites they are for: only a host that is asked about no site in particular knows which are used.
type Storeroom interface {
	// Layers gives the layers in the store.
	Layers(ctx context.Context) ([]image.Kept, error)
	// VerifyLayer returns a problem if a layer is not as it was built.
	VerifyLayer(ctx context.Context, digest string) error
	// RemoveLayers removes the layers that no node stands on, of any site, and gives them. They are gone, also if there is an error.
	RemoveLayers(ctx context.Context) ([]image.Info, error)
}
