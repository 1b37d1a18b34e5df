package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"orrery/internal/host"
	"orrery/internal/site/inventory"
)

// names provides the names and addresses that the nodes of the place know of one another, and their
// SSH host keys.
type names struct {
	*SiteState
	keys sync.Mutex // held while an SSH host key is made
}

// write makes missing SSH host keys of the site's nodes, and gives all live nodes of this host the
// names of one another. It records the digest last, so that the next run repeats the work of one
// that was killed.
func (n *names) write(ctx context.Context, digest string, told *inventory.PeerInfo) error {
	if err := runOf(n.Dirs, n.Key).saveNames(n.currentFiles(told)); err != nil {
		return err
	}
	if err := n.writeKnownHosts(told); err != nil {
		return err
	}
	if err := n.writeEtc(told); err != nil {
		return err
	}
	if err := n.copyEtcToAll(ctx); err != nil {
		return err
	}
	if err := n.Backends.Hosts.Set(ctx, n.Key, told.HostNames); err != nil {
		return err
	}
	return host.WriteFile(host.File{Path: n.Dirs.Names(n.Key), Content: []byte(digest), Mode: 0o600})
}

// writeKnownHosts writes the public SSH host keys of all nodes, and makes the missing keys.
func (n *names) writeKnownHosts(told *inventory.PeerInfo) error {
	var known strings.Builder
	for _, p := range told.Peers {
		public, err := n.hostKey(p.Node)
		if err != nil {
			return fmt.Errorf("SSH host key of node %s: %w", p.Node, err)
		}
		fmt.Fprintf(&known, "%s %s", strings.Join(p.Known, ","), public)
	}
	return host.WriteFile(host.File{Path: n.knownHosts(), Content: []byte(known.String()), Mode: 0o600})
}

func (n *names) knownHosts() string { return filepath.Join(n.Dirs.Keys(n.Key), "known_hosts") }

// currentFiles returns the current names files of this host's nodes, by path.
func (n *names) currentFiles(told *inventory.PeerInfo) map[string][]byte {
	paths := []string{n.knownHosts(), n.Dirs.Names(n.Key), n.Backends.Hosts.StoredNames(n.Key)}
	for _, t := range told.Recipients {
		dir := n.Dirs.Etc(t.Site, t.ID)
		paths = append(paths, filepath.Join(dir, "hosts"), filepath.Join(dir, "inventory.json"),
			filepath.Join(dir, "ssh_known_hosts"))
	}
	files := map[string][]byte{}
	for _, path := range paths {
		if text, err := os.ReadFile(path); err == nil {
			files[path] = text
		}
	}
	return files
}

// restore writes the former names files again.
func (n *names) restore(ctx context.Context) error {
	files, err := runOf(n.Dirs, n.Key).names()
	hostNames := n.Backends.Hosts.StoredNames(n.Key)
	err = errors.Join(err, n.Backends.Hosts.Set(ctx, n.Key, files[hostNames]))
	delete(files, hostNames)
	for path, text := range files {
		err = errors.Join(err, writeUnsynced(filepath.Dir(path), filepath.Base(path), text, 0o644))
	}
	return err
}

// forget removes the names files of this host. While there are nodes, they keep their files and
// only the record is removed, so that the next run writes them again.
func (n *names) forget(ctx context.Context) error {
	nodes, err := n.Backends.Records.All(n.Key)
	if err != nil {
		return err
	}
	names := n.Dirs.Names(n.Key)
	if len(nodes) > 0 {
		if err := os.Remove(names); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := n.Backends.Hosts.Set(ctx, n.Key, nil); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Dir(names))
}

// hostNames returns the digest of the site's names in the hosts file, or "" if it must have none. A
// file that cannot be read has other names: the step that writes it returns the error.
func (p *SiteState) hostNames() string {
	if !p.Backends.Hosts.Enabled() {
		return ""
	}
	lines, err := p.Backends.Hosts.Names(p.Key)
	if err != nil {
		return "unreadable"
	}
	return inventory.HostNamesDigest(lines)
}

// writeEtc writes the files with which nodes know all other nodes of their site.
func (n *names) writeEtc(told *inventory.PeerInfo) error {
	known, err := os.ReadFile(n.knownHosts())
	if errors.Is(err, fs.ErrNotExist) { // a release is staged of a site that was never up
		err = n.writeKnownHosts(told)
		if err == nil {
			known, err = os.ReadFile(n.knownHosts())
		}
	}
	if err != nil {
		return err
	}
	for _, t := range told.Recipients {
		dir := n.Dirs.Etc(t.Site, t.ID)
		for name, text := range map[string][]byte{"hosts": told.Hosts[t.Hosts], "inventory.json": told.Inventory,
			"ssh_known_hosts": known} {
			if err := writeUnsynced(dir, name, text, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
