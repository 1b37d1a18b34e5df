package local

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"orrery/internal/engine"
	"orrery/internal/engine/record"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/role"
	"orrery/internal/site"
	"orrery/internal/site/inventory"
	"orrery/internal/site/render"
	"orrery/internal/site/spec"
)

// writeNames makes the SSH host keys of the site's nodes, if they are not there, and tells all nodes of this host
// of one another. Last it records what it told, so that a run that was killed does it again.
func (h *Host) writeNames(digest string) error {
	var known strings.Builder
	for i := range h.Site.Nodes {
		n := &h.Site.Nodes[i]
		public, err := h.hostKey(n.Name)
		if err != nil {
			return fmt.Errorf("SSH host key of node %s: %w", n.Name, err)
		}
		fmt.Fprintf(&known, "%s %s", strings.Join(sshNames(h.Site.Name, n), ","), public)
	}
	h.former = h.told()
	knownHosts := h.knownHosts()
	if err := host.WriteFile(host.File{Path: knownHosts, Content: []byte(known.String()), Mode: 0o644}); err != nil {
		return err
	}
	for i := range h.Site.Nodes {
		n := &h.Site.Nodes[i]
		if n.Host != "" && n.Host != h.Name {
			continue
		}
		if err := h.introduce(n); err != nil {
			return err
		}
	}
	return host.WriteFile(host.File{Path: h.Dirs.Names(h.Site.Name), Content: []byte(digest), Mode: 0o644})
}

func (h *Host) knownHosts() string { return filepath.Join(h.Dirs.Keys(h.Site.Name), "known_hosts") }

// told reads what the nodes of this host were told of one another, by path.
func (h *Host) told() map[string][]byte {
	paths := []string{h.knownHosts(), h.Dirs.Names(h.Site.Name)}
	for i := range h.Site.Nodes {
		dir := h.Dirs.Etc(h.Site.Name, h.Site.Nodes[i].ID)
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
	nodes, err := record.All(h.Dirs.Nodes(h.Site.Name))
	if err != nil {
		return err
	}
	names := h.Dirs.Names(h.Site.Name)
	if len(nodes) > 0 {
		if err := os.Remove(names); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return os.RemoveAll(filepath.Dir(names))
}

// introduce tells a node of all others.
func (h *Host) introduce(n *site.Node) error {
	networks := spec.NetworksOf(n)
	hosts := h.shared("hosts "+strings.Join(networks, " "), func() []byte { return spec.Hosts(h.Site, networks) })
	all := h.shared("inventory", func() []byte { return inventory.JSON(h.Site) })
	known, err := os.ReadFile(h.knownHosts())
	if err != nil {
		return err
	}
	dir := h.Dirs.Etc(h.Site.Name, n.ID)
	return errors.Join(
		quick(dir, "hosts", hosts, 0o644),
		quick(dir, "inventory.json", all, 0o644),
		quick(dir, "ssh_known_hosts", known, 0o644),
	)
}

// shared makes what nodes have in common once: for many nodes, each would take as long as they are many.
func (h *Host) shared(what string, write func() []byte) []byte {
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

// hostKey gives the public SSH host key of a node; the pair is made once, at random, and outlives the node.
func (h *Host) hostKey(node string) (string, error) {
	path := filepath.Join(h.Dirs.Keys(h.Site.Name), node, "ssh_host_ed25519_key")
	if text, err := os.ReadFile(path + ".pub"); err == nil {
		return string(text), nil
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", err
	}
	block, err := ssh.MarshalPrivateKey(private, node+"."+h.Site.Name)
	if err != nil {
		return "", err
	}
	wire, err := ssh.NewPublicKey(public)
	if err != nil {
		return "", err
	}
	line := ssh.MarshalAuthorizedKey(wire)
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	// The public half comes last: where it is, the pair is whole.
	return string(line), errors.Join(
		quick(dir, filepath.Base(path), pem.EncodeToMemory(block), 0o600),
		quick(dir, filepath.Base(path)+".pub", line, 0o644),
	)
}

// furnishEtc writes what a node sees as /etc/orrery: names, the environment of its roles, its secrets and the files with secrets in them.
func (h *Host) furnishEtc(ctx context.Context, spelt *spec.Node) error {
	n, ok := h.Site.Node(spelt.Name)
	if !ok {
		return errNoNode
	}
	if err := h.introduce(n); err != nil {
		return err
	}
	dir := h.Dirs.Etc(h.Site.Name, n.ID)
	roles := h.Site.RolesOf(n)
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
	text, err := render.New(h.Site).File(r, f, n.Name, func(name string) (string, error) { return h.Keys.Value(ctx, name) })
	if err != nil || !text.Secret {
		return err
	}
	return h.put(n, role.SecretFile(f.Path), text.Content, f.Owner, f.Mode)
}

// put writes a file with an owner of the node's onto the tmpfs; nobody can read it before it has its owner and mode.
func (h *Host) put(n *spec.Node, name string, content []byte, owner string, mode uint32) error {
	uid, gid, err := image.Account(h.trees(n), owner)
	if err != nil {
		return fmt.Errorf("owner of /etc/orrery/%s: %w", name, err)
	}
	if shifter, ok := h.Engines[n.Engine].(engine.Shifter); ok {
		first, err := shifter.Shift(engine.RefOf(n))
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
	return errors.Join(os.Chown(path+".new", uid, gid), os.Chmod(path+".new", os.FileMode(mode)), os.Rename(path+".new", path))
}
