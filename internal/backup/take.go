package backup

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"filippo.io/age"

	"orrery/internal/backup/vault"
	"orrery/internal/engine/nodedir"
	"orrery/internal/image"
	"orrery/internal/problem"
)

// A Backup stores the parts of a site that its hosts send (Together).
//
// Directories to which nodes write are read twice. First they are read while the nodes run, however
// long that takes, and again while much has changed. Then all nodes are frozen, and the little that
// has changed since is read. So the backup shows all nodes at one moment, and they are frozen only
// briefly, on any file system and whatever the size of the volumes.
type Backup struct {
	Selection *Selection
	Into      vault.Vault
	To        []age.Recipient // the recipients of encrypted secrets, or none to leave secrets out
	By        string          // version of the program
	Who       string
	Saw       func(bytes int64) // called with the number of bytes read

	pack       *vault.Packer
	trees      treeIndex
	incomplete bool // the last backup lacks something
}

// smallBytes is how many bytes may be left to read while the nodes are frozen. most is how many
// passes are made to get below that.
const (
	smallBytes = 32 << 20
	maxPasses  = 3
)

// A Report is the result of a backup.
type Report struct {
	ID       string
	Manifest *vault.Manifest
	Read     int64 // bytes of content that were read in this run
	Wrote    int64 // bytes of blocks that were added
	Checked  vault.Checked
}

// loadFormer finds out what of the last backup of the site is still intact in the vault. It verifies
// some of the blocks that will be reused.
func (t *Backup) loadFormer(ctx context.Context) error {
	t.pack, t.trees = vault.NewPacker(t.Into), treeIndex{}
	used, err := t.readFormerLists(ctx)
	if r, ok := t.Into.(*vault.Repository); ok && err == nil {
		err = r.Sample(ctx, used)
	}
	t.dropIncomplete()
	return err
}

// manifest returns a manifest with what is known before reading.
func (t *Backup) manifest() *vault.Manifest {
	m := &vault.Manifest{
		Format: vault.Format, Site: t.Selection.Site.Name, Key: t.Selection.Site.Key(), Twin: t.Selection.Site.Twin,
		Production: t.Selection.Site.Production,
		Time:       time.Now().UTC().Truncate(time.Second), By: t.By, Who: t.Who, Partial: t.Selection.Nodes != nil,
	}
	m.Host, _ = os.Hostname()
	return m
}

// end writes the manifest, unless something has failed.
func (t *Backup) end(ctx context.Context, err error, m *vault.Manifest, read *atomic.Int64) (*Report, error) {
	if err == nil {
		err = t.recoverPieces()
	}
	err = errors.Join(err, t.pack.Close())
	if err != nil {
		return nil, explain(ctx, t.Into, err)
	}
	id, err := t.Into.Commit(m)
	report := &Report{ID: id, Manifest: m, Read: read.Load(), Wrote: t.pack.Written()}
	if r, ok := t.Into.(*vault.Repository); ok {
		report.Checked = r.Checked()
	}
	return report, err
}

// recoverPieces stores the intact pieces of corrupt blocks again, because older backups may need them.
func (t *Backup) recoverPieces() error {
	r, ok := t.Into.(*vault.Repository)
	if !ok {
		return nil
	}
	for _, corrupt := range r.Checked().Corrupt {
		if err := r.Recover(&corrupt, func(content []byte) error { _, err := t.pack.Add(content); return err }); err != nil {
			return err
		}
	}
	return nil
}

func explain(ctx context.Context, v vault.Vault, err error) error {
	if ctx.Err() != nil {
		return problem.New(problem.Interrupted,
			"interrupted; the same command continues with what was written").At(v.Where())
	}
	var p *problem.Problem
	if errors.As(err, &p) {
		return p
	}
	return problem.New(problem.Failed, "the backup could not be made").At(v.Where()).Because(err)
}

// CurrentLayers returns the records of the layers that the current nodes use.
func (s *Selection) CurrentLayers() ([]image.Record, error) {
	nodes, _, err := s.records()
	if err != nil {
		return nil, err
	}
	return s.Recipes(nodes)
}

// Recipes returns the records of the layers that nodes use, and of those that only this host sends.
func (s *Selection) Recipes(nodes []nodedir.Record) ([]image.Record, error) {
	var all []image.Record
	digests := layersOf(nodes)
	for digest := range s.Layers {
		if !slices.Contains(digests, digest) {
			digests = append(digests, digest)
		}
	}
	for _, digest := range digests {
		r, err := s.Store.PortableRecord(digest)
		if err != nil {
			return nil, problem.New(problem.Failed, "layer %s, which nodes use, is not in the store", digest).
				At(s.Store.Dir).Because(problem.PathErrorCause(err)).
				Try("run orrery image verify, then orrery up")
		}
		all = append(all, *r)
	}
	return all, nil
}

// readFormerLists reads the lists of the last backup of this site in the vault, and returns the blocks
// that will be reused.
func (t *Backup) readFormerLists(ctx context.Context) (used []vault.Digest, err error) {
	r, ok := t.Into.(*vault.Repository)
	if !ok {
		return nil, nil
	}
	ids, err := r.Backups()
	if err != nil {
		return nil, err
	}
	blocks := map[vault.Digest]bool{}
	from := vault.NewPieces(r)
	for _, id := range slices.Backward(ids) {
		m, err := r.Manifest(id)
		if err != nil {
			r.Unreadable(id)
			continue
		}
		if m.Key != t.Selection.Site.Key() {
			continue
		}
		for i := range m.Trees {
			if t.trees[m.Trees[i].Name] == nil {
				t.readFormerTree(from, &m.Trees[i], blocks)
			}
		}
		if !m.Partial {
			break
		}
	}
	used = slices.Collect(maps.Keys(blocks))
	err = vault.EachBlock(ctx, used, func(block vault.Digest) error {
		r.IsIntact(block) // damaged blocks are condemned
		return nil
	})
	t.dropIncomplete()
	return used, err
}

// dropIncomplete removes entries of which the vault lacks something, so that they are read and stored
// again.
func (t *Backup) dropIncomplete() {
	r, ok := t.Into.(*vault.Repository)
	if !ok || !t.incomplete && !r.HasCorrupt() {
		return
	}
	for _, tree := range t.trees {
		tree.entries = slices.DeleteFunc(tree.entries, func(e vault.Entry) bool { return t.isIncomplete(&e) })
	}
}

// readFormerTree reads the list of a tree, and adds the blocks of the list and of its content to used.
func (t *Backup) readFormerTree(from *vault.Pieces, tree *vault.Tree, used map[vault.Digest]bool) {
	note := func(pieces []vault.Digest) {
		for _, d := range pieces {
			if block, ok := t.pack.Block(d); ok {
				used[block] = true
			} else {
				t.incomplete = true
			}
		}
	}
	var entries []vault.Entry
	err := from.Each(tree, func(e *vault.Entry) error { entries = append(entries, *e); return nil })
	if err != nil { // the tree will be read again
		from.VerifyAgain(tree.List)
		return
	}
	note(tree.List)
	for i := range entries {
		for _, x := range entries[i].Data {
			note(x.Pieces)
		}
	}
	t.trees[tree.Name] = &treeState{source: Source{Tree: vault.Tree{Host: tree.Host}}, entries: entries}
}

// isIncomplete reports whether the vault lacks a piece of an entry.
func (t *Backup) isIncomplete(e *vault.Entry) bool {
	for _, x := range e.Data {
		if slices.ContainsFunc(x.Pieces, func(d vault.Digest) bool { return !t.pack.Has(d) }) {
			return true
		}
	}
	return false
}

// lists stores the lists of the trees that were read here.
func (t *Backup) lists(m *vault.Manifest) error {
	// separate blocks for the lists, so that they can name the files of damaged content
	t.pack.FinishBlock()
	for _, tree := range t.trees {
		text, err := vault.WriteList(tree.entries)
		if err != nil {
			return err
		}
		listed := tree.source.Tree
		listed.Entries, listed.Bytes = len(tree.entries), tree.bytes
		if listed.List, err = t.pack.AddAll(text); err != nil {
			return err
		}
		m.Trees = append(m.Trees, listed)
		for _, what := range tree.left {
			m.Left = append(m.Left, listed.Title()+": "+what)
		}
	}
	slices.Sort(m.Left)
	slices.SortFunc(m.Trees, func(a, b vault.Tree) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// storeSecrets stores the secrets, encrypted.
func (t *Backup) storeSecrets(secrets vault.Secrets, m *vault.Manifest) error {
	if len(t.To) == 0 {
		m.Left = append(m.Left, "secrets and SSH host keys: no key or passphrase to encrypt them with")
		return nil
	}
	if len(secrets) == 0 {
		return nil
	}
	sealed, err := secrets.Seal(t.To)
	if err != nil {
		return err
	}
	m.Secrets = &vault.Sealed{Names: secrets.Names()}
	m.Secrets.Pieces, err = t.pack.AddAll(sealed)
	return err
}
