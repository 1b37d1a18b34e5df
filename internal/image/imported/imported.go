// Package imported identifies imported image files by their content, so that every machine with a
// copy makes the same image.
//
// The digest of an archive or a disk is that of the file. A directory in OCI's layout has that of
// the archive which Open makes of it, always the same one. Memory keeps digests, so that a file is
// read again only once it was written to. Send and Receive take files to the hosts that make an
// image of them.
package imported

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/image/sums"
	"orrery/internal/problem"
	"orrery/internal/text/pattern"
	"orrery/internal/tree"
)

// Open opens what an image is made from: the file itself, or an archive of the directory.
func Open(ctx context.Context, path string) (io.ReadCloser, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return tree.OpenFile(path)
	}
	out, in := io.Pipe()
	go func() { in.CloseWithError(pack(ctx, path, in)) }()
	return out, nil
}

// part matches what a directory in OCI's layout consists of. What else is in it, nobody reads.
var part = pattern.New(`^(oci-layout|index\.json|blobs/sha(256|512)/[0-9a-f]+)$`)

// parts returns the files of a directory in OCI's layout, sorted.
func parts(ctx context.Context, root *tree.Root) (names []string, err error) {
	err = root.Walk(ctx, tree.Ample, func(e *tree.Entry) error {
		if e.Stat.Mode&unix.S_IFMT == unix.S_IFREG && part().MatchString(e.Path) {
			names = append(names, e.Path)
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

// pack writes a directory in OCI's layout as an archive in which nothing is but what the image is made of.
func pack(ctx context.Context, dir string, to io.Writer) error {
	root, err := tree.Open(dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it was only read
	names, err := parts(ctx, root)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(to)
	for _, name := range names {
		if err := tree.PackFile(archive, root, name); err != nil {
			// one that has become longer is another one, which its digest tells
			return err
		}
	}
	return archive.Close()
}

// Memory is a directory that keeps digests of files; "": none are kept.
type Memory string

// Machine returns the memory of whoever runs this program.
func Machine() Memory {
	dir, err := host.Cache()
	if err != nil {
		return ""
	}
	return Memory(filepath.Join(dir, "imports"))
}

// calm is for how long a file must not have changed before its digest is kept: changes that come
// one soon after the other can have one time.
var calm = 2 * time.Second // but in tests

// Digest returns the digest of a file, or of a directory in OCI's layout.
func (m Memory) Digest(ctx context.Context, path string) (string, error) {
	before, last, err := state(ctx, path)
	if err != nil {
		return "", err
	}
	at := filepath.Join(string(m), DigestOf([]byte(path))+".json")
	if m != "" {
		if digest := host.Recall(at, before); digest != "" {
			return digest, nil
		}
	}
	digest, failed := digestOf(ctx, path)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	after, _, err := state(ctx, path)
	switch {
	case err != nil:
		return "", err
	case after != before:
		return "", Changed(path) // which may be why it could not be read
	case failed != nil:
		return "", failed
	}
	if m != "" && time.Since(last) >= calm {
		host.Remember(at, before, digest)
	}
	return digest, nil
}

// digestOf reads what Open gives, but for the holes of a file.
func digestOf(ctx context.Context, path string) (string, error) {
	in, err := Open(ctx, path)
	if err != nil {
		return "", err
	}
	defer in.Close() //nolint:errcheck // it was only read
	if file, ok := in.(*os.File); ok {
		return sums.Of(ctx, file, nil)
	}
	sum := sha256.New()
	_, err = io.Copy(sum, until(ctx, in))
	return hex.EncodeToString(sum.Sum(nil)), err
}

// Changed tells that somebody writes to a file while it is read.
func Changed(path string) *problem.Problem {
	return problem.New(problem.Surprise, "import %s: it changed while it was read", path).
		Try("run the same command again once nobody writes to it")
}

// DigestOf returns the digest of some bytes.
func DigestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// state tells one state of a file, or of what is in a directory, from another: whoever writes to it
// changes it. Last is when somebody has.
func state(ctx context.Context, path string) (text string, last time.Time, err error) {
	var b strings.Builder
	note := func(name string, st *unix.Stat_t) {
		fmt.Fprintf(&b, "%s %s\n", name, host.Stamp(st))
		if at := time.Unix(st.Ctim.Unix()); at.After(last) {
			last = at
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "", last, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		note("", &st)
		return DigestOf([]byte(b.String())), last, nil
	}
	root, err := tree.Open(path)
	if err != nil {
		return "", last, err
	}
	defer root.Close() //nolint:errcheck // it was only read
	names, err := parts(ctx, root)
	for _, name := range names {
		info, wrong := root.Stat(name)
		if wrong != nil {
			return "", last, wrong
		}
		note(name, info)
	}
	return DigestOf([]byte(b.String())), last, err
}

// until reads until a context ends.
func until(ctx context.Context, from io.Reader) io.Reader { return &bounded{ctx, from} }

type bounded struct {
	ctx  context.Context
	from io.Reader
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	return b.from.Read(p)
}
