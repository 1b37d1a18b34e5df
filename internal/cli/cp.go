package cli

import (
	"context"
	"errors"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
)

func (a *app) cpVerb() *cobra.Command {
	c := &cobra.Command{
		Use:     "cp SOURCE... DESTINATION",
		Short:   "Copy files and directories to, from and between nodes",
		Long:    `Copies files and directories, with their modes; NODE:PATH names a path in a node. What comes into a node belongs to root. A destination that ends in / is a directory, and is made if it is not there.`,
		Example: "  orrery cp portal:/var/log/dpkg.log .\n  orrery cp table.csv db:/tmp/",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := needRoot(); err != nil {
				return err
			}
			s, err := a.load()
			if err != nil {
				return err
			}
			to, err := a.place(c.Context(), s, args[len(args)-1])
			if err != nil {
				return err
			}
			for _, arg := range args[:len(args)-1] {
				from, err := a.place(c.Context(), s, arg)
				if err != nil {
					return err
				}
				if err := transfer(c.Context(), from, to, len(args) > 2); err != nil {
					return err
				}
			}
			return nil
		},
	}
	a.releaseFlag(c)
	return c
}

// place is a path somewhere.
type place struct {
	in   host.Runner
	path string
}

func (a *app) place(ctx context.Context, s *site.Site, arg string) (place, error) {
	name, at, inNode := strings.Cut(arg, ":")
	if !inNode || strings.Contains(name, "/") {
		absolute, err := filepath.Abs(arg)
		if strings.HasSuffix(arg, "/") {
			absolute += "/"
		}
		return place{host.Local{Name: "this host"}, absolute}, err
	}
	if _, err := declared(s, name); err != nil {
		return place{}, err
	}
	if !strings.HasPrefix(at, "/") {
		at = "/root/" + at
	}
	in, err := a.running(ctx, s, name)
	return place{in, at}, err
}

// transfer streams one file or directory from place to place as a tar archive, under the name that cp(1) would give it.
func transfer(ctx context.Context, from, to place, several bool) error {
	source := path.Clean(from.path)
	pack := `[ -e "$1" ] || [ -L "$1" ] || { echo "there is no such file" >&2; exit 1; }
cd -- "$(dirname -- "$1")" && exec tar -cf - -- "$(basename -- "$1")"`
	unpack := `set -e
d=$1 new=$3
if [ "$2" = dir ] || [ -d "$d" ] || [ "${d%/}" != "$d" ]; then mkdir -p -- "$d"; into=$d; else into=$(dirname -- "$d"); new=$(basename -- "$d"); fi
t=$(mktemp -d -- "$into/.orrery.XXXXXX"); trap 'rm -rf -- "$t"' EXIT
tar -xpf - --no-same-owner -C "$t"
if [ -d "$t/$3" ] && [ -d "$into/$new" ]; then cp -a -- "$t/$3/." "$into/$new/"; else mv -fT -- "$t/$3" "$into/$new"; fi`
	form := "any"
	if several {
		form = "dir"
	}
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := from.in.Run(ctx, host.Command{Args: []string{"/bin/sh", "-c", pack, "cp", source}, Stdout: w})
		w.CloseWithError(err)
		packed <- err
	}()
	err := to.in.Run(ctx, host.Command{Args: []string{"/bin/sh", "-c", unpack, "cp", to.path, form, path.Base(source)}, Stdin: r})
	r.CloseWithError(err)
	if wrong := <-packed; wrong != nil {
		err = wrong
	}
	if err == nil {
		return nil
	}
	var run *host.RunError
	if errors.As(err, &run) {
		return problem.New(problem.Failed, "%s was not copied to %s: %s", from.path, to.path, strings.TrimSpace(run.Output)).At(run.Place)
	}
	return err
}
