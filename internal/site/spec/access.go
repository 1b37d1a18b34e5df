package spec

import (
	"strings"

	"orrery/internal/site"
)

// accessFile returns the file with a node's AuthorizedKeys, or false if it has none.
func (m *Builder) accessFile(n *site.Node) (RenderedFile, bool) {
	if len(n.AuthorizedKeys) == 0 {
		return RenderedFile{}, false
	}
	text := "# Written by Orrery from authorized_keys in site.toml.\n" + strings.Join(n.AuthorizedKeys, "\n") + "\n"
	return RenderedFile{Path: m.Site.AccessFile(n), Owner: n.AccessOwner(), Mode: 0o600, Content: []byte(text)}, true
}

// accessRole returns a role that has only the file with a node's AuthorizedKeys. Nodes get the file,
// and drift of it is found and repaired, in the same way as any other rendered file.
func accessRole(path string) *site.Role {
	restarts := []string{} // none, because sshd reads the file at each login
	return &site.Role{Name: site.AccessRole,
		Files: []site.File{{Path: path, Template: site.AccessRole, Restarts: restarts}}}
}
