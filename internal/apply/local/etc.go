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

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/role"
	"orrery/internal/site"
	"orrery/internal/site/inventory"
	"orrery/internal/site/render"
	"orrery/internal/site/spec"
)

// writeNames makes the SSH host keys of the site's nodes, if they are not there, and tells all live nodes of this host
// of one another. Last it records what it told, so that a run that was killed does it again.
func (h *Host) writeNames(digest string) error {
	s, err := h.Live()
	if err != nil {
		return err
	}
	h.former = h.told(s)
	if err := h.writeKnownHosts(s); err != nil {
		return err
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Host != "" && n.Host != h.Name {
			continue
		}
		if err := h.introduce(s, n); err != nil {
			return err
		}
	}
	return host.WriteFile(host.File{Path: h.Dirs.Names(h.Site.Key()), Content: []byte(digest), Mode: 0o600})
}

// writeKnownHosts tells the public SSH host keys of all nodes, and makes those that are not there.
func (h *Host) writeKnownHosts(s *site.Site) error {
	var known strings.Builder
	for i := range s.Nodes {
		n := &s.Nodes[i]
		public, err := h.hostKey(n.Name)
		if err != nil {
			return fmt.Errorf("SSH host key of node %s: %w", n.Name, err)
		}
		fmt.Fprintf(&known, "%s %s", strings.Join(sshNames(s.Name, n), ","), public)
	}
	return host.WriteFile(host.File{Path: h.knownHosts(), Content: []byte(known.String()), Mode: 0o600})
}

func (h *Host) knownHosts() string { return filepath.Join(h.Dirs.Keys(h.Site.Key()), "known_hosts") }

// told reads what the nodes of this host were told of one another, by path.
func (h *Host) told(s *site.Site) map[string][]byte {
	paths := []string{h.knownHosts(), h.Dirs.Names(s.Key())}
	for i := range s.Nodes {
		dir := h.Dirs.Etc(s.Key(), s.Nodes[i].FullID())
		paths = append(paths, filepath.Join(dir, "hosts"), filepath.Join(dir, "inventory.json"), filepath.Join(dir, "ssh_known_hosts"))
	}
	files := map[string][]byte{}
	for _, path := range paths {
		if text, err := os.ReadFile(path); err == nil {
			files[path] = text
		}
	}
	return files
}

// restoreNames tells the nodes again what they were told before writeNames.
func (h *Host) restoreNames() error {
	var err error
	for path, text := range h.former {
		err = errors.Join(err, quick(filepath.Dir(path), filepath.Base(path), text, 0o644))
	}
	return err
}

// forgetNames removes what the nodes of this host were told. While there are nodes they keep it, and only the record
// of it goes, so that the next run tells them anew.
func (h *Host) forgetNames() error {
	nodes, err := nodedir.All(h.Dirs, h.Site.Key())
	if err != nil {
		return err
	}
	names := h.Dirs.Names(h.Site.Key())
	if len(nodes) > 0 {
		if err := os.Remove(names); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return os.RemoveAll(filepath.Dir(names))
}

// introduce tells a node of all others of a site.
func (h *Host) introduce(s *site.Site, n *site.Node) error {
	networks := spec.NetworksOf(n)
	hosts := h.shared(sharedText{s, "hosts " + strings.Join(networks, " ")}, func() []byte { return spec.Hosts(s, networks) })
	all := h.shared(sharedText{s, "inventory"}, func() []byte { return inventory.JSON(s) })
	known, err := os.ReadFile(h.knownHosts())
	if errors.Is(err, fs.ErrNotExist) { // a release is staged of a site that was never up
		err = h.writeKnownHosts(s)
	}
	if err == nil {
		known, err = os.ReadFile(h.knownHosts())
	}
	if err != nil {
		return err
	}
	dir := h.Dirs.Etc(s.Key(), n.FullID())
	for name, text := range map[string][]byte{"hosts": hosts, "inventory.json": all, "ssh_known_hosts": known} {
		if err := quick(dir, name, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// A sharedText names a text that nodes of a site have in common.
type sharedText struct {
	site *site.Site
	what string
}

// shared makes what nodes have in common once: for many nodes, each would take as long as they are many.
func (h *Host) shared(what sharedText, write func() []byte) []byte {
	text, _ := h.common.LoadOrStore(what, sync.OnceValue(write))
	return text.(func() []byte)()
}

// quick writes a file below a directory on the tmpfs, where there is no disk to wait for, whole or not at all.
func quick(dir, name string, content []byte, mode os.FileMode) error {
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	fresh := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	if err := os.WriteFile(fresh, content, mode); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

func sshNames(site string, n *site.Node) []string {
	names := []string{n.Name, n.Name + "." + site}
	for _, nic := range n.NICs {
		names = append(names, n.Name+"."+nic.Network+"."+site, nic.Address.String())
	}
	return names
}

// tell tells a node of all others: one in quarantine of those as its release has them, a live one of those that are live.
func (h *Host) tell(spelt *spec.Node, s *site.Site, n *site.Node) error {
	if spelt.Staged {
		return h.introduce(s, n)
	}
	live, err := h.Live()
	if err != nil {
		return err
	}
	if as, ok := live.Node(spelt.Name); ok && as.Release == n.Release {
		return h.introduce(live, as)
	}
	return h.introduce(s, n)
}

// provideEtc writes what a node sees as /etc/orrery: names, the environment of its roles, its secrets and the files with secrets in them.
func (h *Host) provideEtc(ctx context.Context, spelt *spec.Node) error {
	s, n, err := h.declared(spelt)
	if err != nil {
		return err
	}
	if err := h.tell(spelt, s, n); err != nil {
		return err
	}
	dir := h.Dirs.Etc(spelt.Site, spelt.ID)
	roles := s.RolesOf(n)
	if err := quick(dir, "env", spec.Env(roles), 0o644); err != nil {
		return err
	}
	for _, r := range roles {
		for _, use := range r.Secrets {
			value, err := h.Keys.Value(ctx, use.Name)
			if err != nil {
				return err
			}
			if err := h.put(spelt, "secrets/"+use.Name, []byte(value), use.Owner, use.Mode); err != nil {
				return err
			}
		}
		for i := range r.Files {
			if err := h.secretFile(ctx, spelt, r, &r.Files[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// secretFile renders a file if it has the value of a secret in it.
func (h *Host) secretFile(ctx context.Context, n *spec.Node, r *site.Role, f *site.File) error {
	if !f.Rendered() || len(r.Secrets) == 0 {
		return nil
	}
	text, err := render.New(h.siteOf(n)).File(r, f, n.Name, func(name string) (string, error) { return h.Keys.Value(ctx, name) })
	if err != nil || !text.Secret {
		return err
	}
	return h.put(n, role.SecretFile(f.Path), text.Content, f.Owner, f.ModeFor(true))
}

// put writes a file with an owner of the node's onto the tmpfs; nobody can read it before it has its owner and mode.
func (h *Host) put(n *spec.Node, name string, content []byte, owner string, mode uint32) error {
	uid, gid, err := image.Account(h.trees(n), owner)
	if err != nil {
		return fmt.Errorf("owner of /etc/orrery/%s: %w", name, err)
	}
	if mapper, ok := h.Engines[n.Engine].(engine.Idmapper); ok {
		first, err := mapper.Idmap(engine.RefOf(n))
		if err != nil {
			return err
		}
		uid, gid = uid+first, gid+first
	}
	dir := h.Dirs.Etc(n.Site, n.ID)
	if err := quick(dir, name+".new", content, 0o600); err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	if err := os.Chown(path+".new", uid, gid); err != nil {
		return err
	}
	if err := os.Chmod(path+".new", os.FileMode(mode)); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
