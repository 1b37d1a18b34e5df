package spec

import (
	"strings"

	"orrery/internal/site"
)

// AccessRole is the name under which a node records its AuthorizedKeys, as if a role had the file.
// No declared role can have this name.
const AccessRole = "authorized_keys"

// AccessPart returns the name under which a node records the file with its AuthorizedKeys.
func AccessPart(file string) string { return AccessRole + ": file " + file }

// accessFile returns the file with a node's AuthorizedKeys, or false if it has none.
func (m *Builder) accessFile(n *site.Node) (RenderedFile, bool) {
	if len(n.AuthorizedKeys) == 0 {
		return RenderedFile{}, false
	}
	text := "# Written by Orrery from authorized_keys in site.toml.\n" + strings.Join(n.AuthorizedKeys, "\n") + "\n"
	owner := n.Login() // and the user's own group
	if owner == "root" {
		owner = "root:root"
	}
	return RenderedFile{Path: m.Site.AccessFile(n), Owner: owner, Mode: 0o600, Content: []byte(text)}, true
}

// accessRole returns a role that has only the file with a node's AuthorizedKeys. Nodes get the file,
// and drift of it is found and repaired, in the same way as any other rendered file.
func accessRole(path string) *site.Role {
	restarts := []string{} // none, because sshd reads the file at each login
	return &site.Role{Name: AccessRole,
		Files: []site.File{{Path: path, Template: AccessRole, Restarts: restarts}}}
}
