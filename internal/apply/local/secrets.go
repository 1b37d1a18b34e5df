package local

import (
	"context"

	"orrery/internal/secret"
)

// Read returns the host's copy of a generated secret.
func (h secretHost) Read(_ context.Context, name string) (string, error) {
	return h.kept().Read(name)
}

// Store stores such a copy.
func (h secretHost) Store(_ context.Context, name, value string) error {
	return h.kept().Put(name, value)
}

func (h secretHost) kept() secret.Store { return secret.Store{Dir: h.Dirs.Secrets(h.Key)} }
