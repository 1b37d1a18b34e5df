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

// Store are the generated secrets of a site. They are stored in a directory, each in a file that
// only root can read.
type Store struct{ Dir string }

// Read returns a value, or fs.ErrNotExist if it is not stored.
func (k Store) Read(name string) (string, error) {
	path, err := k.path(name)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	return string(text), err
}

// Put stores a value. It returns a problem if a different value is already stored.
func (k Store) Put(name, value string) error {
	switch stored, err := k.Read(name); {
	case err == nil && stored == value:
		return nil
	case err == nil:
		return problem.New(problem.Surprise, "generated secret %s already exists with another value", name).
			At(filepath.Join(k.Dir, name)).
			Try("decide which value is right, and remove the file with the other one")
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(k.Dir, 0o700); err != nil {
		return err
	}
	return host.WriteFile(host.File{Path: filepath.Join(k.Dir, name), Content: []byte(value), Mode: 0o600})
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

// maxSecretBytes is the maximum length of a generated secret.
const maxSecretBytes = 4096

// ValidGenerated reports whether value may be a result of Random. Use it to check a value from another host.
func ValidGenerated(value string) bool {
	return value != "" && len(value) <= maxSecretBytes && strings.Trim(value, alphabet) == ""
}
