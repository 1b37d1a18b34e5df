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
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/selector"
	"orrery/internal/tree"
)

func (a *app) cpVerb() *cobra.Command {
	o := copying{parallel: 4}
	c := &cobra.Command{
		Use:   "cp SOURCE... DESTINATION",
		Short: "Copy files and directories to, from and between nodes",
		Long: `Copies files, directories and links, with their modes and times; NODE:PATH names a path in a node. Files copied into a node belong to root there. Files copied to this host belong to you, without set-user-ID and set-group-ID. Devices and named pipes are skipped and reported. A destination that ends in / is a directory, and is created if it is missing.

SELECTOR:PATH copies to each of several nodes, or from each of them into a directory NODE below the destination. The exit status is 100 + the number of nodes that failed (at most 200).`,
		Example: "  orrery cp portal:/var/log/dpkg.log .\n  orrery cp table.csv db:/tmp/\n  orrery cp role=receptor:/var/log/daemon.log logs",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := control.NeedRoot(); err != nil {
				return err
			}
			s, err := a.Load()
			if err != nil {
				return err
			}
			return a.copy(c.Context(), s, args[:len(args)-1], args[len(args)-1], &o)
		},
	}
	f := c.Flags()
	f.IntVar(&o.parallel, "parallel", o.parallel, "how many nodes at once, at most")
	f.DurationVar(&o.timeout, "timeout", 0, "give up on a node after this time (default: never)")
	f.BoolVar(&o.json, "json", false, "print how it ended with each node, as a list in JSON")
	a.releaseFlag(c)
	return c
}

// copying says how is copied.
type copying struct {
	parallel int
	timeout  time.Duration
	json     bool
}

// A spot is what an argument names: a path on this host, in a node, or in each of several.
type spot struct {
	nodes []*site.Node // none: this host
	many  bool         // by a selector and not by name, were it only one
	path  string
}

func (a *app) spot(s *site.Site, arg string) (spot, error) {
	name, at, inNode := strings.Cut(arg, ":")
	if !inNode || strings.Contains(name, "/") {
		absolute, err := filepath.Abs(arg)
		if strings.HasSuffix(arg, "/") {
			absolute += "/"
		}
		return spot{path: absolute}, err
	}
	if !strings.HasPrefix(at, "/") {
		at = "/root/" + at
	}
	if n, ok := s.Node(name); ok {
		return spot{nodes: []*site.Node{n}, path: at}, nil
	}
	nodes, err := selector.Select(s, name)
	return spot{nodes: nodes, many: true, path: at}, err
}

// in gives the place of a spot in one of its nodes.
func (p spot) in(c *crowd, node string) place {
	if p.nodes == nil {
		return place{path: p.path}
	}
	if !p.many {
		node = p.nodes[0].Name
	}
	return place{in: c.in(node), path: p.path}
}

func (a *app) copy(ctx context.Context, s *site.Site, sources []string, destination string, o *copying) error {
	to, err := a.spot(s, destination)
	if err != nil {
		return err
	}
	all := []spot{to}
	for _, source := range sources {
		from, err := a.spot(s, source)
		if err != nil {
			return err
		}
		all = append(all, from)
	}
	c, err := a.crowdOf(ctx, s, all)
	if err != nil {
		return err
	}
	c.parallel, c.timeout = o.parallel, o.timeout
	show := newMeter(a.err, "copied")
	defer show.Close()
	if c.nodes == nil || !o.json && !manySpots(all) {
		return c.within(ctx, func(ctx context.Context) error { return copyOne(ctx, c, all[1:], to, "", show.Add) })
	}
	var list speech = newPrefixed(a.out, a.err, c.nodes, false)
	if o.json {
		list = &reported{to: jsonTo(a.out)}
	}
	endings, err := c.speak(ctx, list, func(ctx context.Context, i int, _ host.Runner, _ speaker) error {
		return copyOne(ctx, c, all[1:], to, c.nodes[i].Name, show.Add)
	})
	if err != nil {
		return err
	}
	return a.tally(endings)
}

// copyOne copies what concerns one of the nodes of a crowd. What comes from each of several has a directory of its own.
func copyOne(ctx context.Context, c *crowd, sources []spot, to spot, node string, moved func(int64)) error {
	for _, from := range sources {
		at, in, several := to.in(c, node), from.in(c, node), len(sources) > 1
		if from.many {
			at.path, several = path.Join(at.path, node)+"/", true
		}
		in.moved = moved
		if err := transfer(ctx, in, at, several); err != nil {
			return err
		}
	}
	return nil
}

func manySpots(all []spot) bool { return slices.ContainsFunc(all, func(p spot) bool { return p.many }) }

// crowdOf gives the nodes with each of which something is to be done: those of the only selector or, if there is none, one.
func (a *app) crowdOf(ctx context.Context, s *site.Site, all []spot) (*crowd, error) {
	c := &crowd{}
	for i, p := range all {
		switch {
		case p.nodes == nil:
		case p.many && i > 0 && all[0].many:
			return nil, problem.New(problem.Usage, "from several nodes to several is more than one copy says").Try("name one node, or a directory of this host")
		case p.many || c.nodes == nil:
			if c.nodes != nil && manySpots(all[:i]) && !slices.Equal(c.nodes, p.nodes) {
				return nil, problem.New(problem.Usage, "two selectors mean different nodes").Try("copy from one after the other")
			}
			c.nodes = p.nodes
		}
	}
	if c.nodes == nil {
		return c, nil // which is refused with words for that
	}
	var err error
	c.runners, err = a.Runners(ctx, s)
	return c, err
}

// place is a path somewhere.
type place struct {
	in    host.Runner // nil: this host
	path  string
	moved func(bytes int64) // what of it has gone by; nil: nobody asks
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
	begin := through
	if from.in == nil {
		begin = intoNode
	}
	sent, err := begin(func(w io.Writer) error { return from.send(ctx, w) })
	if err == nil {
		err = sent.end(to.take(ctx, sent, from, several))
	}
	var run *host.RunError
	var said *problem.Problem
	switch {
	case err != nil && called.Err() != nil:
		return problem.New(problem.Interrupted, "interrupted: %s was not copied to %s", from.path, to.path).Because(context.Cause(called))
	case err == nil || errors.As(err, &said):
		return err
	case errors.As(err, &run):
		p := problem.New(problem.Failed, "%s was not copied to %s: %s", from.path, to.path, cmp.Or(strings.TrimSpace(run.Output), fmt.Sprintf("exit status %d", run.Status))).At(run.Place)
		if strings.Contains(run.Output, "No space left on device") {
			return p.Try("make room there; df in the node tells on which file system")
		}
		return p
	}
	return problem.New(problem.Failed, "%s was not copied to %s", from.path, to.path).Because(err)
}

// send packs what is at a place.
func (p place) send(ctx context.Context, to io.Writer) error {
	source := path.Clean(p.path)
	if p.in == nil {
		l, err := pack(ctx, source, to, p.moved)
		if err == nil {
			err = l.left.problem()
		}
		return err
	}
	const script = `[ -e "$1" ] || [ -L "$1" ] || { echo "there is no such file" >&2; exit 1; }
cd -- "$(dirname -- "$1")" && exec tar -b 1024 --format=posix --sort=name -cf - -- "$(basename -- "$1")"`
	return p.in.Run(ctx, host.Command{Args: []string{"/bin/sh", "-c", script, "cp", source}, Stdout: to})
}

// take lays down what is sent.
func (p place) take(ctx context.Context, sent *stream, from place, several bool) error {
	name := path.Base(path.Clean(from.path))
	if from.in == nil {
		return p.unpack(ctx, sent.Reader, name, several)
	}
	c := unpack(sent.Reader, name)
	c.moved = from.moved
	if p.in == nil {
		return p.lay(ctx, c, name, several)
	}
	// Nothing comes from one node to another that was not looked at.
	seen, err := intoNode(func(w io.Writer) error { return c.pass(ctx, w) })
	if err == nil {
		err = seen.end(p.unpack(ctx, seen.Reader, name, several))
	}
	if err != nil {
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
tar -b 1024 -xpf - --no-same-owner -C "$t"
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
		return problem.New(problem.Failed, "%s is not there to be copied into", path.Dir(path.Clean(p.path))).At("this host").Because(problem.Reason(err))
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
