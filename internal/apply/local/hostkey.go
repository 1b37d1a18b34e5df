package local

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"orrery/internal/host/login"
	"orrery/internal/problem"
)

// hostKey returns the public SSH host key of a node. The pair is generated once and outlives the
// node. The public key is derived from the private one: if its file is missing or differs, hostKey
// writes it again.
func (n *names) hostKey(node string) (string, error) {
	n.keys.Lock() // the first nodes to be created need the keys of all nodes
	defer n.keys.Unlock()
	path := filepath.Join(n.Dirs.Keys(n.Key), node, "ssh_host_ed25519_key")
	private, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(private) == 0 {
		// after a power cut, the file may be empty because its content never reached the disk
		name, _, _ := strings.Cut(n.Key, ".") // the site key of a twin is SITE.TWIN
		private, err = login.GenerateKey(path, node+"."+name)
	}
	if err != nil {
		return "", err
	}
	key, err := ssh.ParsePrivateKey(private)
	if err != nil {
		return "", problem.New(problem.Failed, "the SSH host key of node %s cannot be read", node).At(path).Because(err).
			Try("put it back from a backup; or remove it, and the node gets another one when it is recreated")
	}
	line := ssh.MarshalAuthorizedKey(key.PublicKey())
	if existing, err := os.ReadFile(path + ".pub"); err == nil && bytes.Equal(existing, line) {
		return string(line), nil
	}
	return string(line), writeUnsynced(filepath.Dir(path), filepath.Base(path)+".pub", line, 0o644)
}
