// Package secretspec says under which names hosts store the secrets of a site, in which formats, and which nodes
// read them.
package secretspec

import (
	"slices"
	"strings"

	"orrery/internal/site"
)

// PerNode is the Per of a secret of which each node has a value of its own.
const PerNode = "node"

// Formats of generated secrets.
const (
	Hex    = "hex"
	Base64 = "base64"
	UUID   = "uuid"
	CephX  = "cephx"
	SSH    = "ssh-ed25519"
	X509   = "x509" // a private key and a certificate of the site's certificate authority
)

// Formats are the formats of generated secrets.
var Formats = []string{Hex, Base64, UUID, CephX, SSH, X509}

// Name returns the name under which hosts store the secret of a node. It is the stored name.
func Name(x *site.Secret, node string) string {
	if x.Per == PerNode {
		return x.Name + "@" + node
	}
	return x.Name
}

// Split splits a stored name. It returns the name in the site file, and the node, or "" if all nodes have the
// same value.
func Split(stored string) (name, node string) {
	name, node, _ = strings.Cut(stored, "@") // neither has an "@"
	return name, node
}

// NameFor returns the stored name of a secret of a node, by its name in the site file.
func NameFor(s *site.Site, name, node string) string {
	if x, ok := s.Secret(name); ok {
		return Name(x, node)
	}
	return name
}

// Names returns the stored names of a secret: one, or one for each node that reads it.
func Names(s *site.Site, x *site.Secret) []string {
	if x.Per != PerNode {
		return []string{x.Name}
	}
	var all []string
	for _, n := range Readers(s, x.Name) {
		all = append(all, Name(x, n.Name))
	}
	return all
}

// Readers returns the nodes of which a role reads a secret.
func Readers(s *site.Site, secret string) []*site.Node {
	var all []*site.Node
	for i := range s.Nodes {
		if reads(s, &s.Nodes[i], secret) {
			all = append(all, &s.Nodes[i])
		}
	}
	return all
}

// Reads reports whether a role of a node reads a secret. It is false for a node that is not declared.
func Reads(s *site.Site, node, secret string) bool {
	n, ok := s.Node(node)
	return ok && reads(s, n, secret)
}

func reads(s *site.Site, n *site.Node, secret string) bool {
	return slices.ContainsFunc(s.RolesOf(n), func(r *site.Role) bool {
		return slices.ContainsFunc(r.Secrets, func(use site.SecretUse) bool { return use.Name == secret })
	})
}

// Allows reports whether a role may read a secret.
func Allows(x *site.Secret, role string) bool {
	return len(x.Readers) == 0 || slices.Contains(x.Readers, role)
}
