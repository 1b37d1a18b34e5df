package local

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// hostKey gives the public SSH host key of a node; the pair is made once, at random, and outlives the node. The public half follows from the
// private one: where it is missing or another, it is written again.
func (n *names) hostKey(node string) (string, error) {
	n.keys.Lock() // the first nodes that are made want those of all
	defer n.keys.Unlock()
	path := filepath.Join(n.Dirs.Keys(n.Key), node, "ssh_host_ed25519_key")
	private, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(private) == 0 { // a power cut may leave an empty file of one that was never on disk
		name, _, _ := strings.Cut(n.Key, ".") // a twin's has its own behind
		private, err = makeKey(path, node+"."+name)
	}
	if err != nil {
		return "", err
	}
	key, err := ssh.ParsePrivateKey(private)
	if err != nil {
		return "", problem.New(problem.Failed, "the SSH host key of node %s cannot be read", node).At(path).Because(err).
			Try("put it back from a backup; or remove it, and the node gets another one when it is made anew")
	}
	line := ssh.MarshalAuthorizedKey(key.PublicKey())
	if has, err := os.ReadFile(path + ".pub"); err == nil && bytes.Equal(has, line) {
		return string(line), nil
	}
	return string(line), quick(filepath.Dir(path), filepath.Base(path)+".pub", line, 0o644)
}

// makeKey makes the private half and gives it once it is on disk: nodes are known by it from then on.
func makeKey(path, comment string) ([]byte, error) {
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
