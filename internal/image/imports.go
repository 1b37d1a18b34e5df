package image

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"orrery/internal/image/imported"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/treesync"
)

// imports are files for building images that the control host has sent. They are kept until the
// layer is built.
type imports struct {
	dir   string
	locks locks
	disk  *disk
}

// Receive stores a file with this digest from which a layer will be built (package imported). It
// does not store a file with another digest.
func (s *Store) Receive(ctx context.Context, digest string, rw io.ReadWriter) error {
	if len(digest) != 64 || !IsDigest(digest) {
		return problem.New(problem.Failed, "%q is not the digest of a file", digest)
	}
	if err := s.createPrivate(); err != nil {
		return err
	}
	return s.imports.receive(ctx, digest, rw)
}

func (i imports) receive(ctx context.Context, digest string, rw io.ReadWriter) error {
	if err := os.MkdirAll(i.dir, 0o700); err != nil {
		return err
	}
	held, err := i.locks.imported(ctx, digest)
	if err != nil {
		return err
	}
	defer held.Release()
	to := treesync.Receiver{Dir: i.file(digest) + partialSuffix,
		Free: func() (int64, error) { return i.disk.importSpace(), nil }}
	path, came, err := imported.Receive(ctx, to, digest, rw)
	switch {
	case problem.Is(err, problem.Unable):
		err = i.disk.fullProblem(uint64(i.disk.importSpace()) + minBaseSpace/2).Because(err)
		return errors.Join(err, to.Remove())
	case err != nil: // what has been received stays for the next call, or GC removes it
		return i.disk.explain(problem.New(problem.Failed,
			"a file to import was not received").At(i.disk.dir).Because(err).Try("run the same command again"), minBaseSpace)
	case came != digest:
		changed := problem.New(problem.Surprise,
			"a file to import changed while it was sent").
			Try("run the same command again when no program writes to it")
		return errors.Join(changed, to.Remove())
	}
	if err := os.Rename(path, i.file(digest)); err != nil {
		return err
	}
	return to.Remove()
}

func (i imports) file(digest string) string { return filepath.Join(i.dir, digest) }

// origin returns the file from which a layer is built. The caller must call taken with the
// result of copying the file to the tree.
func (i imports) origin(ctx context.Context, l *spec.Layer) (file string, taken func(error) error, err error) {
	own, digest := l.Image.SourceFile(), l.Image.ContentDigest()
	switch {
	case digest == "":
		return own, func(err error) error { return err }, nil
	case filepath.IsAbs(own):
		return own, func(err error) error {
			if err != nil {
				return err
			}
			current, err := imported.UserCache().Digest(ctx, own)
			if err == nil && current != digest {
				err = imported.Changed(own)
			}
			return err
		}, nil
	}
	held, err := i.locks.imported(ctx, digest) // keep GC from removing the file
	if err != nil {
		return "", nil, err
	}
	file = i.file(digest)
	if _, err := os.Lstat(file); err != nil {
		held.Release()
		return "", nil, problem.New(problem.Failed, "import %s: this host has not received the file", own).
			Because(problem.PathErrorCause(err)).Try("run the same command again")
	}
	return file, func(err error) error {
		defer held.Release()
		gone := i.drop(file, digest) // even if the build has failed: the file will be sent again
		return errors.Join(err, gone)
	}, nil
}

// drop removes a file whose lock this process holds.
func (i imports) drop(file, digest string) error {
	if err := removeTree(file); err != nil { // it is a directory if it was not received completely
		return err
	}
	return i.locks.forget(digest)
}
