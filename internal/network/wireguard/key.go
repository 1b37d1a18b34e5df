package wireguard

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"orrery/internal/problem"
)

// LoadOrCreateKey returns the private key of this host from a file. If the file does not exist, Key makes a
// random key and writes it.
func LoadOrCreateKey(path string, write func(text []byte) error) (private string, err error) {
	text, err := os.ReadFile(path)
	if err == nil && len(text) > 0 { // a power cut may leave an empty file, whose key was never on disk
		private := strings.TrimSpace(string(text))
		if _, err := PublicKey(private); err != nil {
			return "", problem.New(problem.Failed, "the WireGuard key of this host cannot be read").At(path).
				Because(err).
				Try("remove it: the next orrery up creates a new one and sends it to the other hosts")
		}
		return private, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if private, err = GenerateKey(); err != nil {
		return "", err
	}
	return private, write([]byte(private + "\n"))
}

// GenerateKey returns a new private key.
func GenerateKey() (string, error) {
	key, err := wgtypes.GeneratePrivateKey()
	return key.String(), err
}

// PublicKey returns the public key of a private one.
func PublicKey(private string) (string, error) {
	key, err := wgtypes.ParseKey(private)
	if err != nil {
		return "", err
	}
	return key.PublicKey().String(), nil
}
