package vault

import (
	"context"
	"errors"
	"io"
)

// Outgoing is the local end of a vault on another machine: it sends the blocks that are put into
// it. The sender must know which pieces the other machine lacks.
type Outgoing struct {
	send  func(block []byte) error
	index *index
}

var _ Vault = (*Outgoing)(nil)

// NewOutgoing returns a vault that sends blocks. Send may be called concurrently.
func NewOutgoing(send func(block []byte) error) *Outgoing {
	return &Outgoing{send, newIndex()}
}

// MaxSentBytes is the maximum size of a block that is sent.
const MaxSentBytes = 8 + maxPieces*pieceLine + maxContentBytes + maxContentBytes>>7

// MaxParcelBytes is the maximum size of an entry of a list, and of a manifest with secrets.
const MaxParcelBytes = max(maxLineBytes, MaxManifestBytes+maxSecretsBytes)

// Unpack passes the pieces of a received block to each. It returns an error if the digest of a
// piece is wrong.
func Unpack(block []byte, each func(d Digest, content []byte) error) error {
	content, err := contentOf(block)
	if err != nil {
		return err
	}
	pieces, err := piecesOf(block)
	if err != nil {
		return err
	}
	for _, p := range pieces {
		if digestOf(content[:p.size]) != p.digest {
			return errDigest
		}
		if err := each(p.digest, content[:p.size]); err != nil {
			return err
		}
		content = content[p.size:]
	}
	return nil
}

// EachEntry parses a received list, one entry at a time.
func EachEntry(from io.Reader, visit func(*Entry) error) error { return eachEntry(from, visit) }

// SecretPath reports whether a path is that of a secret.
func SecretPath(path string) bool { return isSecret(path) }

var errElsewhere = errors.New("the vault is on another machine")

// Where returns "another machine".
func (*Outgoing) Where() string { return "another machine" }

// Backups returns an error.
func (*Outgoing) Backups() ([]string, error) { return nil, errElsewhere }

// Manifest returns an error.
func (*Outgoing) Manifest(string) (*Manifest, error) { return nil, errElsewhere }

// Verify returns an error.
func (*Outgoing) Verify(context.Context, string, func(int64)) error { return errElsewhere }

// Commit returns an error.
func (*Outgoing) Commit(*Manifest) (string, error) { return "", errElsewhere }

// Close does nothing.
func (*Outgoing) Close() error { return nil }

// Sound returns true.
func (*Outgoing) Sound(Digest) bool { return true }

func (o *Outgoing) has() *index { return o.index }

func (*Outgoing) block(Digest) ([]byte, error) { return nil, errElsewhere }

func (o *Outgoing) put(_ Digest, block []byte) error { return o.send(block) }
