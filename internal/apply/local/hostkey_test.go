package local

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/ssh"

	"orrery/internal/host"
)

// TestHostKey: a key is made once and stays. The public key is that of the private one, even after
// one of the files was lost or left empty.
func TestHostKey(t *testing.T) {
	dir := t.TempDir()
	h := ThisMachine("local", "karoo", host.Dirs{State: dir, Run: dir}, nil, nil)
	path := filepath.Join(h.Dirs.Keys("karoo"), "web", "ssh_host_ed25519_key")
	get := func() string {
		t.Helper()
		line, err := h.names.hostKey("web")
		if err != nil {
			t.Fatal(err)
		}
		private, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		key, err := ssh.ParsePrivateKey(private)
		if err != nil {
			t.Fatal(err)
		}
		if public, err := os.ReadFile(path + ".pub"); err != nil || string(public) != line ||
			string(ssh.MarshalAuthorizedKey(key.PublicKey())) != line {
			t.Errorf("the halves are of two keys: %s and %s: %v", line, public, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the key has the mode %v: %v", info.Mode(), err)
		}
		return line
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first := get()
	if get() != first {
		t.Error("another key was made")
	}
	if err := os.Remove(path + ".pub"); err != nil {
		t.Fatal(err)
	}
	if get() != first {
		t.Error("another key was made for want of the public half")
	}
	put(path+".pub", "")
	if get() != first {
		t.Error("another key was made for an empty public half")
	}
	put(path, "") // the private key is lost
	second := get()
	if second == first {
		t.Error("the public half was given of a key that is not there")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if get() == second {
		t.Error("the public half was given of a key that is lost")
	}
	put(path, "damaged")
	if line, err := h.names.hostKey("web"); err == nil {
		t.Errorf("of a damaged key was given %q", line)
	}
	if text, _ := os.ReadFile(path); string(text) != "damaged" {
		t.Errorf("the damaged key was overwritten with %q", text)
	}
}
