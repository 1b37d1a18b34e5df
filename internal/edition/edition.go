// Package edition takes the copy of a site directory from which a release was staged from host to host. What comes from another host is laid down in a directory of its own, which it cannot
// leave, and is bounded. The digest is that of all that decides what the release is: a control host compares it with the one in releases.lock (package lockfile).
package edition

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/tree"
)

// What an edition consists of, in the directory of its release.
const (
	Site   = "site"         // the copy
	Record = "release.json" // who staged it, and when
)

// Bounds of an edition: no site directory that is read has more.
const (
	MaxBytes  = 160 << 20
	mostFiles = 50_000
	longest   = 4000 // bytes of a path
)

var bounds = tree.Bounds{Depth: 40, Names: 20_000, All: mostFiles}

// Digest returns the digest of the copy in the directory of a release.
func Digest(dir string) (string, error) {
	sum := newSum()
	err := each(context.Background(), dir, sum.add)
	return sum.digest(), err
}

// Pack writes the edition in a directory.
func Pack(ctx context.Context, dir string, to io.Writer) error {
	out := tar.NewWriter(to)
	err := each(ctx, dir, func(name string, content []byte) error {
		if err := out.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err := out.Write(content)
		return err
	})
	return errors.Join(err, out.Close())
}

// each is given each file of an edition, in order.
func each(ctx context.Context, dir string, see func(name string, content []byte) error) error {
	root, err := tree.Open(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	left := int64(MaxBytes)
	file := func(name string) error {
		content, err := root.ReadFile(name, left)
		if err != nil {
			return err
		}
		left -= int64(len(content))
		return see(name, content)
	}
	if err := file(Record); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	site, err := root.Sub(Site)
	if err != nil {
		return err
	}
	defer site.Close()
	return site.Walk(ctx, bounds, func(e *tree.Entry) error {
		if e.IsDir() {
			return nil
		}
		return file(filepath.Join(Site, e.Path))
	})
}

// Unpack lays an edition down in a directory that is empty, and gives its digest. Of what is no edition, nothing is promised to be there but that it is within the directory.
func Unpack(from io.Reader, dir string) (digest string, err error) {
	root, err := tree.Open(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	in, sum, left, came := tar.NewReader(io.LimitReader(from, 2*MaxBytes)), newSum(), int64(MaxBytes), map[string]bool{}
	for files := 0; ; files++ {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return sum.digest(), nil
		}
		if err != nil {
			return "", err
		}
		switch {
		case files == mostFiles || h.Size > left:
			return "", fmt.Errorf("it is %w", tree.ErrTooLarge)
		case h.Typeflag != tar.TypeReg || !proper(h.Name) || came[h.Name]:
			return "", fmt.Errorf("%q is not of a site directory", h.Name)
		}
		came[h.Name], left = true, left-h.Size
		content, err := io.ReadAll(io.LimitReader(in, h.Size))
		if err != nil {
			return "", err
		}
		if err := root.Put(tree.File{Path: h.Name, Content: content, Uid: os.Geteuid(), Gid: os.Getegid(), Mode: 0o600}, os.Geteuid(), os.Getegid()); err != nil {
			if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EEXIST) {
				return "", fmt.Errorf("%q is in the place of something else", h.Name)
			}
			return "", err
		}
		if err := sum.add(h.Name, content); err != nil {
			return "", err
		}
	}
}

// proper reports whether a path is one of an edition.
func proper(name string) bool {
	below, is := strings.CutPrefix(name, Site+"/")
	return name == Record || is && len(name) <= longest && filepath.IsLocal(below) && filepath.Clean(below) == below
}

// A sum is made of the files of a copy and of the digests of imported images, which the record of the release has in place of their files. Who staged it, and when, does not count: it
// decides nothing, and differs when the same release is staged again.
type sum struct {
	hash.Hash
	images map[string]string
}

func newSum() *sum { return &sum{Hash: sha256.New()} }

// add adds a file of the edition.
func (s *sum) add(name string, content []byte) error {
	if name == Record {
		return s.addRecord(content)
	}
	fmt.Fprintf(s, "%q %d\n", name, len(content))
	_, _ = s.Write(content)
	return nil
}

// addRecord adds what the record says of images.
func (s *sum) addRecord(content []byte) error {
	var record struct {
		Images map[string]string `json:"images"`
	}
	if err := json.Unmarshal(content, &record); err != nil {
		return fmt.Errorf("%s: %w", Record, err)
	}
	s.images = record.Images
	return nil
}

func (s *sum) digest() string {
	for _, name := range slices.Sorted(maps.Keys(s.images)) {
		fmt.Fprintf(s, "image %q %q\n", name, s.images[name])
	}
	return "sha256:" + hex.EncodeToString(s.Sum(nil))
}
