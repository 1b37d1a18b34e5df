package login

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// GenerateKey generates a key pair, stores the private key in a directory that only root may enter, and
// returns it. It returns only after the key is on disk, because others identify its holder by it from
// then on.
func GenerateKey(path, comment string) ([]byte, error) {
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

// LoadOrCreateKey returns the key in a file, and its text. It creates the key if the file is missing or
// empty.
func LoadOrCreateKey(path, comment string) (ssh.Signer, []byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 {
		text, err = GenerateKey(path, comment)
	}
	if err != nil {
		return nil, nil, err
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, nil, problem.New(problem.Failed, "the SSH key cannot be read").At(path).Because(err).
			Try("restore it from a backup, or remove it and recreate the node")
	}
	return key, text, nil
}
