// Package archive unpacks a foreign image into a tree.
//
// The image is a root file system tarball, an OCI archive or layout, or the output of `docker
// save`. Unpack detects the format from the beginning of a file, then writes one tree. It extracts
// a tarball entry by entry (extract.go), and an image layer by layer with their whiteouts (oci.go).
// The archive is not trusted. No entry can leave the tree, and no device is created. The disk
// space, the number of paths and the names that an archive may use are limited before it is read
// (bounds.go).
package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/text/pattern"
	"orrery/internal/tree"
)

// Unpack unpacks a file to a tree: a root file system tarball, an OCI archive or layout directory,
// or the output of `docker save`. Scratch is a directory for temporary files, and free is the free
// disk space.
func Unpack(ctx context.Context, file, dir, scratch string, free int64) error {
	info, err := os.Stat(file)
	if err != nil {
		return problem.New(problem.Mistake, "import %s: it cannot be read", file).Because(err).
			Try("correct `import` of the image in site.toml")
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	err = unpackAny(ctx, file, info.IsDir(), dir, scratch, newBounds(free))
	var p *problem.Problem
	if err != nil && !errors.As(err, &p) && ctx.Err() == nil {
		err = problem.New(problem.Failed, "import %s: the archive could not be unpacked", file).Because(err).
			Try("import a root file system as .tar, .tar.gz, .tar.xz or .tar.zst, an OCI archive, or an OCI layout directory")
	}
	return err
}

func unpackAny(ctx context.Context, file string, isDir bool, dir, scratch string, b *bounds) error {
	if isDir {
		real, err := filepath.EvalSymlinks(file)
		if err != nil {
			return err
		}
		return unpackImages(ctx, real, dir, b)
	}
	once := *b // this pass only looks at the archive
	images, err := holdsImages(ctx, file, &once)
	if err != nil {
		return err
	}
	if !images {
		return unpackTar(ctx, file, dir, true, b)
	}
	layout := filepath.Join(scratch, "oci")
	if err := unpackTar(ctx, file, layout, false, b); err != nil {
		return err
	}
	return unpackImages(ctx, layout, dir, b)
}

// imagePart matches the paths of entries in archives of images. A root file system has no such
// paths except ".".
var imagePart = pattern.New(`^(\.|blobs(/sha(256|512)(/[0-9a-f]+)?)?|[0-9a-f]{64}(\.json|\.tar(\.gz)?|/.*)?|sha256:[0-9a-f]+|repositories)$`)

// holdsImages reports, by the paths in it, whether an archive is an OCI layout or the output of
// docker save. Otherwise it is a root file system.
func holdsImages(ctx context.Context, file string, b *bounds) (found bool, err error) {
	err = eachEntry(ctx, file, b, func(h *tar.Header, _ io.Reader) error {
		switch name := path.Clean(h.Name); {
		case name == "oci-layout" || name == "index.json" || name == "manifest.json":
			found = true
			return io.EOF
		case imagePart().MatchString(name):
			return nil
		}
		return io.EOF
	})
	return found, err
}

// eachEntry calls visit for each entry of a tar archive, compressed or not. If visit returns
// io.EOF, it skips the rest.
func eachEntry(ctx context.Context, file string, b *bounds, visit func(h *tar.Header, content io.Reader) error) error {
	f, err := tree.OpenFile(file)
	if err != nil {
		return err
	}
	defer f.Close()
	plain, err := decompress(ctx, f)
	if err != nil {
		return err
	}
	err = entries(b.reader(ctx, plain), b, visit)
	closing := plain.Close()
	if errors.Is(err, io.EOF) {
		return nil // the rest was not read, so this is not an error
	}
	return errors.Join(err, closing)
}

// entries calls visit for each entry. It returns io.EOF only if visit did. The content of a file
// with holes is a *sparse.
func entries(from io.Reader, b *bounds, visit func(h *tar.Header, content io.Reader) error) error {
	headers := &recorder{from: from}
	archive := tar.NewReader(headers)
	for {
		h, err := headers.next(archive)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		holed, err := newSparse(h, headers)
		if err != nil {
			return fmt.Errorf("%s: %w", tree.DisplayPath(h.Name), err)
		}
		if holed == nil {
			if err := b.entry(h.Name, h.Size); err != nil {
				return err
			}
			if err := visit(h, archive); err != nil {
				return err
			}
			// here, so that it is not recorded as a header of the next entry
			if _, err := io.Copy(io.Discard, archive); err != nil {
				return err
			}
			continue
		}
		if err := b.entry(h.Name, holed.blocks()); err != nil {
			return err
		}
		if err := b.hole(h.Size); err != nil {
			return err
		}
		h.Typeflag = tar.TypeReg
		if err := visit(h, holed); err != nil {
			return err
		}
		if err := holed.skip(from); err != nil {
			return err
		}
		archive = tar.NewReader(headers) // the old reader would skip the data, which has been read
	}
}

// decompress detects the compression from the first bytes of a file, not from its name.
func decompress(ctx context.Context, from io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReaderSize(from, 256<<10)
	magic, err := buffered.Peek(6)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return gzip.NewReader(buffered)
	case bytes.HasPrefix(magic, []byte("\xfd7zXZ\x00")):
		return pipeThrough(ctx, buffered, "xz-utils", "xz", "-dc", "--memlimit-decompress=512MiB")
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return pipeThrough(ctx, buffered, "zstd", "zstd", "-dc", "--memory=512MB")
	}
	return io.NopCloser(buffered), nil
}

// pipeThrough decompresses with the format's own program, which is several times faster than Go
// libraries. The archive is not trusted, so the program has no privileges.
func pipeThrough(ctx context.Context, from io.Reader, pkg, program string, args ...string) (io.ReadCloser, error) {
	if _, err := exec.LookPath(program); err != nil {
		return nil, problem.New(problem.Unable, "%s is not installed on this host", program).Try("apt-get install %s", pkg)
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := host.Program(ctx, program, args...)
	cmd.Stdin = from
	said := &host.TailBuffer{}
	cmd.Stderr = said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = host.StartUnprivileged(cmd)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return &piped{Reader: out, cmd: cmd, said: said, cancel: cancel}, nil
}

type piped struct {
	io.Reader
	cmd    *exec.Cmd
	said   *host.TailBuffer
	cancel context.CancelFunc
}

// Close returns an error if the compressed stream was invalid. It cannot detect that in a part that
// was not read.
func (p *piped) Close() error {
	n, _ := io.CopyN(io.Discard, p.Reader, 1<<20) // padding after the end of the archive
	if n == 1<<20 {
		p.cancel()
		p.cmd.Wait() //nolint:errcheck // it was killed
		return nil
	}
	defer p.cancel()
	if err := p.cmd.Wait(); err != nil {
		return errors.New(p.cmd.Args[0] + ": " + strings.TrimSpace(p.said.String()))
	}
	return nil
}

// unpackTar unpacks an archive to a directory. If owned is set, it keeps owners, modes and
// everything else of a root file system.
func unpackTar(ctx context.Context, file, dir string, owned bool, b *bounds) error {
	x, err := newExtractor(dir, owned, b)
	if err != nil {
		return err
	}
	defer x.close()
	if err := eachEntry(ctx, file, b, x.entry); err != nil {
		return err
	}
	return x.finish()
}
