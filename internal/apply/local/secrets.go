package local

import (
	"context"

	"orrery/internal/secret"
)

// Secret gives the host's copy of a generated secret.
func (h secretHost) Secret(_ context.Context, name string) (string, error) {
	return h.kept().Read(name)
}

// KeepSecret keeps one.
func (h secretHost) KeepSecret(_ context.Context, name, value string) error {
	return h.kept().Keep(name, value)
}

func (h secretHost) kept() secret.Kept { return secret.Kept{Dir: h.Dirs.Secrets(h.Key)} }
