package vault

import (
	"context"
	"errors"
	"io"
)

// RemoteVault is the local end of a vault on another machine: it sends the blocks that are put into
// it. The sender must know which pieces the other machine lacks.
type RemoteVault struct {
	send  func(block []byte) error
	index *index
}

var _ Vault = (*RemoteVault)(nil)

// NewRemoteVault returns a vault that sends blocks. Send may be called concurrently.
func NewRemoteVault(send func(block []byte) error) *RemoteVault {
	return &RemoteVault{send, newIndex()}
}

// MaxSentBytes is the maximum size of a block that is sent.
const MaxSentBytes = 8 + maxPieces*pieceLine + maxContentBytes + maxContentBytes>>7

// MaxMessageBytes is the maximum size of an entry of a list, and of a manifest with secrets.
const MaxMessageBytes = max(maxLineBytes, MaxManifestBytes+maxSecretsBytes)

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

var errRemote = errors.New("the vault is on another machine")

// Where returns "another machine".
func (*RemoteVault) Where() string { return "another machine" }

// Backups returns an error.
func (*RemoteVault) Backups() ([]string, error) { return nil, errRemote }

// Manifest returns an error.
func (*RemoteVault) Manifest(string) (*Manifest, error) { return nil, errRemote }

// Verify returns an error.
func (*RemoteVault) Verify(context.Context, string, func(int64)) error { return errRemote }

// Commit returns an error.
func (*RemoteVault) Commit(*Manifest) (string, error) { return "", errRemote }

// Close does nothing.
func (*RemoteVault) Close() error { return nil }

// IsIntact returns true.
func (*RemoteVault) IsIntact(Digest) bool { return true }

func (o *RemoteVault) pieceIndex() *index { return o.index }

func (*RemoteVault) block(Digest) ([]byte, error) { return nil, errRemote }

func (o *RemoteVault) put(_ Digest, block []byte) error { return o.send(block) }
