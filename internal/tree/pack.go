package tree

import (
	"archive/tar"
	"io"
	"time"
)

// PackFile writes a file of a tree to an archive, at the size the file has now. The same content
// always produces the same bytes.
func PackFile(to *tar.Writer, r *Root, name string) error {
	f, err := r.OpenFile(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: 0o644, ModTime: time.Unix(0, 0),
		Format: tar.FormatPAX}
	if err := to.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.CopyN(to, f, info.Size())
	return err
}
