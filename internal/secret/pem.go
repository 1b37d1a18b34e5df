package secret

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"strings"

	"golang.org/x/crypto/ssh"
)

// pemPrefix begins a stored value that is the base64 of PEM. Hosts store values as one line.
const pemPrefix = "pem:"

func storePEM(text []byte) string { return pemPrefix + base64.StdEncoding.EncodeToString(text) }

func openPEM(stored string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(stored, pemPrefix)
	if !ok {
		return nil, errors.New("it is not PEM")
	}
	return base64.StdEncoding.Strict().DecodeString(encoded)
}

// Plain returns the value as programs read it.
func (s Stored) Plain() (string, error) {
	if !strings.HasPrefix(s.Value, pemPrefix) {
		return s.Value, nil
	}
	text, err := openPEM(s.Value)
	return string(text), err
}

// IsCertificate reports whether the value is a private key with a certificate.
func (s Stored) IsCertificate() bool {
	text, _, err := openBundle(s.Value)
	return err == nil && isPlainPEM(text)
}

// sshKey returns a new private key of SSH, in the form in which hosts store it.
func sshKey(comment string) (string, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", err
	}
	block, err := ssh.MarshalPrivateKey(key, comment)
	if err != nil {
		return "", err
	}
	return storePEM(pem.EncodeToMemory(block)), nil
}

func isSSHKey(stored string) bool {
	text, err := openPEM(stored)
	if err != nil {
		return false
	}
	key, err := ssh.ParsePrivateKey(text)
	return err == nil && key.PublicKey().Type() == ssh.KeyAlgoED25519 && isPlainPEM(text)
}

// isPlainPEM reports whether text consists of blocks of PEM and nothing else, in the form in which this package
// writes them. A host could otherwise add lines that programs on nodes of other hosts read.
func isPlainPEM(text []byte) bool {
	var plain []byte
	for b, rest := pem.Decode(text); b != nil; b, rest = pem.Decode(rest) {
		if len(b.Headers) > 0 || strings.Trim(b.Type, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ") != "" {
			return false
		}
		plain = append(plain, pem.EncodeToMemory(b)...)
	}
	return len(plain) > 0 && bytes.Equal(plain, text)
}
