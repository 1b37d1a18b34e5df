package secret

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// Store has what a host keeps of a site's secrets. Each is in a file of its own, which only root can
// read.
type Store struct{ Dir string }

// Read returns what is stored of a secret, or fs.ErrNotExist.
func (k Store) Read(name string) (Stored, error) {
	path, err := k.path(name)
	if err != nil {
		return Stored{}, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Stored{}, err
	}
	stored, err := parseStored(string(text))
	if err != nil {
		return stored, problem.New(problem.Failed, "what is stored of secret %s cannot be read", name).At(path).Because(err)
	}
	return stored, nil
}

// Put stores a secret. It returns a problem if the secret is already stored with a different value.
func (k Store) Put(name string, s Stored) error {
	switch stored, err := k.Read(name); {
	case err == nil && stored == s:
		return nil
	case err == nil:
		return problem.New(problem.Surprise, "generated secret %s already exists with another value", name).
			At(filepath.Join(k.Dir, name)).
			Try("decide which value is right, and remove the file with the other one")
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return k.Replace(name, s)
}

// Replace stores a secret in place of what is stored. The value and its generation change at the same
// moment, so a process that is killed leaves either both old or both new.
func (k Store) Replace(name string, s Stored) error {
	path, err := k.path(name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(k.Dir, 0o700); err != nil {
		return err
	}
	return host.WriteFile(host.File{Path: path, Content: []byte(s.text()), Mode: 0o600})
}

// Remove removes what is stored of a secret, if anything.
func (k Store) Remove(name string) error {
	path, err := k.path(name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Generations returns the generation of each stored secret.
func (k Store) Generations() (map[string]int, error) {
	entries, err := os.ReadDir(k.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all map[string]int
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || !e.Type().IsRegular() { // such as a file that is being written
			continue
		}
		stored, err := k.Read(e.Name())
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = map[string]int{}
		}
		all[e.Name()] = stored.Generation
	}
	return all, nil
}

func (k Store) path(name string) (string, error) {
	if name == "" || strings.HasPrefix(name, ".") || strings.ContainsAny(name, "/\x00") {
		return "", problem.New(problem.Mistake, "%q is not a valid secret name", name)
	}
	return filepath.Join(k.Dir, name), nil
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// Random returns n random characters with equal probability.
func Random(n int) string {
	const fair = 256 - 256%len(alphabet)
	var b strings.Builder
	var octet [1]byte
	for b.Len() < n {
		_, _ = rand.Read(octet[:]) // it never fails
		if int(octet[0]) < fair {
			b.WriteByte(alphabet[int(octet[0])%len(alphabet)])
		}
	}
	return b.String()
}
