package vault

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"filippo.io/age"

	"orrery/internal/problem"
	"orrery/internal/tree"
	"orrery/internal/treesync"
)

// Sealed is secrets encrypted with age: generated secrets and SSH host keys. Only owners of the
// passphrase or key can read them.
type Sealed struct {
	Names  bounded[string] `json:"names"` // of the secrets
	Pieces digests         `json:"pieces"`
}

// Secrets are files, by path: secrets/NAME, keys/NODE/FILE.
type Secrets map[string][]byte

// Names returns the paths, sorted.
func (s Secrets) Names() []string { return slices.Sorted(maps.Keys(s)) }

// Seal encrypts secrets for the recipients.
func (s Secrets) Seal(to []age.Recipient) ([]byte, error) {
	var b bytes.Buffer
	safe, err := age.Encrypt(&b, to...)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(safe)
	for _, name := range s.Names() {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(s[name])),
			Typeflag: tar.TypeReg}); err != nil {
			return nil, err
		}
		if _, err := w.Write(s[name]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := safe.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Unseal decrypts secrets, if one of the identities can.
func Unseal(from io.Reader, with []age.Identity) (Secrets, error) {
	plain, err := age.Decrypt(from, with...)
	if err != nil {
		return nil, err
	}
	all := Secrets{}
	r := tar.NewReader(io.LimitReader(plain, maxSecretsBytes))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if !treesync.Name(h.Name).IsLocal() {
			return nil, errors.New("a path leads out of the archive")
		}
		if !isSecret(h.Name) || h.Typeflag != tar.TypeReg {
			continue // an incomplete file of a run that was killed
		}
		if all[h.Name], err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
}

// maxSecretsBytes limits the size of all secrets of a site.
const maxSecretsBytes = 256 << 20

// Recipients returns the recipients of encrypted secrets: age's public keys, or the passphrase in a
// file.
func Recipients(keys []string, passphraseFile string) ([]age.Recipient, error) {
	if passphraseFile != "" {
		if len(keys) > 0 {
			return nil, problem.New(problem.Usage, "secrets cannot be encrypted both with a passphrase and for keys").
				Try("omit one of them")
		}
		phrase, err := passphrase(passphraseFile)
		if err != nil {
			return nil, err
		}
		to, err := age.NewScryptRecipient(phrase)
		return []age.Recipient{to}, err
	}
	var all []age.Recipient
	for _, key := range keys {
		to, err := age.ParseX25519Recipient(key)
		if err != nil {
			return nil, problem.New(problem.Usage, "%q is not an age public key", key).
				Try("create a key pair with age-keygen; the public key begins with age1")
		}
		all = append(all, to)
	}
	return all, nil
}

// Identities returns what decrypts secrets: the secret keys of age in one file, or the passphrase
// in another.
func Identities(keyFile, passphraseFile string) ([]age.Identity, error) {
	var all []age.Identity
	if passphraseFile != "" {
		phrase, err := passphrase(passphraseFile)
		if err != nil {
			return nil, err
		}
		with, err := age.NewScryptIdentity(phrase)
		if err != nil {
			return nil, err
		}
		with.SetMaxWorkFactor(18) // used by Recipients; each further step doubles 256 MiB of memory
		all = append(all, with)
	}
	if keyFile != "" {
		text, err := tree.ReadFile(keyFile, 1<<20)
		if err != nil {
			return nil, problem.New(problem.Usage, "the key cannot be read").At(keyFile).Because(problem.PathErrorCause(err))
		}
		keys, err := age.ParseIdentities(bytes.NewReader(text))
		if err != nil {
			return nil, problem.New(problem.Usage, "this file contains no age secret key").At(keyFile).
				Try("name the file that age-keygen wrote")
		}
		all = append(all, keys...)
	}
	return all, nil
}

func passphrase(file string) (string, error) {
	text, err := tree.ReadFile(file, 1<<20)
	if err != nil {
		return "", problem.New(problem.Usage, "the passphrase cannot be read").At(file).Because(problem.PathErrorCause(err))
	}
	phrase := strings.TrimRight(string(text), "\r\n")
	if phrase == "" {
		return "", problem.New(problem.Usage, "the passphrase is empty").At(file)
	}
	return phrase, nil
}
