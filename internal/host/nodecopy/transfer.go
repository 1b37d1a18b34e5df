// Package nodecopy copies files to, from and between nodes without trusting what nodes send.
package nodecopy

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

	"orrery/internal/host"
	"orrery/internal/host/staging"
	"orrery/internal/problem"
	"orrery/internal/text/sanitize"
	"orrery/internal/tree"
)

// An Endpoint is a path on this host or in a node.
type Endpoint struct {
	In    host.Runner // or nil for this host
	Path  string
	Moved func(bytes int64) // is called with the bytes copied so far, or nil
}

// Copy copies one file or directory from one Endpoint to another, under the name that cp(1) would
// use. Data to and from nodes passes through a pipe as a tar archive. Nodes pack and unpack it by
// their own tar, and this host by its own code. If this host can open a single file of a node, it
// copies the file itself, because tar and the pipe would copy it twice more.
func Copy(ctx context.Context, from, to Endpoint, several bool) error {
	if from.In == nil && to.In == nil {
		return problem.New(problem.Usage, "neither %s nor %s is in a node", from.Path, to.Path).
			Try("NODE:PATH names a path in a node; cp(1) copies on this host")
	}
	return WithErrors(ctx, from, to, func(ctx context.Context) error { return from.copyTo(ctx, to, several) })
}

// WithErrors calls copies, which copies from one Endpoint to another, and returns errors like those of
// Copy.
func WithErrors(ctx context.Context, from, to Endpoint, copies func(context.Context) error) error {
	if path.Clean(from.Path) == "/" {
		return problem.New(problem.Usage, "/ cannot be copied as a whole").Try("name a directory below it")
	}
	called := ctx
	ctx, stop := context.WithCancel(ctx)
	defer stop() // stops a sender whose data is no longer read
	err := copies(ctx)
	var run *host.RunError
	var said *problem.Problem
	switch {
	case err != nil && called.Err() != nil:
		return problem.New(problem.Interrupted, "interrupted: %s was not copied to %s", from.Path, to.Path).
			Because(context.Cause(called)).
			Try("run the same command again")
	case err == nil || errors.As(err, &said):
		return err
	case errors.As(err, &run):
		p := problem.New(problem.Failed, "%s was not copied to %s: %s", from.Path, to.Path,
			cmp.Or(strings.TrimSpace(run.Output), fmt.Sprintf("exit status %d", run.Status))).At(run.Place)
		if strings.Contains(run.Output, "No space left on device") {
			return p.Try("make room in the node; df there shows which file system is full")
		}
		if run.Output == "" {
			return p.Try("see with orrery status whether the node still runs, then run the same command again")
		}
		return p.Try("fix this in the node, or correct the path, and run the same command again")
	}
	return problem.New(problem.Failed, "%s was not copied to %s", from.Path, to.Path).Because(err).
		Try("fix the cause and run the same command again")
}

func (p Endpoint) copyTo(ctx context.Context, to Endpoint, several bool) error {
	if to.In == nil {
		if f := p.open(ctx); f != nil {
			defer f.Close()
			return to.extractHere(p.name(), several, func(in string) error { return f.copyTo(ctx, in, p.name(), p.Moved) })
		}
	}
	begin := newStream
	if p.In == nil {
		begin = newNodeStream
	}
	sent, err := begin(func(w io.Writer) error { return p.send(ctx, w) })
	if err != nil {
		return err
	}
	return sent.end(to.receive(ctx, sent, p, several))
}

// Pack sends the files at a path in a node, for Extract on another host.
func (p Endpoint) Pack(ctx context.Context, to io.Writer) error { return p.send(ctx, to) }

// Extract writes what was packed at a path in a node of another host into this node. It does not trust
// the data.
func (p Endpoint) Extract(ctx context.Context, sent io.Reader, from Endpoint, several bool) error {
	c := openArchive(sent, from.name())
	c.moved = from.Moved
	return cmp.Or(p.relay(ctx, c, from.name(), several), c.left.problem())
}

// name returns the name of the copy.
func (p Endpoint) name() string { return path.Base(path.Clean(p.Path)) }

// send packs the files at a place.
func (p Endpoint) send(ctx context.Context, to io.Writer) error {
	source := path.Clean(p.Path)
	if p.In == nil {
		l, err := pack(ctx, source, to, p.Moved)
		if err == nil {
			err = l.left.problem()
		}
		return err
	}
	const script = `[ -e "$1" ] || [ -L "$1" ] || { echo "the file does not exist" >&2; exit 1; }
cd -- "$(dirname -- "$1")" && exec tar -b 1024 --format=posix --sort=name -cf - -- "$(basename -- "$1")"`
	return p.In.Run(ctx, host.Command{Args: []string{"/bin/sh", "-c", script, "cp", source}, Stdout: to})
}

// receive writes what is sent to the place.
func (p Endpoint) receive(ctx context.Context, sent *stream, from Endpoint, several bool) error {
	name := from.name()
	if from.In == nil {
		return p.extractInNode(ctx, sent.Reader, name, several)
	}
	c := openArchive(sent.Reader, name)
	c.moved = from.Moved
	var err error
	if p.In == nil {
		err = p.extractHere(name, several, func(in string) error { return c.extract(ctx, in) })
	} else {
		err = p.relay(ctx, c, name, several)
	}
	return cmp.Or(err, c.left.problem())
}

// relay writes what another node sends into this node. All data is checked on the way.
func (p Endpoint) relay(ctx context.Context, c *archive, name string, several bool) error {
	seen, err := newNodeStream(func(w io.Writer) error { return c.forward(ctx, w) })
	if err != nil {
		return err
	}
	return seen.end(p.extractInNode(ctx, seen.Reader, name, several))
}

// extractInNode lets a node write what it receives: first beside the target, and then in place if it is
// complete. If the copy is interrupted by Ctrl-C, or because this program is killed, the input of
// the node's shell ends. The shell then removes what it has written. So this program does not kill
// the shell, unless it takes too long. If the node ended before the shell could clean up, the next
// copy into that directory does so.
func (p Endpoint) extractInNode(ctx context.Context, sent io.Reader, name string, several bool) error {
	const script = `set -e
d=$1 new=$3
if [ "$2" = dir ] || [ -d "$d" ] || [ "${d%/}" != "$d" ]; then mkdir -p -- "$d"; into=$d; else
if [ -L "$d" ]; then d=$(readlink -e -- "$d") || { echo "it is a link to what does not exist" >&2; exit 1; }; fi
into=$(dirname -- "$d"); new=$(basename -- "$d"); fi
if [ -e "$into/$new" ] && [ ! -L "$into/$new" ] && [ ! -f "$into/$new" ] && [ ! -d "$into/$new" ]; then echo "it is not a regular file, and is not replaced" >&2; exit 1; fi
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
		time.AfterFunc(cleanupTimeout, func() { cancel(context.Cause(ctx)) })
	})()
	return p.In.Run(late, host.Command{Args: []string{"/bin/sh", "-c", script, "cp", p.Path, form, name, sealName},
		Stdin: sent})
}

// cleanupTimeout limits how long a node may take to clean up after an interrupted copy.
const cleanupTimeout = 10 * time.Second

// sealName is the last name in an archive for a node. Without it, tar would accept an archive that
// ends after any of its files as complete.
const sealName = ".orrery-whole"

// writeSeal ends an archive for a node.
func writeSeal(to *tar.Writer) error {
	if err := to.WriteHeader(&tar.Header{Name: sealName, Typeflag: tar.TypeReg, Mode: 0o600,
		Format: tar.FormatPAX}); err != nil {
		return err
	}
	return to.Close()
}

// extractHere writes a copy from a node to this host: first beside the target, and then in place when it is
// complete. The path that the operator named is trusted, and followed if it is a link. Links below
// it, whoever created them, are replaced and not followed.
func (p Endpoint) extractHere(name string, several bool, fill func(in string) error) error {
	into, as, err := p.target(name, several)
	if err != nil {
		return err
	}
	into, err = filepath.EvalSymlinks(into)
	if err != nil {
		return problem.New(problem.Failed, "nothing can be copied into %s", path.Dir(path.Clean(p.Path))).
			At("this host").Because(problem.PathErrorCause(err))
	}
	if err := replaceable(path.Join(into, as)); err != nil {
		return err
	}
	beside, err := staging.Create(into)
	if err != nil {
		return err
	}
	defer beside.Remove() // empty after success; after a failure, the caller reports that failure
	cargo := path.Join(beside.Path, "cargo")
	if err := fill(cargo); err != nil {
		return err
	}
	return tree.Merge(path.Join(cargo, name), path.Join(into, as))
}

// target returns the directory of this host that the copy goes into, and the copy's name. It
// creates the directory if several files or a trailing slash ask for one.
func (p Endpoint) target(name string, several bool) (into, as string, err error) {
	whole := path.Clean(p.Path)
	info, err := os.Stat(p.Path)
	if several || strings.HasSuffix(p.Path, "/") || err == nil && info.IsDir() {
		return whole, name, os.MkdirAll(whole, 0o755)
	}
	if link, err := os.Readlink(whole); err == nil {
		if whole, err = filepath.EvalSymlinks(whole); err != nil {
			return "", "", problem.New(problem.Failed, "it is a link to %s, which does not exist", sanitize.Line(link)).
				At(p.Path).Try("remove the link, or create its target")
		}
	}
	return path.Dir(whole), path.Base(whole), nil
}

// replaceable returns an error if a copy would replace a device or another special file.
func replaceable(at string) error {
	info, err := os.Lstat(at)
	if err != nil || info.Mode().IsRegular() || info.IsDir() || info.Mode()&os.ModeSymlink != 0 {
		return nil // any other error occurs again later
	}
	return problem.New(problem.Failed, "it is not a regular file, and is not replaced").At(at).
		Try("name another path; orrery exec NODE -- cat FILE prints a file")
}
