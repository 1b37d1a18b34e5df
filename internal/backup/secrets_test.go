package backup

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"filippo.io/age"

	"orrery/internal/backup/vault"
	"orrery/internal/site"
	test "orrery/test/need"
)

var aSite = &site.Site{Name: "s"}

func TestSecrets(t *testing.T) {
	key, err := age.GenerateX25519Identity()
	must(t, err)
	other, err := age.GenerateX25519Identity()
	must(t, err)
	to, err := vault.Recipients([]string{key.Recipient().String()}, "")
	must(t, err)
	all := vault.Secrets{"secrets/token": []byte("very-secret-token"), "keys/n/ssh_host_ed25519_key": []byte("private")}
	sealed, err := all.Seal(to)
	must(t, err)
	if bytes.Contains(sealed, []byte("very-secret-token")) || bytes.Contains(sealed, []byte("secrets/token")) {
		t.Error("it can be read")
	}
	back, err := vault.Unseal(bytes.NewReader(sealed), []age.Identity{key})
	must(t, err)
	if string(back["secrets/token"]) != "very-secret-token" || len(back) != 2 {
		t.Errorf("%v", back)
	}
	if _, err := vault.Unseal(bytes.NewReader(sealed), []age.Identity{other}); err == nil {
		t.Error("another key opens it")
	}
	phrase := filepath.Join(t.TempDir(), "phrase")
	must(t, os.WriteFile(phrase, []byte("correct horse\n"), 0o600))
	to, err = vault.Recipients(nil, phrase)
	must(t, err)
	to[0].(*age.ScryptRecipient).SetWorkFactor(test.Times(12, 18)) // age uses 18
	sealed, err = all.Seal(to)
	must(t, err)
	with, err := vault.Identities("", phrase)
	must(t, err)
	if back, err = vault.Unseal(bytes.NewReader(sealed), with); err != nil || len(back) != 2 {
		t.Errorf("%v %v", back, err)
	}
}
