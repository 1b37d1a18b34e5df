package ferry

import (
	"io"

	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/treesync"
)

// straight lets a host that is this process use the vault itself, which saves packing and unpacking
// what is in it: it puts pieces into a backup.Adder, and reads them from backup.Contents. A host
// that is another process gets nothing but the bytes of its end.
func straight(near io.ReadWriter, own any) {
	if shared := treesync.Shared(near); shared != nil {
		*shared = own
	}
}

// vaultOf returns the vault that the other end has given, or the zero value if there is none.
func vaultOf[T any](far io.ReadWriter) (own T) {
	if shared := treesync.Shared(far); shared != nil {
		own, _ = (*shared).(T)
	}
	return own
}

// contentsFrom returns from where a host reads what it lays down: the vault itself, or what comes.
func contentsFrom(far io.ReadWriter, coming backup.Contents) backup.Contents {
	if own := vaultOf[backup.Contents](far); own != nil {
		return own
	}
	return coming
}

// watched is what is in a vault, with somebody who sees how much of it is read.
type watched struct {
	backup.Contents
	saw func(int64)
}

// Get returns the content of a piece.
func (w watched) Get(d vault.Digest) ([]byte, error) {
	content, err := w.Contents.Get(d)
	w.saw(int64(len(content)))
	return content, err
}
