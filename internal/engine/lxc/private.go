package lxc

import (
	"os"
	"path/filepath"
	"strings"

	"orrery/internal/site/spec"
)

// personalise writes into a new private layer what makes a node this node: machine-id, host name, SSH host keys. Directories
// have the modes that Debian gives them, because those of the upper layer are the ones that the node sees.
func (e *Engine) personalise(upper string, n *spec.Node) error {
	files := []struct {
		path, content string
		mode          os.FileMode
	}{
		{"etc/machine-id", n.MachineID + "\n", 0o444},
		{"etc/hostname", n.Name + "\n", 0o644},
		{"etc/resolv.conf", resolvers(), 0o644},
	}
	keys, err := filepath.Glob(filepath.Join(e.dirs.Keys(n.Site), n.Name, "ssh_host_*"))
	if err != nil {
		return err
	}
	for _, key := range keys {
		text, err := os.ReadFile(key)
		if err != nil {
			return err
		}
		mode := os.FileMode(0o600)
		if strings.HasSuffix(key, ".pub") {
			mode = 0o644
		}
		files = append(files, struct {
			path, content string
			mode          os.FileMode
		}{"etc/ssh/" + filepath.Base(key), string(text), mode})
	}
	for _, f := range files {
		path := filepath.Join(upper, f.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(f.content), f.mode); err != nil {
			return err
		}
	}
	return nil
}

// resolvers gives the name servers of the host, not those that it keeps for itself on a loopback address.
func resolvers() string {
	for _, path := range []string{"/run/systemd/resolve/resolv.conf", "/etc/resolv.conf"} {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		var lines []string
		for _, line := range strings.Split(string(text), "\n") {
			fields := strings.Fields(line)
			if len(fields) > 1 && (fields[0] == "search" || fields[0] == "nameserver" && !strings.HasPrefix(fields[1], "127.") && fields[1] != "::1") {
				lines = append(lines, line)
			}
		}
		if len(lines) > 0 {
			return strings.Join(lines, "\n") + "\n"
		}
	}
	return ""
}
