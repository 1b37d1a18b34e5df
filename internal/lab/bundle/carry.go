package bundle

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/tree"
)

// packedFiles lists the files of a bundle that are sent between hosts, in the order of a tree, with
// their maximum sizes. The receiving host creates the report. It has the experiment already, and
// does not need the site that was created for it.
var packedFiles = []struct {
	name string
	most int64
}{
	{ManifestFile, maxManifestBytes},
	{FactsFile, maxFactsBytes},
	{SecondsFile, maxSeconds.bytes},
	{TrialsFile, maxTrials.bytes},
}

// Pack writes what another host needs of a bundle. No run may be writing the bundle.
func Pack(dir string, to io.Writer) error {
	root, err := openDir(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	out := tar.NewWriter(to)
	for _, c := range packedFiles {
		if err := tree.PackFile(out, root, c.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return out.Close()
}

// Unpack creates a directory with the files that Pack wrote. They come from another host, which may
// send anything. Unpack creates only the known files, each once and at most as large as those of a
// run. Read checks their contents. Unpack returns io.EOF if nothing was sent at all.
func Unpack(from io.Reader, dir string) error {
	in := tar.NewReader(from)
	h, err := in.Next()
	if err != nil {
		return err
	}
	b, err := tree.NewBuilder(dir, func(string) {})
	if err != nil {
		return err
	}
	defer b.Abandon()
	if err := b.Add(&tree.Header{Path: ".", Mode: unix.S_IFDIR | 0o755, Uid: os.Geteuid(), Gid: os.Getegid(),
		Modified: time.Now()}, nil); err != nil {
		return err
	}
	for ; err == nil; h, err = in.Next() {
		if err := extractFile(b, h, in); err != nil {
			return err
		}
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	return b.Close()
}

// extractFile creates one of the files.
func extractFile(b *tree.Builder, h *tar.Header, in io.Reader) error {
	for _, c := range packedFiles {
		if h.Name != c.name || h.Typeflag != tar.TypeReg {
			continue
		}
		if h.Size > c.most {
			return fmt.Errorf("%s is %w", c.name, tree.ErrTooLarge)
		}
		return b.Add(&tree.Header{Path: c.name, Mode: unix.S_IFREG | 0o644, Uid: os.Geteuid(), Gid: os.Getegid(),
			Modified: time.Now()}, func(f *os.File) error {
			_, err := io.CopyN(f, in, h.Size)
			return err
		})
	}
	return fmt.Errorf("%q is not a file of a bundle", h.Name)
}
