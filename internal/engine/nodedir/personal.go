package nodedir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// identityFiles returns the files that identify a node: machine-id, host name and SSH host keys.
func identityFiles(dirs host.Dirs, s *spec.Node) ([]host.File, error) {
	files := []host.File{
		{Path: "/etc/machine-id", Content: []byte(s.MachineID + "\n"), Mode: 0o444},
		{Path: "/etc/hostname", Content: []byte(s.Name + "\n"), Mode: 0o644},
		{Path: "/" + resolvConf, Content: []byte(Resolvers()), Mode: 0o644},
	}
	keys, err := filepath.Glob(filepath.Join(dirs.Keys(s.Site), s.Name, "ssh_host_*"))
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		text, err := os.ReadFile(key)
		if err != nil {
			return nil, err
		}
		mode := uint32(0o600)
		if strings.HasSuffix(key, ".pub") {
			mode = 0o644
		}
		files = append(files, host.File{Path: "/etc/ssh/" + filepath.Base(key), Content: text, Mode: mode})
	}
	return files, nil
}

// writeIdentity writes the files that identify a node into its root. In a new private layer, which is
// not mounted yet, directories get Debian's modes, because the node sees the modes of the upper
// layer.
func (in stoppedRoot) writeIdentity(dirs host.Dirs, s *spec.Node) error {
	files, err := identityFiles(dirs, s)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := in.put(f); err != nil {
			return err
		}
	}
	return nil
}

const resolvConf = "etc/resolv.conf"

// HostSpecificFiles returns the paths in a private layer that are unchanged from what this host wrote, and
// that another host writes itself. That is only resolv.conf with the name servers. It returns nil for
// a guest with a disk of its own, whose files the host does not see.
func (n *Nodes) HostSpecificFiles(s *spec.Node) []string {
	if s.Imported() || s.VM.Disk != "" {
		return nil
	}
	private, err := tree.Open(n.Private(engine.RefOf(s)))
	if err != nil {
		return nil
	}
	defer private.Close()
	if text, err := private.ReadFile(resolvConf, 64<<10); err != nil || string(text) != Resolvers() {
		return nil
	}
	return []string{resolvConf}
}

// writeHostSpecificFiles writes those of HostSpecificFiles that a node from another host lacks.
func writeHostSpecificFiles(came Dir, s *spec.Node) error {
	if s.Imported() || s.VM.Disk != "" {
		return nil
	}
	private, err := tree.Open(came.Private())
	if err != nil {
		return err
	}
	defer private.Close()
	if _, err := private.Lstat(resolvConf); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return stoppedRoot{root: private, first: os.Geteuid()}.put(host.File{Path: "/" + resolvConf,
		Content: []byte(Resolvers()), Mode: 0o644})
}

// Resolvers returns the search and nameserver lines of the host's resolv.conf(5), without name
// servers on loopback addresses.
func Resolvers() string {
	for _, path := range []string{"/run/systemd/resolve/resolv.conf", "/etc/resolv.conf"} {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		var lines []string
		for _, line := range strings.Split(string(text), "\n") {
			fields := strings.Fields(line)
			if len(fields) > 1 && (fields[0] == "search" || fields[0] == "nameserver" &&
				!strings.HasPrefix(fields[1], "127.") && fields[1] != "::1") {
				lines = append(lines, line)
			}
		}
		if len(lines) > 0 {
			return strings.Join(lines, "\n") + "\n"
		}
	}
	return ""
}
