package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// nfs is the source for exports of NFS servers. Each export is mounted once for all nodes of the
// host.
type nfs struct{}

func (nfs) Root(dirs host.Dirs, _ string, m spec.Mount) string {
	return filepath.Join(dirs.Run, "nfs", spec.DigestBytes([]byte(m.Address())))
}

func (s nfs) Mount(dirs host.Dirs, m spec.Mount) error {
	at, export := s.Root(dirs, "", m), m.Address()
	if mounted(at) {
		return nil
	}
	if err := os.MkdirAll(at, 0o700); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := host.Local{Name: "host"}.Run(ctx,
		host.Command{Args: []string{"mount", "-t", "nfs", "-o", "rw,nosuid,nodev", export, at}})
	if err != nil {
		return problem.New(problem.Unable, "the export %s cannot be mounted", export).Because(err).
			Try("apt install nfs-common, and check that the server exports it to this host")
	}
	return nil
}

// mounted reports whether a directory is the root of a mount. Its device then differs from that of
// its parent.
func mounted(at string) bool {
	var here, above unix.Stat_t
	if unix.Stat(at, &here) != nil || unix.Stat(filepath.Dir(at), &above) != nil {
		return false
	}
	return here.Dev != above.Dev
}

func (nfs) Release(dirs host.Dirs) error {
	points, err := filepath.Glob(filepath.Join(dirs.Run, "nfs", "*"))
	for _, at := range points {
		if mounted(at) && unix.Unmount(at, 0) != nil {
			continue
		}
		err = errors.Join(err, os.Remove(at))
	}
	return err
}
