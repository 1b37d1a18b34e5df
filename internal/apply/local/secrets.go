package local

import (
	"context"

	"orrery/internal/secret"
)

// Secret gives the host's copy of a generated secret.
func (p *Place) Secret(_ context.Context, name string) (string, error) { return p.kept().Read(name) }

// KeepSecret keeps one.
func (p *Place) KeepSecret(_ context.Context, name, value string) error {
	return p.kept().Keep(name, value)
}

func (p *Place) kept() secret.Kept { return secret.Kept{Dir: p.Dirs.Secrets(p.Key)} }
