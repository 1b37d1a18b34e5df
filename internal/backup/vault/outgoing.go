package vault

import (
	"context"
	"errors"
	"io"
)

// Outgoing is the near end of a vault that somebody else has: blocks that are put into it are sent.
// What of a backup it lacks at the far end is for those who send to know.
type Outgoing struct {
	send  func(block []byte) error
	index *index
}

var _ Vault = (*Outgoing)(nil)

// NewOutgoing returns a vault that sends blocks, of which several may be sent at once.
func NewOutgoing(send func(block []byte) error) *Outgoing {
	return &Outgoing{send, newIndex()}
}

// MaxSentBytes is how many bytes a block has at most that was sent.
const MaxSentBytes = 8 + maxPieces*pieceLine + maxContentBytes + maxContentBytes>>7

// MaxParcelBytes is how many bytes an entry of a list has at most, and a part of a manifest with secrets.
const MaxParcelBytes = max(maxLineBytes, MaxManifestBytes+maxSecretsBytes)

// Unpack passes the pieces of a received block to each, with the digest that each really has,
// whatever the block says.
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

// EachEntry reads a list that somebody has sent, one entry after another.
func EachEntry(from io.Reader, visit func(*Entry) error) error { return eachEntry(from, visit) }

// SecretPath reports whether a path is that of a secret.
func SecretPath(path string) bool { return isSecret(path) }

var errElsewhere = errors.New("the vault is on another machine")

// Where names it.
func (*Outgoing) Where() string { return "another machine" }

// Backups cannot be told.
func (*Outgoing) Backups() ([]string, error) { return nil, errElsewhere }

// Manifest cannot be read.
func (*Outgoing) Manifest(string) (*Manifest, error) { return nil, errElsewhere }

// Verify cannot be done.
func (*Outgoing) Verify(context.Context, string, func(int64)) error { return errElsewhere }

// Commit cannot be done.
func (*Outgoing) Commit(*Manifest) (string, error) { return "", errElsewhere }

// Close has nothing to do.
func (*Outgoing) Close() error { return nil }

// Sound reports that what was sent is as it was.
func (*Outgoing) Sound(Digest) bool { return true }

func (o *Outgoing) has() *index { return o.index }

func (*Outgoing) block(Digest) ([]byte, error) { return nil, errElsewhere }

func (o *Outgoing) put(_ Digest, block []byte) error { return o.send(block) }
