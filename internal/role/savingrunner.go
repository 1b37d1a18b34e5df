package role

import (
	"bytes"
	"context"
	"strings"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// savingRunner is a Runner that saves files before they are first overwritten, so that a configuration can
// be undone.
type savingRunner struct {
	host.Runner
	seen map[string]bool
	keep func(Saved) error
}

// Saved has the previous state of the files of one Put.
type Saved struct {
	Paths   []string `json:"paths"`
	Archive []byte   `json:"archive"` // tar of the files that existed
}

// maxSavedBytes limits the data saved for one Put. Rendered files are far smaller, but a node may
// have replaced them by anything.
const maxSavedBytes = 16 << 20

// NewSavingRunner returns a Runner that saves the files of a node with keep before they are first
// overwritten.
func NewSavingRunner(in host.Runner, keep func(Saved) error) host.Runner {
	return &savingRunner{Runner: in, seen: map[string]bool{}, keep: keep}
}

// Put saves the files and then writes them.
func (s *savingRunner) Put(ctx context.Context, files ...host.File) error {
	var paths []string
	for _, f := range files {
		if !s.seen[f.Path] {
			s.seen[f.Path] = true
			paths = append(paths, f.Path)
		}
	}
	if len(paths) > 0 {
		const script = `cd /; n=$#; for f; do if [ -e "$f" ] || [ -L "$f" ]; then set -- "$@" ".$f"; fi; done; shift "$n"
if [ $# -gt 0 ]; then tar -cpf - -- "$@"; fi`
		args := append([]string{"/bin/sh", "-c", script, "save"}, paths...)
		archive, err := host.Output(ctx, s, host.Command{Args: args}, maxSavedBytes)
		if err != nil {
			return problem.New(problem.Failed, "the files to be replaced could not be saved").
				Because(err).
				Try("check these paths in the node: %s", strings.Join(paths, ", "))
		}
		if err := s.keep(Saved{paths, archive}); err != nil {
			return err
		}
	}
	return s.Runner.Put(ctx, files...)
}

// Restore restores saved files. The caller passes those that were saved last first.
func Restore(ctx context.Context, in host.Runner, all []Saved) error {
	for _, s := range all {
		args := append([]string{"rm", "-f", "--"}, s.Paths...)
		if err := in.Run(ctx, host.Command{Args: args}); err != nil {
			return err
		}
		if len(s.Archive) == 0 {
			continue
		}
		c := host.Command{Args: []string{"tar", "-xpf", "-", "-C", "/"}, Stdin: bytes.NewReader(s.Archive)}
		if err := in.Run(ctx, c); err != nil {
			return err
		}
	}
	return nil
}
