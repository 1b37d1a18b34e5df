package fake

import (
	"archive/tar"
	"io"
	"strings"

	"orrery/internal/host"
)

// keep prints a tar archive of the files that exist, as the worker requests before it overwrites
// them.
func (s shell) keep(files []string) (int, error) {
	e := s.place.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	n, err := s.place.running()
	if err != nil {
		return -1, err
	}
	to := tar.NewWriter(s.stdout)
	some := false
	for _, name := range files {
		f, ok := e.get(n, name)
		if !ok {
			continue
		}
		some = true
		h := &tar.Header{Name: "." + name, Mode: int64(f.Mode), Uname: f.Owner, Size: int64(len(f.Content)), Linkname: f.Link}
		if f.Link != "" {
			h.Typeflag = tar.TypeSymlink
		}
		if err := to.WriteHeader(h); err != nil {
			return 1, err
		}
		if _, err := to.Write(f.Content); err != nil {
			return 1, err
		}
	}
	if !some {
		return 0, nil
	}
	return 0, to.Close()
}

// unpack restores the files of an archive.
func (s shell) unpack() (int, error) {
	from := tar.NewReader(s.command.Stdin)
	for {
		h, err := from.Next()
		if err == io.EOF { //nolint:errorlint // it is never wrapped
			return 0, nil
		}
		if err != nil {
			return 1, err
		}
		text, err := io.ReadAll(from)
		if err != nil {
			return 1, err
		}
		err = s.change(func(files tree, name string) {
			files[name] = host.File{Path: strings.TrimPrefix(h.Name, "."), Content: text, Owner: h.Uname, Mode: uint32(h.Mode),
				Link: h.Linkname}
		}, strings.TrimPrefix(h.Name, "."))
		if err != nil {
			return 1, err
		}
	}
}

// change calls do for each of the node's files.
func (s shell) change(do func(files tree, name string), paths ...string) error {
	e := s.place.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	n, err := s.place.running()
	if err != nil {
		return err
	}
	for _, path := range paths {
		files, name := e.volumes.at(n, path)
		do(files, name)
	}
	return nil
}
