package ferry

import (
	"io"

	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/treesync"
)

// setDirect lets a host that is this process have direct access to the vault, which saves packing and
// unpacking the content. The host puts pieces into a backup.Adder, and reads them from
// backup.Contents. A host in another process gets nothing.
func setDirect(near io.ReadWriter, own any) {
	if shared := treesync.SharedState(near); shared != nil {
		*shared = own
	}
}

// directOf returns the vault that the other end has set, or the zero value if there is none.
func directOf[T any](far io.ReadWriter) (own T) {
	if shared := treesync.SharedState(far); shared != nil {
		own, _ = (*shared).(T)
	}
	return own
}

// contentsFrom returns the source of what a host stages: the vault itself, or what the peer sends.
func contentsFrom(far io.ReadWriter, coming backup.Contents) backup.Contents {
	if own := directOf[backup.Contents](far); own != nil {
		return own
	}
	return coming
}

// countedContents is the content of a vault whose reads are counted.
type countedContents struct {
	backup.Contents
	saw func(int64)
}

// Get returns the content of a piece.
func (w countedContents) Get(d vault.Digest) ([]byte, error) {
	content, err := w.Contents.Get(d)
	w.saw(int64(len(content)))
	return content, err
}
