package backups

import (
	"context"
	"strings"

	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/control"
	"orrery/internal/problem"
)

// PickOptions say what is taken out of a backup, and where it goes.
type PickOptions struct {
	Node  string   // all that this node has; "": only files
	Files []string // NODE:PATH
	Dir   string   // "": the current directory, and for a node one with its name in that
}

// Picked is what was taken out of a backup.
type Picked struct {
	Paths   []string       // where it is now
	Lacked  map[string]int // what is not taken where it goes, and of how many files
	Without []string       // volumes of the node that are not in the backup
}

// Pick takes single files, or what one node has, out of a backup. What it returns is there, also if
// there is an error.
func Pick(ctx context.Context, c *control.Session, where string, o PickOptions) (*Picked, error) {
	v, _, m, err := vault.OpenOne(where)
	if err != nil {
		return nil, err
	}
	defer v.Close() //nolint:errcheck // it was only read
	watch := c.Watcher.Bytes("restore")
	done := &Picked{Lacked: map[string]int{}}
	p := &backup.Pick{From: vault.NewPieces(v), Manifest: m, Saw: watch.Add, Lacked: done.Lacked}
	if o.Node != "" {
		done.Paths, done.Without, err = pickNode(ctx, p, o)
	} else {
		done.Paths, err = pickFiles(ctx, p, o)
	}
	watch.Close()
	if err == nil && !p.Lost.Whole() {
		err = problem.New(problem.Failed, "the backup is damaged; these are left out: %s", p.Lost.String()).At(v.Where()).
			Try("orrery backup repair, or an older backup")
	}
	return done, err
}

// pickFiles returns the paths at which files are now.
func pickFiles(ctx context.Context, p *backup.Pick, o PickOptions) (all []string, err error) {
	dir := o.Dir
	if dir == "" {
		dir = "."
	}
	for _, file := range o.Files {
		node, path, ok := strings.Cut(file, ":")
		if !ok || !strings.HasPrefix(path, "/") {
			return all, problem.New(problem.Usage, "%q does not name a file on a node", file).Try("--file NODE:/PATH")
		}
		at, err := p.File(ctx, node, path, dir)
		if err != nil {
			return all, err
		}
		all = append(all, at)
	}
	return all, nil
}

// pickNode returns the directory in which a node is now, and its volumes that are not in the backup.
func pickNode(ctx context.Context, p *backup.Pick, o PickOptions) (paths, without []string, err error) {
	dir := o.Dir
	if dir == "" {
		dir = o.Node
	}
	if without, err = p.Node(ctx, o.Node, dir); err != nil {
		return nil, nil, err
	}
	return []string{dir}, without, nil
}
