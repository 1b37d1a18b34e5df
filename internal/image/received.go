package image

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"orrery/internal/host"
	"orrery/internal/image/imported"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// received is where files are from which images are made that come from whoever steers. They stay until the layer is built.
func (s *Store) received() string { return filepath.Join(s.Dir, ".imports") }

// Receive keeps a file with this digest from which a layer is to be built. Only what has come as it should be is there.
func (s *Store) Receive(ctx context.Context, digest string, from io.Reader) error {
	if len(digest) != 64 || !IsDigest(digest) {
		return problem.New(problem.Failed, "%q is not the digest of a file", digest)
	}
	if err := s.private(); err != nil {
		return err
	}
	if err := os.MkdirAll(s.received(), 0o700); err != nil {
		return err
	}
	held, err := host.WaitLock(ctx, s.lockOf(digest), host.Alone, "the lock of the imported file "+digest)
	if err != nil {
		return err
	}
	defer held.Release()
	coming := filepath.Join(s.received(), digest+half)
	if err := s.receive(ctx, coming, digest, from); err != nil {
		_ = os.Remove(coming) // else GC does
		return err
	}
	return os.Rename(coming, filepath.Join(s.received(), digest))
}

func (s *Store) receive(ctx context.Context, coming, digest string, from io.Reader) error {
	to, err := os.OpenFile(coming, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer to.Close() //nolint:errcheck // closed below, unless something else is wrong
	came, err := imported.Write(ctx, to, from, s.spare())
	if errors.Is(err, imported.ErrLarge) {
		free, _ := s.free(s.Dir)
		return s.full(uint64(s.spare())+baseRoom/2, free).Because(err)
	}
	if err != nil {
		return s.explain(problem.New(problem.Failed, "a file to import has not come").At(s.Dir).Because(err).Try("run the same command again"), baseRoom)
	}
	if came != digest {
		return problem.New(problem.Surprise, "a file to import has come as something else: it changed while it was sent").Try("run the same command again once nobody writes to it")
	}
	return to.Close()
}

// origin gives the file from which a layer is built. Taken is called once it is in the tree.
func (s *Store) origin(ctx context.Context, l *spec.Layer) (file string, taken func(error) error, err error) {
	own, digest := l.Image.File(), l.Image.Content()
	switch {
	case digest == "":
		return own, func(err error) error { return err }, nil
	case filepath.IsAbs(own):
		return own, func(err error) error {
			if err != nil {
				return err
			}
			is, err := imported.Machine().Digest(ctx, own)
			if err == nil && is != digest {
				err = imported.Changed(own)
			}
			return err
		}, nil
	}
	held, err := host.WaitLock(ctx, s.lockOf(digest), host.Alone, "the lock of the imported file "+digest) // GC leaves it alone meanwhile
	if err != nil {
		return "", nil, err
	}
	file = filepath.Join(s.received(), digest)
	if _, err := os.Lstat(file); err != nil {
		held.Release()
		return "", nil, problem.New(problem.Failed, "import %s: the file has not come to this host", own).Because(problem.Reason(err)).Try("run the same command again")
	}
	return file, func(err error) error {
		defer held.Release()
		gone := s.dropReceived(file, digest) // also if the build has failed: the file is sent again
		return errors.Join(err, gone)
	}, nil
}

// dropReceived removes a file whose lock this process holds.
func (s *Store) dropReceived(file, digest string) error {
	if err := os.Remove(file); err != nil {
		return err
	}
	return s.forget(digest)
}
