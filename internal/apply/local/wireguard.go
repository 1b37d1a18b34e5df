package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"orrery/internal/network/wireguard"
	"orrery/internal/problem"
)

// PublicKey gives the public key with which others encrypt what networks of the site send to this host. The pair is made once, at random; the private half never leaves the host.
func (w *Worker) PublicKey(context.Context) (string, error) {
	if err := w.Ground.Networks.Encrypts(); err != nil {
		return "", err
	}
	private, err := w.privateKey()
	if err != nil {
		return "", err
	}
	return wireguard.Public(private)
}

// privateKey gives the other half.
func (w *Worker) privateKey() (string, error) {
	w.names.keys.Lock()
	defer w.names.keys.Unlock()
	dir, name := w.Dirs.Keys(w.Key), ".wireguard" // no node is called so
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	if err == nil && len(text) > 0 { // a power cut may leave an empty file of one that was never on disk
		private := strings.TrimSpace(string(text))
		if _, err := wireguard.Public(private); err != nil {
			return "", problem.New(problem.Failed, "the key with which this host encrypts networks cannot be read").At(path).Because(err).
				Try("remove it: the host gets another one, of which the next up tells the others")
		}
		return private, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	private, err := wireguard.NewKey()
	if err != nil {
		return "", err
	}
	return private, quick(dir, name, []byte(private+"\n"), 0o600)
}
