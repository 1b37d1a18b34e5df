package vault

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// A Digest is the SHA-256 of content, and its name.
type Digest [sha256.Size]byte

func digestOf(b []byte) Digest { return sha256.Sum256(b) }

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText returns 64 hexadecimal digits.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses 64 hexadecimal digits.
func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(d)) {
		return fmt.Errorf("a digest with %d characters", len(text))
	}
	_, err := hex.Decode(d[:], text)
	return err
}
