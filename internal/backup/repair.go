package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"orrery/internal/backup/vault"
	"orrery/internal/text/sanitize"
	"orrery/internal/tree"
)

// A Repair completes damaged backups in a repository from what still exists elsewhere: in blocks
// that are only partly damaged, in other copies, or in the site itself. Everything is found by its
// digest, so it is exactly what was lost.
type Repair struct {
	Into      *vault.Repository
	Selection *Selection    // the site, or nil; its directory and this machine's copies of releases are searched
	From      []vault.Vault // other copies
	Saw       func(bytes int64)
	// Ask requests pieces from the hosts of the site.
	Ask func(ctx context.Context, wanted map[vault.Digest]bool, into Adder) error

	seekIn func(*Backup) error // replaces Set in tests
}

// Repaired is the result of a repair.
type Repaired struct {
	Blocks       int   // number of blocks that were read
	Bytes        int64 // size of these blocks
	BytesWritten int64
	Corrupt      []vault.CorruptBlock
	Backups      []RepairedBackup
}

// A RepairedBackup is a backup, with what it lacked before and what it lacks now.
type RepairedBackup struct {
	ID     string
	Site   string // the site's key on its host, or "" if unknown
	Before Missing
	After  Missing
}

// A Missing lists what a backup lacks: files, lists of trees, secrets.
type Missing struct {
	First []string // the first of them
	Count int
}

func (l *Missing) add(what string) {
	const most = 20
	if l.Count++; len(l.First) < most {
		l.First = append(l.First, sanitize.Line(what))
	}
}

// Run verifies all blocks, and restores lost pieces from elsewhere.
func (p *Repair) Run(ctx context.Context) (*Repaired, error) {
	r := p.Into
	done, err := &Repaired{}, error(nil)
	if done.Blocks, done.Bytes, err = r.VerifyAll(ctx, p.Saw); err != nil {
		return nil, explain(ctx, r, err)
	}
	before, wanted, err := p.survey()
	if err != nil {
		return nil, err
	}
	after := before
	for len(wanted) > 0 { // a list that was found refers to further pieces
		wrote, err := p.fetch(ctx, wanted)
		done.BytesWritten += wrote
		if err != nil {
			return nil, explain(ctx, r, err)
		}
		if after, wanted, err = p.survey(); err != nil {
			return nil, err
		}
		if wrote == 0 {
			break
		}
	}
	if err := r.Settle(); err != nil {
		return nil, err
	}
	if err := r.RemoveCorrupt(); err != nil {
		return nil, err
	}
	done.Corrupt = r.Checked().Corrupt
	for i := range before {
		done.Backups = append(done.Backups, RepairedBackup{before[i].id, before[i].site(), before[i].loss, after[i].loss})
	}
	return done, nil
}

// A surveyedBackup is a backup whose trees were walked.
type surveyedBackup struct {
	id   string
	m    *vault.Manifest // or nil if it is damaged
	loss Missing
}

func (s *surveyedBackup) site() string {
	if s.m == nil {
		return ""
	}
	return s.m.Key
}

// survey returns what each backup lacks, and the digests of the missing pieces.
func (p *Repair) survey() ([]surveyedBackup, map[vault.Digest]bool, error) {
	ids, err := p.Into.Backups()
	if err != nil {
		return nil, nil, err
	}
	var all []surveyedBackup
	wanted := map[vault.Digest]bool{}
	for _, id := range ids {
		s := surveyedBackup{id: id}
		m, err := p.Into.Manifest(id)
		if err != nil {
			s.loss.add("its manifest")
		} else {
			s.m, s.loss = m, lossOf(p.Into, m, wanted)
		}
		all = append(all, s)
	}
	return all, wanted, nil
}

// lossOf returns what a backup lacks, and adds the missing pieces to wanted.
func lossOf(r *vault.Repository, m *vault.Manifest, wanted map[vault.Digest]bool) Missing {
	var loss Missing
	lacks := func(pieces []vault.Digest) bool {
		some := false
		for _, d := range pieces {
			if !r.Holds(d) {
				wanted[d], some = true, true
			}
		}
		return some
	}
	from := vault.NewPieces(r)
	for i := range m.Trees {
		t := &m.Trees[i]
		if lacks(t.List) {
			loss.add(t.Title() + ": all of it")
			continue
		}
		err := from.Each(t, func(e *vault.Entry) error {
			lost := false
			for _, x := range e.Data {
				lost = lacks(x.Pieces) || lost
			}
			if lost {
				loss.add(t.Title() + ": " + tree.DisplayPath(string(e.Name)))
			}
			return nil
		})
		if err != nil {
			loss.add(t.Title() + ": all of it")
		}
	}
	if m.Secrets != nil && lacks(m.Secrets.Pieces) {
		loss.add("secrets and SSH host keys")
	}
	return loss
}

// fetch searches for pieces in all places.
func (p *Repair) fetch(ctx context.Context, wanted map[vault.Digest]bool) (wrote int64, err error) {
	t := &Backup{Selection: p.Selection, Into: p.Into, Saw: p.Saw, pack: vault.NewPacker(p.Into), trees: treeIndex{}}
	t.pack.Only = wanted
	err = t.recoverPieces()
	for _, v := range p.From {
		if err == nil {
			err = t.copy(ctx, v)
		}
	}
	if err == nil {
		err = p.searchSite(ctx, t)
	}
	err = errors.Join(err, t.pack.Close())
	return t.pack.Written(), err
}

// copy copies the wanted pieces from another vault.
func (t *Backup) copy(ctx context.Context, v vault.Vault) error {
	from := vault.NewPieces(v)
	for d := range t.pack.Only {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		content, err := from.Get(d)
		if err != nil {
			continue // it is not there either
		}
		if _, err := t.pack.Add(content); err != nil {
			return err
		}
	}
	return nil
}

// searchSite asks the hosts of the site, and searches this machine's part of it. It does not read files
// that are unchanged since the last backup and intact in it.
func (p *Repair) searchSite(ctx context.Context, t *Backup) error {
	if p.seekIn != nil {
		return p.seekIn(t)
	}
	if p.Selection == nil {
		return nil
	}
	if err := p.Ask(ctx, t.pack.Only, t.pack); err != nil {
		return err
	}
	return t.searchSources(ctx, append(p.Selection.releases(), p.Selection.siteDir()))
}

// searchSources reads what is not in the last backup of a site, and the lists of its trees.
func (t *Backup) searchSources(ctx context.Context, sources []Source) error {
	if _, err := t.readFormerLists(ctx); err != nil {
		return err
	}
	var read atomic.Int64
	if err := t.trees.pass(ctx, sources, t.pack, t.Saw, &read); err != nil {
		return err
	}
	for _, tree := range t.trees {
		text, err := vault.WriteList(tree.entries)
		if err != nil {
			return err
		}
		if _, err := t.pack.AddAll(text); err != nil {
			return err
		}
	}
	return nil
}

// IsEmpty reports whether nothing is lost.
func (l *Missing) IsEmpty() bool { return l.Count == 0 }

// String returns the first losses and the number of the others.
func (l *Missing) String() string {
	text := strings.Join(l.First, "; ")
	if more := l.Count - len(l.First); more > 0 {
		text += fmt.Sprintf("; %d more", more)
	}
	return text
}
