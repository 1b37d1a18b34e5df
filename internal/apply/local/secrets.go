package local

import (
	"context"

	"orrery/internal/secret"
)

// Read returns the host's copy of a generated secret.
func (h secretHost) Read(_ context.Context, name string) (secret.Stored, error) {
	return h.kept().Read(name)
}

// Store stores such a copy.
func (h secretHost) Store(_ context.Context, name string, s secret.Stored) error {
	return h.kept().Put(name, s)
}

// Replace stores a new generation of a secret.
func (h secretHost) Replace(_ context.Context, name string, s secret.Stored) error {
	return h.kept().Replace(name, s)
}

// Remove removes the host's copy of a secret.
func (h secretHost) Remove(_ context.Context, name string) error { return h.kept().Remove(name) }

func (h secretHost) kept() secret.Store { return secret.Store{Dir: h.Dirs.Secrets(h.Key)} }
