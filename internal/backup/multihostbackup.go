package backup

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"orrery/internal/backup/vault"
	"orrery/internal/problem"
)

// MultiHostBackup is a backup of a site on its hosts. Each host reads and sends its part. The machine with
// the vault stores the parts, and reads the site directory itself.
type MultiHostBackup struct {
	*Backup
	Manifest *vault.Manifest
	Secrets  vault.Secrets // of all hosts
	Also     []Source      // what is read on this machine in addition to the site directory

	read  atomic.Int64
	mutex sync.Mutex
	fresh []vault.Tree
}

// Begin starts a backup. It finds out what of the last backup is still intact in the vault.
func (t *Backup) Begin(ctx context.Context) (*MultiHostBackup, error) {
	all := &MultiHostBackup{Backup: t, Manifest: t.manifest(), Secrets: vault.Secrets{}}
	if err := t.loadFormer(ctx); err != nil {
		err = explain(ctx, t.Into, err)
		return nil, errors.Join(err, t.pack.Close())
	}
	return all, nil
}

// Former returns the trees that a host sent for the last backup. The vault has all their pieces.
func (t *MultiHostBackup) Former(host string) map[string][]vault.Entry {
	all := map[string][]vault.Entry{}
	for name, old := range t.trees {
		if old.source.Tree.Host == host {
			all[name] = old.entries
		}
	}
	return all
}

// FormerHost returns the host that sent a tree for the last backup, or "".
func (t *MultiHostBackup) FormerHost(tree string) string {
	if old := t.trees[tree]; old != nil {
		return old.source.Tree.Host
	}
	return ""
}

// Add stores a piece that a host sends.
func (t *MultiHostBackup) Add(content []byte) (vault.Digest, error) {
	t.read.Add(int64(len(content)))
	t.Saw(int64(len(content)))
	return t.pack.Add(content)
}

// AddList stores a part of a list.
func (t *MultiHostBackup) AddList(text []byte) ([]vault.Digest, error) { return t.pack.AddAll(text) }

// FinishBlock starts a new block for the lists that follow. Separate blocks can still name the files of
// damaged content.
func (t *MultiHostBackup) FinishBlock() { t.pack.FinishBlock() }

// Tree records a tree whose list was stored. A host may still have the former volume of a node that
// has moved to another host; settle then uses the volume of the node's host.
func (t *MultiHostBackup) Tree(tree vault.Tree) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.fresh = append(t.fresh, tree)
}

// HasTrees reports whether hosts have sent a tree.
func (t *MultiHostBackup) HasTrees() bool { return len(t.fresh) > 0 }

// Finish reads the site directory and writes the manifest, if all hosts have sent their parts.
// Otherwise failed is the reason, and Finish returns an error.
func (t *MultiHostBackup) Finish(ctx context.Context, failed error) (*Report, error) {
	own := append([]Source{t.Selection.siteDir()}, t.Also...)
	t.trees.again(own)
	err := failed
	if err == nil {
		err = t.trees.pass(ctx, own, t.pack, t.Saw, &t.read)
	}
	if err == nil {
		err = t.settle()
	}
	if err == nil {
		err = t.lists(t.Manifest)
	}
	if err == nil {
		err = t.storeSecrets(t.Secrets, t.Manifest)
	}
	if err == nil {
		if wrong := t.Manifest.Check(); wrong != nil {
			err = problem.New(problem.Surprise, "the hosts' reports of the site are inconsistent").Because(wrong)
		}
	}
	return t.end(ctx, err, t.Manifest, &t.read)
}

// settle adds the trees of all hosts to the manifest, each once.
func (t *MultiHostBackup) settle() error {
	m := t.Manifest
	home := map[string]string{} // hosts of nodes
	for i := range t.fresh {
		if tree := &t.fresh[i]; tree.Kind == vault.PrivateTree {
			home[tree.Node] = tree.Host
		}
	}
	slices.SortStableFunc(t.fresh, func(a, b vault.Tree) int {
		if a.Name != b.Name {
			return strings.Compare(a.Name, b.Name)
		}
		mine := func(tree *vault.Tree) int {
			if tree.Node != "" && home[tree.Node] == tree.Host {
				return 0
			}
			return 1
		}
		return mine(&a) - mine(&b)
	})
	for _, tree := range t.fresh {
		if n := len(m.Trees); n > 0 && m.Trees[n-1].Name == tree.Name {
			if tree.Kind != vault.VolumeTree || tree.Node == "" {
				return problem.New(problem.Surprise, "hosts %s and %s both have %s", m.Trees[n-1].Host, tree.Host, tree.Title()).
					Try("orrery status shows what each host has; orrery up removes leftovers")
			}
			m.Left = append(m.Left, tree.Title()+": the copy on host "+tree.Host+", which node "+tree.Node+" does not use")
			continue
		}
		m.Trees = append(m.Trees, tree)
	}
	return nil
}
