package site

import (
	"cmp"
	"path"
)

// Login returns the user whom AuthorizedKeys let in, and whom Ansible and ssh log in as.
func (n *Node) Login() string { return cmp.Or(n.SSHUser, "root") }

// AccessFile returns the path of the file that holds the node's AuthorizedKeys. It is the second of
// the two files that sshd(8) reads if the host itself logs in as that user of a disk image, because
// cloud-init has written the host's key to the first.
func (s *Site) AccessFile(n *Node) string {
	home, name := "/root", "authorized_keys"
	if user := n.Login(); user != "root" {
		home = path.Join("/home", user)
	}
	if i, ok := s.Image(n.Image); ok && i.Disk().Login == n.Login() {
		name = "authorized_keys2"
	}
	return path.Join(home, ".ssh", name)
}
