package local

import (
	"context"
	"path/filepath"

	"orrery/internal/network/wireguard"
)

// PublicKey returns the public key with which other hosts encrypt what networks of the site send to
// this host. The pair is generated once, and the private key never leaves the host.
func (h stateHost) PublicKey(context.Context) (string, error) {
	if err := h.Backends.Networks.Encrypts(); err != nil {
		return "", err
	}
	private, err := h.names.privateKey()
	if err != nil {
		return "", err
	}
	return wireguard.PublicKey(private)
}

// privateKey returns the private key of that pair.
func (n *names) privateKey() (string, error) {
	n.keys.Lock()
	defer n.keys.Unlock()
	dir, name := n.Dirs.Keys(n.Key), ".wireguard" // no node can have this name
	return wireguard.LoadOrCreateKey(filepath.Join(dir, name),
		func(text []byte) error { return writeUnsynced(dir, name, text, 0o600) })
}
