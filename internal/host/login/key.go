package login

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"

	"orrery/internal/host"
)

// MakeKey makes a pair of keys and gives the private half once it is on disk, in a directory that only root may enter: who has it is known, or let in, by it from then on.
func MakeKey(path, comment string) ([]byte, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(key, comment)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(block)
	return text, host.WriteFile(host.File{Path: path, Content: text, Mode: 0o600})
}
