// Package sitearchive copies the site directory of a release between hosts.
//
// This is the copy from which the release was staged. What another host sends is written to a
// directory that it cannot leave, and its size is limited. The digest covers everything that
// determines the release. A control host compares it with the one in releases.lock (package
// lockfile).
package sitearchive

import (
	"cmp"
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

	"orrery/internal/tree"
	"orrery/internal/treesync"
)

// Names in the directory of a release that belong to an edition.
const (
	Site   = "site"         // the copy of the site directory
	Record = "release.json" // who staged the release, and when
)

// Limits of an edition. No site directory that can be read has more.
const (
	MaxBytes = 160 << 20
	maxFiles = 50_000
)

var bounds = tree.Bounds{Depth: 40, Names: 20_000, All: maxFiles}

// Digest returns the digest of the edition in the directory of a release.
func Digest(dir string) (string, error) {
	sum := newSum()
	err := eachFile(context.Background(), dir, filepath.Join(dir, Site), sum.add)
	return sum.digest(), err
}

// eachFile calls see for each file of an edition, in order. The record and the copy may be in different
// directories.
func eachFile(ctx context.Context, record, copied string, see func(name string, content []byte) error) error {
	left := int64(MaxBytes)
	file := func(root *tree.Root, path, name string) error {
		content, err := root.ReadFile(path, left)
		if err != nil {
			return err
		}
		left -= int64(len(content))
		return see(name, content)
	}
	root, err := tree.Open(record)
	if err == nil {
		defer root.Close()
		err = file(root, Record, Record)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	site, err := tree.Open(copied)
	if err != nil {
		return err
	}
	defer site.Close()
	return site.Walk(ctx, bounds, func(e *tree.Entry) error {
		if e.IsDir() {
			return nil
		}
		return file(site, e.Path, Site+"/"+e.Path)
	})
}

// recordTree is the name of the tree that carries the record.
const recordTree = "record"

// Send sends the edition in a directory to Receive.
func Send(ctx context.Context, dir string, rw io.ReadWriter) error {
	sources := []treesync.Source{{Name: Site, Dir: filepath.Join(dir, Site)}}
	if tree.Exists(filepath.Join(dir, Record)) {
		sources = append(sources, treesync.Source{Name: recordTree, Dir: dir, File: Record})
	}
	_, err := treesync.SendOnce(ctx, rw, sources...)
	return err
}

// Receive stores an edition in an empty directory and returns its digest. Whatever the other host
// sends, the edition has regular files only, which belong to the user of this process. If Receive
// returns an error, the directory may contain a part of the edition.
func Receive(ctx context.Context, rw io.ReadWriter, dir string) (digest string, err error) {
	to := treesync.Receiver{Dir: filepath.Join(dir, ".arrival"), Free: func() (int64, error) { return 2 * MaxBytes, nil }}
	defer func() { err = cmp.Or(err, to.Remove()) }()
	if err := to.Receive(rw, treesync.State{Name: "edition"},
		func(name string) bool { return name == Site || name == recordTree }); err != nil {
		return "", err
	}
	if received, err := to.Read(); err != nil || !received.Whole {
		return "", io.ErrUnexpectedEOF
	}
	root, err := tree.Open(dir)
	if err != nil {
		return "", err
	}
	defer root.Close() //nolint:errcheck // nothing is written by it
	sum := newSum()
	err = eachFile(ctx, to.Tree(recordTree), to.Tree(Site), func(name string, content []byte) error {
		if err := root.Put(tree.File{Path: name, Content: content, Uid: os.Geteuid(), Gid: os.Getegid(), Mode: 0o600},
			os.Geteuid(), os.Getegid()); err != nil {
			return err
		}
		return sum.add(name, content)
	})
	return sum.digest(), err
}

// A sum is the hash of the files of a copy and of the digests of imported images. The record of the
// release has these digests in place of the image files. The rest of the record is not included: it
// has no effect on the release and differs when the same release is staged again.
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

// addRecord adds the images that the record names.
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
