package imported

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"

	"orrery/internal/image/sums"
	"orrery/internal/tree"
	"orrery/internal/treesync"
)

// Names of the trees that carry a file and a directory in the OCI layout.
const (
	fileTree      = "file"
	directoryTree = "directory"
)

// Send sends a file, or a directory in the OCI layout, to Receive on the host that builds the
// image.
func Send(ctx context.Context, path string, rw io.ReadWriter) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	source := treesync.Source{Name: fileTree, Dir: filepath.Dir(path), File: filepath.Base(path)}
	if info.IsDir() {
		source = treesync.Source{Name: directoryTree, Dir: path, Only: ociFile().MatchString}
	}
	_, err = treesync.SendOnce(ctx, rw, source)
	return err
}

// Receive writes what Send sends and returns the path of the file to import and its digest. After
// an interruption, what has been received stays.
func Receive(ctx context.Context, to treesync.Receiver, name string, rw io.ReadWriter) (path, digest string,
	err error) {
	err = to.Receive(rw, treesync.State{Name: name}, func(tree string) bool {
		return tree == fileTree ||
			tree == directoryTree
	})
	if err != nil {
		return "", "", err
	}
	if received, err := to.Read(); err != nil || !received.Whole {
		return "", "", io.ErrUnexpectedEOF
	}
	if tree.Exists(to.Tree(directoryTree)) {
		digest, err = packReceived(ctx, to)
		return filepath.Join(to.Dir, archiveFile), digest, err
	}
	root, err := tree.Open(to.Tree(fileTree))
	if err != nil {
		return "", "", err
	}
	defer root.Close() //nolint:errcheck // it was only read
	names, err := root.Names(".", 1)
	if err != nil || len(names) == 0 {
		return "", "", cmp.Or(err, io.ErrUnexpectedEOF)
	}
	if err := root.SetOwnerMode(names[0], os.Geteuid(), os.Getegid(), 0o600); err != nil {
		return "", "", err
	}
	f, err := root.OpenFile(names[0])
	if err != nil {
		return "", "", err
	}
	defer f.Close() //nolint:errcheck // it was only read
	if st, err := f.Stat(); err != nil || st.Size() > maxFileBytes {
		return "", "", cmp.Or(err, tree.ErrTooLarge)
	}
	digest, err = sums.Digest(ctx, f, nil)
	return filepath.Join(to.Tree(fileTree), names[0]), digest, err
}

// maxFileBytes is the maximum size of a file, including its holes.
const maxFileBytes = 1 << 44

// archiveFile is the name of the archive of a received directory.
const archiveFile = "archive"

// packReceived writes the archive of a received directory and returns its digest.
func packReceived(ctx context.Context, to treesync.Receiver) (string, error) {
	root, err := tree.Open(to.Dir)
	if err != nil {
		return "", err
	}
	defer root.Close() //nolint:errcheck // nothing is written by it
	in, err := Open(ctx, to.Tree(directoryTree))
	if err != nil {
		return "", err
	}
	defer in.Close() //nolint:errcheck // it was only read
	sum := sha256.New()
	file := tree.File{Path: archiveFile, Uid: os.Geteuid(), Gid: os.Getegid(), Mode: 0o600, Fill: func(f *os.File) error {
		_, err := io.Copy(io.MultiWriter(f, sum), contextReader(ctx, in))
		return err
	}}
	err = root.Put(file, file.Uid, file.Gid)
	return hex.EncodeToString(sum.Sum(nil)), err
}
