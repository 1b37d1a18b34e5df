package cli

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/tree"
)

func (a *app) cpVerb() *cobra.Command {
	c := &cobra.Command{
		Use:     "cp SOURCE... DESTINATION",
		Short:   "Copy files and directories to, from and between nodes",
		Long:    `Copies files, directories and links, with their modes and times; NODE:PATH names a path in a node. What comes into a node belongs to root there; what comes onto this host belongs to the caller, without set-user-ID and set-group-ID. Devices and named pipes are left out, and told. A destination that ends in / is a directory, and is made if it is not there.`,
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
	in   host.Runner // nil: this host
	path string
}

func (a *app) place(ctx context.Context, s *site.Site, arg string) (place, error) {
	name, at, inNode := strings.Cut(arg, ":")
	if !inNode || strings.Contains(name, "/") {
		absolute, err := filepath.Abs(arg)
		if strings.HasSuffix(arg, "/") {
			absolute += "/"
		}
		return place{nil, absolute}, err
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

// transfer copies one file or directory from place to place, under the name that cp(1) would give it. What a node has to do with it goes through a pipe as
// a tar archive: nodes pack and unpack by their own tar, this host does not.
func transfer(ctx context.Context, from, to place, several bool) error {
	if path.Clean(from.path) == "/" {
		return problem.New(problem.Usage, "the whole of / cannot be copied").Try("name a directory below it")
	}
	if from.in == nil && to.in == nil {
		return problem.New(problem.Usage, "neither %s nor %s is in a node", from.path, to.path).Try("NODE:PATH names a path in a node; cp(1) copies on this host")
	}
	called := ctx
	ctx, stop := context.WithCancel(ctx)
	defer stop() // whoever sends what nobody takes need not go on
	sent := through(func(w io.Writer) error { return from.send(ctx, w) })
	err := sent.end(to.take(ctx, sent, from, several))
	var run *host.RunError
	var said *problem.Problem
	switch {
	case err != nil && called.Err() != nil:
		return problem.New(problem.Interrupted, "interrupted: %s was not copied to %s", from.path, to.path).Because(context.Cause(called))
	case err == nil || errors.As(err, &said):
		return err
	case errors.As(err, &run):
		return problem.New(problem.Failed, "%s was not copied to %s: %s", from.path, to.path, cmp.Or(strings.TrimSpace(run.Output), fmt.Sprintf("exit status %d", run.Status))).At(run.Place)
	}
	return problem.New(problem.Failed, "%s was not copied to %s", from.path, to.path).Because(err)
}

// A stream is what one end of a copy writes and the other reads.
type stream struct {
	*io.PipeReader
	wrote chan error
}

// through begins to write a stream.
func through(write func(io.Writer) error) *stream {
	r, w := io.Pipe()
	s := &stream{r, make(chan error, 1)}
	go func() {
		err := write(w)
		s.wrote <- err // before the reader can know of it
		w.CloseWithError(err)
	}()
	return s
}

// end gives why a copy failed, or what is to be said of one that did not: of two ends that fail, the first is the cause.
func (s *stream) end(read error) error {
	defer s.CloseWithError(errTakenNoMore)
	if read != nil {
		select {
		case wrote := <-s.wrote:
			return cmp.Or(wrote, read)
		default:
			return read
		}
	}
	s.CloseWithError(errTakenNoMore)
	if wrote := <-s.wrote; !errors.Is(wrote, errTakenNoMore) {
		return wrote
	}
	return nil
}

var errTakenNoMore = errors.New("nothing more of it is taken")

// send packs what is at a place.
func (p place) send(ctx context.Context, to io.Writer) error {
	source := path.Clean(p.path)
	if p.in == nil {
		l, err := pack(ctx, source, to)
		if err == nil {
			err = l.left.problem()
		}
		return err
	}
	const script = `[ -e "$1" ] || [ -L "$1" ] || { echo "there is no such file" >&2; exit 1; }
cd -- "$(dirname -- "$1")" && exec tar --format=posix --sort=name -cf - -- "$(basename -- "$1")"`
	return p.in.Run(ctx, host.Command{Args: []string{"/bin/sh", "-c", script, "cp", source}, Stdout: to})
}

// take lays down what is sent.
func (p place) take(ctx context.Context, sent io.Reader, from place, several bool) error {
	name := path.Base(path.Clean(from.path))
	if from.in == nil {
		return p.unpack(ctx, sent, name, several)
	}
	c := unpack(sent, name)
	if p.in == nil {
		return p.lay(ctx, c, name, several)
	}
	// Nothing comes from one node to another that was not looked at.
	seen := through(func(w io.Writer) error { return c.pass(ctx, w) })
	if err := seen.end(p.unpack(ctx, seen, name, several)); err != nil {
		return err
	}
	return c.left.problem()
}

// unpack has a node lay down what it is sent: beside its place, and only what came whole. However the copy ends, by Ctrl-C or because this program is
// killed, the input of the node's shell ends, and the shell clears away what it has begun; so it is not killed itself, unless it takes too long. What it could
// not clear away, because the node ended, is cleared away by the next copy into that directory.
func (p place) unpack(ctx context.Context, sent io.Reader, name string, several bool) error {
	const script = `set -e
d=$1 new=$3
if [ "$2" = dir ] || [ -d "$d" ] || [ "${d%/}" != "$d" ]; then mkdir -p -- "$d"; into=$d; else into=$(dirname -- "$d"); new=$(basename -- "$d"); fi
find "$into/." -maxdepth 1 -type d -user "$(id -u)" -name '.orrery.??????' -mmin +1 -exec flock -n {} rm -rf -- {} ';' 2>/dev/null || :
t=$(mktemp -d -- "$into/.orrery.XXXXXX"); trap 'rm -rf -- "$t"' EXIT; trap 'exit 1' HUP INT TERM
exec 9<"$t"; flock -n 9 2>/dev/null || :
tar -xpf - --no-same-owner -C "$t"
[ -e "$t/$4" ] || { echo "it was cut short" >&2; exit 1; }
if [ -d "$t/$3" ] && [ -d "$into/$new" ]; then cp -a -- "$t/$3/." "$into/$new/"; else mv -fT -- "$t/$3" "$into/$new"; fi`
	form := "any"
	if several {
		form = "dir"
	}
	late, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(clearing, func() { cancel(context.Cause(ctx)) })
	})()
	return p.in.Run(late, host.Command{Args: []string{"/bin/sh", "-c", script, "cp", p.path, form, name, sealName}, Stdin: sent})
}

// clearing is how long a node may take to clear away a copy that was interrupted.
const clearing = 10 * time.Second

// sealName is the last name of an archive that goes into a node: tar takes one for whole that ends with any of its files.
const sealName = ".orrery-whole"

// seal ends an archive that goes into a node.
func seal(to *tar.Writer) error {
	if err := to.WriteHeader(&tar.Header{Name: sealName, Typeflag: tar.TypeReg, Mode: 0o600, Format: tar.FormatPAX}); err != nil {
		return err
	}
	return to.Close()
}

// lay makes on this host what a node sends: beside its place, and whole before it comes there. The path that the operator named is trusted; links below it,
// whoever made them, are replaced and not followed.
func (p place) lay(ctx context.Context, c *cargo, name string, several bool) error {
	into, as := path.Dir(path.Clean(p.path)), path.Base(path.Clean(p.path))
	info, err := os.Stat(p.path)
	if several || strings.HasSuffix(p.path, "/") || err == nil && info.IsDir() {
		into, as = path.Clean(p.path), name
		if err := os.MkdirAll(into, 0o755); err != nil {
			return err
		}
	}
	into, err = filepath.EvalSymlinks(into)
	if err != nil {
		return problem.New(problem.Failed, "%s is not there to be copied into", path.Dir(path.Clean(p.path))).At("this host").Because(cause(err))
	}
	beside, err := newBeside(into)
	if err != nil {
		return err
	}
	defer beside.remove()
	if err := c.lay(ctx, beside.cargo()); err != nil {
		return err
	}
	if err := tree.Merge(path.Join(beside.cargo(), name), path.Join(into, as)); err != nil {
		return err
	}
	return c.left.problem()
}
