// Package imported identifies image files by their content.
//
// So every machine with a copy of a file builds the same image. The digest of an archive or a disk
// is that of the file. For a directory in the OCI layout it is that of the archive which Open
// creates from it, which is always the same. A DigestCache stores digests, so that a file is only read
// again after it has changed. Send and Receive copy files to the hosts that build images from them.
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

// Open opens the source of an image: the file itself, or an archive of the directory.
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

// ociFile matches the files of a directory in the OCI layout. All other files are ignored.
var ociFile = pattern.New(`^(oci-layout|index\.json|blobs/sha(256|512)/[0-9a-f]+)$`)

// ociFiles returns the files of a directory in the OCI layout, sorted.
func ociFiles(ctx context.Context, root *tree.Root) (names []string, err error) {
	err = root.Walk(ctx, tree.DefaultBounds, func(e *tree.Entry) error {
		if e.Stat.Mode&unix.S_IFMT == unix.S_IFREG && ociFile().MatchString(e.Path) {
			names = append(names, e.Path)
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

// pack writes a directory in the OCI layout as an archive that contains only what belongs to the
// image.
func pack(ctx context.Context, dir string, to io.Writer) error {
	root, err := tree.Open(dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it was only read
	names, err := ociFiles(ctx, root)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(to)
	for _, name := range names {
		if err := tree.PackFile(archive, root, name); err != nil {
			// this includes a file that has grown, which then has another digest
			return err
		}
	}
	return archive.Close()
}

// DigestCache is a directory with a cache of digests, or "" for no cache.
type DigestCache string

// UserCache returns the DigestCache of the current user.
func UserCache() DigestCache {
	dir, err := host.CacheDir()
	if err != nil {
		return ""
	}
	return DigestCache(filepath.Join(dir, "imports"))
}

// settleTime is how long ago a file must have changed for its digest to be cached. Changes in quick
// succession can have the same timestamp.
var settleTime = 2 * time.Second // variable, so that tests can change it

// Digest returns the digest of a file, or of a directory in the OCI layout.
func (m DigestCache) Digest(ctx context.Context, path string) (string, error) {
	before, last, err := state(ctx, path)
	if err != nil {
		return "", err
	}
	at := filepath.Join(string(m), DigestOf([]byte(path))+".json")
	if m != "" {
		if digest := host.LoadDigest(at, before); digest != "" {
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
		return "", Changed(path) // this may be why it could not be read
	case failed != nil:
		return "", failed
	}
	if m != "" && time.Since(last) >= settleTime {
		host.StoreDigest(at, before, digest)
	}
	return digest, nil
}

// digestOf reads what Open returns, without the holes of a file.
func digestOf(ctx context.Context, path string) (string, error) {
	in, err := Open(ctx, path)
	if err != nil {
		return "", err
	}
	defer in.Close() //nolint:errcheck // it was only read
	if file, ok := in.(*os.File); ok {
		return sums.Digest(ctx, file, nil)
	}
	sum := sha256.New()
	_, err = io.Copy(sum, contextReader(ctx, in))
	return hex.EncodeToString(sum.Sum(nil)), err
}

// Changed returns the problem that a file changed while it was read.
func Changed(path string) *problem.Problem {
	return problem.New(problem.Surprise, "import %s: it changed while it was read", path).
		Try("run the same command again when no program writes to it")
}

// DigestOf returns the digest of b.
func DigestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// state returns a text that changes when a file, or a file in a directory, is written to. Last is
// the time of the last change.
func state(ctx context.Context, path string) (text string, last time.Time, err error) {
	var b strings.Builder
	note := func(name string, st *unix.Stat_t) {
		fmt.Fprintf(&b, "%s %s\n", name, host.FileVersion(st))
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
	names, err := ociFiles(ctx, root)
	for _, name := range names {
		info, wrong := root.Stat(name)
		if wrong != nil {
			return "", last, wrong
		}
		note(name, info)
	}
	return DigestOf([]byte(b.String())), last, err
}

// contextReader returns a reader whose reads fail when ctx has ended.
func contextReader(ctx context.Context, from io.Reader) io.Reader { return &boundedReader{ctx, from} }

type boundedReader struct {
	ctx  context.Context
	from io.Reader
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	return b.from.Read(p)
}
