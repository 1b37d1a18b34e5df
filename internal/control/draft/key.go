package draft

import (
	"os"
	"path/filepath"

	"orrery/internal/site/sitefile"
)

// keysName is the file of a new site with the public keys of those who may log in to its nodes.
const keysName = "keys.pub"

// What a new site says about logging in.
const (
	withAccess = `# Who may log in to nodes by SSH: orrery ssh-config --install
[defaults]
authorized_keys = ["keys.pub"]`
	noAccess = `# Who may log in to nodes by SSH: orrery ssh-config --install
# [defaults]
# authorized_keys = ["~/.ssh/id_ed25519.pub"]`
)

// keyNames are the files of ssh-keygen(1) that ssh offers without being told to.
var keyNames = []string{"id_ed25519.pub", "id_ecdsa.pub", "id_rsa.pub"}

// callerKey returns the caller's public key, or "" if there is none that ssh uses by default. It is a
// copy, so that the site works for others and on other machines.
func callerKey() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	for _, name := range keyNames {
		if keys := sitefile.PublicKeys(filepath.Join(home, ".ssh", name)); len(keys) == 1 {
			return keys[0]
		}
	}
	return ""
}
