package backup

import (
	"context"
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/backup/vault"
	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// splitFirst splits a path after its first element.
func splitFirst(name string) (first, rest string, both bool) { return strings.Cut(name, "/") }

// Place moves everything except the private layers to its place. It skips what a killed run has
// already moved.
func (r *Part) Place(ctx context.Context, engines map[string]engine.Engine) error {
	for _, m := range r.plan.Moves {
		if !tree.Exists(m.From) {
			continue
		}
		if err := m.apply(r.Replace || filepath.Dir(m.To) == r.Dirs.Releases(r.Key)); err != nil {
			return problem.New(problem.Failed, "the restored files cannot be moved to their place").At(m.To).
				Because(problem.PathErrorCause(err)).
				Try("make room there and run the same command again, or clear with orrery down")
		}
	}
	return r.removeUnfilled(ctx, engines)
}

// apply moves it. It replaces an empty directory, and other existing files only if replace is set.
func (m move) apply(replace bool) error {
	if err := os.MkdirAll(filepath.Dir(m.To), 0o700); err != nil {
		return err
	}
	if !m.File && tree.Exists(m.To) {
		if err := removeExisting(m.To, replace); err != nil {
			return err
		}
	}
	return os.Rename(m.From, m.To)
}

func removeExisting(path string, replace bool) error {
	if empty(path) {
		return os.Remove(path)
	}
	if !replace {
		return problem.New(problem.Surprise, "already exists").At(path).
			Try("move it elsewhere, and run the same command again")
	}
	return tree.RemoveAll(path)
}

func empty(dir string) bool {
	names, err := os.ReadDir(dir)
	return err == nil && len(names) == 0
}

// removeUnfilled removes nodes that a run created and could not fill, because it was killed.
func (r *Part) removeUnfilled(ctx context.Context, engines map[string]engine.Engine) error {
	found, err := nodedir.All(r.Dirs, r.Key)
	if err != nil {
		return err
	}
	for _, f := range found {
		if !tree.Exists(r.private(f.Record.ID)) {
			continue
		}
		if e, ok := engines[f.Record.Engine]; ok {
			err = errors.Join(err, e.Destroy(ctx, engine.RefOf(&f.Record.Node)))
		}
	}
	return err
}

// Fill fills a new node with its private layer from the backup, except for the files that an engine
// writes for this host.
func (r *Part) Fill(ctx context.Context, e engine.Engine, n *spec.Node) error {
	staged := r.private(n.ID)
	if !tree.Exists(staged) {
		return nil // the node was not in the backup
	}
	layered, ok := e.(engine.Layered)
	if !ok {
		return problem.New(problem.Unable, "node %s: the engine %q cannot restore what the node wrote", n.Name, n.Engine)
	}
	ref := engine.RefOf(n)
	fresh := layered.Private(ref)
	if err := copyHostFiles(fresh, staged); err != nil {
		return problem.New(problem.Failed, "node %s: its private layer cannot be moved to its place", n.Name).At(fresh).
			Because(err)
	}
	if record := r.record(n); record != nil {
		config := record.Config
		if r.Twin {
			config = movedVolumes(config, n.Config)
		}
		// If secrets may be new, roles are applied again. This updates what they set up with the
		// former secrets, such as the password of a database.
		configured := record.Configured && (r.plan.Opened || !hasSecrets(n.Config))
		if err := e.SetProgress(ctx, ref, engine.Progress{Configured: configured, Config: config,
			Active: record.Active}); err != nil {
			return err
		}
	}
	return layered.Fill(ref, staged)
}

func hasSecrets(c spec.Config) bool {
	for part := range c.Parts {
		if strings.Contains(part, ": secret ") {
			return true
		}
	}
	return false
}

// movedVolumes returns the configuration that had been applied to a node of a twin. Volumes whose
// path differs from that of the original were restored with their content. So the boot steps that
// fill them need not be done again.
func movedVolumes(old, current spec.Config) spec.Config {
	old.Parts = maps.Clone(old.Parts)
	for part, digest := range current.Parts {
		if _, ok := old.Parts[part]; ok && strings.Contains(part, ": volume ") {
			old.Parts[part] = digest
		}
	}
	return old
}

// record returns the record of a node in the backup.
func (r *Part) record(n *spec.Node) *nodedir.Record {
	for i := range r.Manifest.Nodes {
		if r.Manifest.Nodes[i].ID == n.ID && r.Manifest.Nodes[i].Name == n.Name {
			return &r.Manifest.Nodes[i]
		}
	}
	return nil
}

// copyHostFiles copies the files of this host, which are SSH host keys and name servers, from the private
// layer that an engine has made. The node may be running, and the target was written by others, so
// both are accessed through package tree.
func copyHostFiles(from, to string) error {
	made, err := tree.Open(from)
	if err != nil {
		return err
	}
	defer made.Close()
	root, err := tree.Open(to)
	if err != nil {
		return err
	}
	defer root.Close()
	names := []string{"etc/resolv.conf"}
	keys, _ := made.Names("etc/ssh", vault.MaxNames) // the engine may have written none
	for _, key := range keys {
		if vault.IsHostKey(key) {
			names = append(names, "etc/ssh/"+key)
		}
	}
	for _, name := range names {
		if err := copyHostFile(made, root, name); err != nil {
			return err
		}
	}
	return nil
}

func copyHostFile(from, to *tree.Root, name string) error {
	st, err := from.Lstat(name)
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil // the engine writes none
	}
	text, err := from.ReadFile(name, 1<<20)
	if err != nil {
		return err
	}
	above, before := to.Stat(path.Dir(name))
	if err := to.RemoveAll(name); err != nil {
		return err
	}
	file := tree.File{Path: name, Content: text, Uid: int(st.Uid), Gid: int(st.Gid), Mode: st.Mode & 0o777}
	if err := to.Put(file, int(st.Uid), int(st.Gid)); err != nil || before != nil {
		return err
	}
	return to.SetModTime(path.Dir(name), above.Mtim)
}

// rebuilt compares the current layers of the nodes with those in the backup. It returns the titles
// of the layers that were rebuilt from the same recipe with another content, and of those that the
// nodes no longer use.
func (r *Part) rebuilt(nodes []nodedir.Record) (content, recipe []string) {
	here := map[string]bool{}
	for _, digest := range layersOf(nodes) {
		here[digest] = true
	}
	for i := range r.Manifest.Layers {
		saved := &r.Manifest.Layers[i]
		if !here[saved.Digest] {
			recipe = append(recipe, saved.Title)
			continue
		}
		if held, err := r.Store.PortableRecord(saved.Digest); err == nil && held.Content != saved.Content {
			content = append(content, saved.Title)
		}
	}
	return content, recipe
}
