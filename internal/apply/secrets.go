package apply

import (
	"context"

	"orrery/internal/problem"
	"orrery/internal/secret"
	"orrery/internal/site/spec"
)

// A SecretHost keeps copies of the generated secrets that its nodes need, by stored name (secretspec.Split).
type SecretHost interface {
	// Read returns the host's copy of a generated secret, or fs.ErrNotExist.
	Read(ctx context.Context, name string) (secret.Stored, error)
	// Store stores such a copy. It does not replace an existing one.
	Store(ctx context.Context, name string, s secret.Stored) error
	// Replace stores a new generation of a secret. The value is empty unless the secret is generated.
	Replace(ctx context.Context, name string, s secret.Stored) error
	// Remove removes the host's copy of a secret, if it has one.
	Remove(ctx context.Context, name string) error
	// Redact hides the values of secrets in the output of a command on the host.
	Redact(text string) string
}

// secrets provides a host with the values of a site's secrets, and with the files that contain
// some.
type secrets struct {
	*secret.Keyring
	host *HostClient
}

// Value returns the value of a secret. A generated secret is first stored on the host, so that the
// host that uses it has a copy even if others are lost.
func (s secrets) Value(ctx context.Context, name string) (string, error) {
	if !s.host.MayNeedSecret(name) { // whatever nodes the host claims to have
		return "", problem.New(problem.Unable, "no node on host %s needs secret %s", s.host.Name, name)
	}
	v, err := s.Keyring.Value(ctx, name)
	if err == nil && s.Generated(name) {
		err = s.host.storeSecret(ctx, name, s.Stored(name))
	}
	return v, err
}

// Text renders a file.
func (s secrets) Text(ctx context.Context, t spec.SecretText) ([]byte, error) {
	return s.host.packer.SecretText(ctx, t, s.part)
}

// part returns a part of a secret.
func (s secrets) part(ctx context.Context, stored, part string) (string, error) {
	v, err := s.Value(ctx, stored)
	if err != nil {
		return "", err
	}
	return s.Derive(stored, v, part)
}

// storeSecret stores a copy of a generated secret on the host.
func (h *HostClient) storeSecret(ctx context.Context, name string, s secret.Stored) error {
	h.keeping.Lock()
	defer h.keeping.Unlock()
	if h.told[name] {
		return nil
	}
	err := h.Secrets.Store(ctx, name, s)
	if err == nil {
		if h.told == nil {
			h.told = map[string]bool{}
		}
		h.told[name] = true
	}
	return err
}
