package image

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/image/sums"
	"orrery/internal/tree"
	"orrery/internal/treesync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// A manifest has one line for each path of a tree, sorted by path. A line has the quoted path and
// everything that counts as content: type and mode, owner, extended attributes, and the digest of a
// file. Times are not content: they depend on when the tree was built.
type manifest []string

// maxReaders is how many files are read at once.
const maxReaders = 2

// digestFunc returns the digest of a file.
type digestFunc func(ctx context.Context, f *os.File) (string, error)

// digestQuietly returns the digest of a file (sums.Digest) without reporting progress.
func digestQuietly(ctx context.Context, f *os.File) (string, error) { return sums.Digest(ctx, f, nil) }

// scan returns the manifest of a tree and the bytes it occupies on disk.
func scan(ctx context.Context, dir string, sum digestFunc) (manifest, int64, error) {
	root, err := tree.Open(dir)
	if err != nil {
		return nil, 0, err
	}
	defer root.Close()
	var bytes int64
	var all []*line
	var reading errgroup.Group
	reading.SetLimit(maxReaders)
	linked := map[uint64]bool{}
	err = root.Walk(ctx, tree.DefaultBounds, func(e *tree.Entry) error {
		if e.Stat.Nlink == 1 || e.IsDir() || !linked[e.Stat.Ino] {
			bytes += e.Stat.Blocks * 512
			linked[e.Stat.Ino] = true
		}
		description, err := describe(e)
		if err != nil {
			return &os.PathError{Op: "read", Path: filepath.Join(dir, e.Path), Err: err}
		}
		l := &line{fmt.Sprintf("%q %s", path.Join("/", e.Path), description)}
		all = append(all, l)
		if e.Stat.Mode&unix.S_IFMT != unix.S_IFREG {
			return nil
		}
		fd, _, err := tree.OpenEntry(e.Dir, e.Name)
		if err != nil {
			return &os.PathError{Op: "open", Path: filepath.Join(dir, e.Path), Err: err}
		}
		file := os.NewFile(uintptr(fd), filepath.Join(dir, e.Path))
		reading.Go(func() error { return l.digest(ctx, file, sum) })
		return nil
	})
	if failed := reading.Wait(); err == nil {
		err = failed
	}
	if err != nil {
		return nil, 0, err
	}
	lines := make(manifest, len(all))
	for i, l := range all {
		lines[i] = l.text
	}
	slices.Sort(lines)
	return lines, bytes, nil
}

// A line is a line of a manifest that is being created.
type line struct{ text string }

// digest appends the digest of a file to its line.
func (l *line) digest(ctx context.Context, f *os.File, sum digestFunc) error {
	defer f.Close()
	digest, err := sum(ctx, f)
	l.text += " " + digest
	return err
}

// describe returns the line of a path without the path and without the digest of a file.
func describe(e *tree.Entry) (string, error) {
	line := fmt.Sprintf("%06o %d:%d", e.Stat.Mode, e.Stat.Uid, e.Stat.Gid)
	switch e.Stat.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		target, err := tree.ReadLink(e.Dir, e.Name)
		if err != nil {
			return "", err
		}
		line += fmt.Sprintf(" -> %q", target)
	case unix.S_IFCHR, unix.S_IFBLK:
		line += fmt.Sprintf(" dev %d:%d", unix.Major(e.Stat.Rdev), unix.Minor(e.Stat.Rdev))
	}
	attributes, err := tree.Attributes(e.Dir, e.Name)
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if treesync.PersistentAttrs.Includes(name) {
			line += fmt.Sprintf(" %s=%x", name, attributes[name])
		}
	}
	return line, err
}

// digest returns the digest of the content.
func (m manifest) digest() string {
	sum := sha256.New()
	for _, line := range m {
		io.WriteString(sum, line+"\n") //nolint:errcheck // a hash takes all
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func (m manifest) write(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	z := gzip.NewWriter(f)
	for _, line := range m {
		if _, err := io.WriteString(z, line+"\n"); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	return f.Close()
}

func readManifest(path string) (manifest, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), nil
}

// byPath returns the lines by their paths.
func (m manifest) byPath() map[string]string {
	lines := make(map[string]string, len(m))
	for _, line := range m {
		quoted, err := strconv.QuotedPrefix(line)
		if err != nil {
			continue // not a valid line; the digest of the manifest shows that
		}
		path, _ := strconv.Unquote(quoted) //nolint:errcheck // it is quoted
		lines[path] = line
	}
	return lines
}
