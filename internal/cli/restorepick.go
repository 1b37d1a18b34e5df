package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/phrase"
	"orrery/internal/problem"
	"orrery/internal/visible"
)

// pick takes single files, or what one node has, out of a backup.
func (a *app) pick(c *cobra.Command, text string, o restoreOptions) error {
	if o.node != "" && len(o.files) > 0 {
		return problem.New(problem.Usage, "--file and --node are two ways to take something out of a backup").Try("leave one of them out")
	}
	for _, flag := range []string{"to", "replace", "trust-layers", "yes-paths", "yes-replace", "yes-production", "secrets-identity", "secrets-passphrase-file", "parallel"} {
		if c.Flags().Changed(flag) {
			return problem.New(problem.Usage, "--%s is about a site, and --file and --node touch none", flag).Try("leave it out")
		}
	}
	v, id, err := vault.Open(text)
	if err != nil {
		return err
	}
	defer v.Close() //nolint:errcheck // it was only read
	_, m, err := vault.Choose(v, id)
	if err != nil {
		return err
	}
	shown := newMeter(a.err, "restore")
	p := &backup.Pick{From: v, Manifest: m, Saw: shown.Add, Lacked: map[string]int{}}
	var all []string
	if o.node != "" {
		all, err = a.pickNode(c.Context(), p, o)
	} else {
		all, err = pickFiles(c.Context(), p, o)
	}
	shown.Close()
	for _, at := range all {
		fmt.Fprintf(a.out, "%s\n", visible.Line(at))
	}
	a.tellLacked(p.Lacked)
	if err == nil && !p.Lost.Whole() {
		err = problem.New(problem.Failed, "the backup is damaged; left out are: %s", p.Lost.String()).At(v.Where()).Try("orrery backup repair, or an older backup")
	}
	return err
}

// pickFiles gives the paths at which files are now.
func pickFiles(ctx context.Context, p *backup.Pick, o restoreOptions) (all []string, err error) {
	dir := o.Dir
	if dir == "" {
		dir = "."
	}
	for _, file := range o.files {
		node, path, is := strings.Cut(file, ":")
		if !is || !strings.HasPrefix(path, "/") {
			return all, problem.New(problem.Usage, "%q names no file of a node", file).Try("--file NODE:/PATH")
		}
		at, err := p.File(ctx, node, path, dir)
		if err != nil {
			return all, err
		}
		all = append(all, at)
	}
	return all, nil
}

// pickNode gives the directory in which a node is now.
func (a *app) pickNode(ctx context.Context, p *backup.Pick, o restoreOptions) ([]string, error) {
	dir := o.Dir
	if dir == "" {
		dir = o.node
	}
	without, err := p.Node(ctx, o.node, dir)
	if err != nil {
		return nil, err
	}
	if len(without) > 0 {
		fmt.Fprintf(a.err, "orrery: not in the backup: volume %s\n", phrase.List(without, 8))
	}
	return []string{dir}, nil
}

// tellLacked says what does not come back because of where it goes.
func (a *app) tellLacked(lacked map[string]int) {
	for what, n := range lacked {
		fmt.Fprintf(a.err, "orrery: not restored, because they are not taken here: %s (%s)\n", visible.Line(what), phrase.Count(n, "file"))
	}
}
