package backups

import (
	"context"
	"strings"

	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/control"
	"orrery/internal/problem"
)

// ExtractOptions say what to extract from a backup, and where to put it.
type ExtractOptions struct {
	Node  string   // the node to extract completely, or "" for single files only
	Files []string // as NODE:PATH
	Dir   string   // target, or "" for the current directory (for a node, a directory with its name in that)
}

// Extracted is what was extracted from a backup.
type Extracted struct {
	Paths []string // of what was extracted
	// attributes that the target file system does not support, and the number of files concerned
	Lacked  map[string]int
	Without []string // volumes of the node that are not in the backup
}

// Extract extracts single files, or what one node has, from a backup. Even if there is an error, the
// result lists what was extracted.
func Extract(ctx context.Context, c *control.Session, where string, o ExtractOptions) (*Extracted, error) {
	v, _, m, err := vault.OpenOne(where)
	if err != nil {
		return nil, err
	}
	defer v.Close() //nolint:errcheck // it was only read
	watch := c.Watcher.Bytes("restore")
	done := &Extracted{Lacked: map[string]int{}}
	p := &backup.Extractor{From: vault.NewPieces(v), Manifest: m, Saw: watch.Add, Lacked: done.Lacked}
	if o.Node != "" {
		done.Paths, done.Without, err = extractNode(ctx, p, o)
	} else {
		done.Paths, err = extractFiles(ctx, p, o)
	}
	watch.Close()
	if err == nil && !p.Lost.IsEmpty() {
		err = problem.New(problem.Failed, "the backup is damaged; these are left out: %s", p.Lost.String()).At(v.Where()).
			Try("orrery backup repair, or an older backup")
	}
	return done, err
}

// extractFiles extracts files and returns their new paths.
func extractFiles(ctx context.Context, p *backup.Extractor, o ExtractOptions) (all []string, err error) {
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

// extractNode extracts a node. It returns its new directory, and its volumes that are not in the
// backup.
func extractNode(ctx context.Context, p *backup.Extractor, o ExtractOptions) (paths, without []string, err error) {
	dir := o.Dir
	if dir == "" {
		dir = o.Node
	}
	if without, err = p.Node(ctx, o.Node, dir); err != nil {
		return nil, nil, err
	}
	return []string{dir}, without, nil
}
