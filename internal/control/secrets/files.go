// Package secrets knows which generations the secrets of a site have, and on which nodes.
package secrets

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"orrery/internal/host"
	"orrery/internal/plan/rotation"
	"orrery/internal/site"
)

// A Mark tells whether the file of a secret has the same content as when the hosts' generation of the
// secret began. It is an HMAC, and useless without its key. Both stay on the control host, which also has
// the file. Hosts and backups get only the number.
type Mark struct {
	Generation int    `json:"generation"`
	Key        []byte `json:"key"`
	Sum        []byte `json:"sum"`
}

func newMark(generation int, content []byte) Mark {
	m := Mark{Generation: generation, Key: make([]byte, sha256.Size)}
	_, _ = rand.Read(m.Key) // it never fails
	m.Sum = m.sumOf(content)
	return m
}

func (m Mark) sumOf(content []byte) []byte {
	h := hmac.New(sha256.New, m.Key)
	h.Write(content)
	return h.Sum(nil)
}

// Files are the files of a site's secrets, compared with what this control host last used.
type Files struct {
	path  string
	marks map[string]Mark
	dirty bool
	// Changed has the names of the secrets whose files have another content than in the hosts'
	// generation.
	Changed map[string]bool
	texts   map[string][]byte
}

// FilesPath returns the path of the marks of a site on this control host.
func FilesPath(dirs host.Dirs, key string) string {
	return filepath.Join(dirs.State, "secret-files", key+".json")
}

// Compare compares the files of a site's secrets. If another control host has rotated a secret, or this
// one has never used it, the file counts as unchanged. A file that cannot be read is reported when it is
// needed.
func Compare(dirs host.Dirs, s *site.Site, current rotation.Generations) (*Files, error) {
	f := &Files{path: FilesPath(dirs, s.Key()), Changed: map[string]bool{}, texts: map[string][]byte{}}
	var err error
	if f.marks, err = host.ReadJSON[map[string]Mark](f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if f.marks == nil {
		f.marks = map[string]Mark{}
	}
	for i := range s.Secrets {
		x := &s.Secrets[i]
		if info, err := os.Stat(x.File); err != nil || !info.Mode().IsRegular() { // a pipe can be read only once
			continue
		}
		text, err := os.ReadFile(x.File)
		if err != nil {
			continue
		}
		f.texts[x.Name] = text
		switch m, ok := f.marks[x.Name]; {
		case !ok || m.Generation != current.Of(x.Name):
			f.marks[x.Name], f.dirty = newMark(current.Of(x.Name), text), true
		case !hmac.Equal(m.Sum, m.sumOf(text)):
			f.Changed[x.Name] = true
		}
	}
	return f, nil
}

// Store records the files that this control host uses for the first time.
func (f *Files) Store() error {
	if !f.dirty {
		return nil
	}
	f.dirty = false
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	return host.WriteJSON(f.path, 0o600, f.marks)
}

// Raise records that the hosts have a new generation of a secret, which has the content of its file.
func (f *Files) Raise(name string, generation int) error {
	text, ok := f.texts[name]
	if !ok {
		return nil
	}
	f.marks[name], f.dirty = newMark(generation, text), true
	return f.Store()
}
