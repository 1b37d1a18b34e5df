package sitefile

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/tree"
)

// Copy reads a site directory and copies everything it has read to directory to, which must not
// exist. The copy contains exactly the files of the site and the imported images in the site
// directory, without links. LoadCopy reads the same site from it.
func Copy(dir, to string) (*site.Site, error) {
	d, s, err := read(dir, dir)
	if err != nil {
		return nil, err
	}
	defer d.close()
	return s, d.copyAll(to)
}

// copyAll writes the files that were read, and copies the imported images.
func (d *directory) copyAll(to string) error {
	if err := d.copyTo(to); err != nil {
		return err
	}
	for _, image := range d.images {
		within, ok := strings.CutPrefix(image.dir.kept, d.kept)
		if !ok {
			continue
		}
		if err := copyImage(image.dir.tree, image.name, filepath.Join(to, within, image.name)); err != nil {
			return problem.New(problem.Failed, "image %s could not be copied", image.name).At(image.dir.path).Because(err)
		}
	}
	return nil
}

// CopyText does the same as Copy without the images. LoadStamped reads the copy.
func CopyText(dir, to string) (*site.Site, error) {
	d, s, err := read(dir, dir)
	if err != nil {
		return nil, err
	}
	defer d.close()
	return s, d.copyTo(to)
}

// CopyBase copies what a site has from the site directories that it extends to directory to, which must
// not exist. In a site directory, it is called KeptBase.
func CopyBase(dir, to string) error {
	d, _, err := read(dir, dir)
	if err != nil {
		return err
	}
	defer d.close()
	if d.base == nil {
		return problem.New(problem.Surprise, "the site file does not extend another one any more").At(dir)
	}
	return d.base.copyAll(to)
}

// Text returns the content of the files that Load reads from a site directory, by relative path,
// and the site. It leaves out imported images.
func Text(dir string) (map[string][]byte, *site.Site, error) {
	d, s, err := read(dir, dir)
	if err != nil {
		return nil, nil, err
	}
	d.close()
	return d.files, s, nil
}

// copyTo writes the files that were read of the directory and of those that it extends.
func (d *directory) copyTo(to string) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for name, content := range d.files {
		name, ok := strings.CutPrefix(name, d.kept)
		if !ok {
			continue
		}
		at := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(at, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// copyImage copies an archive or an OCI layout directory.
func copyImage(from *tree.Root, name, to string) error {
	info, err := from.Stat(name)
	if err != nil {
		return err
	}
	if info.Mode&unix.S_IFMT != unix.S_IFDIR {
		return copyFile(from, name, to)
	}
	layout, err := from.Sub(name)
	if err != nil {
		return err
	}
	defer layout.Close()
	return layout.Walk(context.Background(), tree.DefaultBounds, func(e *tree.Entry) error {
		if e.IsDir() {
			return os.MkdirAll(filepath.Join(to, e.Path), 0o700)
		}
		return copyFile(layout, e.Path, filepath.Join(to, e.Path))
	})
}

// copyFile copies a file. The copy shares its blocks with the original where the file system
// supports that. It is never a hard link, so writes to one file do not change the other.
func copyFile(from *tree.Root, name, to string) error {
	in, err := from.OpenFile(name)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) != nil {
		if _, err = io.Copy(out, io.LimitReader(in, info.Size())); err != nil {
			return errors.Join(err, out.Close())
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	return os.Chtimes(to, time.Time{}, info.ModTime()) // the modification time is part of the image's recipe
}
