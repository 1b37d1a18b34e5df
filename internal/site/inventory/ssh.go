package inventory

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"orrery/internal/site"
)

// SSHConfig returns an ssh_config(5) for access to every node by its name or address (Ansible uses
// addresses). ssh trusts only the keys in the file knownHosts, which lists them as NAME.SITE.
//
// The nodes of a remote host are reached with that host as jump host. The addresses of a twin's
// nodes belong to the original, so the host cannot connect to them. Instead, a command on the host
// connects to these nodes from inside.
func SSHConfig(s *site.Site, knownHosts string) []byte { return sshConfig(s, knownHosts, names) }

// FullSSHConfig returns the same for a user's own configuration, which may have other hosts. It has
// the names of nodes only with the name of the site.
func FullSSHConfig(s *site.Site, knownHosts string) []byte {
	return sshConfig(s, knownHosts, fullNames)
}

func sshConfig(s *site.Site, knownHosts string, names func(*site.Site, *site.Node) []string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Site %s, by orrery ssh-config\n", s.Key())
	for i := range s.Nodes {
		n := &s.Nodes[i]
		full := n.Name + "." + s.Name
		if len(n.NICs) == 0 {
			fmt.Fprintf(&b, "\n# %s is on no network: orrery shell %s\n", n.Name, n.Name)
			continue
		}
		fmt.Fprintf(&b, "\nHost %s\n", strings.Join(names(s, n), " "))
		fmt.Fprintf(&b, "    HostName %s\n", n.NICs[0].Address)
		fmt.Fprintf(&b, "    User %s\n", n.Login())
		fmt.Fprintf(&b, "    HostKeyAlias %s\n", full)
		fmt.Fprintf(&b, "    UserKnownHostsFile %s\n", quote(knownHosts))
		fmt.Fprintf(&b, "    StrictHostKeyChecking yes\n")
		if jump := jump(s, n.Host); jump != "" {
			fmt.Fprintf(&b, "    ProxyJump %s\n", jump)
		}
		if s.Twin != "" {
			fmt.Fprintf(&b, "    ProxyCommand %s\n", throughHost(s, n))
		}
	}
	return b.Bytes()
}

// names returns a node's names and aliases, and its addresses.
func names(s *site.Site, n *site.Node) []string {
	var all []string
	for _, name := range append([]string{n.Name}, n.Aliases...) {
		all = append(all, name, name+"."+s.Name)
	}
	for _, nic := range n.NICs {
		all = append(all, nic.Address.String())
	}
	return all
}

// fullNames returns the names that contain the site's name, and the addresses.
func fullNames(s *site.Site, n *site.Node) []string {
	return slices.DeleteFunc(names(s, n), func(name string) bool {
		return name == n.Name || slices.Contains(n.Aliases, name)
	})
}

// throughHost returns a command that connects standard input and output to a node's SSH server from
// inside the node. It needs only Bash in the node.
func throughHost(s *site.Site, n *site.Node) string {
	return fmt.Sprintf("orrery --twin %s shell %s -- bash -c 'exec 3<>/dev/tcp/127.0.0.1/22; cat <&3 & exec cat >&3'",
		s.Twin, n.Name)
}

// jump returns the address of a node's host if it is a remote host, or "".
func jump(s *site.Site, host string) string {
	if h, ok := s.Host(host); ok && !h.Local() {
		return h.Address
	}
	return ""
}

// quote returns path as an argument in ssh_config(5). It also doubles "%", which ssh would expand.
func quote(path string) string {
	path = strings.ReplaceAll(path, "%", "%%")
	if strings.ContainsAny(path, " \t") {
		return `"` + path + `"`
	}
	return path
}
