package backup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"orrery/internal/backup/vault"
	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/snapshot"
	"orrery/internal/volume"
)

// Snapshot stages the backup of one node as a snapshot of the site on this host. Restoring that
// snapshot replaces the node: its former state is kept until the node has been proven healthy, and
// the next run completes or undoes the restore if this one is killed. Layers, mounts and SSH host
// keys stay those of this host. If a killed run has left a snapshot with this id, Snapshot returns
// that one. All staged data is verified by its digests.
func (p *Extractor) Snapshot(ctx context.Context, dirs host.Dirs, key, id string, here *nodedir.Record,
	e engine.Engine) (*snapshot.Snapshot, error) {
	then, err := p.node(here.Name)
	if err != nil {
		return nil, err
	}
	if then.Release != here.Release {
		return nil, problem.New(problem.Surprise,
			"node %s is at release %s now, and at release %s in this backup; nothing was done", here.Name,
			site.ReleaseName(here.Release), site.ReleaseName(then.Release)).
			At(p.From.Where()).Try("first change to that release with orrery switch or rollback, or choose another backup")
	}
	if left, err := snapshot.Open(dirs, key, id); err == nil {
		return left, nil
	}
	layered, ok := e.(engine.Layered)
	if !ok {
		return nil, problem.New(problem.Unable, "node %s: the engine %q cannot restore what the node wrote", here.Name,
			here.Engine)
	}
	s := snapshot.NewEmpty(dirs, key, id)
	s.Time, s.Who = p.Manifest.Time, p.Manifest.Who
	err = p.fill(ctx, s, dirs, here, then)
	if err == nil {
		err = copyHostFiles(layered.Private(engine.RefOf(&here.Node)), s.PrivateDir(here.ID))
	}
	if err == nil {
		err = s.Store()
	}
	if err == nil {
		return s, nil
	}
	if err = extractProblem(s.Dir, err); ctx.Err() != nil {
		err = problem.New(problem.Interrupted, "interrupted; nothing was put in place").At(p.From.Where())
	}
	return nil, errors.Join(err, s.Discard())
}

// fill stages the private layer of a node and its volumes.
func (p *Extractor) fill(ctx context.Context, s *snapshot.Snapshot, dirs host.Dirs, here, then *nodedir.Record) error {
	t, ok := p.Manifest.Tree(privateName(then))
	if !ok {
		return problem.New(problem.Failed, "what node %s wrote is not in this backup", here.Name).At(p.From.Where()).
			Try("orrery backup ls %s", p.From.Where())
	}
	if err := p.stageWhole(ctx, t, s.PrivateDir(here.ID), s.PrivateDir(here.ID)); err != nil {
		return err
	}
	now := *here
	now.Configured, now.Config = then.Configured, then.Config
	s.Nodes = []snapshot.Node{{Record: &now, Running: true, How: volume.Copied}}
	for i := range here.Mounts {
		m := &here.Mounts[i]
		t, found := p.Manifest.Tree(volumeName(here, m))
		if why := unchangedReason(m, found); why != "" {
			s.Omitted = append(s.Omitted, m.Volume+": "+why)
			continue
		}
		v := snapshot.Volume{Name: m.Volume, Node: here.Name, Path: volume.Path(dirs, s.Site, here.Name, *m),
			How: volume.Copied}
		if err := p.stageWhole(ctx, t, s.VolumeDir(v), v.Path); err != nil {
			return err
		}
		s.Volumes = append(s.Volumes, v)
	}
	return nil
}

// unchangedReason returns why a volume stays as it is, or "" if it is restored.
func unchangedReason(m *spec.Mount, found bool) string {
	switch left := m.From().Left; {
	case left != "":
		return left
	case m.Copy != "":
		return "it is a copy in quarantine"
	case m.Shared:
		return "other nodes use it, too"
	case !found:
		return "it is not in the backup"
	}
	return ""
}

// stageWhole stages a complete tree in dir. The tree will be used in place, so that directory decides
// whether users of the host can reach it.
func (p *Extractor) stageWhole(ctx context.Context, t *vault.Tree, dir, place string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	shut, err := closed(existing(filepath.Dir(place)))
	if err != nil {
		return err
	}
	l := treeStager{ctx: ctx, from: p.From, of: t, shut: shut, saw: p.Saw, lacks: func(what string) { p.Lacked[what]++ }}
	return l.stage(dir)
}

// existing returns dir or, if it does not exist, its nearest existing parent.
func existing(dir string) string {
	for dir != "/" {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
}
